// SPDX-License-Identifier: Apache-2.0
// ask(): one COMPOUND that is no operation of the mount's: outside of any session, or with a
// SEQUENCE of the builder's own, and sent once. What its status wants done is the caller's
// business. `by`: the connection that it takes, where that matters; null: any.
#pragma once

#include "client/nfs4/compound.h"
#include "client/rpc_client.h"
#include "xdr/nfs3_constants.h"

namespace nfsrdma::nfs4 {

template <typename Build, typename Parse>
Task<Result<xdr::nfsstat4>> ask(RpcClient& rpc, const OpContext& op, std::uint32_t minor,
                                Build& build, Parse& parse, RpcConnection* by = nullptr) {
  RpcCallLease rpc_call = rpc.prepare(xdr::kNfsProgram, xdr::kNfsV4, xdr::NFSPROC4_COMPOUND, op);
  if (by != nullptr) rpc_call->set_way(*by);
  CompoundWriter out(rpc_call->encoder(), minor);
  build(out);
  out.finish();
  rpc_call->set_max_results(2048);
  NFSRDMA_CO_CHECK_OK(co_await rpc_call->run());
  CompoundReader in(rpc_call->results());
  parse(in);
  if (!in.sound()) co_return Error{Errc::kProtocol, EIO, "undecodable NFS result"};
  co_return in.status();
}

}  // namespace nfsrdma::nfs4
