// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "client/nfs4/ask.h"
#include "client/request_ends.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// What a COMPOUND takes besides a READ's or WRITE's data: RPC header, SEQUENCE, a handle,
/// attributes.
constexpr std::uint32_t kAroundData = 2048;
constexpr std::uint32_t kMaxOperations = 16;
/// Of replies that the server keeps: attributes with long owners, and a handle.
constexpr std::uint32_t kCachedReply = 2048;
/// The shortest message that holds a callback: none of them is longer than a page, and their
/// replies are short.
constexpr std::uint32_t kCallbackBytes = 4096;
constexpr Duration kRetryFirst = std::chrono::milliseconds(500);
constexpr Duration kRetryLongest = std::chrono::seconds(15);
constexpr int kAttempts = 8;
/// Of those that may stand; who was replaced first is forgotten first.
constexpr std::size_t kMostReplaced = 16;
/// The same: more than a mount has threads.
constexpr std::size_t kMostGiven = 256;

const Error kNoSlot{Errc::kTimedOut, ETIMEDOUT, "every slot waits for the server"};

std::uint32_t room_for_data(std::uint32_t message) {
  return message > 2 * kAroundData ? message - kAroundData : message / 2;
}

}  // namespace

Session::Session(RpcClient& rpc, SessionOptions options)
    : rpc_(rpc),
      options_(std::move(options)),
      pauses_(rpc.environment()),
      callbacks_(*this),
      place_(rpc, options_.called_at, [this](ByteSpan call, MutableByteSpan room) -> std::size_t {
        if (stopped_ || options_.minor != 0) return 0;
        const std::uint64_t before = callbacks_.called();
        const std::size_t bytes = callbacks_.answer(call, room);
        called_ |= callbacks_.called() != before;
        return bytes;
      }) {
  std::random_device random;
  store_be64(verifier_.data(), (std::uint64_t{random()} << 32) | random());
  lost_alarm_ = rpc_.environment().make_alarm([this] {
    connection_lost_ = true;
    pauses_.nudge();
  });
  slot_alarm_ = rpc_.environment().make_alarm([this] { slot_freed_.wake_all(); });
  rpc_.set_on_lost([this] { lost_alarm_->set(rpc_.environment().now()); });
  rpc_.set_on_backward_call([this](ByteSpan call, MutableByteSpan room) -> std::size_t {
    return stopped_ || options_.minor == 0 ? 0 : callbacks_.answer(call, room);
  });
}

Session::~Session() {
  rpc_.set_on_lost(nullptr);
  rpc_.set_on_backward_call(nullptr);
  stop();
}

void Session::stop() {
  if (stopped_) return;
  stopped_ = true;
  fail(kStopped);
  stopping_.cancel();
  pauses_.nudge();
  place_.close();
}

void Session::fail(Error why) {
  state_ = State::kFailed;
  ++failures_;
  why_failed_ = why;
  changed_.wake_all();
  slot_freed_.wake_all();
}

Task<Result<xdr::nfsstat4>> Session::exchange_id(const OpContext& op) {
  // Another server may have taken over one of the addresses: both requests go to one.
  rpc_.disown_further();
  const xdr::EXCHANGE_ID4args args = exchange_id_args(options_.owner, verifier_);
  auto build = [&](CompoundWriter& out) { out.op(nfs_opnum4::OP_EXCHANGE_ID, args); };
  auto parse = [&](CompoundReader& in) {
    xdr::EXCHANGE_ID4res result;
    if (!in.next(nfs_opnum4::OP_EXCHANGE_ID, result)) return;
    client_id_ = result.resok4.eir_clientid;
    create_sequence_ = result.resok4.eir_sequenceid;
    server_ = std::make_shared<const KnownServer>(
        KnownServer::of(options_.owner, verifier_, result.resok4));
    // A record that the server has already still has what we hold.
    const bool known = (result.resok4.eir_flags & xdr::EXCHGID4_FLAG_CONFIRMED_R) != 0;
    if (known) return;
    reclaim_due_ = opens_;
    if (delegations_ != nullptr) delegations_->all_lost();
  };
  co_return co_await ask(rpc_, op, options_.minor, build, parse);
}

