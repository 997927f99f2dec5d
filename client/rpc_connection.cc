// SPDX-License-Identifier: Apache-2.0
// Lifetimes: a Link that is over moves to retired_ and is destroyed from a deferred item, since its
// transport is usually on the stack at that moment. A link that we close ourselves is over when its
// transport says so, or at once when no call is with it.
#include "client/rpc_connection.h"

#include <cstring>

#include "client/rpc_client.h"
#include "xdr/nfs3_constants.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

/// Rounds of attempts after a lost RDMA connection in which TCP is left out: a server that restarts
/// shall not push its clients off RDMA.
constexpr unsigned kStickyRounds = 10;
/// From TCP to the next look whether RDMA is there again, and when it was not there so often.
constexpr std::chrono::minutes kLookForRdma{2};
constexpr std::chrono::minutes kLookForRdmaSeldom{32};
/// New calls wait no longer than this for those under way.
constexpr std::chrono::seconds kLeaveWithin{3};
/// Until a connection that could not be made is tried again only to help others.
constexpr std::chrono::seconds kHelpAgain{15};

}  // namespace

RpcConnection::RpcConnection(RpcClient& client, std::vector<TransportCandidate> candidates)
    : client_(client),
      probe_wait_(kLookForRdma),
      backoff_alarm_(client.environment().make_alarm([this] { start_round(); })),
      own_candidates_(std::move(candidates)) {}

RpcConnection::~RpcConnection() {
  // The NULL that fails with it is not news for us any more.
  const std::unique_ptr<Probe> probe = std::move(probe_);
}

const std::vector<TransportCandidate>& RpcConnection::candidates() const {
  return further() ? own_candidates_ : client_.options().candidates;
}

void RpcConnection::submit(RpcCall& call) {
  call.connection_ = this;
  ++load_;
  last_used_ = client_.environment().now();
  if (state_ == State::kReady && waiting_.empty() && !leaving_) {
    send_now(call);
    return;
  }
  call.state_ = RpcCall::State::kWaiting;
  waiting_.push_back(call);
  wake();
}

void RpcConnection::send_now(RpcCall& call) {
  call.state_ = RpcCall::State::kSubmitted;
  call.submitted_ = client_.environment().now();
  call.sent = false;
  submitted_.push_back(call);
  link_->transport->submit(call);
}

void RpcConnection::send_waiting() {
  IntrusiveList<RpcCall, RpcCall> batch;
  batch.splice_back(waiting_);
  while (RpcCall* call = batch.pop_front()) {
    if (state_ == State::kReady && !leaving_) {
      send_now(*call);
    } else {
      waiting_.push_back(*call);
    }
  }
}

void RpcConnection::call_returned(RpcCall& call, bool answered) {
  call.ListNode<RpcCall>::unlink();
  --load_;
  last_used_ = client_.environment().now();
  if (leaving_ && submitted_.empty()) client_.environment().run_soon(*this);
  if (!answered) return;
  link_->answered = true;
  client_.call_answered();
}

void RpcConnection::requeue(RpcCall& call) {
  // Of what was still with us the server knows nothing.
  call.may_have_run_ = call.may_have_run_ || call.sent;
  call.state_ = RpcCall::State::kWaiting;
  ++load_;
  waiting_.push_back(call);
}

void RpcConnection::withdraw(RpcCall& call) {
  const bool submitted = call.state_ == RpcCall::State::kSubmitted;
  call.ListNode<RpcCall>::unlink();
  --load_;
  call.state_ = RpcCall::State::kDone;
  if (submitted && link_) link_->transport->cancel(call);
  if (leaving_ && submitted_.empty()) client_.environment().run_soon(*this);
}

void RpcConnection::wake() {
  if (state_ == State::kIdle) start_round();
}

void RpcConnection::wake_to_help() {
  if (further() || state_ != State::kIdle) return;
  if (client_.environment().now() >= help_after_) start_round();
}

void RpcConnection::start_round() {
  failures_.clear();
  candidate_ = 0;
  try_candidate();
}

bool RpcConnection::skip_candidate() const {
  const TransportCandidate& candidate = candidates()[candidate_];
  return had_rdma_ && !is_rdma(candidate.kind) && rounds_failed_ < kStickyRounds;
}

void RpcConnection::try_candidate() {
  const auto& candidates = this->candidates();
  while (candidate_ < candidates.size() && skip_candidate())
    ++candidate_;
  if (candidate_ >= candidates.size()) {
    round_failed();
    return;
  }
  state_ = State::kConnecting;
  const bool last = candidate_ + 1 == candidates.size();
  const Duration patience =
      last ? client_.options().connect_timeout
           : std::min(client_.options().connect_timeout, client_.options().silence);
  link_ = std::make_unique<Link>(*this);
  TransportCandidate one = candidates[candidate_];
  // To many servers (knfsd) a call that comes again is one that they know by its port, too.
  if (!is_rdma(one.kind)) one.local_port = local_port_;
  link_->transport = client_.environment().make_transport(one, patience, *link_);
}

