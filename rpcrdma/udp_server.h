// SPDX-License-Identifier: Apache-2.0
// UdpServer: RPC over UDP (RFC 5531, section 11) on one EventLoop, as Calls (call.h), for the small
// programs beside NFSv3 that are asked over UDP: lock manager, status monitor, MOUNT, quotas. A
// datagram is a call, and its reply one datagram, from the address that the call was sent to.
//
// Not for NFS: what was cut into many packets is lost with any of them, and at today's rates put
// together wrongly. Programs that are not to be had over UDP are refused here (PROG_UNAVAIL).
//
// Bounds: who sends a datagram can say that it is anybody. So there are kMaxCalls in progress,
// fewer than there are workers; what comes meanwhile is dropped, and sent again by the client. A
// reply has kMaxReply bytes at most, so that little is sent to whoever did not ask. Nothing is
// remembered of who called (ServerConnection::id is 0).
//
// Lifetimes as with TcpServer: loop, pool and handler outlive the server, which is destroyed on the
// loop's thread when no Call is with the handler any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"

namespace nfsrdma {

class UdpCall;
class UdpSocket;

/// A bound socket for UdpServer::adopt(). With the port that the kernel chose when `address` has 0.
Result<UniqueFd> bind_udp(const SocketAddress& address);

class UdpServer {
 public:
  static constexpr std::size_t kMaxCalls = 4;
  static constexpr std::size_t kMaxRequest = 8800;  // longer ones are dropped
  static constexpr std::size_t kMaxReply = Call::kInlineReply;

  /// `refused`: programs that are not to be had over UDP.
  UdpServer(EventLoop& loop, BufferPool& pool, CallHandler& handler,
            std::vector<std::uint32_t> refused);
  ~UdpServer();
  UdpServer(const UdpServer&) = delete;
  UdpServer& operator=(const UdpServer&) = delete;

  /// Serves `socket`, of bind_udp(). On the loop's thread.
  void adopt(UniqueFd socket);
  std::size_t calls_in_progress() const { return in_progress_; }

  /// Takes no more calls; `done` comes when those in progress are answered. Not from within.
  void shutdown(std::function<void()> done);

 private:
  friend class UdpCall;
  friend class UdpSocket;
  class Drain;

  std::unique_ptr<UdpCall> take_call();
  void finished(UdpCall& call);
  void check_drained();
  bool refuses(std::uint32_t program) const;

  EventLoop& loop_;
  BufferPool& pool_;
  CallHandler& handler_;
  const std::vector<std::uint32_t> refused_;
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  std::vector<std::unique_ptr<UdpCall>> free_;
  std::size_t in_progress_ = 0;
  bool stopping_ = false;
  std::function<void()> drained_;
  std::unique_ptr<Drain> drain_;
};

}  // namespace nfsrdma