Task<Result<xdr::nfsstat4>> Session::create_session(const OpContext& op, std::uint32_t flags,
                                                    MadeSession* made) {
  while (creating_) {
    const bool woken = co_await created_.wait(op.cancel);
    if (!woken) co_return kInterrupted;
  }
  std::array<std::byte, 64> room;
  xdr::Encoder scratch(room);
  const std::array<xdr::callback_sec_parms4, 1> flavors{};  // AUTH_NONE
  xdr::CREATE_SESSION4args args;
  args.csa_clientid = client_id_;
  args.csa_sequence = create_sequence_;
  args.csa_flags = flags;
  args.csa_fore_chan_attrs = {0,
                              options_.max_transfer + kAroundData,
                              options_.max_transfer + kAroundData,
                              kCachedReply,
                              kMaxOperations,
                              options_.slots,
                              {}};
  args.csa_back_chan_attrs = {0,
                              kCallbackBytes,
                              kMaxBackwardReply,
                              kMaxBackwardReply,
                              Callbacks::kOperations,
                              Callbacks::kSlots,
                              {}};
  args.csa_cb_program = Callbacks::kProgram;
  args.csa_sec_parms = xdr::encode_array<xdr::callback_sec_parms4>(scratch, flavors);
  auto build = [&](CompoundWriter& out) { out.op(nfs_opnum4::OP_CREATE_SESSION, args); };
  auto parse = [&](CompoundReader& in) {
    xdr::CREATE_SESSION4res result;
    if (!in.next(nfs_opnum4::OP_CREATE_SESSION, result)) return;
    if (client_id_ == args.csa_clientid) ++create_sequence_;
    const xdr::CREATE_SESSION4resok& got = result.resok4;
    *made = {got.csr_sessionid, args.csa_clientid, options_.minor,
             // No more than was asked for, and never none, whatever the server says.
             std::clamp<std::uint32_t>(got.csr_fore_chan_attrs.ca_maxrequests, 1, options_.slots),
             got.csr_fore_chan_attrs.ca_maxrequestsize, got.csr_fore_chan_attrs.ca_maxresponsesize,
             (got.csr_flags & xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0,
             got.csr_back_chan_attrs.ca_maxrequests, got.csr_fore_chan_attrs.ca_maxoperations,
             server_};
  };
  creating_ = true;
  Result<nfsstat4> done = co_await ask(rpc_, op, options_.minor, build, parse);
  creating_ = false;
  created_.wake_one();
  co_return done;
}

void Session::use(const MadeSession& made) {
  session_id_ = made.id;
  session_of_ = client_id_ = made.client_id;
  options_.minor = made.minor;
  const bool another = server_ != nullptr && made.server != nullptr && *server_ != *made.server;
  if (another) rpc_.disown_further();
  server_ = made.server;
  slots_.reset(made.requests);
  ++epoch_;
  max_operations_ = made.operations;
  back_channel_ = made.back_channel;
  back_channel_fault_ = false;
  if (made.minor > 0) callbacks_.begin_session(made.minor, made.id, made.callbacks);
  max_read_ = std::min(room_for_data(made.response_bytes), options_.max_transfer);
  max_write_ = std::min(room_for_data(made.request_bytes), options_.max_transfer);
}

void Session::replace(const MadeSession& made) {
  const Replaced before{session_id_, epoch_, slots_.taken()};
  const bool same_client = session_of_ == made.client_id;
  use(made);
  // All sessions go with their client id.
  if (!same_client) given_.clear();
  if (!same_client) replaced_.clear();
  if (!same_client || before.id == made.id) return;
  // What is under way has its answer from that one's slots, also behind a lost connection. Without
  // them it would be run again.
  if (before.under_way > 0) return keep_replaced(before);
  tasks_.spawn(destroy_replaced(before));
}

void Session::keep_replaced(const Replaced& session) {
  if (replaced_.size() == kMostReplaced) replaced_.erase(replaced_.begin());
  replaced_.push_back(session);
}

Task<void> Session::destroy_replaced(Replaced session) {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  Result<nfsstat4> done = co_await destroy(op, session.id);
  // As a rule it is gone already: that is why there is another one.
  const bool gone =
      done.ok() && (*done == nfsstat4::NFS4_OK || *done == nfsstat4::NFS4ERR_BADSESSION);
  if (!gone && !stopped_) keep_replaced({session.id, session.epoch, 0});
}

void Session::is_over(const Turn& turn) {
  const auto its = std::find_if(replaced_.begin(), replaced_.end(), [&](const Replaced& session) {
    return session.epoch == turn.epoch && session.under_way > 0;
  });
  if (its == replaced_.end() || --its->under_way > 0 || stopped_ || ended_) return;
  const Replaced session = *its;
  replaced_.erase(its);
  tasks_.spawn(destroy_replaced(session));
}

Task<Result<MadeSession>> Session::make_session(const OpContext& op, xdr::sessionid4 before,
                                                std::string* detail) {
  OpContext as_owner;
  as_owner.identity = options_.identity;
  as_owner.cancel = op.cancel;
  nfsstat4 status = nfsstat4::NFS4_OK;
  Duration wait = kRetryFirst;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    NFSRDMA_CO_CHECK_OK(co_await usable(as_owner));
    if (options_.minor == 0) co_return without_session();
    const Turn of{0, epoch_};
    MadeSession made;
    NFSRDMA_CO_TRY(status, co_await create_session(as_owner, 0, &made));
    if (status == nfsstat4::NFS4_OK && ended_) {
      // end() has destroyed the others, and the client id stands until this one is gone.
      NFSRDMA_CO_CHECK_OK(co_await destroy(as_owner, made.id));
      co_await destroy_client_id(as_owner);
      co_return kStopped;
    }
    if (status == nfsstat4::NFS4_OK) {
      const bool stood = std::erase(given_, before) > 0;
      if (given_.size() == kMostGiven) given_.erase(given_.begin());
      given_.push_back(made.id);
      if (stood) tasks_.spawn(destroy_replaced({before, 0, 0}));
      co_return made;
    }
    const bool forgotten =
        status == nfsstat4::NFS4ERR_STALE_CLIENTID || status == nfsstat4::NFS4ERR_SEQ_MISORDERED;
    if (forgotten) {
      renew(of, Remedy::kNewClientId);
    } else if (status == nfsstat4::NFS4ERR_DELAY) {
      co_await pauses_.pause(wait, as_owner.cancel, &stopped_);
      wait = std::min(2 * wait, kRetryLongest);
    } else {
      break;
    }
  }
  *detail = fmt::format("CREATE_SESSION: {}", xdr::enum_name(status));
  co_return status_error(status, "CREATE_SESSION");
}

