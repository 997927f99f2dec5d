// SPDX-License-Identifier: Apache-2.0
// SessionTable: the sessions of all clients (RFC 8881 2.10, 18.34 to 18.37): what was negotiated
// for their channels, their slots, and the connections that they go over.
//
// Pure: no I/O, no clock. The caller serialises. A Session& holds until its session ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "server/nfs4/state/back_channel.h"
#include "server/nfs4/state/client_table.h"
#include "server/nfs4/state/limit.h"
#include "server/nfs4/state/slot_table.h"

namespace nfsrdma::nfs4 {

using SessionId = std::array<std::byte, 16>;
/// A connection, as its transport numbers them; never used again.
using ConnectionId = std::uint64_t;

/// channel_attrs4, in bytes but for the last two.
struct ChannelAttributes {
  std::uint32_t header_pad = 0;
  std::uint32_t max_request = 0;
  std::uint32_t max_response = 0;
  std::uint32_t max_response_cached = 0;
  std::uint32_t max_operations = 0;
  std::uint32_t max_requests = 0;

  bool operator==(const ChannelAttributes&) const = default;
};

/// Less than this for a message and nothing could be done over the channel.
inline constexpr std::uint32_t kSmallestMessage = 256;

/// What the server grants of what a client asks for; false: NFS4ERR_TOOSMALL.
bool negotiate(const ChannelAttributes& most, ChannelAttributes* asked);

struct Session {
  SessionId id{};
  Client* client = nullptr;
  ChannelAttributes fore, back;
  SlotTable slots;
  /// Those that SEQUENCE may come by. One that is not here is taken up by its first SEQUENCE
  /// (RFC 8881 2.10.3.1: no state protection is asked for).
  std::set<ConnectionId> connections;
  /// Those on which the server may call back, the one bound last at the end.
  std::vector<ConnectionId> backchannel;
  bool was_called_back = false;  // there has been a connection for that
  /// None: in no way that we can.
  std::optional<BackChannel> back_channel;
};

class SessionTable {
 public:
  struct Limits {
    std::size_t sessions_per_client = SIZE_MAX;
    /// Of all clients together: each may keep a reply of ca_maxresponsesize_cached bytes.
    std::size_t slots = SIZE_MAX;
    /// So many sessions are to find a slot at least, whatever the others have.
    std::size_t sessions = 0;
  };
  SessionTable(std::uint32_t boot, const Limits& limits) : boot_(boot), limits_(limits) {}

  enum class Status : std::uint8_t {
    kOk,
    kBadSession,  // NFS4ERR_BADSESSION
    kDelay,       // NFS4ERR_DELAY: a request runs in it
    kFull,        // NFS4ERR_NOSPC, as CREATE_SESSION says it
    kNotBound,    // NFS4ERR_CONN_NOT_BOUND_TO_SESSION
  };
  /// kNone: the client may have one more session, with so many slots.
  Limit check_room(ClientId client, std::uint32_t slots) const;
  /// Null when there is no room. `client` counts it in Client::holds.
  Session* create(Client& client, const ChannelAttributes& fore, const ChannelAttributes& back,
                  ConnectionId connection, bool call_back_on_it,
                  std::optional<BackChannel> back_channel);
  Session* find(const SessionId& id);
  /// One of the client's by which it can be called back now; null when there is none.
  Session* to_call_back(ClientId client) const;
  /// BIND_CONN_TO_SESSION. With `back`, a back channel that failed is tried again.
  void bind(Session& session, ConnectionId connection, bool fore, bool back);
  /// SEQUENCE came by a connection that is not in session.connections yet.
  void use(Session& session, ConnectionId connection);
  /// DESTROY_SESSION, asked by way of `connection`, which has to be one of its own. `own_request`:
  /// it comes in a SEQUENCE of this very session, which is the only request that may run.
  Status destroy(const SessionId& id, ConnectionId connection, bool own_request);
  /// The client is gone.
  void end_client(const Client& client);
  /// The connection is gone; what runs in its slots goes on.
  void connection_lost(ConnectionId connection);
  std::size_t size() const { return sessions_.size(); }
  std::size_t slots() const { return slots_; }
  const Limits& limits() const { return limits_; }
  /// How many of `asked` slots a further session gets; 0: none are left.
  std::uint32_t slots_for(std::uint32_t asked) const { return share(asked, slots_, size()); }
  /// The same, if there were no other session.
  std::uint32_t most_slots_for(std::uint32_t asked) const { return share(asked, 0, 0); }
  std::size_t sessions_of(ClientId client) const {
    const auto its = by_client_.find(client);
    return its == by_client_.end() ? 0 : its->second.size();
  }

  /// Runs `what` on each of the client's.
  template <typename What>
  void each_of(ClientId client, const What& what) const {
    const auto its = by_client_.find(client);
    if (its == by_client_.end()) return;
    for (const Session* session : its->second)
      what(*session);
  }

 private:
  std::uint32_t share(std::uint32_t asked, std::size_t taken, std::size_t sessions) const;
  void end(Session& session);

  const std::uint32_t boot_;
  const Limits limits_;
  std::uint64_t last_number_ = 0;
  std::size_t slots_ = 0;
  std::map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<ClientId, std::set<Session*>> by_client_;
  std::map<ConnectionId, std::set<Session*>> by_connection_;
};

}  // namespace nfsrdma::nfs4
