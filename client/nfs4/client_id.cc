// SPDX-License-Identifier: Apache-2.0
// The client id of minor version 0, and what Session does with it: there is no session, and what
// this client holds stands as long as the server hears RENEW in time.
#include "client/nfs4/client_id.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/nfs4/ask.h"
#include "client/nfs4/session.h"
#include "client/request_ends.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

constexpr Duration kRetryFirst = std::chrono::milliseconds(500);
constexpr Duration kRetryLongest = std::chrono::seconds(15);
constexpr int kAttempts = 8;
/// Between offers of a place to a server that does not call there.
constexpr Duration kOfferAgain = std::chrono::minutes(5);
/// More than any READ or WRITE has around its data: nothing but the client bounds a COMPOUND here.
constexpr std::uint32_t kAnyBytes = 1u << 30;

}  // namespace

Task<Result<nfsstat4>> set_client_id(RpcClient& rpc, const OpContext& op, xdr::verifier4 verifier,
                                     std::string_view owner, const CallbackPlace& place,
                                     std::uint64_t* id) {
  xdr::SETCLIENTID4args args;
  args.client = {verifier, as_bytes(owner)};
  args.callback = place.location();
  args.callback_ident = place.ident();
  xdr::SETCLIENTID4resok given;
  auto set = [&](CompoundWriter& out) { out.op(nfs_opnum4::OP_SETCLIENTID, args); };
  auto take = [&](CompoundReader& in) {
    xdr::SETCLIENTID4res result;
    if (in.next(nfs_opnum4::OP_SETCLIENTID, result)) given = result.resok4;
  };
  NFSRDMA_CO_TRY(nfsstat4 status, co_await ask(rpc, op, 0, set, take));
  if (status != nfsstat4::NFS4_OK) co_return status;
  auto confirm = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_SETCLIENTID_CONFIRM,
           xdr::SETCLIENTID_CONFIRM4args{given.clientid, given.setclientid_confirm});
  };
  auto look = [&](CompoundReader& in) { in.next(nfs_opnum4::OP_SETCLIENTID_CONFIRM); };
  NFSRDMA_CO_TRY(status, co_await ask(rpc, op, 0, confirm, look));
  if (status == nfsstat4::NFS4_OK) *id = given.clientid;
  co_return status;
}

Task<Result<nfsstat4>> renew_client_id(RpcClient& rpc, const OpContext& op, std::uint64_t id) {
  auto build = [&](CompoundWriter& out) { out.op(nfs_opnum4::OP_RENEW, xdr::RENEW4args{id}); };
  auto look = [&](CompoundReader& in) { in.next(nfs_opnum4::OP_RENEW); };
  co_return co_await ask(rpc, op, 0, build, look);
}

// --- Session, in minor version 0 ---

MadeSession Session::without_session() const {
  return {{}, client_id_, 0, options_.slots, kAnyBytes, kAnyBytes, false, 0, 0, nullptr};
}

Task<Result<nfsstat4>> Session::name_client(const OpContext& op, std::uint64_t* id) {
  // The server forgets the first of two that are not confirmed.
  while (naming_) {
    const bool woken = co_await named_.wait(op.cancel);
    if (!woken) co_return kInterrupted;
  }
  // What the server makes of an address it shows by calling there, perhaps before it answers.
  if (place_.listen()) called_ = false;
  callbacks_.begin_client_id(place_.program(), place_.ident());
  naming_ = true;
  named_at_ = rpc_.environment().now();
  Result<nfsstat4> said = co_await set_client_id(rpc_, op, verifier_, options_.owner, place_, id);
  naming_ = false;
  named_.wake_one();
  co_return said;
}

void Session::offer_callbacks_again() {
  const bool just_done = rpc_.environment().now() - named_at_ < kOfferAgain;
  if (called_ || just_done || naming_ || !options_.called_at || state_ != State::kUsable) return;
  tasks_.spawn(restore_callbacks({0, epoch_}));
}

Task<void> Session::restore_callbacks(Turn of) {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  std::uint64_t id = 0;
  Result<nfsstat4> said = co_await name_client(op, &id);
  // A server that has made another client of us has forgotten the first one.
  const bool another = said.ok() && *said == nfsstat4::NFS4_OK && id != client_id_;
  if (another && of.epoch == epoch_) renew(of, Remedy::kNewClientId);
}

