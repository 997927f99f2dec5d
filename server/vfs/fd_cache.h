// SPDX-License-Identifier: Apache-2.0
// FdCache: objects that clients work with, held open. Bounded, least recently used out first, and
// by time as well: what nobody used for kIdleSeconds is closed, so that the space of files deleted
// behind our back is freed soon, local unmounts succeed and an idle server holds nothing.
//
// Permissions: a data descriptor is opened once, with the rights of whoever came first, and shared.
// So every use asks data_fd() for the caller at hand, which has the kernel judge that caller
// (faccessat2 under its identity) and remembers the verdict while mode, owner, group and ctime stay
// the same, at most kGrantSeconds. ACCESS and OPEN ask rights(), which remembers likewise, but what
// the kernel says without the overrides of data_fd().
//
// Threads: any. 64 stripes by hash, each with a mutex held for some ten instructions. The sweeper's
// thread only looks: what may hang in a file system, syncing and closing, is done by a thread for
// each of them, so that one that hangs holds up neither the others nor the time.
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <thread>

#include "server/credentials.h"
#include "server/vfs/file_entry.h"
#include "server/vfs/file_scope.h"
#include "server/vfs/file_syncs.h"

namespace nfsrdma {

class FdCache {
 public:
  static constexpr std::uint64_t kIdleSeconds = 3;
  static constexpr std::uint64_t kGrantSeconds = 2;

  FdCache(FileSyncs& syncs, std::size_t max_files);
  ~FdCache();

  /// The entry of `handle` (which has been authenticated), or an empty pin.
  FilePin find(const FileHandle& handle);
  /// An object that was just opened.
  struct Opened {
    FileHandle handle;
    HandleParts parts;
    UniqueFd path_fd;
    struct stat attributes {};
    std::uint64_t fsid = 0;
    /// What path_fd can do besides: 0 for O_PATH, read and write for a file that we created.
    std::uint8_t path_rights = 0;
  };
  /// Enters it. When somebody was faster, theirs is returned and ours closed.
  FilePin insert(Opened opened);
  /// An entry that is used once and not entered.
  static FilePin make_private(Opened opened);
  /// The object was removed: no more finds, closed as soon as nobody pins it.
  void forget(const FileHandle& handle);
  /// Closes those of the files that nobody pins. How many somebody does: calls under way, say.
  std::size_t close(const FileScope& files);
  /// Who wrote to the file says that it is done. When nobody else pins it, and an fsync has covered
  /// all, nothing of it stays open for writing: this machine may execute it (ETXTBSY otherwise) and
  /// give leases on it.
  void end_writing(FilePin file);

  /// A descriptor of the regular file for reading (kRightRead) or writing (kRightWrite), if the
  /// caller may: 0, or an errno. The thread acts as `who`; `attributes` are fresh. The owner may
  /// whatever the mode says, and who may execute may read (decisions.md 2).
  int data_fd(FileEntry& file, const CallerIdentity& who, Right right,
              const struct stat& attributes, int* fd);
  /// The kernel's verdict without opening anything: those of `wanted` that the caller has. No
  /// overrides. The thread acts as `who`; `attributes` are fresh.
  std::uint8_t rights(FileEntry& file, const CallerIdentity& who, const struct stat& attributes,
                      std::uint8_t wanted) const;
  /// After a change that this server made: verdicts from before it stay good.
  void note_own_change(FileEntry& file, const struct stat& before, const struct stat& after);

  /// Some descriptor of the file or directory on which fsync works; -1 with errno for objects that
  /// have none (symbolic links, devices).
  int sync_fd(FileEntry& file);
  /// One of the file system that it is on, for syncfs, as good for as long as others of the entry;
  /// -1 with errno. `directory`: any of that file system.
  int file_system_fd(FileEntry& file, int directory);

  /// The directory's stream, for the caller alone until it gives it back.
  /// 0 or an errno. The thread acts as `who`.
  int take_stream(FileEntry& directory, const CallerIdentity& who, const struct stat& attributes,
                  DirectoryStream* stream);
  void give_back(FileEntry& directory, DirectoryStream stream);

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  std::size_t capacity() const { return kStripes * stripe_capacity_; }
  /// One round of the sweeper, as if a second had passed, until all is done that it began. For
  /// tests.
  void sweep();
  /// The same without waiting. For the sweeper.
  void begin_sweep();

 private:
  static constexpr std::size_t kStripes = 64;
  struct alignas(64) Stripe {
    std::mutex mutex;
    std::vector<FileEntry*> buckets;
    IntrusiveList<FileEntry> by_use;  // most recent first
    std::size_t count = 0;
  };

  Stripe& stripe_of(std::uint64_t hash) { return stripes_[hash % kStripes]; }
  static FileEntry* lookup_locked(Stripe& stripe, std::uint64_t hash, const FileHandle& handle);
  void unlink_locked(Stripe& stripe, FileEntry& entry);
  FileEntry* evict_locked(Stripe& stripe);
  const FileEntry::Grant* granted_locked(const FileEntry& file, const CallerIdentity& who,
                                         const struct stat& attributes) const;
  FileEntry::Grant& grant_locked(FileEntry& file, const CallerIdentity& who,
                                 const struct stat& attributes) const;
  int judge(FileEntry& file, const CallerIdentity& who, Right right, const struct stat& attributes);
  int open_data(FileEntry& file, const CallerIdentity& who, Right right,
                const struct stat& attributes, UniqueFd* fd);
  void flush_unstable(FileEntry& file);
  bool is_busy(std::uint64_t device);
  void begin_upkeep(std::uint64_t device, std::vector<FilePin>& files);
  void run_sweeper();

  FileSyncs& syncs_;
  std::size_t stripe_capacity_;
  std::array<Stripe, kStripes> stripes_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> epoch_{1};

  /// What a round of the sweeper has found to do on one file system.
  struct Upkeep {
    std::thread thread;
    bool under_way = false;
  };
  std::mutex upkeep_mutex_;
  std::map<std::uint64_t, Upkeep> upkeep_;  // by device; guarded by upkeep_mutex_
  std::condition_variable upkeep_ended_;

  std::mutex sweeper_mutex_;
  std::condition_variable sweeper_wake_;
  bool stop_ = false;
  std::thread sweeper_;
};

/// Opens the object behind an O_PATH descriptor anew; -1 with errno.
int reopen(int path_fd, int flags);

}  // namespace nfsrdma
