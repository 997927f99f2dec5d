// SPDX-License-Identifier: Apache-2.0
// NamesAhead: of one directory, the names that are read before anybody asks for them. Programs that
// look at one file after another wait for a LOOKUP each; READDIRPLUS tells of hundreds for the
// price of a few. With lists of their own (git, make, a shell's arguments) they never read the
// directory, so that nothing else would tell.
//
// It begins with the kBegin-th LOOKUP that found something, without a pause in between, and costs
// at most what the LOOKUPs cost: kEntriesForOne entries for each so far, and none any more when too
// few of them are asked for. Nobody has asked for them yet, so that they count for kBelieved alone.
// Names that are not there are asked for all the same: others may just have made them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

struct Node;

class NamesAhead {
 public:
  static constexpr unsigned kBegin = 16;
  static constexpr std::uint64_t kEntriesForOne = 16;
  static constexpr std::uint64_t kMostUnused = 16'384;
  /// One that was asked for pays for as many.
  static constexpr std::uint64_t kUnusedForOne = 8;
  static constexpr std::chrono::seconds kPause{1};
  static constexpr std::chrono::seconds kBelieved{1};
  static constexpr std::chrono::seconds kRefused{30};
  using Nodes = std::vector<std::shared_ptr<Node>>;

  /// A LOOKUP that found something on the server.
  void missed(TimePoint now) {
    begin_unless_running(now);
    ++asked_;
  }
  /// A name that was read ahead was asked for.
  void hit(TimePoint now) {
    begin_unless_running(now);
    ++used_;
  }
  /// Is it worth another page?
  bool due(TimePoint now) const {
    return now >= not_before_ && asked_ >= kBegin && read_ < kEntriesForOne * asked_ &&
           read_ < kMostUnused + kUnusedForOne * used_;
  }

  // --- the next page ---
  bool reading = false;
  std::uint64_t cookie = 0;
  std::uint64_t verifier = 0;

  void take(Nodes nodes, TimePoint now) {
    read_ += nodes.size();
    pages_.emplace_back(now + kBelieved, std::move(nodes));
  }
  /// The directory's end: it begins again when what it gave is forgotten.
  void start_over(TimePoint now) { rest(now + kBelieved); }
  void refused(TimePoint now) { rest(now + kRefused); }

  /// Lets go of what has become old. True: there is nothing left.
  bool forget(TimePoint now) {
    while (!pages_.empty() && pages_.front().first <= now)
      pages_.pop_front();
    return pages_.empty();
  }

 private:
  void begin_unless_running(TimePoint now) {
    if (!last_ || now - *last_ > kPause) {
      asked_ = read_ = used_ = 0;
      if (!reading) cookie = verifier = 0;
    }
    last_ = now;
  }
  void rest(TimePoint until) {
    cookie = verifier = 0;
    not_before_ = until;
  }

  std::optional<TimePoint> last_;
  TimePoint not_before_ = TimePoint::min();
  // Since the last pause:
  std::uint64_t asked_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t used_ = 0;
  std::deque<std::pair<TimePoint, Nodes>> pages_;  // until when, oldest first
};

}  // namespace nfsrdma
