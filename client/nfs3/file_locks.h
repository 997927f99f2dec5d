// SPDX-License-Identifier: Apache-2.0
// FileLocks: the byte-range locks that this mount has on a server of NFSv3, by NLM version 4.
//
//   granted      File::held says so, nothing else does. Conflicts among owners of this mount are
//                answered from there, those with others by the server
//   waited for   asked for again and again, and at once when an owner of this mount lets go of
//                something in the file. GRANTED, by which NLM would tell, is called on the port
//                that rpcbind has for NLM of our host: that is the kernel's lock manager, if
//                anybody's
//   asserted     asked for again when a connection to the lock manager broke: it may have started
//                anew, and nobody would tell us (NSM would tell the kernel). By `reclaim` first,
//                without it where the server does not wait for that: whoever still has a lock gets
//                it again
//   lost         then is somebody else's, or refused. Whoever locks as that owner, or reads or
//                writes the file, gets EIO until the owner unlocks it or the file is closed: what
//                they believe of the file may not be so any more
//
// While the server waits for those that had locks before its restart, it refuses what is new:
// whoever locks waits; what is unlocked counts as such and is unlocked there later, nobody can lock
// it meanwhile anyway.
//
// While something is held the connection is kept, so that its end is seen: one that is idle is
// closed by either side.
//
// Requests that change what is held run in tasks of their own, one at a time for each file, and are
// never cut short: whoever asked may be interrupted, and what was granted to nobody is given back.
//
// On the loop's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/gate.h"
#include "client/nfs3/lock_manager.h"
#include "client/nfs3/lock_records.h"
#include "client/nfs_types.h"
#include "client/pauses.h"
#include "client/turn.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::nfs3 {

class FileLocks {
 public:
  /// `nfs` outlives this. `records` may be null.
  FileLocks(RpcClient& nfs, std::unique_ptr<LockManagerWays> ways, LockCaller caller,
            std::unique_ptr<LockRecords> records);
  ~FileLocks();
  FileLocks(const FileLocks&) = delete;
  FileLocks& operator=(const FileLocks&) = delete;

  /// Lets go of what mounts that are no more have left. Runs on its own.
  void free_of_the_dead(std::vector<DeadRecord> records);

  /// EAGAIN: somebody else's lock is in the way, and `wait` is kNo. EIO: the owner has lost a lock
  /// here. ENOLCK: the server has no lock manager, or it has no room.
  Task<Result<void>> lock(const OpContext& op, const FileHandle& file, FileLock wanted,
                          LockWait wait);
  /// Bytes that are not locked need not be. All bytes: the owner is forgotten, too.
  Task<Result<void>> unlock(const OpContext& op, const FileHandle& file, FileLock what);
  /// A lock that is in the way of `wanted`; none: it would be granted.
  Task<Result<std::optional<LockHolder>>> test(const OpContext& op, const FileHandle& file,
                                               FileLock wanted);
  /// Of this mount, those that `wanted` would have to wait for.
  std::vector<LockOwnerId> owners_in_the_way(const FileHandle& file, const FileLock& wanted) const;
  /// Lets go of everything that is held of the file. Runs on its own.
  void close(const FileHandle& file);
  /// The same of every file, until that is done or `op` cancelled.
  Task<void> close_all(const OpContext& op);
  /// Nobody waits from now on: EINTR.
  void stop_waiting();
  /// Everything fails with EIO from now on.
  void stop();

  bool holds(const FileHandle& file) const { return !files_.empty() && files_.contains(file); }
  bool some_are_lost() const { return files_with_losses_ != 0; }
  /// EIO: a lock on this file is lost.
  Result<void> usable(const FileHandle& file) const;

  /// For people.
  std::size_t locks_held() const;
  std::string manager() const { return manager_.place(); }

 private:
  /// So that a connection is not idle while locks are held, and its end is noticed.
  static constexpr Duration kKeepConnected = std::chrono::seconds(30);

  struct Locker {
    LockOwnerId owner = 0;
    AuthSys identity;
  };
  /// What may be locked on the server although nobody here wants it.
  struct Loose {
    FileLock what;
    AuthSys identity;
    unsigned refused = 0;  // in so many words
  };
  struct File {
    explicit File(const FileHandle& its_handle) : handle(its_handle) {}
    const FileHandle handle;
    std::vector<Locker> lockers;
    ByteRangeLocks held;
    ByteRangeLocks lost;  // what was held, until it is unlocked
    std::vector<Loose> loose;
    bool busy = false;        // a request is under way
    bool letting_go = false;  // keep_letting_go() runs
    Turn turn;
    std::unordered_set<bool*> waiting;  // set when a lock is let go of
  };
  using FileRef = std::shared_ptr<File>;
  struct Request;
  using RequestRef = std::shared_ptr<Request>;

  FileRef file_of(const FileHandle& handle);
  FileRef find(const FileHandle& handle) const;
  static Locker* find_locker(File& file, LockOwnerId owner);
  void drop_locker(File& file, LockOwnerId owner);
  void drop_unless_used(const FileRef& file);
  std::vector<FileRef> all_files() const;
  bool anything_held() const;

  Task<Result<void>> perform(RequestRef request, CancelToken* cancel);
  Task<void> carry_out(RequestRef request);
  Task<void> test_now(RequestRef request);
  // In the file's turn:
  Task<void> lock_now(File& file, Request& request);
  Task<Result<void>> unlock_now(File& file, FileLock what);
  Task<void> close_now(File& file);
  /// Of what is loose, once.
  Task<void> let_go(File& file);
  /// UNLOCK of what there is of `loose` that is not held. True: it is over with.
  Task<bool> unlock_loose(File& file, Loose& loose);
  Task<void> keep_letting_go(FileRef file);
  void lose(File& file, LockOwnerId owner);
  void forget_lost(File& file, LockOwnerId owner, ByteRange range);
  void note_released(File& file);

  // assert_locks.cc
  void connection_lost();
  Task<void> assert_all();
  /// In the file's turn. An error: some may be lost or not, nobody knows yet.
  Task<Result<void>> assert_now(File& file);
  Task<Result<void>> assert_one(File& file, const Locker& locker, FileLock what);
  void keep_connected();
  Task<void> ask_if_there();
  Task<void> free_of_one(DeadRecord record);

  NlmRange on_wire(const File& file, const FileLock& what) const {
    return {file.handle, caller_.svid(what.owner), what.kind, what.range};
  }
  OpContext context(const AuthSys& identity) {
    OpContext op;
    op.identity = identity;
    op.cancel = &stopping_;
    return op;
  }

  RpcClient& nfs_;
  const LockCaller caller_;
  const std::unique_ptr<LockRecords> records_;
  LockManager manager_;
  Pauses pauses_;
  CancelToken stopping_;
  bool stopped_ = false;
  bool waits_no_more_ = false;
  std::unordered_map<FileHandle, FileRef, FileHandleHash> files_;
  std::size_t files_with_losses_ = 0;
  Gate emptied_;              // files_
  std::uint64_t losses_ = 0;  // connections that broke
  bool asserting_ = false;
  std::unique_ptr<Alarm> lost_alarm_;
  std::unique_ptr<Alarm> keep_alarm_;
  bool asking_ = false;
  TaskGroup tasks_;
};

}  // namespace nfsrdma::nfs3