Task<Result<void>> Session::establish_client_id(const OpContext& op, std::string* detail) {
  // Whoever asks for a new one was told that the server knows nothing of the old one.
  const bool reclaims = opens_ && state_held_ != nullptr;
  nfsstat4 status = nfsstat4::NFS4_OK;
  Duration wait = kRetryFirst;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) {
      co_await pauses_.pause(wait, op.cancel);
      wait = std::min(2 * wait, kRetryLongest);
    }
    if (op.cancel != nullptr && op.cancel->cancelled()) {
      co_return kInterrupted;
    }
    std::uint64_t id = 0;
    const TimePoint asked_at = rpc_.environment().now();
    NFSRDMA_CO_TRY(status, co_await name_client(op, &id));
    // It has restarted in between, or wants to be asked later.
    if (status == nfsstat4::NFS4ERR_STALE_CLIENTID) continue;
    if (remedy_of_minor_0(status) == Remedy::kLater) continue;
    if (status != nfsstat4::NFS4_OK) break;
    client_id_kept_ = id == std::exchange(last_client_id_, id);
    client_id_ = id;
    use(without_session());
    heard_at_ = asked_at;
    if (delegations_ != nullptr) delegations_->all_lost();
    if (!reclaims) co_return Result<void>();
    Result<void> reclaimed = co_await state_held_->reclaim(op);
    if (reclaimed.ok()) co_return Result<void>();
    // Perhaps the server has restarted once more.
    if (reclaimed.error().code != Errc::kInvalid) co_return reclaimed.error();
    status = nfsstat4::NFS4ERR_STALE_CLIENTID;
  }
  *detail = fmt::format("SETCLIENTID: {}", xdr::enum_name(status));
  co_return status_error(status, "SETCLIENTID");
}

Task<Result<nfsstat4>> Session::ask_in_recovery_0(const OpContext& op, const Builder& build,
                                                  const Parser& parse) {
  if (stopped_) co_return Error{Errc::kSystem, EIO, "aborted"};
  NFSRDMA_CO_TRY(const nfsstat4 status, co_await ask(rpc_, op, 0, build, parse));
  if (status == nfsstat4::NFS4ERR_STALE_CLIENTID || status == nfsstat4::NFS4ERR_STALE_STATEID) {
    co_return Error{Errc::kInvalid, EIO, "the client id is gone"};
  }
  co_return status;
}

Task<Result<bool>> Session::client_id_stands(const OpContext& op, Turn of) {
  // A guest asks for nothing that only its host can get back.
  if (options_.source != nullptr) co_return true;
  if (of.epoch != epoch_ || state_ != State::kUsable) co_return false;
  OpContext as_owner;
  as_owner.identity = options_.identity;
  as_owner.cancel = op.cancel;
  const TimePoint asked_at = rpc_.environment().now();
  NFSRDMA_CO_TRY(nfsstat4 status, co_await renew_client_id(rpc_, as_owner, client_id_));
  if (of.epoch != epoch_) co_return false;
  switch (status) {
    case nfsstat4::NFS4ERR_STALE_CLIENTID:
    case nfsstat4::NFS4ERR_EXPIRED:
      renew(of, Remedy::kNewClientId);
      co_return false;
    case nfsstat4::NFS4ERR_DELAY:
    case nfsstat4::NFS4ERR_GRACE:
      co_return false;
    default:
      break;
  }
  heard_at_ = std::max(heard_at_, asked_at);
  // The lease is renewed all the same.
  if (status == nfsstat4::NFS4ERR_CB_PATH_DOWN) {
    // RFC 7530, 10.2.1: what was granted may be revoked without our hearing of it.
    if (delegations_ != nullptr) delegations_->keep_most(0);
    if (place_.is_open()) tasks_.spawn(restore_callbacks(of));
  }
  if (status == nfsstat4::NFS4ERR_LEASE_MOVED) lease_moved();
  co_return true;
}

}  // namespace nfsrdma::nfs4