Task<Result<xdr::nfsstat4>> Session::reclaim_complete(const OpContext& op, Turn turn) {
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_SEQUENCE, sequence(turn, true));
    out.op(nfs_opnum4::OP_RECLAIM_COMPLETE, xdr::RECLAIM_COMPLETE4args{false});
  };
  xdr::SEQUENCE4res result;
  auto parse = [&](CompoundReader& in) {
    if (in.next(nfs_opnum4::OP_SEQUENCE, result)) in.next(nfs_opnum4::OP_RECLAIM_COMPLETE);
  };
  Result<nfsstat4> done = co_await ask(rpc_, op, options_.minor, build, parse);
  if (done.ok()) {
    give_back(turn, result);
  } else {
    give_up(turn);
  }
  co_return done;
}

Task<Result<void>> Session::allow_opens(const OpContext& op) {
  if (options_.minor == 0) {
    if (!std::exchange(opens_, true)) tasks_.spawn(keep_lease());
    co_return Result<void>();
  }
  // Once set, whoever makes a new client id does it; this one may be told that it has been done.
  while (!opens_) {
    NFSRDMA_CO_TRY(Turn turn, co_await take_turn(op));
    NFSRDMA_CO_TRY(nfsstat4 status, co_await reclaim_complete(op, turn));
    if (status == nfsstat4::NFS4_OK || status == nfsstat4::NFS4ERR_COMPLETE_ALREADY) {
      // Of an older client id: the newer one has to do it as well.
      if (turn.epoch != epoch_) continue;
      // Somebody else may have asked at the same time.
      if (!std::exchange(opens_, true)) tasks_.spawn(keep_lease());
      continue;
    }
    const Remedy remedy = remedy_of(status, true);
    if (remedy == Remedy::kNone) co_return status_error(status, "RECLAIM_COMPLETE");
    if (remedy == Remedy::kNewSession || remedy == Remedy::kNewClientId) renew(turn, remedy);
    co_await pause(kRetryFirst, op.cancel);
  }
  co_return Result<void>();
}

