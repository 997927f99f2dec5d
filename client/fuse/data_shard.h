// SPDX-License-Identifier: Apache-2.0
// DataShard: a thread of a mount that carries out READs and WRITEs, with an event loop, an
// AsyncMount and connections of its own. All state of the mount stays on the main thread, whose
// coroutine waits while a transfer is here: its frame keeps the memory, and it goes on when the
// shard has posted the transfer back.
//
// Threads: the functions are called on the main thread. What belongs to the shard's thread is
// marked. A Transfer is main's until it is posted to the shard, the shard's until it is posted
// back, and main's again; a cancellation overtakes neither, since it is posted as well.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/async_mount.h"
#include "client/fuse/remote.h"

namespace nfsrdma {

/// What status and totals need to know of a shard.
struct ShardReport {
  std::vector<ConnectionInfo> connections;
  TransferStats totals;
  std::size_t calls_outstanding = 0;
  std::size_t exposed_regions = 0;

  /// On the thread of its loop.
  static ShardReport of(const AsyncMount& mount);
};

/// Makes a shard's AsyncMount, on the shard's thread.
class ShardAttacher {
 public:
  virtual ~ShardAttacher() = default;
  virtual Task<Result<std::unique_ptr<AsyncMount>>> attach(EventLoop& loop,
                                                           std::string* detail) = 0;
};

class DataShard {
 public:
  /// Starts a thread, which attaches. It is kAttaching until word of that came to `main`.
  static Result<std::unique_ptr<DataShard>> start(EventLoop& main,
                                                  std::unique_ptr<ShardAttacher> attacher);
  /// No transfer may be under way. Waits for the thread, and with it for an attach() under way.
  ~DataShard();
  DataShard(const DataShard&) = delete;
  DataShard& operator=(const DataShard&) = delete;

  enum class State : std::uint8_t { kAttaching, kUsable, kFailed };
  State state() const { return state_; }
  /// Why it is kFailed.
  const std::string& failure() const { return failure_; }
  /// Transfers that are here, and their bytes.
  std::size_t transfers_under_way() const { return transfers_; }
  std::uint64_t bytes_under_way() const { return bytes_under_way_; }

  // Only while kUsable. Like those of AsyncMount, with op.cancel on the main thread.
  /// `answer` may be null; it is called on the shard's thread.
  Task<Result<ReadResult>> read(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                                MutableByteSpan into, ReadAnswer* answer);
  Task<Result<WriteResult>> write(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                                  ByteSpan data, Stability stability);

  /// Uses a further address of the server, as AsyncMount::join_address() does; only while kUsable.
  /// What comes of it is in the log. joining(): until then.
  void join_address(const SocketAddress& address);
  bool joining() const { return joining_ != 0; }
  /// Every transfer, present and future, fails with EIO.
  void abort_all();

  /// A question to the shard's thread, which answers between two events.
  class Question;
  std::shared_ptr<Question> ask();
  /// The answer, or when it is not there by `deadline` the one before.
  ShardReport answer(Question& question, TimePoint deadline);

 private:
  struct Transfer;
  struct HandOver;

  DataShard(EventLoop& main, std::unique_ptr<ShardAttacher> attacher,
            std::unique_ptr<EventLoop> loop);
  void came_back(Transfer& transfer);
  void attached(bool usable, std::string why, ShardReport first);

  // The shard's thread:
  void serve();
  Task<void> attach();
  Task<void> join(SocketAddress address);
  Task<void> carry_out(std::shared_ptr<Transfer> transfer);
  ShardReport report() const;

  // Main's:
  EventLoop& main_;
  State state_ = State::kAttaching;
  std::string failure_;
  std::uint64_t bytes_under_way_ = 0;
  std::size_t transfers_ = 0;
  std::size_t joining_ = 0;
  ShardReport last_report_;
  /// Word from attach() may come when this is gone.
  std::shared_ptr<DataShard*> self_ = std::make_shared<DataShard*>(this);

  // Of the shard's thread:
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ShardAttacher> attacher_;
  std::unique_ptr<AsyncMount> mount_;
  TaskGroup tasks_;
  bool aborted_ = false;

  std::thread thread_;
};

class DataShard::Question {
 private:
  friend class DataShard;
  std::mutex mutex_;
  std::condition_variable answered_;
  bool done_ = false;   // under mutex_
  ShardReport report_;  // under mutex_
};

}  // namespace nfsrdma
