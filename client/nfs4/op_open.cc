// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: asking for a delegation, and what one is good for.
//
// The OPEN is closed in its own COMPOUND: a delegation does not need it, and who has none reads and
// writes as before. What the server says behind the OPEN (rights, attributes) is covered by the
// promise. An OPEN that fails, be it for a delegation of somebody else's that has to be recalled
// first, is no failure: the same is asked without it.
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/stateid_check.h"
#include "client/occasion.h"

namespace nfsrdma {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::kCurrentStateid;
using nfs4::next_attributes;
using nfs4::put;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// Shared: who asked may be gone before the answer comes, which must not be lost.
struct Nfs4Operations::Ask {
  OpContext op;
  FileHandle file;
  std::uint32_t wanted = 0;
  std::uint32_t share = 0;  // OPEN4_SHARE_ACCESS_ bits
  Result<AccessResult> result = AccessResult{};
  Occasion done;
};

Task<Result<AccessResult>> Nfs4Operations::access_and_ask(const OpContext& op,
                                                          const FileHandle& file,
                                                          std::uint32_t wanted,
                                                          std::uint32_t open_for) {
  const std::uint32_t share = nfs4::share_access(open_for);
  if (share == 0 || !may_be_delegated() || !delegations_.may_ask(file))
    co_return co_await access(op, file, wanted);
  auto ask = std::make_shared<Ask>();
  ask->op.identity = op.identity;
  ask->op.cancel = &delegations_.stopping();
  ask->file = file;
  ask->wanted = wanted;
  ask->share = share;
  delegations_.ask(carry_out(ask));
  const bool waited = co_await ask->done.wait(op.cancel);
  if (!waited) co_return Error{Errc::kSystem, EINTR, "interrupted"};
  co_return std::move(ask->result);
}

Task<void> Nfs4Operations::carry_out(std::shared_ptr<Ask> ask) {
  ask->result = co_await open_for_a_delegation(ask->op, ask->file, ask->wanted, ask->share);
  ask->done.come();
}

Task<Result<AccessResult>> Nfs4Operations::open_for_a_delegation(const OpContext& op,
                                                                 const FileHandle& file,
                                                                 std::uint32_t wanted,
                                                                 std::uint32_t share) {
  NFSRDMA_CO_CHECK_OK(co_await session_.allow_opens(op));
  const nfs4::OwnerBytes owner(++next_owner_);
  const bool writes = (share & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
  AccessResult result;
  auto build = [&](CompoundWriter& out) {
    xdr::OPEN4args args;
    args.share_access = share | (writes ? xdr::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG
                                        : xdr::OPEN4_SHARE_ACCESS_WANT_READ_DELEG);
    args.share_deny = xdr::OPEN4_SHARE_DENY_NONE;
    args.owner = owner.of(session_);
    args.claim.claim = xdr::open_claim_type4::CLAIM_FH;
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_OPEN, args);
    out.op(nfs_opnum4::OP_CLOSE, xdr::CLOSE4args{0, kCurrentStateid});
    out.op(nfs_opnum4::OP_ACCESS, xdr::ACCESS4args{wanted});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::OPEN4res open;
    xdr::CLOSE4res close;
    xdr::ACCESS4res access;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_OPEN, open)) return;
    delegations_.granted(file, op.identity, share, open.resok4.delegation);
    if (!in.next(nfs_opnum4::OP_CLOSE, close)) return;
    if (!in.next(nfs_opnum4::OP_ACCESS, access)) return;
    result.allowed = access.resok4.access & wanted;
    next_attributes(in, names_, &result.attributes);
  };
  Ending end;
  {
    const nfs4::Delegations::Asking asking(delegations_, file);
    const nfs4::CallShape shape{.max_results = 2048, .once = true, .patient = false};
    NFSRDMA_CO_TRY(end, co_await call(session_, op, shape, build, parse));
  }
  if (end.status == nfsstat4::NFS4_OK) co_return result;
  co_return co_await access(op, file, wanted);
}

bool Nfs4Operations::may_be_delegated() const {
  return session_.has_back_channel();
}

xdr::stateid4 Nfs4Operations::stateid_now(const FileHandle& file, std::uint32_t access) const {
  const xdr::stateid4 of_lock = locks_.stateid_for(file, access);
  if (of_lock.other != xdr::stateid4{}.other) return of_lock;
  return delegations_.stateid_for(file, access);
}

Result<DataRight> Nfs4Operations::right_for(const FileHandle& file, std::uint32_t access) const {
  NFSRDMA_CHECK_OK(locks_.usable(file));
  const xdr::stateid4 stateid = stateid_now(file, nfs4::share_access(access));
  return DataRight{stateid.seqid, stateid.other};
}

bool Nfs4Operations::once_more(const FileHandle& file, const xdr::stateid4& used, nfsstat4 status) {
  if (!nfs4::stateid_is_gone(status)) return false;
  return delegations_.gone(file, used) || locks_.again(file, used, status);
}

}  // namespace nfsrdma
