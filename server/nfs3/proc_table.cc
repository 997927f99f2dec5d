// SPDX-License-Identifier: Apache-2.0
// Rows in the order of the procedures' numbers. READ decides for itself when it would block; what
// else touches the file system is measured. Whatever changes names, attributes or data goes through
// the duplicate request cache: a WRITE that is run twice does harm when the client, which had the
// answer from the other one, has written something else there by then.
#include "server/nfs3/procedures.h"
#include "xdr/nfs3_constants.h"

namespace nfsrdma::nfs3 {

namespace {

using enum Replay;
using enum Placement;

constexpr ProcedureRow kRows[] = {
    {"NULL", null, kIdempotent, kInline},
    {"GETATTR", getattr, kIdempotent, kMeasured},
    {"SETATTR", setattr, kCached, kMeasured},
    {"LOOKUP", lookup, kIdempotent, kMeasured},
    {"ACCESS", access, kIdempotent, kMeasured},
    {"READLINK", readlink, kIdempotent, kMeasured},
    {"READ", read, kIdempotent, kInline},
    {"WRITE", write, kCachedBriefly, kMeasured},
    {"CREATE", create, kCached, kMeasured},
    {"MKDIR", mkdir, kCached, kMeasured},
    {"SYMLINK", symlink, kCached, kMeasured},
    {"MKNOD", mknod, kCached, kMeasured},
    {"REMOVE", remove, kCached, kMeasured},
    {"RMDIR", rmdir, kCached, kMeasured},
    {"RENAME", rename, kCached, kMeasured},
    {"LINK", link, kCached, kMeasured},
    {"READDIR", readdir, kIdempotent, kMeasured, readdir_reply_bytes},
    {"READDIRPLUS", readdirplus, kIdempotent, kMeasured, readdirplus_reply_bytes},
    {"FSSTAT", fsstat, kIdempotent, kMeasured},
    {"FSINFO", fsinfo, kIdempotent, kMeasured},
    {"PATHCONF", pathconf, kIdempotent, kMeasured},
    {"COMMIT", commit, kIdempotent, kMeasured},
};
static_assert(std::size(kRows) == xdr::kNfs3ProcedureCount);

constexpr ProgramTable kTable{xdr::kNfsProgram, xdr::kNfsV3, "NFSv3", kRows};

}  // namespace

const ProgramTable& program_table() {
  return kTable;
}

}  // namespace nfsrdma::nfs3
