// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/known_server.h"

#include "client/nfs4/ask.h"
#include "client/nfs4/session.h"
#include "client/request_ends.h"

namespace nfsrdma::nfs4 {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

KnownServer KnownServer::of(const std::string& owner, const xdr::verifier4& verifier,
                            const xdr::EXCHANGE_ID4resok& answer) {
  const auto bytes = [](ByteSpan span) { return std::vector<std::byte>(span.begin(), span.end()); };
  const xdr::server_owner4& its = answer.eir_server_owner;
  return {owner,
          verifier,
          answer.eir_clientid,
          its.so_minor_id,
          bytes(its.so_major_id),
          bytes(answer.eir_server_scope)};
}

xdr::EXCHANGE_ID4args exchange_id_args(const std::string& owner, const xdr::verifier4& verifier) {
  xdr::EXCHANGE_ID4args args;
  args.eia_clientowner = {verifier, as_bytes(owner)};
  // Both are followed by the FUSE mount (client/fuse/referring_remote.h). The library and the tool
  // follow referrals, and make NFS4ERR_MOVED of anything else an error of its own.
  args.eia_flags = xdr::EXCHGID4_FLAG_USE_NON_PNFS | xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER |
                   xdr::EXCHGID4_FLAG_SUPP_MOVED_MIGR;
  return args;
}

Task<Result<bool>> Session::leads_here(const OpContext& op, RpcConnection& way) {
  if (state_ != State::kUsable) co_return kStopped;
  const std::shared_ptr<const KnownServer> here = server_;
  if (here == nullptr) {
    co_return Error{Errc::kUnsupported, EOPNOTSUPP, "trunking begins with NFSv4.1"};
  }
  const xdr::EXCHANGE_ID4args args = exchange_id_args(here->owner, here->verifier);
  OpContext as_owner = op;
  as_owner.identity = options_.identity;
  bool same = false;
  bool knows_us = true;
  auto build = [&](CompoundWriter& out) { out.op(nfs_opnum4::OP_EXCHANGE_ID, args); };
  auto parse = [&](CompoundReader& in) {
    xdr::EXCHANGE_ID4res result;
    if (!in.next(nfs_opnum4::OP_EXCHANGE_ID, result)) return;
    const KnownServer there = KnownServer::of(here->owner, here->verifier, result.resok4);
    same = there == *here;
    knows_us = same || !there.same_but_for_the_client(*here);
  };
  NFSRDMA_CO_TRY(nfsstat4 status, co_await ask(rpc_, as_owner, options_.minor, build, parse, &way));
  if (status != nfsstat4::NFS4_OK) co_return status_error(status, "EXCHANGE_ID");
  if (!knows_us) {
    co_return Error{Errc::kRefused, EAGAIN, "the server there does not know this client"};
  }
  // Else it may have been of a client id that is no more.
  if (here != server_) co_return kStopped;
  co_return same;
}

}  // namespace nfsrdma::nfs4