Task<Result<nfsstat4>> Session::ask_in_recovery(const OpContext& op, const Builder& build,
                                                const Parser& parse) {
  if (options_.minor == 0) co_return co_await ask_in_recovery_0(op, build, parse);
  Duration wait = kRetryFirst;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::optional<std::uint32_t> slot = slots_.take();
    if (stopped_ || !slot) co_return kStopped;
    const Turn turn{*slot, epoch_};
    xdr::SEQUENCE4res sequenced;
    bool in_session = false;
    const xdr::SEQUENCE4args asked = sequence(turn, true);
    auto build_all = [&](CompoundWriter& out) {
      out.op(nfs_opnum4::OP_SEQUENCE, asked);
      build(out);
    };
    bool answered = true;
    auto parse_all = [&](CompoundReader& in) {
      in_session = in.next(nfs_opnum4::OP_SEQUENCE, sequenced);
      answered = !in_session || answers(asked, sequenced);
      if (in_session && answered) parse(in);
    };
    Result<nfsstat4> done = co_await ask(rpc_, op, options_.minor, build_all, parse_all);
    if (!done.ok()) co_return done.error();
    const nfsstat4 status = *done;
    // The session is given up, and nothing is under way by it.
    if (!answered || (!in_session && remedy_of(status, true) != Remedy::kLater)) {
      slots_.give_back(turn.slot, false);
      co_return Error{Errc::kInvalid, EIO, "SEQUENCE"};
    }
    give_back(turn, sequenced);
    if (in_session) co_return status;
    // Not about what is asked for.
    co_await pauses_.pause(wait, op.cancel);
    wait = std::min(2 * wait, kRetryLongest);
  }
  co_return Error{Errc::kSystem, EIO, "reclaim: the server keeps saying: later"};
}

void Session::put_off(nfs_opnum4 operation, nfsstat4 status, Duration so_far) {
  std::string_view name = xdr::enum_name(operation);
  if (name.starts_with("OP_")) name.remove_prefix(3);
  rpc_.put_off({{4, options_.minor}, name, xdr::enum_name(status), so_far});
}

