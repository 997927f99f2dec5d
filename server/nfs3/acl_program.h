// SPDX-License-Identifier: Apache-2.0
// NFSACL version 3 (xdr/nfsacl3.h): POSIX ACLs of NFSv3's file handles, on the connections of NFS.
#pragma once

#include "server/procedure.h"

namespace nfsrdma::nfs3 {

Outcome getacl(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result);
Outcome setacl(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result);

const ProgramTable& acl_program_table();

}  // namespace nfsrdma::nfs3
