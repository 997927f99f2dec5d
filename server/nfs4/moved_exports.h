// SPDX-License-Identifier: Apache-2.0
// MovedExports: exports that were sent to another server (refer=) while clients of NFSv4 held
// something in them. Whoever uses it hears so by NFS4ERR_MOVED; who only holds it would hear of it
// when this server is gone. So each SEQUENCE of such a client says that something has moved
// (SEQ4_STATUS_LEASE_MOVED, RFC 8881 18.46.3) until it has asked where to (fs_locations), or for
// kToldOfMoves, since it may not be able to follow.
//
// What clients hold stays theirs here, for those that do not follow: `nfs-rdma release` ends it. In
// minor version 0 nothing is said: there it would be an error of operations that have nothing to do
// with it (RFC 7530 9.14).
//
// A file is in the export by which it was held first. An OPEN that is under way at that moment may
// be missed: its client hears of it like everybody, when it uses the file.
//
// Without a lock of its own: ServerState::mutex, which look() takes itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/state/client_table.h"

namespace nfsrdma {
class ExportSnapshot;
}

namespace nfsrdma::nfs4 {

class ServerState;

inline constexpr Duration kToldOfMoves = std::chrono::minutes(10);

class MovedExports {
 public:
  explicit MovedExports(ServerState& state) : state_(state) {}

  /// Notes who is to be told, if other exports are in force than the last time. Those that are
  /// elsewhere the first time have never been here. Any thread, without the mutex.
  void look(const ExportSnapshot& exports);

  // --- with the mutex held ---
  /// SEQ4_STATUS_LEASE_MOVED.
  bool to_be_told(ClientId client, TimePoint now) const;
  /// It has asked where that export is.
  void heard(ClientId client, std::uint64_t export_id);
  void end_client(ClientId client) { told_.erase(client); }

  /// Is anybody to be told? Any thread, without the mutex.
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  /// Those who hold something in one of `exports`.
  void note_holders(const std::set<std::uint64_t>& exports);

  ServerState& state_;
  std::atomic<std::uint64_t> generation_{0};  // of the exports that were looked at
  std::atomic<bool> any_{false};
  std::set<std::uint64_t> elsewhere_;  // of those
  /// Until when, by the export's id.
  std::map<ClientId, std::map<std::uint64_t, TimePoint>> told_;
};

}  // namespace nfsrdma::nfs4
