// SPDX-License-Identifier: Apache-2.0
// Shard: one thread with its loop, its buffers, its dispatcher and its connections of every
// transport. Connections never move between shards.
//
// Lifetimes: start(), then shutdown() and join(). What Options name outlives the thread, and the
// Shard outlives every thread that hands work back to it. The objects that belong to the loop are
// made and destroyed on the shard's own thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/rdma_server.h"
#include "rpcrdma/tcp_server.h"
#include "rpcrdma/udp_server.h"
#include "server/call_tap.h"
#include "server/capture/shard_capture.h"
#include "server/dispatch.h"

namespace nfsrdma {

/// What a shard tells about itself for `status`.
struct ShardReport {
  std::vector<ConnectionInfo> connections;
  std::vector<LatencyHistogram<std::uint32_t>> latencies;  // of those connections, in their order
  /// Of all connections that have ended, by TransportKind.
  std::array<TransferStats, kTransportKinds> closed;
  std::vector<Dispatcher::ProcedureStats> procedures;
  std::vector<CallCounts> counts;
  std::uint64_t rejected = 0;
  std::uint64_t rejected_auth = 0;  // of them
  std::size_t outstanding = 0;
  std::size_t budget = 0;
  std::size_t in_use = 0;
  std::size_t arenas = 0;
  std::size_t exposed_regions = 0;
  std::size_t waiting = 0;  // calls that wait for memory
  bool silent = false;      // the shard does not answer now; this is what it told last
};

class Shard {
 public:
  struct Options {
    Dispatcher::Shared shared;
    std::size_t memory_budget = std::size_t{64} << 20;
    RdmaServerLimits rdma;
    TcpServerLimits tcp;
    Duration spin{};
    std::vector<Fabric*> fabrics;  // told when the shard's loop ends
  };

  static Result<std::unique_ptr<Shard>> start(unsigned index, const Options& options);
  /// Ends the thread if it still runs.
  ~Shard();

  // --- any thread ---
  void accept(std::unique_ptr<Incoming> incoming);
  void adopt(UniqueFd socket);
  /// Serves what comes by datagrams to `socket` (udp_server.h): all programs but NFS.
  void serve_datagrams(UniqueFd socket);
  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  /// `done` gets the report on the shard's thread.
  void report(std::function<void(ShardReport)> done);
  /// Asks the thread to come round, which has_answered() then tells (watchdog).
  void ask_for_sign_of_life();
  bool has_answered() const { return answered_.load(std::memory_order_relaxed); }
  /// The kernel's number of the thread; 0 before it runs.
  pid_t thread() const { return tid_.load(std::memory_order_relaxed); }
  /// Ends the connections of that host (as SocketAddress::host_text() writes it). `done` gets their
  /// number, on the shard's thread.
  void evict(std::string host, std::function<void(std::size_t)> done);
  /// Other exports may be in force: lets go of those that the thread knew. Then `done` (may be
  /// empty), on the shard's thread.
  void look_at_exports(std::function<void()> done);
  /// Where answered calls go from now on, in batches and on the shard's thread; null: nowhere.
  void tap(CallTap::Sink sink);
  /// As Dispatcher::log_slow().
  void log_slow(std::uint64_t ns);
  /// What crosses connections is captured as `order` says from now on, if it is there; a capture
  /// before that ends and hands over what it has. Then `done` (may be empty), on the shard's
  /// thread.
  void capture(std::shared_ptr<const ShardCapture::Order> order, std::function<void()> done);
  /// Takes no more calls, lets those in progress be answered, closes the connections and ends the
  /// thread. Ended: ended() is true.
  void shutdown(Duration patience);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  void join();

 private:
  class CountingHandler;
  explicit Shard(const Options& options);
  void serve(unsigned index);
  void part_ended();
  ShardReport make_report();

  Options options_;
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> answered_{true};
  std::atomic<pid_t> tid_{0};

  // On the shard's thread:
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<CallTap> tap_;
  std::unique_ptr<ShardCapture> capture_;
  std::unique_ptr<CountingHandler> handler_;
  std::unique_ptr<RdmaServer> rdma_;
  std::unique_ptr<TcpServer> tcp_;
  std::unique_ptr<UdpServer> udp_;
  std::array<TransferStats, kTransportKinds> closed_;
  int parts_left_ = 3;
  bool stopping_ = false;
};

/// The shard with the fewest connections; among equals the one after `last`.
Shard& least_loaded(std::span<const std::unique_ptr<Shard>> shards, std::size_t* last);

}  // namespace nfsrdma