void RpcConnection::round_failed() {
  ++rounds_failed_;
  help_after_ = client_.environment().now() + kHelpAgain;
  state_ = State::kIdle;
  if (further() || client_.another_is_ready(*this)) {
    leave_to_others();
  } else if (!waiting_.empty()) {
    retry_after(backoff_.next());
  }
  settled_.wake_all();
}

void RpcConnection::retry_after(Duration wait) {
  state_ = State::kBackoff;
  if (wait == Duration::zero() && !candidates().empty()) {
    start_round();
  } else {
    backoff_alarm_->set(client_.environment().now() + wait);
  }
}

void RpcConnection::became_ready() {
  if (state_ != State::kConnecting) return;
  ++client_.connections_made_;
  state_ = State::kReady;
  address_ = candidates()[candidate_].address;
  kind_ = link_->transport->kind();
  had_rdma_ = is_rdma(kind_);
  if (!had_rdma_) local_port_ = link_->transport->describe().local.port();
  leaving_ = false;
  probe_at_ = client_.environment().now() + probe_wait_;
  rounds_failed_ = 0;
  last_used_ = client_.environment().now();
  fallback_reason_ = client_.options().left_out;
  if (!fallback_reason_.empty() && !failures_.empty()) fallback_reason_ += "; ";
  fallback_reason_ += failures_;
  if (!further() && client_.observer_.connected) client_.observer_.connected(describe());
  client_.note_activity();
  send_waiting();
  if (takes_calls()) client_.take_from_those_that_wait();
  settled_.wake_all();
}

void RpcConnection::admit() {
  NFSRDMA_CHECK(further() && ready());
  admitted_ = true;
  if (client_.observer_.connected) client_.observer_.connected(describe());
  client_.take_from_those_that_wait();
}

void RpcConnection::disown() {
  if (std::exchange(admitted_, false)) gone_.wake_all();
}

void RpcConnection::closed(Error why, const std::string& detail) {
  std::string text = detail.empty() ? why.message() : detail;
  if (why.sys != 0 && text.find(std::strerror(why.sys)) == std::string::npos) {
    text += std::string(": ") + std::strerror(why.sys);
  }
  if (state_ != State::kConnecting) {
    lost(text);
    return;
  }
  const TransportCandidate& candidate = candidates()[candidate_];
  if (!failures_.empty()) failures_ += "; ";
  const std::string name =
      std::string(transport_name(candidate.kind)) + " " + candidate.address.text();
  if (!text.starts_with(name)) failures_ += name + ": ";
  failures_ += text;
  last_error_ = why;
  retire_link();
  ++candidate_;
  try_candidate();
}

void RpcConnection::lost(const std::string& detail) {
  if (link_->answered) {
    backoff_.reset();
    if (had_rdma_) probe_wait_ = kLookForRdma;
  } else {
    help_after_ = client_.environment().now() + kHelpAgain;
  }
  past_ += link_->transport->describe().stats;
  retire_link();
  if (probe_ != nullptr) retire_probe();
  leaving_ = false;
  state_ = State::kIdle;
  const bool was_in_use = !further() || std::exchange(admitted_, false);
  if (was_in_use && client_.observer_.disconnected) client_.observer_.disconnected(detail);
  if (was_in_use && client_.on_lost_) client_.on_lost_();
  if (further() || client_.another_is_ready(*this)) {
    leave_to_others();
  } else if (state_ == State::kIdle && !waiting_.empty()) {
    retry_after(backoff_.next());
  }
  gone_.wake_all();
}

void RpcConnection::leave_to_others() {
  IntrusiveList<RpcCall, RpcCall> batch;
  batch.splice_back(waiting_);
  while (RpcCall* call = batch.pop_front()) {
    --load_;
    if (call->only_by_ == nullptr) {
      client_.choose().submit(*call);
    } else {
      call->finish({Errc::kClosed, ECONNRESET, "the connection was lost"});
    }
  }
}

std::size_t RpcConnection::called(ByteSpan call, MutableByteSpan room) {
  return client_.on_backward_call_ && takes_calls() ? client_.on_backward_call_(call, room) : 0;
}

void RpcConnection::hang_up(const std::string& why) {
  if (!ready()) return;
  Link* link = link_.get();
  link->transport->close();
  // The transport may have said so already, and may not say so at all with nothing under way.
  if (link_.get() == link && submitted_.empty()) lost(why);
}

void RpcConnection::retire_link() {
  retired_.push_back(std::move(link_));
  client_.environment().run_soon(*this);
}

void RpcConnection::run_deferred() {
  std::vector<std::unique_ptr<Link>> gone;
  gone.swap(retired_);
  std::vector<std::unique_ptr<Probe>> probes;
  probes.swap(probes_over_);
  if (leaving_ && submitted_.empty()) hang_up("RDMA is there again");
}

