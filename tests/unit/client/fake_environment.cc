// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/client/fake_environment.h"

#include <array>
#include <cstring>

namespace nfsrdma {

FakeTransport::FakeTransport(FakeEnvironment& environment, TransportCandidate candidate,
                             ClientTransportHandler& handler)
    : environment_(environment), candidate_(candidate), handler_(handler) {
  environment_.alive_.push_back(this);
}

FakeTransport::~FakeTransport() {
  std::erase(environment_.alive_, this);
  fail_calls();
}

void FakeTransport::fail_calls() {
  while (!out_.empty()) {
    ClientCall* call = out_.front();
    out_.pop_front();
    call->ok = false;
    call->error = {Errc::kClosed, 0, "lost"};
    call->on_complete();
  }
}

void FakeTransport::accept() {
  ready_ = true;
  heard_ = environment_.now();
  handler_.on_transport_ready();
}

void FakeTransport::refuse(int number) {
  over_ = true;
  handler_.on_transport_closed({Errc::kRefused, number, "connect"}, "");
}

void FakeTransport::lose() {
  if (over_) return;
  over_ = true;
  fail_calls();
  handler_.on_transport_closed({Errc::kClosed, 0, "lost"}, "lost");
}

void FakeTransport::answer(const std::function<void(xdr::Encoder&)>& results,
                           xdr::accept_stat stat) {
  ClientCall* call = out_.front();
  out_.pop_front();
  heard_ = environment_.now();
  std::array<std::byte, 65536> room;
  xdr::Encoder encoder(room);
  xdr::encode(encoder, xdr::accepted(call->xid, stat));
  if (results) results(encoder);
  call->ok = true;
  call->reply = encoder.bytes();
  call->reduced = {};
  call->on_complete();
}

void FakeTransport::submit(ClientCall& call) {
  if (!ready_ || over_) {
    call.ok = false;
    call.error = {Errc::kClosed, 0, "closed"};
    call.on_complete();
    return;
  }
  call.sent = !environment_.keeps_calls;
  out_.push_back(&call);
}

ConnectionInfo FakeTransport::describe() const {
  ConnectionInfo info;
  info.transport = candidate_.kind;
  info.peer = candidate_.address;
  info.local = environment_.local;
  info.stats.calls = 1;
  return info;
}

class FakeEnvironment::FakeAlarm final : public Alarm {
 public:
  FakeAlarm(FakeEnvironment& environment, std::function<void()> fire)
      : environment_(environment), fire_(std::move(fire)) {}
  ~FakeAlarm() override { cancel(); }
  void set(TimePoint when) override {
    cancel();
    environment_.alarms_.emplace(when, this);
    armed_ = true;
  }
  void cancel() override {
    std::erase_if(environment_.alarms_, [this](const auto& item) { return item.second == this; });
    armed_ = false;
  }
  bool armed() const override { return armed_; }
  void fire() {
    armed_ = false;
    fire_();
  }

 private:
  FakeEnvironment& environment_;
  std::function<void()> fire_;
  bool armed_ = false;
};

std::unique_ptr<Alarm> FakeEnvironment::make_alarm(std::function<void()> fire) {
  return std::make_unique<FakeAlarm>(*this, std::move(fire));
}

std::unique_ptr<ClientTransport> FakeEnvironment::make_transport(
    const TransportCandidate& candidate, Duration connect_timeout,
    ClientTransportHandler& handler) {
  ++made_;
  auto transport = std::make_unique<FakeTransport>(*this, candidate, handler);
  transport->connect_timeout = connect_timeout;
  return transport;
}

class FakeEnvironment::FakeEndpoint final : public CallEndpoint {
 public:
  FakeEndpoint(FakeEnvironment& environment, Endpoint endpoint) : environment_(environment) {
    environment_.endpoint_ = std::move(endpoint);
  }
  ~FakeEndpoint() override { environment_.endpoint_.reset(); }
  const SocketAddress& address() const override { return environment_.endpoint_->address; }

 private:
  FakeEnvironment& environment_;
};

Result<std::unique_ptr<CallEndpoint>> FakeEnvironment::make_call_endpoint(
    const SocketAddress& address, CallAnswer answer) {
  const auto refused = no_listening.find(address.host_text());
  if (refused != no_listening.end()) return Error{Errc::kSystem, refused->second, "bind"};
  SocketAddress bound = address;
  ++endpoints_made_;
  if (bound.port() == 0) bound.set_port(static_cast<std::uint16_t>(40'000 + endpoints_made_));
  return std::unique_ptr<CallEndpoint>(
      std::make_unique<FakeEndpoint>(*this, Endpoint{bound, std::move(answer)}));
}

void FakeEnvironment::settle() {
  for (;;) {
    while (Deferred* item = deferred_.pop_front())
      item->run_deferred();
    if (apart_.empty() || apart_held_) return;
    const Apart next = std::move(apart_.front());
    apart_.pop_front();
    next.work();
    next.done();
  }
}

void FakeEnvironment::advance(Duration duration) {
  const TimePoint end = now_ + duration;
  settle();
  while (!alarms_.empty() && alarms_.begin()->first <= end) {
    auto first = alarms_.begin();
    FakeAlarm* alarm = first->second;
    now_ = std::max(now_, first->first);
    alarms_.erase(first);
    alarm->fire();
    settle();
  }
  now_ = end;
}

}  // namespace nfsrdma
