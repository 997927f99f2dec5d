// SPDX-License-Identifier: Apache-2.0
// TcpServer: RPC over TCP (RFC 5531, section 11, record marking) on one EventLoop, as Calls
// (call.h). TcpListener accepts connections and hands the sockets out, so that one listener can
// feed several loops.
//
// Memory: all connections of a server share one scratch buffer for reading. A connection that
// waits for the rest of a record keeps at most one small buffer, unless more than that of the
// record has arrived; then it holds a buffer of the record's size, and is cut when nothing more
// comes for TcpServerLimits::stalled_after. Likewise when its client takes nothing of the replies
// that wait for it, in buffers of the pool as well. Who is only slow has to give way when others
// wait (buffer_pool.h).
//
// When all places are taken a connection that never carried a call ends for a new one, or else one
// that has been without a call for TcpServerLimits::idle_after.
//
// A client that closes its direction is given the answers to what it has asked, and the handler is
// told at once that it asks no more.
//
// Lifetimes as with RdmaServer: loop, pool and handler outlive the server, which is destroyed on
// the loop's thread when no Call is with the handler any more.
#pragma once

#include <functional>
#include <memory>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/places.h"

namespace nfsrdma {

class TcpServerConnection;
class TcpCall;

/// Listens while it lives. `accepted` gets each socket, non-blocking, on the loop's thread.
class TcpListener final : private FdWatcher {
 public:
  using Accepted = std::function<void(UniqueFd socket)>;
  static Result<std::unique_ptr<TcpListener>> listen(EventLoop& loop, const SocketAddress& address,
                                                     Accepted accepted);
  ~TcpListener() override;
  /// With the port that the kernel chose, when port 0 was asked for.
  const SocketAddress& address() const { return address_; }

 private:
  TcpListener(EventLoop& loop, UniqueFd fd, const SocketAddress& address, Accepted accepted);
  void on_fd_ready(std::uint32_t events) override;
  /// No descriptors are left. False: not even for refusing.
  bool refuse_one();
  void watch();

  EventLoop& loop_;
  UniqueFd fd_;
  UniqueFd spare_;  // given up for a moment to refuse connections when descriptors run out
  SocketAddress address_;
  Accepted accepted_;
  Timer retry_;  // when the spare one is lost
};

struct TcpServerLimits {
  std::size_t max_record = BufferPool::kMaxBuffer;  // RPC call, payload included; no more than this
  std::size_t max_connections = 20'000;
  std::size_t max_calls = 256;                    // outstanding per connection; then reading pauses
  std::size_t max_output = std::size_t{8} << 20;  // unsent reply bytes; then reading pauses
  Duration stalled_after = std::chrono::seconds(60);
  Duration idle_after = std::chrono::minutes(30);  // without a call, and others want the place
  SharedPlaces places;
};

struct TcpFreeTag {};

class TcpServer {
 public:
  TcpServer(EventLoop& loop, BufferPool& pool, CallHandler& handler,
            const TcpServerLimits& limits = {});
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  /// Serves `socket` (connected, non-blocking). On the loop's thread.
  void adopt(UniqueFd socket);
  /// Ends the connection of that kind that has been silent for longest. False: there is none.
  bool evict(Silent silent);

  std::size_t connection_count() const { return connection_count_; }
  /// Not those that have ended and wait for calls of theirs to come back.
  void for_each_connection(const std::function<void(ServerConnection&)>& visit);

  /// As RdmaServer::shutdown().
  void shutdown(Duration patience, std::function<void()> done);

 private:
  friend class TcpServerConnection;
  friend class TcpCall;
  class Reaper;

  /// For one more connection, if need be in place of a silent one.
  bool has_room();
  /// With its two small buffers; nullptr when the pool has none for `stage`.
  TcpCall* take_call(BufferStage stage);
  void recycle(TcpCall& call);
  void connection_gone(TcpServerConnection& connection);
  void check_drained();
  /// A connection holds a large buffer for a record that is not complete, or replies that the
  /// socket does not take: watch it.
  void watch_stalls();
  void sweep();
  /// A connection waits for its client to close, which may be long in doing so: end it as soon as
  /// it has lost nothing by that.
  void watch_leaving();
  void look_at_leaving();

  static constexpr std::size_t kScratchBytes = 256 << 10;

  EventLoop& loop_;
  BufferPool& pool_;
  CallHandler& handler_;
  TcpServerLimits limits_;
  std::unique_ptr<std::byte[]> scratch_;
  IntrusiveList<TcpServerConnection> connections_;
  IntrusiveList<TcpServerConnection> dead_;
  std::size_t connection_count_ = 0;
  std::size_t starved_ = 0;  // connections that wait for buffers
  IntrusiveList<TcpCall, TcpFreeTag> free_calls_;
  std::size_t free_call_count_ = 0;
  std::size_t warm_calls_;  // so many are kept, with their buffers, for what comes next
  bool stopping_ = false;
  std::function<void()> drained_;
  Timer patience_;
  Timer sweep_;
  Timer leaving_;
  std::unique_ptr<Reaper> reaper_;
};

}  // namespace nfsrdma