RpcConnection::Probe::Probe(RpcConnection& o, TimePoint until) : owner(o), deadline(until) {
  xdr::rpc_msg message;
  message.xid = xid = 1;
  message.cbody.prog = xdr::kNfsProgram;
  message.cbody.vers = xdr::kNfsV3;
  xdr::Encoder encoder(null_call);
  xdr::encode(encoder, message);
  head = null_call;
  max_reply = 128;
}

void RpcConnection::look_for_rdma(TimePoint now) {
  if (further() || is_rdma(kind_)) return;
  if (leaving_ && now >= leave_until_) {
    // Something takes long: another time.
    leaving_ = false;
    probe_at_ = now + probe_wait_;
    send_waiting();
  }
  if (probe_ != nullptr && now >= probe_->deadline) probed(false);
  if (leaving_ || probe_ != nullptr || now < probe_at_) return;
  const auto& candidates = this->candidates();
  for (std::size_t i = 0; i < candidates.size() && probe_ == nullptr; ++i) {
    const TransportCandidate& one = candidates[probe_candidate_++ % candidates.size()];
    if (!is_rdma(one.kind)) continue;
    const Duration patience = client_.options().connect_timeout;
    probe_ = std::make_unique<Probe>(*this, now + 2 * patience);
    probe_->transport = client_.environment().make_transport(one, patience, *probe_);
  }
}

void RpcConnection::probed(bool there) {
  retire_probe();
  const TimePoint now = client_.environment().now();
  // Until RDMA has carried calls: what leads to it now may come to nothing.
  probe_wait_ = std::min<Duration>(2 * probe_wait_, kLookForRdmaSeldom);
  probe_at_ = now + probe_wait_;
  if (!there) return;
  leaving_ = true;
  leave_until_ = now + kLeaveWithin;
  client_.environment().run_soon(*this);
}

void RpcConnection::retire_probe() {
  probes_over_.push_back(std::move(probe_));
  client_.environment().run_soon(*this);
}

bool RpcConnection::expire_one(TimePoint now) {
  const Duration limit = client_.options().timeo * (client_.options().retrans + 1);
  RpcCall* expired = nullptr;
  auto look = [&](RpcCall& call) {
    if (expired == nullptr && now - call.started_ >= limit) expired = &call;
  };
  submitted_.for_each(look);
  waiting_.for_each(look);
  if (expired == nullptr) return false;
  withdraw(*expired);
  expired->finish({Errc::kTimedOut, ETIMEDOUT, "the server does not answer"});
  return true;
}

bool RpcConnection::overdue(TimePoint now) {
  const Duration limit = client_.options().timeo * (client_.options().retrans + 1);
  bool found = false;
  // One that asks who is there says nothing of the server.
  auto look = [&](RpcCall& call) {
    found |= call.only_by_ == nullptr && now - call.started_ >= limit;
  };
  submitted_.for_each(look);
  waiting_.for_each(look);
  return found;
}

bool RpcConnection::presumed_dead(TimePoint now) {
  const Duration timeo = client_.options().timeo;
  const Duration limit = timeo * (client_.options().retrans + 1);
  const Duration silent = now - link_->transport->last_heard();
  bool dead = false;
  submitted_.for_each([&](RpcCall& call) {
    const Duration waited = now - call.submitted_;
    // A server that answers others may just take long over this one; but not for ever.
    dead |= (waited >= timeo && silent >= timeo) || waited >= limit;
  });
  return dead;
}

void RpcConnection::tick(TimePoint now) {
  if (client_.options().soft) {
    while (expire_one(now)) {
    }
  } else if (!client_.not_responding_ && overdue(now)) {
    client_.not_responding_ = true;
    if (client_.observer_.not_responding) client_.observer_.not_responding();
  }
  if (state_ != State::kReady) return;
  if (presumed_dead(now)) {
    hang_up("no answer in time");
    return;
  }
  look_for_rdma(now);
  const Duration idle = client_.options().idle_timeout;
  if (load_ == 0 && idle > Duration::zero() && now - last_used_ >= idle) hang_up("idle");
}

void RpcConnection::fail_all(Error why) {
  for (;;) {
    RpcCall* call = submitted_.front();
    if (call == nullptr) call = waiting_.front();
    if (call == nullptr) return;
    withdraw(*call);
    call->finish(why);
  }
}

ConnectionInfo RpcConnection::describe() const {
  ConnectionInfo info = link_->transport->describe();
  info.fallback_reason = fallback_reason_;
  return info;
}

TransferStats RpcConnection::totals() const {
  TransferStats sum = past_;
  if (state_ == State::kReady) sum += link_->transport->describe().stats;
  return sum;
}

}  // namespace nfsrdma
