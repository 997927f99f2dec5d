// SPDX-License-Identifier: Apache-2.0
// FileData: what a program wrote to one file of a mount, by way of whatever File, and the server
// has not made stable yet. One for all that have the file open: what one of them wrote in place of
// another's data must not be undone when a restart of the server makes that be written again.
// Writes go out UNSTABLE and are kept (unstable_data.h) until a COMMIT.
//
// A server that restarts may have lost what is not stable. It shows in the connection: what is read
// of the file, and asked about it, over one that was made behind a write is in doubt until a COMMIT
// has said that all is there, or it is there again.
//
// Writes run side by side; recovery (COMMIT and writing again) and what must not meet older data
// (change()) run alone on their file.
//
// UnstableData of all files of a mount is bounded together, by UnstableBudget, which also finds the
// FileData of a file. Both on the driven loop only; the budget outlives its files.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "client/async_mount.h"
#include "client/unstable_data.h"
#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

class FileData;

class UnstableBudget {
 public:
  std::size_t limit = 64u << 20;

  /// Memory that is taken.
  std::size_t used() const { return used_; }
  bool exceeded() const { return limit != 0 && used_ > limit; }
  /// The file with unstable data that was written to longest ago; null: none.
  FileData* oldest() { return files_.front(); }
  /// Of a file that somebody has open; null: nobody has.
  std::shared_ptr<FileData> find(const FileHandle& handle) const;
  /// The same, made when there is none.
  std::shared_ptr<FileData> obtain(AsyncMount& mount, const FileHandle& handle);

 private:
  friend class FileData;
  std::size_t used_ = 0;
  IntrusiveList<FileData, FileData> files_;
  std::unordered_map<FileHandle, FileData*, FileHandleHash> by_handle_;
};

/// Shared by the Files of it, and by whoever makes room in the budget by flushing it: that goes on
/// when the last File is closed.
class FileData : public ListNode<FileData>, public std::enable_shared_from_this<FileData> {
 public:
  /// For UnstableBudget::obtain().
  FileData(AsyncMount& mount, UnstableBudget& budget, const FileHandle& handle);
  ~FileData();
  FileData(const FileData&) = delete;
  FileData& operator=(const FileData&) = delete;

  const FileHandle& handle() const { return handle_; }
  /// All of it. EINVAL: `offset` is none of an off_t; EFBIG: the end of `data` is. Nothing is
  /// written then.
  Task<Result<std::size_t>> write(const OpContext& op, ByteSpan data, std::uint64_t offset,
                                  Stability stability);
  /// With everything that was written, whatever the server has lost of it. EINVAL as for write().
  Task<Result<std::size_t>> read(const OpContext& op, MutableByteSpan into, std::uint64_t offset);
  Task<Result<Attributes>> getattr(const OpContext& op);
  /// The server may have lost something that it is to get again.
  bool in_doubt() const {
    return (alone_ || !unstable_.empty()) && mount_.connections_made() != written_over_;
  }
  /// COMMIT, writing again what got lost, until everything so far is stable. EIO: the server loses
  /// it again and again; it is kept, for another try. What went wrong is
  /// told to each that has the file open: *told, which outlives the Task, says of how many errors
  /// one has heard (errors_told() when it was opened).
  Task<Result<void>> flush(const OpContext& op, std::uint64_t* told);
  std::uint64_t errors_told() const { return errors_; }
  /// SETATTR behind what was written: that would change the times again, or undo a cut.
  Task<Result<void>> change(const OpContext& op, SetAttributes set);

 private:
  /// flush() for the sake of the budget: nobody is told of an error yet.
  Task<Result<void>> flush_for_others(const OpContext& op);
  Task<void> begin_alone();
  void end_alone();
  std::size_t most_at_once() const;
  Task<Result<void>> write_part(const OpContext& op, ByteSpan data, std::uint64_t offset,
                                Stability stability);
  Task<Result<void>> write_here(const OpContext& op, ByteSpan data, std::uint64_t offset,
                                Stability stability);
  Task<Result<void>> make_room(const OpContext& op);
  Task<Result<void>> flush_alone(const OpContext& op);
  Task<Result<void>> commit_all(const OpContext& op);
  Task<Result<void>> write_again(const OpContext& op);
  /// Behind an answer about the file, before which `restored` was restored_: it can be believed.
  Task<Result<bool>> is_certain(const OpContext& op, std::uint64_t restored);
  void account(std::size_t before);

  AsyncMount& mount_;
  UnstableBudget& budget_;
  const FileHandle handle_;
  UnstableData unstable_;
  std::size_t writers_ = 0;
  bool alone_ = false;
  std::uint64_t written_over_ = 0;  // connections_made() in front of the oldest unstable write
  std::uint64_t restored_ = 0;      // pieces that were written again
  WaitList changed_;                // writers_ or alone_ did
  std::uint64_t errors_ = 0;        // of COMMITs and of writing again
  std::optional<Error> error_;      // the last of them
};

}  // namespace nfsrdma