Task<Result<void>> Session::establish(const OpContext& op, bool keep_client_id,
                                      std::string* detail) {
  if (options_.source != nullptr) {
    // Nobody destroys it while requests are under way, whose answers it keeps.
    const xdr::sessionid4 before = slots_.taken() == 0 ? session_id_ : xdr::sessionid4{};
    Result<MadeSession> given = co_await options_.source->make_session(op, before, detail);
    if (!given.ok()) co_return given.error();
    use(*given);
    co_return Result<void>();
  }
  const char* step = "";
  nfsstat4 status = nfsstat4::NFS4_OK;
  Duration wait = kRetryFirst;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (status == nfsstat4::NFS4ERR_DELAY) {
      co_await pauses_.pause(wait, op.cancel);
      wait = std::min(2 * wait, kRetryLongest);
    }
    if (op.cancel != nullptr && op.cancel->cancelled()) co_return kInterrupted;
    if (options_.minor == 0) co_return co_await establish_client_id(op, detail);
    const bool new_client_id = !keep_client_id || client_id_ == 0;
    if (new_client_id) {
      step = "EXCHANGE_ID";
      NFSRDMA_CO_TRY(status, co_await exchange_id(op));
      if (status == nfsstat4::NFS4ERR_MINOR_VERS_MISMATCH && options_.any_minor &&
          options_.minor > 0) {
        --options_.minor;
        continue;
      }
      if (status == nfsstat4::NFS4ERR_DELAY) continue;
      if (status != nfsstat4::NFS4_OK) break;
    }
    step = "CREATE_SESSION";
    MadeSession made;
    NFSRDMA_CO_TRY(status,
                   co_await create_session(op, xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN, &made));
    if (status == nfsstat4::NFS4_OK) replace(made);
    if (status == nfsstat4::NFS4ERR_DELAY) {
      keep_client_id = true;
      continue;
    }
    if (status == nfsstat4::NFS4ERR_STALE_CLIENTID || status == nfsstat4::NFS4ERR_SEQ_MISORDERED) {
      keep_client_id = false;
      continue;
    }
    if (status != nfsstat4::NFS4_OK) break;
    if (!reclaim_due_) co_return Result<void>();
    if (state_held_ != nullptr) {
      step = "reclaim";
      Result<void> reclaimed = co_await state_held_->reclaim(op);
      if (!reclaimed.ok()) {
        // Perhaps the server has restarted once more.
        if (reclaimed.error().code != Errc::kInvalid) co_return reclaimed.error();
        keep_client_id = false;
        continue;
      }
    }
    step = "RECLAIM_COMPLETE";
    const Turn turn{*slots_.take(), epoch_};
    NFSRDMA_CO_TRY(status, co_await reclaim_complete(op, turn));
    if (status == nfsstat4::NFS4_OK || status == nfsstat4::NFS4ERR_COMPLETE_ALREADY) {
      reclaim_due_ = false;
      reclaimed_at_ = rpc_.environment().now();
      co_return Result<void>();
    }
    if (status != nfsstat4::NFS4ERR_DELAY && remedy_of(status, true) == Remedy::kNone) break;
    keep_client_id = false;
  }
  *detail = fmt::format("{}: {}", step, xdr::enum_name(status));
  co_return status_error(status, step);
}

Task<Result<void>> Session::begin(const OpContext& op, std::string* detail) {
  detail->clear();
  Result<void> done = co_await establish(op, false, detail);
  if (!done.ok()) {
    if (detail->empty()) *detail = done.error().message();
    co_return done.error();
  }
  options_.any_minor = false;  // what is known of the server is of this one
  state_ = State::kUsable;
  co_return Result<void>();
}

Task<void> Session::end(const OpContext& op) {
  if (state_ != State::kUsable) co_return;
  ended_ = true;
  fail(kStopped);
  // Who gave it destroys it. Minor version 0 has no way to: a client id ends with its lease.
  if (options_.source != nullptr || options_.minor == 0) co_return;
  std::vector<xdr::sessionid4> given = std::exchange(given_, {});
  for (const Replaced& session : replaced_)
    given.push_back(session.id);
  given.push_back(session_id_);
  for (const xdr::sessionid4& id : given) {
    Result<nfsstat4> done = co_await destroy(op, id);
    if (!done.ok()) co_return;
  }
  co_await destroy_client_id(op);
}

/// The server may have its reasons to keep it, until the lease is over.
Task<void> Session::destroy_client_id(const OpContext& op) {
  auto ignore = [](CompoundReader& in) { static_cast<void>(in); };
  auto client = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_DESTROY_CLIENTID, xdr::DESTROY_CLIENTID4args{client_id_});
  };
  static_cast<void>(co_await ask(rpc_, op, options_.minor, client, ignore));
}

Task<Result<nfsstat4>> Session::destroy(const OpContext& op, xdr::sessionid4 session) {
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_DESTROY_SESSION, xdr::DESTROY_SESSION4args{session});
  };
  auto ignore = [](CompoundReader& in) { static_cast<void>(in); };
  co_return co_await ask(rpc_, op, options_.minor, build, ignore);
}

