// SPDX-License-Identifier: Apache-2.0
// The 22 procedures of NFS version 3 (RFC 1813, section 3.3), one file each, and their table.
#pragma once

#include "server/procedure.h"

namespace nfsrdma::nfs3 {

#define NFSRDMA_NFS3_PROCEDURE(name) \
  Outcome name(ServerContext& server, Request& request, xdr::Decoder& decoder, xdr::Encoder& result)
NFSRDMA_NFS3_PROCEDURE(null);
NFSRDMA_NFS3_PROCEDURE(getattr);
NFSRDMA_NFS3_PROCEDURE(setattr);
NFSRDMA_NFS3_PROCEDURE(lookup);
NFSRDMA_NFS3_PROCEDURE(access);
NFSRDMA_NFS3_PROCEDURE(readlink);
NFSRDMA_NFS3_PROCEDURE(read);
NFSRDMA_NFS3_PROCEDURE(write);
NFSRDMA_NFS3_PROCEDURE(create);
NFSRDMA_NFS3_PROCEDURE(mkdir);
NFSRDMA_NFS3_PROCEDURE(symlink);
NFSRDMA_NFS3_PROCEDURE(mknod);
NFSRDMA_NFS3_PROCEDURE(remove);
NFSRDMA_NFS3_PROCEDURE(rmdir);
NFSRDMA_NFS3_PROCEDURE(rename);
NFSRDMA_NFS3_PROCEDURE(link);
NFSRDMA_NFS3_PROCEDURE(readdir);
NFSRDMA_NFS3_PROCEDURE(readdirplus);
NFSRDMA_NFS3_PROCEDURE(fsstat);
NFSRDMA_NFS3_PROCEDURE(fsinfo);
NFSRDMA_NFS3_PROCEDURE(pathconf);
NFSRDMA_NFS3_PROCEDURE(commit);
#undef NFSRDMA_NFS3_PROCEDURE

/// For the dispatcher.
const ProgramTable& program_table();

/// A directory reply is never longer than this, whatever the client would take.
inline constexpr std::size_t kMaxDirectoryReply = std::size_t{1} << 20;
/// Room for READDIR's and READDIRPLUS' results.
std::size_t readdir_reply_bytes(ServerContext& server, xdr::Decoder args);
std::size_t readdirplus_reply_bytes(ServerContext& server, xdr::Decoder args);

}  // namespace nfsrdma::nfs3
