// SPDX-License-Identifier: Apache-2.0
// FileState: an open file of the blocking library, in coroutines. Writes go out UNSTABLE and are
// kept (unstable_data.h) until a COMMIT; when the server restarted in between they are written
// again.
//
// Writes run side by side; recovery (COMMIT and writing again) runs alone on its file.
#pragma once

#include <memory>

#include "client/async_mount.h"
#include "client/library/open_files.h"
#include "client/unstable_data.h"
#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

class FileState;

/// Unstable bytes of all files of one mount, bounded.
class UnstableBudget {
 public:
  std::size_t limit = 64u << 20;

  std::size_t used() const { return used_; }
  /// The file with unstable data that was written to longest ago; null: none.
  FileState* oldest() { return files_.front(); }

 private:
  friend class FileState;
  std::size_t used_ = 0;
  IntrusiveList<FileState, FileState> files_;
};

/// Shared: the writer of another file that makes room in the budget by flushing this one goes on
/// when the owner has let go of it.
class FileState : public ListNode<FileState>, public std::enable_shared_from_this<FileState> {
 public:
  /// `opened`: of the file, or null; it is closed when this is gone.
  FileState(AsyncMount& mount, UnstableBudget& budget, FileHandle handle, Stability stability,
            std::unique_ptr<OpenFile> opened = nullptr)
      : mount_(mount),
        budget_(budget),
        handle_(handle),
        stability_(stability),
        opened_(std::move(opened)) {}
  ~FileState();

  const FileHandle& handle() const { return handle_; }
  OpenFile* opened() { return opened_.get(); }
  Task<Result<std::size_t>> read(const OpContext& op, MutableByteSpan into, std::uint64_t offset);
  Task<Result<std::size_t>> write(const OpContext& op, ByteSpan data, std::uint64_t offset);
  /// COMMIT, writing again what got lost, until everything so far is stable.
  Task<Result<void>> flush(const OpContext& op);
  Task<Result<void>> truncate(const OpContext& op, std::uint64_t size);

 private:
  /// flush() for the sake of the budget: an error is kept for this file's own next flush().
  Task<Result<void>> flush_for_others(const OpContext& op);
  Task<void> begin_alone();
  void end_alone();
  Task<Result<std::size_t>> write_here(const OpContext& op, ByteSpan data, std::uint64_t offset);
  Task<Result<void>> make_room(const OpContext& op);
  Task<Result<void>> flush_alone(const OpContext& op);
  Task<Result<void>> write_again(const OpContext& op);
  void account(std::size_t before);

  AsyncMount& mount_;
  UnstableBudget& budget_;
  FileHandle handle_;
  Stability stability_;
  const std::unique_ptr<OpenFile> opened_;
  UnstableData unstable_;
  std::size_t writers_ = 0;
  bool alone_ = false;
  WaitList changed_;               // writers_ or alone_ did
  std::optional<Error> failed_{};  // of a flush nobody asked for; reported once by the next
};

}  // namespace nfsrdma