Task<Result<void>> Session::usable(const OpContext& op) {
  // A soft mount's recovery has failed before: try it again for this call.
  if (state_ == State::kFailed && !stopped_ && !ended_) {
    state_ = State::kRenewing;
    tasks_.spawn(recover());
  }
  // Who is woken first by a failure may have begun the next attempt: that is not waited for, too.
  const std::uint64_t before = failures_;
  for (;;) {
    if (stopped_ || state_ == State::kNone) co_return kStopped;
    if (state_ == State::kUsable) co_return Result<void>();
    if (state_ == State::kFailed || failures_ != before) co_return why_failed_;
    const bool woken = co_await changed_.wait(op.cancel);
    if (!woken) co_return kInterrupted;
  }
}

Task<Result<Session::Turn>> Session::take_turn(const OpContext& op) {
  const RpcClientOptions& options = rpc_.options();
  const TimePoint limit = rpc_.environment().now() + options.timeo * (options.retrans + 1);
  for (;;) {
    if (state_ != State::kUsable || stopped_) {
      NFSRDMA_CO_CHECK_OK(co_await usable(op));
    }
    if (std::optional<std::uint32_t> slot = slots_.take()) {
      co_return Turn{*slot, epoch_, rpc_.environment().now()};
    }
    if (options.soft) {
      // All slots may be taken by requests that were given up, and the server says nothing.
      if (rpc_.environment().now() >= limit) co_return kNoSlot;
      if (!slot_alarm_->armed() || limit < slot_alarm_at_) {
        slot_alarm_at_ = limit;
        slot_alarm_->set(limit);
      }
    }
    const bool woken = co_await slot_freed_.wait(op.cancel);
    if (!woken) co_return kInterrupted;
  }
}

xdr::SEQUENCE4args Session::sequence(const Turn& turn, bool cache) const {
  return {session_id_, slots_.sequence(turn.slot), turn.slot, slots_.highest_taken(), cache};
}

bool Session::answers(const xdr::SEQUENCE4args& asked, const xdr::SEQUENCE4res& result) {
  const xdr::SEQUENCE4resok& seen = result.resok4;
  return seen.sr_sessionid == asked.sa_sessionid && seen.sr_slotid == asked.sa_slotid &&
         seen.sr_sequenceid == asked.sa_sequenceid;
}

void Session::give_back(const Turn& turn, const xdr::SEQUENCE4res& result) {
  if (turn.epoch != epoch_) return is_over(turn);
  const bool used =
      result.status == nfsstat4::NFS4_OK || result.status == nfsstat4::NFS4ERR_RETRY_UNCACHED_REP;
  slots_.give_back(turn.slot, used);
  if (result.status == nfsstat4::NFS4_OK) {
    slots_.set_highest(result.resok4.sr_target_highest_slotid);
    heard_at_ = std::max(heard_at_, turn.since);
    if (state_ == State::kUsable) look_at(result.resok4.sr_status_flags, turn);
  }
  pass_slots_on();
}

void Session::give_back(const Turn& turn) {
  if (turn.epoch != epoch_) return;
  slots_.give_back(turn.slot, true);
  pass_slots_on();
}

void Session::pass_slots_on() {
  // Whose request ends at once gives its slot back before it returns to here: however many those
  // are, they take no more stack than one.
  if (std::exchange(passing_on_, true)) return;
  while (slots_.any_free() && !slot_freed_.empty())
    slot_freed_.wake_one();
  passing_on_ = false;
}

void Session::look_for_revoked(std::uint32_t status_flags) {
  constexpr std::uint32_t kRevoked = xdr::SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED |
                                     xdr::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED |
                                     xdr::SEQ4_STATUS_ADMIN_STATE_REVOKED;
  constexpr std::uint32_t kMayBeDelegation = kRevoked | xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED;
  if (state_held_ != nullptr) {
    if ((status_flags & kRevoked) == 0) state_held_->none_is_revoked();
    if ((status_flags & kRevoked) != 0) state_held_->some_is_revoked();
  }
  if (delegations_ != nullptr) {
    if ((status_flags & kMayBeDelegation) == 0) delegations_->none_is_revoked();
    if ((status_flags & kMayBeDelegation) != 0) delegations_->some_is_revoked();
  }
}

