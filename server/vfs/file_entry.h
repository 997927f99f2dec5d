// SPDX-License-Identifier: Apache-2.0
// FileEntry: one object that the server holds open, and FilePin, the right to use it for a while.
//
// Lifetimes: entries are counted. The cache's table has one reference; each FilePin another. What
// was forgotten (removed, evicted) disappears from the table at once and is closed when the last
// pin goes. Descriptors that an entry has handed out stay open as long as the pin under which they
// were asked for: nothing is closed while anybody is pinning, replaced ones are only retired.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/base/unique_fd.h"
#include "server/filehandle.h"
#include "server/vfs/directory_stream.h"

namespace nfsrdma {

/// Permission bits as access(2) numbers them.
enum Right : std::uint8_t { kRightExecute = 1, kRightWrite = 2, kRightRead = 4 };

class FileEntry : public ListNode<FileEntry> {
 public:
  /// For *at() calls, fstat, and reopening through /proc/self/fd: O_PATH, or the descriptor with
  /// which the server created the file.
  int path_fd() const { return path_fd_.get(); }
  /// Can path_fd() read and write?
  bool path_is_data() const { return path_rights_ == (kRightRead | kRightWrite); }
  const FileHandle& handle() const { return handle_; }
  const HandleParts& parts() const { return parts_; }
  std::uint64_t device() const { return device_; }
  std::uint64_t inode() const { return inode_; }
  std::uint64_t fsid() const { return fsid_; }
  bool is_directory() const { return S_ISDIR(type_); }
  bool is_regular() const { return S_ISREG(type_); }

  /// There was no room in the cache: the last pin closes it, whatever `unstable` says. What is
  /// written to it has to be synced before it is answered.
  bool left_out() const { return left_out_; }

  /// There are UNSTABLE writes that no fsync has covered yet: the write descriptor must not be
  /// closed, or an error of the write-back could get lost.
  std::atomic<bool> unstable{false};
  /// The client of NFSv4 that has a write delegation of the file, 0 for none. What others want of
  /// its data has to wait: FileCall::may_use().
  std::atomic<std::uint64_t> promised_to{0};

 private:
  friend class FdCache;
  friend class FilePin;

  /// What the kernel said of a caller, good while the attributes are the same.
  struct Grant {
    std::uint64_t tag = 0;    // CallerIdentity::tag
    std::uint64_t epoch = 0;  // when judged
    timespec ctime{};
    mode_t mode = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    std::uint8_t rights = 0;  // may use a data descriptor so; overrides included
    std::uint8_t judged = 0;  // the kernel was asked for these by themselves, without overrides,
    std::uint8_t has = 0;     // and the caller has those of them
    bool is_used() const { return (rights | judged) != 0; }
  };
  static constexpr std::size_t kGrants = 4;

  int data_slot(Right right) const {
    const UniqueFd& own = right == kRightRead ? read_fd_ : write_fd_;
    if (own) return own.get();
    return (path_rights_ & right) != 0 ? path_fd_.get() : -1;
  }
  void drop() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<std::uint32_t> references_{1};
  bool left_out_ = false;
  std::uint64_t hash_ = 0;
  FileEntry* chain_ = nullptr;   // next in the hash bucket; guarded by the stripe
  std::uint64_t last_used_ = 0;  // epoch; guarded by the stripe
  FileHandle handle_;
  HandleParts parts_;
  UniqueFd path_fd_;
  std::uint8_t path_rights_ = 0;  // a file that we created: path_fd_ can read and write it
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::uint64_t fsid_ = 0;
  mode_t type_ = 0;

  std::mutex mutex_;  // guards what follows; never held across a system call that can block long
  UniqueFd read_fd_;
  UniqueFd write_fd_;
  UniqueFd sync_fd_;
  UniqueFd file_system_fd_;
  DirectoryStream stream_;  // without descriptor while it is taken out
  std::vector<UniqueFd> retired_;
  Grant grants_[kGrants];
  std::uint8_t next_grant_ = 0;
};

class FilePin {
 public:
  FilePin() = default;
  /// Takes over one reference.
  explicit FilePin(FileEntry* entry) : entry_(entry) {}
  FilePin(FilePin&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  FilePin& operator=(FilePin&& other) noexcept {
    if (this != &other) {
      reset();
      entry_ = std::exchange(other.entry_, nullptr);
    }
    return *this;
  }
  ~FilePin() { reset(); }

  explicit operator bool() const { return entry_ != nullptr; }
  FileEntry* operator->() const { return entry_; }
  FileEntry& operator*() const { return *entry_; }
  void reset() {
    if (FileEntry* entry = std::exchange(entry_, nullptr)) entry->drop();
  }
  /// A further reference to what somebody else pins.
  static FilePin another(FileEntry& entry) {
    entry.references_.fetch_add(1, std::memory_order_relaxed);
    return FilePin(&entry);
  }
  /// Gives the reference away, to be taken back by FilePin(entry).
  FileEntry* release() { return std::exchange(entry_, nullptr); }

 private:
  FileEntry* entry_ = nullptr;
};

}  // namespace nfsrdma
