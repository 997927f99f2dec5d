// SPDX-License-Identifier: Apache-2.0
// Caller: the identity that an application's request came with. Calls to the server carry it, and
// the permission cache is keyed by it. Immutable and shared; equal identities of one CallerCache
// are one object as long as anybody holds it, so comparing pointers is enough on the fast path.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary, sorted, without gid

  bool operator==(const Caller&) const = default;
};

using CallerRef = std::shared_ptr<const Caller>;

/// Finds the supplementary groups of processes, which FUSE requests do not carry. Looking them up
/// reads /proc; the answer is kept for a short while per (process, uid, gid). A process that
/// changes its groups alone is seen with the old ones for at most that long. Single thread.
class CallerCache {
 public:
  /// Gives the supplementary groups of a process; empty when it is gone or in a foreign namespace.
  using GroupReader = std::function<std::vector<gid_t>(pid_t)>;
  static constexpr std::chrono::seconds kKeep{1};
  static constexpr std::size_t kMostEntries = 4096;

  explicit CallerCache(GroupReader reader = read_groups) : reader_(std::move(reader)) {}

  CallerRef find(uid_t uid, gid_t gid, pid_t pid, TimePoint now);
  /// For requests without a process behind them.
  CallerRef without_groups(uid_t uid, gid_t gid);

  /// From /proc/PID/status.
  static std::vector<gid_t> read_groups(pid_t pid);

 private:
  struct Key {
    pid_t pid;
    uid_t uid;
    gid_t gid;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    CallerRef caller;
    TimePoint until;
  };

  /// The one object for this identity.
  CallerRef intern(Caller caller);

  GroupReader reader_;
  std::unordered_map<Key, Entry, KeyHash> by_process_;
  std::vector<std::weak_ptr<const Caller>> known_;
};

}  // namespace nfsrdma
