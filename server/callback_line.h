// SPDX-License-Identifier: Apache-2.0
// CallbackLine: a connection of the server's own to a client, over TCP, where there is no other way
// to call it: one of NFSv4.0 at the address that it names (SETCLIENTID, RFC 7530 10.2.1 and 16.33),
// and a host of NFSv3 with a lock manager and a status monitor. Made when there is something to be
// said, kept a while, made anew when it is gone.
//
// Everything on the thread of the loop, which outlives the line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/client_transport.h"

namespace nfsrdma {

class CallbackLine final : private ClientTransportHandler {
 public:
  /// How the call of that key ended: with a reply, which holds during the call, or an empty one.
  /// `left`: it may have arrived; otherwise there was no connection to send it by. Never from
  /// within send(). Must not destroy the line.
  using OnEnd = std::function<void(std::uint64_t key, ByteSpan reply, bool left)>;
  struct From {
    SocketAddress local{};       // the port does not matter; without a family: any
    bool reserved_port = false;  // below 1024, where that is allowed
  };
  CallbackLine(EventLoop& loop, const SocketAddress& where, OnEnd on_end)
      : CallbackLine(loop, where, From(), std::move(on_end)) {}
  CallbackLine(EventLoop& loop, const SocketAddress& where, const From& from, OnEnd on_end);
  /// Calls under way just end; nobody is told.
  ~CallbackLine() override;

  const SocketAddress& where() const { return where_; }
  /// All calls end now, without a reply; before the line is destroyed.
  void give_up();
  /// The RPC message; its first word, the xid, is the line's to choose.
  void send(std::uint64_t key, std::vector<std::byte> message);

 private:
  class Sent;
  void submit(Sent& call);
  void on_transport_ready() override;
  void on_transport_closed(Error why, const std::string& detail) override;
  void connect();
  void ended(Sent& sent);
  void on_time();

  EventLoop& loop_;
  const SocketAddress where_;
  const From from_;
  const OnEnd on_end_;
  std::unique_ptr<ClientTransport> transport_;
  bool ready_ = false;
  std::uint32_t last_xid_ = 0;
  std::vector<std::unique_ptr<Sent>> calls_;
  TimePoint last_used_{};
  Timer timer_;
};

}  // namespace nfsrdma
