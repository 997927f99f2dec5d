// SPDX-License-Identifier: Apache-2.0
// An RdmaServer with the toy service, or one of the test's, and RDMA clients of it, on a simulated
// fabric.
#pragma once

#include <functional>
#include <memory>

#include "rpcrdma/rdma_server.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/sim/sim_fabric.h"
#include "tests/support/toy_rpc.h"

namespace nfsrdma::test {

class SimPair : private IncomingHandler {
 public:
  using MakeService = std::function<std::unique_ptr<CallHandler>(EventLoop&)>;

  explicit SimPair(std::uint64_t seed = 1, const SimFaults& faults = {},
                   const RdmaServerLimits& limits = {}, std::size_t budget = 64u << 20,
                   const MakeService& make_service = {})
      : network(seed, faults), loop(std::move(EventLoop::create()).value()), fabric(network) {
    loop->set_clock(&network);
    pool = std::make_unique<BufferPool>(*loop, budget);
    if (make_service) service = make_service(*loop);
    server = std::make_unique<RdmaServer>(*loop, *pool, service ? *service : handler, limits);
    listener = std::move(fabric.listen(*loop, address(), *this)).value();
  }
  ~SimPair() {
    client.reset();
    run();
    handler.hold = false;
    handler.answer_held();
    run();
    server.reset();
    listener.reset();
    run();
    pool.reset();
  }

  static SocketAddress address() {
    return std::move(SocketAddress::parse("127.0.0.1", 20049)).value();
  }

  void connect(const RdmaClientOptions& options = {}) {
    client = make_rdma_transport(*loop, fabric, address(), options, log);
    run();
  }
  std::size_t run(std::size_t steps = 1'000'000) { return network.run(*loop, steps); }

  /// Submits and runs until nothing moves any more.
  ToyCall& call(std::uint32_t procedure, std::uint32_t size, std::uint32_t seed = 5) {
    calls.push_back(std::make_unique<ToyCall>(++last_xid, procedure, size, seed));
    client->submit(*calls.back());
    run();
    return *calls.back();
  }

  SimNetwork network;
  std::unique_ptr<EventLoop> loop;
  SimFabric fabric;
  std::unique_ptr<BufferPool> pool;
  ToyHandler handler;
  std::unique_ptr<CallHandler> service;  // in place of the toy
  std::unique_ptr<RdmaServer> server;
  std::unique_ptr<Listener> listener;
  TransportLog log;
  std::unique_ptr<ClientTransport> client;
  std::vector<std::unique_ptr<ToyCall>> calls;
  std::uint32_t last_xid = 0x1000;

 private:
  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    server->accept(std::move(incoming));
  }
};

}  // namespace nfsrdma::test
