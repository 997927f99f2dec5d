// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/backward_calls.h"

#include <algorithm>
#include <optional>

namespace nfsrdma {

namespace {
constexpr std::uint32_t kRpcReply = 1;  // msg_type REPLY (RFC 5531)
// How soon what lacked a buffer is tried again.
constexpr Duration kRetryAfter = std::chrono::milliseconds(10);

constexpr Error kClosed{Errc::kClosed, 0, "backward call: the connection ended"};
constexpr Error kTimedOut{Errc::kTimedOut, ETIMEDOUT, "backward call: no reply"};
constexpr Error kNoCredit{Errc::kExhausted, 0, "backward call: no credit in time"};
constexpr Error kNoBuffer{Errc::kExhausted, ENOBUFS, "backward call: no buffer in time"};
constexpr Error kRefused{Errc::kRefused, EREMOTEIO, "backward call: refused (RDMA_ERROR)"};
}  // namespace

BackwardCalls::BackwardCalls(EventLoop& loop, BackwardLink& link, std::uint32_t first_xid,
                             Flow flow, std::uint32_t most)
    : loop_(loop),
      link_(link),
      flow_(flow),
      most_(most),
      next_xid_(first_xid),
      limit_(flow == Flow::kCredits ? 1 : most),
      timer_([this] { expire(); }) {
  owed_.reserve(most);
}

Result<void> BackwardCalls::submit(BackwardCall& call) {
  NFSRDMA_CHECK(call.message.size() >= 8);
  if (closed_) return kClosed;
  std::size_t waiting = 0;
  waiting_.for_each([&](BackwardCall&) { ++waiting; });
  if (waiting >= kMaxWaiting) {
    return Error{Errc::kExhausted, EBUSY, "backward call: too many are waiting"};
  }
  call.ok = false;
  call.reply = {};
  call.deadline_ = loop_.now() + call.timeout;
  waiting_.push_back(call);
  pump();
  return {};
}

std::size_t BackwardCalls::outstanding() {
  if (flow_ == Flow::kCredits) return owed_.size();
  std::size_t count = 0;
  sent_.for_each([&](BackwardCall&) { ++count; });
  return count;
}

void BackwardCalls::pump() {
  if (pumping_) return;  // a connection that breaks may complete Sends within transmit()
  pumping_ = true;
  retry_ = false;
  while (!closed_ && !waiting_.empty() && outstanding() < limit_) {
    BackwardCall& call = *waiting_.front();
    if (!link_.transmit(next_xid_, call.message)) {
      retry_ = true;
      break;
    }
    call.xid_ = next_xid_++;
    if (flow_ == Flow::kCredits) owed_.push_back(call.xid_);
    sent_.push_back(call);
  }
  pumping_ = false;
  arm();
}

void BackwardCalls::on_grant(std::uint32_t credits) {
  // 0 would mean that nothing may be sent any more, ever: it is forbidden (RFC 8166, section 3.3).
  if (flow_ == Flow::kCredits) limit_ = std::clamp(credits, 1u, most_);
}

bool BackwardCalls::answered(std::uint32_t xid, BackwardCall** call) {
  *call = nullptr;
  sent_.for_each([&](BackwardCall& sent) {
    if (sent.xid_ == xid) *call = &sent;
  });
  if (*call != nullptr) (*call)->unlink();
  if (flow_ == Flow::kFree) return *call != nullptr;
  auto owed = std::find(owed_.begin(), owed_.end(), xid);
  if (owed == owed_.end()) return false;
  owed_.erase(owed);
  return true;
}

bool BackwardCalls::on_reply(ByteSpan rpc) {
  BackwardCall* call = nullptr;
  if (rpc.size() < 8 || load_be32(rpc.data() + 4) != kRpcReply ||
      !answered(load_be32(rpc.data()), &call)) {
    return false;
  }
  link_.on_answered();
  if (call != nullptr) {
    call->ok = true;
    call->error = Error{};
    call->reply = rpc;
    call->on_complete();
  }
  pump();
  return true;
}

bool BackwardCalls::on_refused(std::uint32_t xid) {
  BackwardCall* call = nullptr;
  if (!answered(xid, &call)) return false;
  link_.on_answered();
  if (call != nullptr) complete(*call, kRefused);
  pump();
  return true;
}

void BackwardCalls::complete(BackwardCall& call, const Error& error) {
  call.ok = false;
  call.error = error;
  call.reply = {};
  call.on_complete();
}

void BackwardCalls::close() {
  closed_ = true;
  timer_.cancel();
  owed_.clear();
  sent_.splice_back(waiting_);
  while (BackwardCall* call = sent_.pop_front())
    complete(*call, kClosed);
}

void BackwardCalls::expire() {
  // First apart, then told: who is told may cancel others and make new ones.
  const TimePoint now = loop_.now();
  IntrusiveList<BackwardCall> unanswered, unsent;
  sent_.for_each([&](BackwardCall& call) {
    if (call.deadline_ <= now) unanswered.push_back(call);
  });
  waiting_.for_each([&](BackwardCall& call) {
    if (call.deadline_ <= now) unsent.push_back(call);
  });
  const Error why = retry_ ? kNoBuffer : kNoCredit;
  while (BackwardCall* call = unanswered.pop_front())
    complete(*call, kTimedOut);
  while (BackwardCall* call = unsent.pop_front())
    complete(*call, why);
  pump();
}

/// For whatever comes first: a deadline, or another attempt.
void BackwardCalls::arm() {
  std::optional<TimePoint> next;
  const auto consider = [&](TimePoint when) {
    if (!next || when < *next) next = when;
  };
  const auto deadline = [&](BackwardCall& call) { consider(call.deadline_); };
  sent_.for_each(deadline);
  waiting_.for_each(deadline);
  if (retry_) consider(loop_.now() + kRetryAfter);
  if (next && !closed_) {
    timer_.arm(loop_, *next);
  } else {
    timer_.cancel();
  }
}

}  // namespace nfsrdma
