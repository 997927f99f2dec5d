// SPDX-License-Identifier: Apache-2.0
// HolderAttributes: asks the holder of a write delegation how its file stands (CB_GETATTR, RFC 7530
// 16.1, RFC 8881 20.1), for whoever else wants to know (RFC 8881 10.4.3): the holder may have
// written what this server has not seen.
//
// Who asks waits for the answer, at most kPatience from when the holder was asked, on a thread that
// may block; after that it is told to come back later, and finds the answer that has come
// meanwhile. A holder that cannot be asked is asked for the delegation instead.
//
// Locking: as each function says.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/state/delegation_table.h"
#include "xdr/nfs4_callback.h"

namespace nfsrdma::nfs4 {

class ServerState;

class HolderAttributes {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(50);
  /// An answer that came too late is good for whoever asks next within this time.
  static constexpr Duration kLateAnswer = std::chrono::milliseconds(500);
  /// Those who ask beyond that do not wait, and are told to come back later at once.
  static constexpr std::size_t kMostWaiting = 2;

  explicit HolderAttributes(ServerState& state) : state_(state) {}

  struct Answer {
    enum class Kind : std::uint8_t {
      kNone,        // nobody else has a write delegation: what the server sees is right
      kKnown,       // the others are the holder's
      kLater,       // NFS4ERR_DELAY
      kWouldBlock,  // to be asked again where it may block
    };
    Kind kind = Kind::kNone;
    std::uint64_t size = 0;
    std::uint64_t change = 0;
    /// `change` is not what it was when the delegation was given.
    bool changed = false;
  };
  /// For the client `by`, 0 for any other. Without ServerState::mutex.
  Answer ask(const FileKey& file, ClientId by, bool may_block);

  // --- with the mutex ---

  /// A write delegation was given, when the change attribute was that.
  void begin(DelegationNumber number, std::uint64_t change);
  void end(DelegationNumber number);

 private:
  class Question;
  using Clock = std::chrono::steady_clock;
  struct Reply {
    bool ok = false;
    std::uint64_t size = 0;
    std::uint64_t change = 0;
  };
  struct Asked {
    std::uint64_t change = 0;  // when it was given
    bool under_way = false;
    Clock::time_point patience{};
    std::size_t waiting = 0;
    std::uint64_t answers = 0;
    Reply last;
    std::optional<TimePoint> late;  // when `last` came, if nobody was waiting for it
  };
  bool send(const Delegation& delegation, Asked& asked);
  void finished(DelegationNumber number, const Reply& reply);
  Answer judge(const FileKey& file, ClientId by, std::uint64_t given, const Reply& reply);

  ServerState& state_;
  std::condition_variable answered_;
  std::size_t waiting_ = 0;
  std::map<DelegationNumber, Asked> asked_;
};

}  // namespace nfsrdma::nfs4
