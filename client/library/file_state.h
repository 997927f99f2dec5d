// SPDX-License-Identifier: Apache-2.0
// FileState: an open file of the blocking library, in coroutines. What it writes belongs to the
// file (file_data.h).
#pragma once

#include <memory>

#include "client/async_mount.h"
#include "client/library/file_data.h"
#include "client/library/open_files.h"

namespace nfsrdma {

class FileState {
 public:
  /// `opened`: of the file, or null; it is closed when this is gone. All outlive this.
  FileState(AsyncMount& mount, UnstableBudget& budget, const FileHandle& handle,
            Stability stability, std::unique_ptr<OpenFile> opened = nullptr)
      : stability_(stability),
        opened_(std::move(opened)),
        data_(budget.obtain(mount, handle)),
        told_(data_->errors_told()) {}

  const FileHandle& handle() const { return data_->handle(); }
  OpenFile* opened() { return opened_.get(); }
  Task<Result<std::size_t>> read(const OpContext& op, MutableByteSpan into, std::uint64_t offset) {
    return data_->read(op, into, offset);
  }
  Task<Result<Attributes>> getattr(const OpContext& op) { return data_->getattr(op); }
  Task<Result<std::size_t>> write(const OpContext& op, ByteSpan data, std::uint64_t offset) {
    return data_->write(op, data, offset, stability_);
  }
  /// Everything written so far, by whomever, is stable; or what was lost is told, once.
  Task<Result<void>> flush(const OpContext& op) { return data_->flush(op, &told_); }
  Task<Result<void>> truncate(const OpContext& op, std::uint64_t size) {
    SetAttributes set;
    set.size = size;
    return data_->change(op, set);
  }

 private:
  const Stability stability_;
  const std::unique_ptr<OpenFile> opened_;
  const std::shared_ptr<FileData> data_;
  std::uint64_t told_;
};

}  // namespace nfsrdma
