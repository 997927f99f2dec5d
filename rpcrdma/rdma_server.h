// SPDX-License-Identifier: Apache-2.0
// RdmaServer: the server side of RPC-over-RDMA on one EventLoop. It takes connections from any
// fabric, turns the messages that arrive into Calls (call.h) and carries the replies back.
//
// Shared per device: protection domain, completion queue, and one queue of receive buffers for all
// connections, so that an idle connection holds none (rdma_endpoint.h).
//
// Lifetimes: loop, pool and handler outlive the server. Destroy it on the loop's thread, after
// shutdown() reported done or when no Call is with the handler any more; connections still open
// are cut.
//
// Calls whose payload is being read hold buffers of the pool. What a client owes us there has a
// limit in time: one that is frozen, with a kernel or an adapter that still acknowledges, would
// keep them for ever, and all other connections wait. So a connection is cut when none of its RDMA
// Reads ends, and none of the replies is taken that may be in front of them, for
// RdmaServerLimits::stalled_after. One that is only slow has to give way when others wait
// (buffer_pool.h).
//
// When all places, or all credits, are taken a connection that never carried a call ends for a new
// one: strangers may have as many as they like of those. After them goes one that has been without
// a call for RdmaServerLimits::idle_after: on an adapter nothing tells that a client without calls
// is gone for good, and one that is not connects again.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/credits.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/places.h"
#include "rpcrdma/poison_table.h"

namespace nfsrdma {

class ResponderCall;
class ResponderConnection;
class ResponderShard;

struct RdmaServerLimits {
  std::uint32_t inline_bytes = 4096;  // largest Send that we take and make; 1024..65536
  CreditLimits credits;               // how many calls clients may have outstanding
  std::uint32_t send_depth = 512;     // work requests on one connection's send queue
  std::uint32_t outbound_reads = 16;  // RDMA Reads outstanding per connection (ORD)
  std::size_t max_call = (std::size_t{4} << 20) + (64 << 10);  // RPC call, payload included
  std::size_t max_connections = 20'000;
  bool remote_invalidation = true;  // Send with Invalidate where the client can take it
  Duration stalled_after = std::chrono::seconds(60);  // RDMA Reads out, and none of them ends
  Duration idle_after = std::chrono::minutes(30);     // without a call, and others want the place
  SharedPlaces places;
};

class RdmaServer final : public AcceptHandler {
 public:
  RdmaServer(EventLoop& loop, BufferPool& pool, CallHandler& handler,
             const RdmaServerLimits& limits = {});
  ~RdmaServer() override;
  RdmaServer(const RdmaServer&) = delete;
  RdmaServer& operator=(const RdmaServer&) = delete;

  /// Goes on with a connection that a listener found. On the loop's thread.
  void accept(std::unique_ptr<Incoming> incoming);
  /// Fabrics call this; tests may.
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override;

  /// Ends the connection of that kind that has been silent for longest. False: there is none.
  bool evict(Silent silent) { return evict(silent, nullptr); }

  std::size_t connection_count() const { return connection_count_; }
  /// Not those that have ended and wait for calls of theirs to come back.
  void for_each_connection(const std::function<void(ServerConnection&)>& visit) const;

  /// Takes no more calls, lets those that the handler has be answered, closes the connections,
  /// then calls `done` (once, from the loop). Connections that do not drain within `patience` are
  /// cut; Calls still with the handler keep `done` waiting.
  void shutdown(Duration patience, std::function<void()> done);

 private:
  friend class ResponderCall;
  friend class ResponderConnection;
  friend class ResponderShard;
  class Reaper;

  ResponderShard* shard_for(Device& device);
  /// For one more connection, if need be in place of a silent one.
  bool has_room();
  /// `only`: whose device alone will do; null: any.
  bool evict(Silent silent, const ResponderShard* only);
  /// Of either kind, for what is short on `shard`'s device.
  void make_room_on(const ResponderShard& shard);
  void connection_gone(ResponderConnection& connection);
  void check_drained();
  /// Soon: deletes dead connections, and shards whose device is gone.
  void reap();

  EventLoop& loop_;
  BufferPool& pool_;
  CallHandler& handler_;
  RdmaServerLimits limits_;
  std::vector<std::unique_ptr<ResponderShard>> shards_;  // one per Device
  PoisonTable poison_;
  std::size_t connection_count_ = 0;
  bool stopping_ = false;
  std::function<void()> drained_;
  Timer patience_;
  std::unique_ptr<Reaper> reaper_;
};

}  // namespace nfsrdma
