// SPDX-License-Identifier: Apache-2.0
// RevokedStates: the opens and lock states that an administrator took away from clients, by the
// number in their stateids, for as long as it is of use to say so (NFS4ERR_ADMIN_REVOKED; RFC 8881
// 8.5, 18.38.3, 18.48.3; RFC 7530 9.8). What they stood for has ended.
//
// A client of minor version 1 and later says by FREE_STATEID that it knows of each. In minor
// version 0 there is no such word: there whoever was told of one that came of an open knows of all
// that came of it, and they stay until they have to make room.
//
// Pure: no I/O; time comes with the calls. The caller serialises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/state/file_state.h"
#include "server/nfs4/state/state_number.h"

namespace nfsrdma::nfs4 {

/// For so long a client is told in each SEQUENCE that something of its was revoked: one that never
/// knew of it, since the OPEN's reply was lost, will not free it.
inline constexpr Duration kToldOfRevoked = std::chrono::minutes(10);

class RevokedStates {
 public:
  /// Of a client: the oldest goes first, and is nobody's then.
  static constexpr std::size_t kMostPerClient = 1024;

  struct One {
    ClientId client = 0;
    FileKey file;
    std::string owner;      // the open-owner's or lock-owner's name
    bool locks = false;     // which of both
    StateNumber open = 0;   // the open that it came of, or was
    bool is_known = false;  // minor version 0: the client was told
  };

  /// `number`: of nothing that is there already.
  void add(StateNumber number, One what, TimePoint now);
  /// Null: nothing is known by that number. Until the table changes.
  const One* find(StateNumber number) const;
  bool contains(StateNumber number) const { return all_.contains(number); }
  /// FREE_STATEID.
  void forget(StateNumber number);
  /// Minor version 0: the client has been told of that one.
  void note_told(StateNumber number);
  void end_client(ClientId client);

  /// Has the client lost something that it does not know of?
  bool any_unknown(ClientId client) const;
  /// SEQ4_STATUS_ADMIN_STATE_REVOKED.
  bool to_be_told(ClientId client, TimePoint now) const;
  std::size_t of_client(ClientId client) const;

 private:
  struct Entry {
    One one;
    std::uint64_t place = 0;  // among its client's
  };
  struct PerClient {
    std::map<std::uint64_t, StateNumber> in_order;
    std::size_t unknown = 0;
    TimePoint last{};
  };
  using Clients = std::unordered_map<ClientId, PerClient>;
  void know(One& one, PerClient& its);
  void erase(StateNumber number, Clients::iterator its);

  std::uint64_t last_place_ = 0;
  std::unordered_map<StateNumber, Entry> all_;
  Clients clients_;
};

}  // namespace nfsrdma::nfs4
