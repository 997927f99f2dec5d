// SPDX-License-Identifier: Apache-2.0
// ClientEnvironment: what the RPC client needs from the world: time, alarms, transports, a place to
// be called at. The real one stands on an EventLoop; tests have one with virtual time and
// transports that do what they say.
#pragma once

#include <functional>
#include <memory>

#include "client/apart_threads.h"
#include "client/transport_order.h"
#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/client_transport.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/tcp_client.h"

namespace nfsrdma {

/// Fires once per set(). Destruction cancels.
class Alarm {
 public:
  virtual ~Alarm() = default;
  virtual void set(TimePoint when) = 0;
  virtual void cancel() = 0;
  virtual bool armed() const = 0;
};

/// Where servers call this client over TCP, on connections of theirs. Closes when it is destroyed.
class CallEndpoint {
 public:
  virtual ~CallEndpoint() = default;
  /// With its port.
  virtual const SocketAddress& address() const = 0;
};

/// Encodes the reply to `call`, an RPC message that anybody may have sent, into `room`; its bytes,
/// 0: there is none. Must not destroy the endpoint.
using CallAnswer = std::function<std::size_t(ByteSpan call, MutableByteSpan room)>;

class ClientEnvironment {
 public:
  virtual ~ClientEnvironment() = default;
  virtual TimePoint now() const = 0;
  virtual std::unique_ptr<Alarm> make_alarm(std::function<void()> fire) = 0;
  /// Starts connecting; the handler hears how it went, never from inside this call.
  virtual std::unique_ptr<ClientTransport> make_transport(const TransportCandidate& candidate,
                                                          Duration connect_timeout,
                                                          ClientTransportHandler& handler) = 0;
  /// Listens at `address`; port 0: any. The calls come with nothing of ours on the stack.
  virtual Result<std::unique_ptr<CallEndpoint>> make_call_endpoint(const SocketAddress& address,
                                                                   CallAnswer answer) = 0;
  /// Runs `item` once, soon, with nothing of ours on the stack.
  virtual void run_soon(Deferred& item) = 0;
  /// Runs `work`, which may block, on another thread, and then `done` here, with nothing of ours on
  /// the stack; unless this is destroyed before.
  virtual void run_apart(std::function<void()> work, std::function<void()> done) = 0;
};

class LoopEnvironment final : public ClientEnvironment {
 public:
  LoopEnvironment(EventLoop& loop, const RdmaClientOptions& rdma, const TcpClientOptions& tcp)
      : loop_(loop), rdma_(rdma), tcp_(tcp), apart_(loop) {}
  TimePoint now() const override { return loop_.now(); }
  std::unique_ptr<Alarm> make_alarm(std::function<void()> fire) override;
  std::unique_ptr<ClientTransport> make_transport(const TransportCandidate& candidate,
                                                  Duration connect_timeout,
                                                  ClientTransportHandler& handler) override;
  Result<std::unique_ptr<CallEndpoint>> make_call_endpoint(const SocketAddress& address,
                                                           CallAnswer answer) override;
  void run_soon(Deferred& item) override { loop_.defer(item); }
  void run_apart(std::function<void()> work, std::function<void()> done) override {
    apart_.run(std::move(work), std::move(done));
  }

 private:
  EventLoop& loop_;
  RdmaClientOptions rdma_;
  TcpClientOptions tcp_;
  ApartThreads apart_;
};

}  // namespace nfsrdma
