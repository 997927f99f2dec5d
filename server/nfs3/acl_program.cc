// SPDX-License-Identifier: Apache-2.0
// Rows in the order of the procedures' numbers. SETACL is cached as SETATTR is: the same one run
// again, late, would undo what another client has set meanwhile.
#include "server/nfs3/acl_program.h"

#include "server/nfs3/procedures.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma::nfs3 {

namespace {

/// Room for as many entries as may be asked for.
std::size_t getacl_reply_bytes(ServerContext&, xdr::Decoder args) {
  constexpr std::size_t kHead = 256;  // status, attributes, mask and counts
  constexpr std::size_t kEntry = 12;
  xdr::GETACL3args asked;
  if (!xdr::decode(args, asked)) return kHead;
  std::size_t acls = 0;
  if ((asked.mask & xdr::NFS_ACL) != 0) ++acls;
  if ((asked.mask & xdr::NFS_DFACL) != 0) ++acls;
  return kHead + acls * xdr::kNfsAclMaxEntries * kEntry;
}

constexpr ProcedureRow kRows[] = {
    {"NULL", null, Replay::kIdempotent, Placement::kInline},
    {"GETACL", getacl, Replay::kIdempotent, Placement::kMeasured, getacl_reply_bytes},
    {"SETACL", setacl, Replay::kCached, Placement::kMeasured},
};
static_assert(std::size(kRows) == xdr::kNfsAcl3ProcedureCount);

constexpr ProgramTable kTable{xdr::kNfsAclProgram, xdr::kNfsAclV3, "NFSACLv3", kRows};

}  // namespace

const ProgramTable& acl_program_table() {
  return kTable;
}

}  // namespace nfsrdma::nfs3
