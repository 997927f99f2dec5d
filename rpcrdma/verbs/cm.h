// SPDX-License-Identifier: Apache-2.0
// Connection set-up: the seam's Listener, Incoming, ConnectRequest and Connector on rdma_cm ids.
// Order of the calls: wire.md 6.1 (server) and 6.2 (client).
//
// A new connection's id starts on the listener's channel, where nobody listens to it; start() on
// the shard migrates it to the shard's channel.
#pragma once

#include <memory>
#include <string>

#include "rpcrdma/fabric.h"
#include "rpcrdma/verbs/cm_channel.h"
#include "rpcrdma/verbs/device.h"
#include "rpcrdma/verbs/queue_pair.h"
#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma::verbs {

/// Gives what a loop needs; implemented by the fabric.
class LoopResources {
 public:
  virtual ~LoopResources() = default;
  /// On `loop`'s thread. Both live until Fabric::forget(loop).
  virtual Result<CmChannel*> channel(EventLoop& loop) = 0;
  /// The device that `id` is on.
  virtual Result<VerbsDevice*> device(EventLoop& loop, rdma_cm_id* id) = 0;
  virtual const VerbsOptions& options() const = 0;
  virtual CommandThread& commands() = 0;
};

class VerbsListener final : public Listener, private CmUser {
 public:
  static Result<std::unique_ptr<Listener>> create(LoopResources& resources, EventLoop& loop,
                                                  const SocketAddress& address,
                                                  IncomingHandler& handler);
  const SocketAddress& address() const override { return address_; }

 private:
  VerbsListener(LoopResources& resources, EventLoop& loop, const SocketAddress& address,
                IncomingHandler& handler);
  Result<void> open();
  void on_cm_event(const CmEvent& event) override;
  void open_again();

  LoopResources& resources_;
  EventLoop& loop_;
  IncomingHandler& handler_;
  SocketAddress address_;
  CmIdHandle id_;
  Timer retry_;  // while the address has no device
};

/// A CONNECT_REQUEST, on no loop yet. Destruction rejects.
class VerbsIncoming final : public Incoming {
 public:
  VerbsIncoming(LoopResources& resources, const CmEvent& event)
      : resources_(resources), event_(event), id_(event.id, Deleter{&resources.commands()}) {}
  ~VerbsIncoming() override;
  void start(EventLoop& loop, AcceptHandler& handler) override;

 private:
  LoopResources& resources_;
  CmEvent event_;
  CmIdHandle id_;
};

class VerbsConnectRequest final : public ConnectRequest, private CmUser {
 public:
  static Result<std::unique_ptr<ConnectRequest>> create(LoopResources& resources,
                                                        CmChannel& channel, VerbsDevice& device,
                                                        CmEvent event, CmIdHandle id);
  ~VerbsConnectRequest() override;
  Device& device() override { return device_; }
  const SocketAddress& peer() const override { return peer_; }
  ByteSpan private_data() const override { return event_.private_data; }
  std::uint32_t peer_inbound_reads() const override { return event_.initiator_depth; }
  Result<std::unique_ptr<QueuePair>> accept(const QueuePairOptions& options) override;
  void reject(ByteSpan private_data) override;

 private:
  VerbsConnectRequest(LoopResources& resources, VerbsDevice& device, CmEvent event, CmIdHandle id);
  Result<void> handshake(rdma_cm_id* id, rdma_conn_param param);
  void on_cm_event(const CmEvent& event) override;

  LoopResources& resources_;
  VerbsDevice& device_;
  CmEvent event_;
  SocketAddress peer_;
  CmIdHandle id_;
  bool gone_ = false;  // the peer gave up
};

/// The kernel picks the ports of RDMA connections without a look at TCP's. siw then binds a TCP
/// socket to the one that it got, and fails when some TCP socket has it.
inline bool port_is_taken(const Error& error) {
  return error.sys == EADDRINUSE || error.sys == EADDRNOTAVAIL;
}
inline constexpr int kPortTries = 8;

/// The handler's on_device() is asked anew for each port that it tries.
class VerbsConnector final : public Connector, private CmUser {
 public:
  static Result<std::unique_ptr<Connector>> create(LoopResources& resources, EventLoop& loop,
                                                   const SocketAddress& peer,
                                                   ConnectHandler& handler);

 private:
  VerbsConnector(LoopResources& resources, EventLoop& loop, const SocketAddress& peer,
                 ConnectHandler& handler);
  Result<void> start();
  void on_cm_event(const CmEvent& event) override;
  void on_address_resolved();
  void on_route_resolved();
  void on_established(const CmEvent& event);
  void hand_over();
  void fail(Error error, const std::string& detail);
  void fail_by(const CmEvent& event);

  LoopResources& resources_;
  EventLoop& loop_;
  SocketAddress peer_;
  ConnectHandler& handler_;
  VerbsDevice* device_ = nullptr;
  CmIdHandle id_;
  std::unique_ptr<VerbsQueuePair> queue_pair_;
  std::vector<std::byte> private_data_;
  std::uint8_t outbound_reads_ = 0;
  std::uint8_t inbound_reads_ = 0;
  int ports_taken_ = 0;
  Timer deadline_;
  Timer settle_;
};

}  // namespace nfsrdma::verbs
