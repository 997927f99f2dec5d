// SPDX-License-Identifier: Apache-2.0
// The client id of minor version 0 (RFC 7530, section 9.1.1 and 9.5), one COMPOUND or two each.
// What is done about their answers is Session's business (client_id.cc has its part of it).
//
// `op` is of the client id's principal, always the same.
#pragma once

#include <string_view>

#include "client/nfs4/callback_place.h"
#include "client/rpc_client.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

/// SETCLIENTID and SETCLIENTID_CONFIRM. NFS4_OK: *id is the client id. A server that is told of no
/// place to call at grants no delegations.
Task<Result<xdr::nfsstat4>> set_client_id(RpcClient& rpc, const OpContext& op,
                                          xdr::verifier4 verifier, std::string_view owner,
                                          const CallbackPlace& place, std::uint64_t* id);
/// RENEW.
Task<Result<xdr::nfsstat4>> renew_client_id(RpcClient& rpc, const OpContext& op, std::uint64_t id);

}  // namespace nfsrdma::nfs4
