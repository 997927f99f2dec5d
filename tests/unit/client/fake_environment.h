// SPDX-License-Identifier: Apache-2.0
// A ClientEnvironment with virtual time, whose transports do what the test says: no sockets, no
// sleep.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client_environment.h"
#include "client/rpc_client.h"
#include "xdr/rpc.h"

namespace nfsrdma {

class FakeEnvironment;

class FakeTransport final : public ClientTransport {
 public:
  FakeTransport(FakeEnvironment& environment, TransportCandidate candidate,
                ClientTransportHandler& handler);
  ~FakeTransport() override;

  // --- the test's side ---
  void accept();
  bool accepted() const { return ready_; }
  void refuse(int number);
  /// The server is gone: what is out fails, then the handler hears of it.
  void lose();
  /// Answers the oldest call that is out: RPC header, then what `results` writes.
  void answer(const std::function<void(xdr::Encoder&)>& results,
              xdr::accept_stat stat = xdr::accept_stat::SUCCESS);
  std::deque<ClientCall*>& out() { return out_; }
  /// The server's own call, and the reply to it.
  std::vector<std::byte> call_back(ByteSpan call) {
    std::vector<std::byte> room(kMaxBackwardReply);
    room.resize(handler_.on_backward_call(call, room));
    return room;
  }
  const TransportCandidate& candidate() const { return candidate_; }
  Duration connect_timeout{};

  // --- ClientTransport ---
  void submit(ClientCall& call) override;
  void cancel(ClientCall& call) override { std::erase(out_, &call); }
  void close() override { lose(); }
  TransportKind kind() const override { return candidate_.kind; }
  ConnectionInfo describe() const override;
  std::chrono::steady_clock::time_point last_heard() const override { return heard_; }

 private:
  void fail_calls();

  FakeEnvironment& environment_;
  TransportCandidate candidate_;
  ClientTransportHandler& handler_;
  std::deque<ClientCall*> out_;
  TimePoint heard_{};
  bool ready_ = false;
  bool over_ = false;
};

class FakeEnvironment final : public ClientEnvironment {
 public:
  TimePoint now() const override { return now_; }
  std::unique_ptr<Alarm> make_alarm(std::function<void()> fire) override;
  std::unique_ptr<ClientTransport> make_transport(const TransportCandidate& candidate,
                                                  Duration connect_timeout,
                                                  ClientTransportHandler& handler) override;
  Result<std::unique_ptr<CallEndpoint>> make_call_endpoint(const SocketAddress& address,
                                                           CallAnswer answer) override;
  void run_soon(Deferred& item) override { deferred_.push_back(item); }
  void run_apart(std::function<void()> work, std::function<void()> done) override {
    apart_.push_back({std::move(work), std::move(done)});
  }

  /// Other threads do nothing: what is there for them waits.
  void hold_apart(bool hold) { apart_held_ = hold; }
  std::size_t waiting_apart() const { return apart_.size(); }
  /// Runs what is due until `duration` from now, in order of time.
  void advance(Duration duration);
  void settle();
  /// The newest transport that is alive; null: none.
  FakeTransport* transport() const { return alive_.empty() ? nullptr : alive_.back(); }
  std::size_t made() const { return made_; }
  /// Transports send nothing, for want of credits.
  bool keeps_calls = false;
  /// Where this client begins its connections.
  SocketAddress local = SocketAddress::parse("192.0.2.77", 999).value();
  /// Addresses that cannot be listened at, and why.
  std::map<std::string, int> no_listening;
  /// Where it can be called now; null: nowhere.
  struct Endpoint {
    SocketAddress address;
    CallAnswer answer;
  };
  const Endpoint* endpoint() const { return endpoint_ ? &*endpoint_ : nullptr; }
  std::size_t endpoints_made() const { return endpoints_made_; }

 private:
  friend class FakeTransport;
  class FakeEndpoint;
  std::optional<Endpoint> endpoint_;
  std::size_t endpoints_made_ = 0;
  class FakeAlarm;
  TimePoint now_{std::chrono::hours(1)};
  std::multimap<TimePoint, FakeAlarm*> alarms_;
  IntrusiveList<Deferred, Deferred> deferred_;
  struct Apart {
    std::function<void()> work;
    std::function<void()> done;
  };
  std::deque<Apart> apart_;
  bool apart_held_ = false;
  std::vector<FakeTransport*> alive_;
  std::size_t made_ = 0;
};

/// The server restarts, with a time of grace in which all is to be had back.
template <typename Server>
void restart_with_grace(FakeEnvironment& environment, Server& server, Duration behind) {
  server.restart();
  server.in_grace = true;
  environment.transport()->lose();
  server.serve_for(std::chrono::seconds(5));
  server.in_grace = false;
  server.serve_for(behind);
}

/// One server over TCP; two seconds are a minor timeout, four the end on a soft mount.
inline RpcClientOptions impatient_options(bool soft) {
  RpcClientOptions options;
  options.candidates = {
      {TransportKind::kTcp, SocketAddress::parse("192.0.2.1", 2049).value(), nullptr}};
  options.soft = soft;
  options.timeo = std::chrono::seconds(2);
  options.retrans = 1;
  options.idle_timeout = Duration::zero();
  options.put_off = std::make_shared<PutOff>("fake");
  return options;
}

}  // namespace nfsrdma
