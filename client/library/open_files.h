// SPDX-License-Identifier: Apache-2.0
// OpenFiles: which files of a mount are open in the library, so that the server has each of them
// open for as long and for just that (from NFSv4.1 on; before, nothing is held but for locks).
// OpenFile: one of those opens, and an owner of locks.
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

  /// Asks for `access` (access_bits::kRead, kModify) to a regular file; EACCES: it is refused.
  /// `place`, which outlives the Task: where the file was found.
  Task<Result<std::unique_ptr<OpenFile>>> open(FileHandle file, std::uint32_t access,
                                               const std::optional<FilePlace>& place);
  /// Of one that AsyncMount::create_open() left open for `access`.
  std::unique_ptr<OpenFile> adopt(const FileHandle& file, std::uint32_t access,
                                  std::optional<FilePlace> place);

 private:
  friend class OpenFile;
  void closed(const FileHandle& file, std::uint32_t access);

  AsyncMount& mount_;
  const OpContext& op_;
  std::unordered_map<FileHandle, OpenCounts, FileHandleHash> files_;
  LockOwnerId last_owner_ = 0;
};

class OpenFile {
 public:
  OpenFile(OpenFiles& files, const FileHandle& file, std::uint32_t access,
           std::optional<FilePlace> place)
      : files_(files),
        file_(file),
        access_(access),
        place_(std::move(place)),
        owner_(++files.last_owner_) {
    files_.files_[file_].add(access_);
  }
  /// The server hears of it soon. Locks go with the last open of the file: unlock_all() first.
  ~OpenFile() { files_.closed(file_, access_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  const FileHandle& handle() const { return file_; }
  /// `wait`: zero is not at all. EAGAIN: somebody else's lock is in the way all that time.
  Task<Result<void>> lock(LockKind kind, ByteRange range, Duration wait);
  Task<Result<void>> unlock(ByteRange range);
  Task<Result<void>> unlock_all();
  /// What is in the way, if anything.
  Task<Result<std::optional<LockHolder>>> test_lock(LockKind kind, ByteRange range);

 private:
  OpContext context() const {
    OpContext op = files_.op_;
    if (place_) op.place = &*place_;
    return op;
  }

  OpenFiles& files_;
  const FileHandle file_;
  const std::uint32_t access_;
  const std::optional<FilePlace> place_;
  const LockOwnerId owner_;
  bool locked_ = false;  // ever
};

}  // namespace nfsrdma
