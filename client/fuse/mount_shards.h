// SPDX-License-Identifier: Apache-2.0
// MountShards: the threads of one mount. The main one has an AsyncMount like each DataShard, and
// all of them carry file data; here it is decided which, and they are counted together.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client/fuse/data_shard.h"

namespace nfsrdma {

class MountShards {
 public:
  /// `main` outlives this and belongs to the thread that uses this. `spare_processors`: are there
  /// more of them than the mount has threads?
  MountShards(AsyncMount& main, bool spare_processors)
      : main_(main), spare_processors_(spare_processors) {}

  void add(std::unique_ptr<DataShard> shard) { shards_.push_back(std::move(shard)); }
  /// All have attached or failed to, and joined what they were told to.
  bool settled() const;
  /// Lets go of those that failed; why, one line each.
  std::vector<std::string> drop_failed();

  AsyncMount& main() { return main_; }
  /// Threads, the main one included.
  std::size_t count() const { return shards_.size() + 1; }

  /// Does somebody wait for just this transfer?
  enum class Awaited : std::uint8_t { kYes, kNo };
  /// Who shall carry out a READ or WRITE of so many bytes; null: the main thread. The policy:
  ///
  /// A hand-over is two wake-ups, of 30 us each where the other core sleeps. A lone request must
  /// not pay them; with others under way they cost the requester nothing that it would not wait
  /// for the main thread anyway. So:
  ///
  ///   large, not awaited   the data shard with the least under way: nobody minds the hand-over,
  ///                        and the main thread has the next piece to fetch from the kernel
  ///   all else             the main thread, until it has kBusy under way (one large transfer or
  ///                        eight small ones); then whoever has the least. Small ones only where
  ///                        processors are to spare: on busy ones they pay a sixth more CPU for
  ///                        the hand-over and gain nothing
  ///
  /// client/fuse/README.md has the measurements.
  DataShard* choose(Awaited awaited, std::size_t bytes) const;
  static constexpr std::size_t kLarge = std::size_t{64} << 10;
  /// A call costs as much time as copying so many bytes twice.
  static constexpr std::uint64_t kPerCall = 32 << 10;
  static constexpr std::uint64_t kBusy = 8 * kPerCall;

  /// Counts a transfer that the main thread carries out, for as long as it lives.
  class OnMain {
   public:
    OnMain(MountShards& shards, std::size_t bytes) : shards_(shards), load_(bytes + kPerCall) {
      shards_.main_load_ += load_;
    }
    ~OnMain() { shards_.main_load_ -= load_; }
    OnMain(const OnMain&) = delete;
    OnMain& operator=(const OnMain&) = delete;

   private:
    MountShards& shards_;
    std::uint64_t load_;
  };

  /// All but the main one use this further address, too, which it has joined.
  void join_address(const SocketAddress& address);
  /// Every call of every thread, present and future, fails with EIO.
  void abort_all();

  /// One per thread, the main one first. Waits for the other threads a little, and takes what was
  /// known of one that does not answer: threads that wait for a server do.
  std::vector<ShardReport> report();

 private:
  AsyncMount& main_;
  std::vector<std::unique_ptr<DataShard>> shards_;
  const bool spare_processors_;
  std::uint64_t main_load_ = 0;
};

/// Of all threads together; without their connections.
ShardReport sum_of(const std::vector<ShardReport>& shards);

/// Makes one outage of what several threads notice. Any thread.
class OutageWatch {
 public:
  /// True for the first that says so.
  bool silent() { return !silent_.exchange(true); }
  /// True for the first that hears of the server again.
  bool heard() { return silent_.exchange(false); }

 private:
  std::atomic<bool> silent_{false};
};

/// `connections` over `threads`, each of which needs one: how many thread `index` makes.
std::uint32_t connections_of_thread(std::uint32_t connections, std::uint32_t threads,
                                    std::uint32_t index);

/// Threads of a mount unless told otherwise, on a machine with `cpus`: a second one where it has a
/// processor to run on. More have not been seen to pay (README.md), and cost a connection each.
std::uint32_t default_mount_threads(std::uint32_t cpus);

}  // namespace nfsrdma
