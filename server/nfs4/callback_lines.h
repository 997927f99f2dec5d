// SPDX-License-Identifier: Apache-2.0
// CallbackLines: which clients of minor version 0 can be called, and calls to them. A client counts
// as reachable once CB_NULL came back from the address that it named (RFC 7530 16.33.5), until a
// call gets no answer.
//
// Locking: everything with ServerState::mutex held, but what says otherwise. The lines themselves
// belong to the thread of the loop given to start().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rpcrdma/base/event_loop.h"
#include "server/callback_line.h"
#include "server/nfs4/state/back_channel.h"
#include "server/nfs4/state/client_table.h"

namespace nfsrdma::nfs4 {

class Callback;
class ServerState;

/// What SETCLIENTID says of callbacks.
struct CallbackAddress {
  SocketAddress where;
  std::uint32_t program = 0;
  std::uint32_t ident = 0;

  /// The form in which Client::callback has it.
  static std::string to_text(std::string_view netid, std::string_view address,
                             std::uint32_t program, std::uint32_t ident);
  /// Empty when it is no address of TCP: only there is anybody called back, as by Linux's server.
  static std::optional<CallbackAddress> parse(std::string_view text);
};

class CallbackLines {
 public:
  enum class State : std::uint8_t {
    kNone,     // no address, or none that is called
    kUnknown,  // CB_NULL is under way
    kUp,
    kDown,
  };

  explicit CallbackLines(ServerState& state);
  ~CallbackLines();
  /// Until then nobody is called. Not with the mutex.
  void start(EventLoop& loop) { loop_ = &loop; }
  /// After the loop's thread has ended. Not with the mutex.
  void stop();

  /// The client wants to be called there, as of now: finds out whether it can be.
  void set(ClientId client, const CallbackAddress& address);
  /// It is gone, or can be called nowhere.
  void end_client(ClientId client);
  State state(ClientId client) const;
  /// One that could not be called when that was tried last may be by now: finds out, now and then.
  void look_again(ClientId client);
  /// As Caller::call(). Looks now and then whether a client that did not answer does again.
  bool call(ClientId client, std::unique_ptr<Callback> callback);

 private:
  struct Entry {
    SocketAddress where;
    CallbackTarget target;
    State state = State::kUnknown;
    std::uint64_t probe = 0;  // its CB_NULL
    TimePoint probed{};
    std::size_t under_way = 0;
  };
  struct UnderWay {
    ClientId client = 0;
    std::unique_ptr<Callback> callback;  // null: CB_NULL
  };
  using Lines = std::map<ClientId, std::unique_ptr<CallbackLine>>;

  /// By CB_NULL. False: too much is under way to that client.
  bool probe(ClientId client, Entry& entry);
  void send(ClientId client, Entry& entry, std::uint64_t key, ByteSpan message);
  // Without the mutex, on the loop's thread:
  void transmit(ClientId client, const SocketAddress& where, std::uint64_t key,
                std::vector<std::byte> message);
  void ended(std::uint64_t key, ByteSpan reply);

  ServerState& state_;
  const std::string host_;
  const std::size_t most_clients_;
  EventLoop* loop_ = nullptr;
  std::uint64_t last_key_ = 0;
  std::map<ClientId, Entry> entries_;
  std::map<std::uint64_t, UnderWay> under_way_;
  Lines lines_;  // of the loop's thread
};

}  // namespace nfsrdma::nfs4
