// SPDX-License-Identifier: Apache-2.0
// Refusals: how often each limit was met, and the log lines that tell the administrator of it, with
// the option to raise; the same of clients that were ended to make room. A line for each limit and
// minute at most, of each of these two kinds.
//
// Locking: everything with ServerState::mutex held, under which nothing is written; but pending()
// and the writing of what take() gives, which are for whoever has let go of it.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/limits.h"
#include "server/nfs4/state/client_table.h"
#include "server/nfs4/state/limit.h"

namespace nfsrdma::nfs4 {

class Refusals {
 public:
  explicit Refusals(const Limits& limits) : limits_(limits) {}

  /// A request of `client` was refused for that limit. Null: of one that is not known, at
  /// `address`.
  void refused(Limit limit, const Client* client, const std::string& address, TimePoint now);
  /// `client`, whose lease was over, is no more, for want of room.
  void gave_way(Limit limit, const Client& client, TimePoint now);

  /// How often a limit was met.
  std::uint64_t count(Limit limit) const { return counts_.at(index(limit)); }
  /// How many clients gave way.
  std::uint64_t gave_way() const { return gave_way_; }

  /// Any thread, without the mutex: there are lines to be written.
  bool pending() const { return pending_.load(std::memory_order_acquire); }
  std::vector<std::string> take();

 private:
  struct Quiet {
    bool spoke = false;
    TimePoint since{};
    std::uint64_t unsaid = 0;
  };
  static std::size_t index(Limit limit) { return static_cast<std::size_t>(limit); }
  /// May a line be written now? Else it is counted.
  static bool speaks(Quiet& quiet, TimePoint now);
  void say(std::string line);

  const Limits limits_;
  std::array<std::uint64_t, kLimits> counts_{};
  std::array<Quiet, kLimits> of_refusals_{}, of_giving_way_{};
  std::uint64_t gave_way_ = 0;
  std::vector<std::string> lines_;
  std::atomic<bool> pending_{false};
};

/// A name that came from outside, fit to be shown: printable, and cut.
std::string printable(const std::string& name);

}  // namespace nfsrdma::nfs4
