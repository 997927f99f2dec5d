// SPDX-License-Identifier: Apache-2.0
// Nfs3Operations: byte-range locks. An open is nothing to a server of NFSv3, nor is what it is for.
#include "client/nfs3/operations.h"

namespace nfsrdma {

Task<Result<void>> Nfs3Operations::lock(const OpContext& op, const FileHandle& file,
                                        const FileLock& wanted, LockWait wait, std::uint32_t) {
  if (locks_ == nullptr) co_return not_in_this_version("LOCK");
  co_return co_await locks_->lock(op, file, wanted, wait);
}

Task<Result<void>> Nfs3Operations::unlock(const OpContext& op, const FileHandle& file,
                                          const FileLock& what) {
  if (locks_ == nullptr) co_return not_in_this_version("UNLOCK");
  co_return co_await locks_->unlock(op, file, what);
}

Task<Result<std::optional<LockHolder>>> Nfs3Operations::test_lock(const OpContext& op,
                                                                  const FileHandle& file,
                                                                  const FileLock& wanted) {
  if (locks_ == nullptr) co_return not_in_this_version("TEST");
  co_return co_await locks_->test(op, file, wanted);
}

void Nfs3Operations::close(const FileHandle& file) {
  if (locks_ != nullptr) locks_->close(file);
}

Result<DataRight> Nfs3Operations::right_for(const OpContext&, const FileHandle& file,
                                            std::uint32_t) const {
  NFSRDMA_CHECK_OK(usable(file));
  return DataRight{};
}

}  // namespace nfsrdma
