// SPDX-License-Identifier: Apache-2.0
// RecordStorage: a file on stable storage that is read once, replaced as a whole and appended to.
// Each call blocks until the storage has it. The caller serialises.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::nfs4 {

class RecordStorage {
 public:
  virtual ~RecordStorage() = default;
  /// For messages.
  virtual const std::string& name() const = 0;
  /// All of it; nothing when there is none yet.
  virtual Result<std::optional<std::string>> read() = 0;
  /// `content` takes the place of everything. Whatever happens on the way, either all of the old
  /// or all of the new content is there afterwards. After an error it is not known which: the next
  /// call must be replace() again.
  virtual Result<void> replace(std::string_view content) = 0;
  /// Adds to the end. After an error, or a crash on the way, any part of `record` may be there, and
  /// zeros or older bytes in place of the rest; the next call must be replace().
  virtual Result<void> append(std::string_view record) = 0;
};

/// The file `<directory>/log`. Holds a lock on the directory: two servers must not share it.
class FileRecordStorage final : public RecordStorage {
 public:
  /// Makes the directory when it is missing. Null with *why set when it cannot be used.
  static std::unique_ptr<FileRecordStorage> open(const std::string& directory, std::string* why);

  const std::string& name() const override { return name_; }
  Result<std::optional<std::string>> read() override;
  Result<void> replace(std::string_view content) override;
  Result<void> append(std::string_view record) override;

 private:
  FileRecordStorage(UniqueFd directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}

  UniqueFd directory_;
  std::string name_;
  UniqueFd log_;  // since replace()
};

}  // namespace nfsrdma::nfs4
