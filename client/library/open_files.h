// SPDX-License-Identifier: Apache-2.0
// OpenFiles: which files of a mount are open in the library, so that the server has each of them
// open for as long and for just that (from NFSv4.1 on; before, nothing is held but for locks).
// OpenFile: one of those opens, and an owner of locks. It may deny others what they would open the
// file for, other OpenFiles of the mount included.
//
// On the driven loop only. OpenFiles outlives its OpenFile objects and is outlived by its mount.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "client/async_mount.h"
#include "client/open_counts.h"

namespace nfsrdma {

class OpenFile;

class OpenFiles {
 public:
  /// All outlive this.
  OpenFiles(AsyncMount& mount, const OpContext& op) : mount_(mount), op_(op) {}

  /// For what a file is open: both are access_bits::kRead and kModify.
  struct Share {
    std::uint32_t access = 0;
    std::uint32_t deny = 0;  // to others. 0 but where AsyncMount::can_deny()
  };

  /// Of a regular file; EACCES: it is refused, or does not go with what others have it open for.
  /// `place`, which outlives the Task: where the file was found.
  Task<Result<std::unique_ptr<OpenFile>>> open(FileHandle file, Share share,
                                               const std::optional<FilePlace>& place);
  /// Makes one, as AsyncMount::create_open(); `attributes` are those of a new file.
  Task<Result<std::unique_ptr<OpenFile>>> create(FilePlace where, CreateMode mode,
                                                 SetAttributes attributes, Share share);

 private:
  friend class OpenFile;
  struct Known {
    OpenCounts access;
    OpenCounts deny;
  };

  LockOwnerId next_owner() { return ++last_owner_; }
  /// Among those of this mount: a server need not have heard of all of them (minor version 0).
  bool goes_together(const FileHandle& file, Share share) const;
  void closed(const OpenFile& file);

  AsyncMount& mount_;
  const OpContext& op_;
  std::unordered_map<FileHandle, Known, FileHandleHash> files_;
  LockOwnerId last_owner_ = 0;
};

class OpenFile {
 public:
  OpenFile(OpenFiles& files, const FileHandle& file, OpenFiles::Share share,
           std::optional<FilePlace> place, LockOwnerId owner)
      : files_(files), file_(file), share_(share), place_(std::move(place)), owner_(owner) {
    OpenFiles::Known& known = files_.files_[file_];
    known.access.add(share_.access);
    if (share_.deny != 0) known.deny.add(share_.deny);
  }
  /// The server hears of it soon. Locks go with the last open of the file: unlock_all() first.
  ~OpenFile() { files_.closed(*this); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  const FileHandle& handle() const { return file_; }
  /// `wait`: zero is not at all. EAGAIN: somebody else's lock is in the way all that time.
  Task<Result<void>> lock(LockKind kind, ByteRange range, Duration wait);
  Task<Result<void>> unlock(ByteRange range);
  Task<Result<void>> unlock_all();
  /// Denies nothing any more, and the server knows. Before the end, where others wait for it.
  Task<void> end_denial();
  /// What is in the way, if anything.
  Task<Result<std::optional<LockHolder>>> test_lock(LockKind kind, ByteRange range);

 private:
  friend class OpenFiles;

  OpContext context() const {
    OpContext op = files_.op_;
    if (place_) op.place = &*place_;
    return op;
  }

  OpenFiles& files_;
  const FileHandle file_;
  const OpenFiles::Share share_;
  const std::optional<FilePlace> place_;
  const LockOwnerId owner_;
  bool locked_ = false;  // ever
};

}  // namespace nfsrdma