void Session::look_at(std::uint32_t status_flags, const Turn& turn) {
  look_for_revoked(status_flags);
  if ((status_flags & xdr::SEQ4_STATUS_LEASE_MOVED) != 0) lease_moved();
  // A server that goes on saying so does not get a new session with each call.
  const bool just_done = rpc_.environment().now() - reclaimed_at_ < kRetryLongest;
  if ((status_flags & xdr::SEQ4_STATUS_RESTART_RECLAIM_NEEDED) != 0 && opens_ && !just_done) {
    // The server has kept the session across its restart, and nothing else.
    reclaim_due_ = true;
    if (delegations_ != nullptr) delegations_->all_lost();
    renew(turn, Remedy::kNewSession);
    return;
  }
  back_channel_fault_ = (status_flags & xdr::SEQ4_STATUS_BACKCHANNEL_FAULT) != 0;
  const bool just_mended = rpc_.environment().now() - fault_mended_at_ < kRetryLongest;
  if (back_channel_fault_ && opens_ && !just_mended) {
    // No binding helps (RFC 8881, 18.46.3). The client id stands, with all that is held.
    fault_mended_at_ = rpc_.environment().now();
    renew(turn, Remedy::kNewSession);
    return;
  }
  constexpr std::uint32_t kCannotCall =
      xdr::SEQ4_STATUS_CB_PATH_DOWN | xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION;
  back_channel_ = back_channel_ && (status_flags & kCannotCall) == 0;
  const bool just_bound = rpc_.environment().now() - bound_at_ < kRetryLongest;
  if ((status_flags & kCannotCall) != 0 && opens_ && !binding_ && !just_bound) {
    binding_ = true;
    tasks_.spawn(restore_back_channel());
  }
}

Task<void> Session::restore_back_channel() {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  // When it fails, the next reply says so again.
  [[maybe_unused]] Result<void> done = co_await bind(op);
  bound_at_ = rpc_.environment().now();
  binding_ = false;
}

void Session::lock_may_be_free(const xdr::nfs_fh4& file) {
  if (state_held_ != nullptr) state_held_->lock_may_be_free(FileHandle(file.data));
}

nfsstat4 Session::recall(const xdr::stateid4& stateid, const xdr::nfs_fh4& file) {
  if (delegations_ == nullptr) return nfsstat4::NFS4ERR_BADHANDLE;
  return delegations_->recall(stateid, FileHandle(file.data));
}

std::optional<HeldAttributes> Session::held_attributes(const xdr::nfs_fh4& file) {
  if (delegations_ == nullptr) return std::nullopt;
  return delegations_->held_attributes(FileHandle(file.data));
}

void Session::keep_delegations(std::uint32_t most) {
  if (delegations_ != nullptr) delegations_->keep_most(most);
}

void Session::give_up_slots(std::uint32_t highest) {
  slots_.set_highest(highest);
}

void Session::set_lease(Duration lease) {
  lease_ = std::max<Duration>(lease, std::chrono::seconds(2));
}

Task<void> Session::keep_lease() {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  while (!stopped_ && !ended_) {
    const TimePoint now = rpc_.environment().now();
    const TimePoint due = heard_at_ + lease_ / 2;
    if (due > now && !connection_lost_) {
      co_await pauses_.pause(due - now, &stopping_, &connection_lost_);
      continue;
    }
    connection_lost_ = false;
    if (options_.minor == 0) {
      Result<void> there = co_await usable(op);
      if (there.ok()) {
        [[maybe_unused]] Result<bool> told = co_await client_id_stands(op, {0, epoch_});
      }
    } else {
      Result<Turn> turn = co_await take_turn(op);
      if (turn.ok()) co_await probe(*turn);
    }
    // Not heard of: others deal with that.
    if (heard_at_ < now) co_await pauses_.pause(lease_ / 4, &stopping_, &connection_lost_);
  }
}

