// SPDX-License-Identifier: Apache-2.0
#include "server/callback_line.h"

#include <algorithm>
#include <utility>

#include "rpcrdma/tcp_client.h"

namespace nfsrdma {

namespace {

constexpr Duration kPatience = std::chrono::seconds(10);  // from send() to the reply
constexpr Duration kIdle = std::chrono::seconds(60);      // then the connection is given up
constexpr Duration kTick = std::chrono::seconds(1);

}  // namespace

/// One call, from send() to its end.
class CallbackLine::Sent final : public ClientCall {
 public:
  Sent(CallbackLine& its_line, std::uint64_t its_key, std::vector<std::byte> its_message,
       TimePoint its_deadline)
      : line(its_line), key(its_key), message(std::move(its_message)), deadline(its_deadline) {
    head = message;
    max_reply = 4096;
  }
  void on_complete() override { line.ended(*this); }

  CallbackLine& line;
  const std::uint64_t key;
  std::vector<std::byte> message;
  const TimePoint deadline;
  bool submitted = false;
  bool left = false;   // it was submitted at least once
  bool again = false;  // it has been on a connection that was gone before
};

CallbackLine::CallbackLine(EventLoop& loop, const SocketAddress& where, const From& from,
                           OnEnd on_end)
    : loop_(loop), where_(where), from_(from), on_end_(std::move(on_end)), timer_([this] {
        on_time();
      }) {}

CallbackLine::~CallbackLine() {
  for (const auto& call : calls_) {
    if (call->submitted) transport_->cancel(*call);
  }
}

void CallbackLine::send(std::uint64_t key, std::vector<std::byte> message) {
  store_be32(message.data(), ++last_xid_);
  auto sent = std::make_unique<Sent>(*this, key, std::move(message), loop_.now() + kPatience);
  sent->xid = last_xid_;
  Sent& call = *sent;
  calls_.push_back(std::move(sent));
  last_used_ = loop_.now();
  if (!timer_.armed()) timer_.arm_after(loop_, kTick);
  if (ready_) {
    submit(call);
  } else {
    connect();
  }
}

void CallbackLine::submit(Sent& call) {
  call.submitted = call.left = true;
  transport_->submit(call);
}

void CallbackLine::give_up() {
  for (const auto& call : calls_) {
    if (call->submitted) transport_->cancel(*call);
  }
  for (const auto& call : std::exchange(calls_, {}))
    on_end_(call->key, {}, call->left);
}

void CallbackLine::connect() {
  if (transport_ != nullptr) return;
  TcpClientOptions options;
  options.max_record = 64 << 10;  // nothing that a client has to say is longer
  options.connect_timeout = kPatience;
  options.local = from_.local;
  options.reserved_port = from_.reserved_port;
  transport_ = make_tcp_transport(loop_, where_, options, *this);
}

void CallbackLine::on_transport_ready() {
  ready_ = true;
  // Those that came while it was being made.
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i]->submitted) submit(*calls_[i]);
  }
}

void CallbackLine::on_transport_closed(Error, const std::string&) {
  const bool was_ready = std::exchange(ready_, false);
  // Not from within its own call.
  auto gone = std::make_shared<std::unique_ptr<ClientTransport>>(std::move(transport_));
  loop_.post([gone] { gone->reset(); });
  // Whoever waited for it to be made has waited in vain; whoever was on it tries another one.
  std::vector<std::unique_ptr<Sent>> failed;
  for (auto& call : calls_) {
    if (!was_ready && !call->submitted) failed.push_back(std::move(call));
  }
  std::erase(calls_, nullptr);
  for (const auto& call : failed)
    on_end_(call->key, {}, call->left);
  if (!calls_.empty()) connect();
}

/// By the transport: answered, or the connection is gone.
void CallbackLine::ended(Sent& sent) {
  sent.submitted = false;
  // An idle connection may have been closed just as the call left: that says nothing of the client.
  if (!sent.ok && !std::exchange(sent.again, true)) return;
  const auto at = std::find_if(calls_.begin(), calls_.end(),
                               [&](const auto& call) { return call.get() == &sent; });
  const std::unique_ptr<Sent> done = std::move(*at);
  calls_.erase(at);
  on_end_(done->key, done->ok ? done->reply : ByteSpan(), true);
}

void CallbackLine::on_time() {
  const TimePoint now = loop_.now();
  std::vector<std::unique_ptr<Sent>> late;
  for (auto& call : calls_) {
    if (now < call->deadline) continue;
    if (call->submitted) transport_->cancel(*call);
    late.push_back(std::move(call));
  }
  std::erase(calls_, nullptr);
  for (const auto& call : late)
    on_end_(call->key, {}, call->left);
  if (calls_.empty() && (transport_ == nullptr || now - last_used_ >= kIdle)) {
    ready_ = false;
    transport_.reset();
    return;
  }
  timer_.arm_after(loop_, kTick);
}

}  // namespace nfsrdma
