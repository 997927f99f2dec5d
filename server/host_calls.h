// SPDX-License-Identifier: Apache-2.0
// HostCalls: calls of the server's own to a program on a client's host, the lock manager (GRANTED)
// or the status monitor (NOTIFY) there: over TCP, at the port that the host's rpcbind names, from
// the address that the host knows this server by and from a port below 1024, where that is allowed.
//
// Threads: everything on the loop's thread. The loop outlives the object; after its destruction
// nobody is told of calls under way.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/socket_address.h"
#include "server/callback_line.h"

namespace nfsrdma {

class HostCalls {
 public:
  explicit HostCalls(EventLoop& loop, std::uint16_t rpcbind_port = 111);
  ~HostCalls();
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  enum class End : std::uint8_t {
    kAnswered,
    kRefused,   // by RPC: no such procedure, credentials, ...
    kNotSent,   // no rpcbind there, the program is not registered or listens no more, too much is
                // under way
    kNoAnswer,  // it may have arrived
  };
  /// `results`: what follows the RPC header of the reply, with kAnswered; valid during the call.
  using Done = std::function<void(End end, ByteSpan results)>;
  struct Target {
    SocketAddress host;     // its port does not matter
    SocketAddress local{};  // call from there; without a family: from anywhere
    std::uint32_t program = 0;
    std::uint32_t version = 0;
  };
  /// `arguments`: encoded. `done` comes once, never from within.
  void call(const Target& target, std::uint32_t procedure, std::vector<std::byte> arguments,
            Done done);

 private:
  struct Pending {
    std::vector<std::byte> message;
    Done done;
  };
  struct Line;
  using Lines = std::map<std::string, std::unique_ptr<Line>>;

  void ask_for_port(Line& line);
  void heard_of_port(Line& line, ByteSpan reply);
  void send(Line& line, Pending pending);
  void ended(Line& line, std::uint64_t key, ByteSpan reply, bool left);
  /// Not from within call(), and with a copy of `results`.
  void tell(Done done, End end, ByteSpan results);
  void sweep();

  EventLoop& loop_;
  const std::uint16_t rpcbind_port_;
  const std::string machine_;
  std::uint64_t last_key_ = 0;
  Lines lines_;
  Timer sweep_;
  /// What is posted to the loop does nothing once this is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace nfsrdma