void Session::give_up(const Turn& turn) {
  if (options_.minor == 0) return give_back(turn);
  if (turn.epoch != epoch_) return is_over(turn);
  if (stopped_) return;
  tasks_.spawn(probe(turn));
}

Task<void> Session::probe(Turn turn) {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  xdr::SEQUENCE4res result;
  xdr::SEQUENCE4args asked;
  auto build = [&](CompoundWriter& out) {
    asked = sequence(turn, false);
    out.op(nfs_opnum4::OP_SEQUENCE, asked);
  };
  auto parse = [&](CompoundReader& in) { in.next(nfs_opnum4::OP_SEQUENCE, result); };
  for (Duration wait = kRetryFirst;; wait = std::min(2 * wait, kRetryLongest)) {
    // A new session has new slots.
    if (stopped_ || turn.epoch != epoch_ || state_ != State::kUsable) co_return;
    result = {};
    turn.since = rpc_.environment().now();
    Result<nfsstat4> done = co_await ask(rpc_, op, options_.minor, build, parse);
    if (stopped_ || turn.epoch != epoch_) co_return;
    if (done.ok() && result.status == nfsstat4::NFS4_OK && !answers(asked, result)) {
      co_return renew(turn, Remedy::kNewSession);  // that slot is past help
    }
    if (done.ok() && result.status != nfsstat4::NFS4ERR_DELAY) {
      // A false retry: the request itself has run.
      const bool retried = result.status == nfsstat4::NFS4ERR_SEQ_FALSE_RETRY;
      const Remedy remedy = retried ? Remedy::kNone : remedy_of(result.status, true);
      if (retried) result.status = nfsstat4::NFS4ERR_RETRY_UNCACHED_REP;
      give_back(turn, result);
      if (remedy == Remedy::kNewSession || remedy == Remedy::kNewClientId) renew(turn, remedy);
      co_return;
    }
    co_await pauses_.pause(wait, &stopping_);
  }
}

void Session::renew(const Turn& turn, Remedy remedy) {
  if (turn.epoch != epoch_ || state_ != State::kUsable) return;
  state_ = State::kRenewing;
  if (remedy == Remedy::kNewClientId) client_id_ = 0;
  tasks_.spawn(recover());
}

Task<void> Session::recover() {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  for (Duration wait = kRetryFirst;; wait = std::min(2 * wait, kRetryLongest)) {
    std::string detail;
    Result<void> done = co_await establish(op, true, &detail);
    if (stopped_) co_return;
    if (done.ok()) break;
    if (rpc_.options().soft) {
      fail(done.error());
      co_return;
    }
    log_warning("NFSv4.{}: no new session with the server, trying again: {}", options_.minor,
                detail.empty() ? done.error().message() : detail);
    co_await pauses_.pause(wait, &stopping_);
    if (stopped_) co_return;
  }
  state_ = State::kUsable;
  changed_.wake_all();
  slot_freed_.wake_all();
}

Task<Result<void>> Session::bind(const OpContext& op) {
  xdr::BIND_CONN_TO_SESSION4args args;
  args.bctsa_sessid = session_id_;
  args.bctsa_dir = xdr::channel_dir_from_client4::CDFC4_FORE_OR_BOTH;
  auto build = [&](CompoundWriter& out) { out.op(nfs_opnum4::OP_BIND_CONN_TO_SESSION, args); };
  const std::uint64_t epoch = epoch_;
  auto parse = [&](CompoundReader& in) {
    xdr::BIND_CONN_TO_SESSION4res result;
    if (!in.next(nfs_opnum4::OP_BIND_CONN_TO_SESSION, result) || epoch != epoch_) return;
    if (result.resok4.bctsr_dir != xdr::channel_dir_from_server4::CDFS4_FORE) back_channel_ = true;
  };
  // Whatever the server says to it, the call that wanted it goes out again and hears more.
  Result<nfsstat4> done = co_await ask(rpc_, op, options_.minor, build, parse);
  if (!done.ok()) co_return done.error();
  co_return Result<void>();
}

}  // namespace nfsrdma::nfs4
