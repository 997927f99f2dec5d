// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/file_syncs.h"

#include <sys/stat.h>

#include <algorithm>

namespace nfsrdma {

FileSyncs::Failure FileSyncs::failure_of(const struct stat& st, Object object, int error,
                                         std::uint64_t number) {
  return {st.st_dev, object.whole ? 0 : st.st_ino, object.whole, error, number};
}

void FileSyncs::begin(Object object) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return std::ranges::find(running_, object) == running_.end(); });
  running_.push_back(object);
}

bool FileSyncs::busy(Object object) const {
  std::lock_guard lock(mutex_);
  return std::ranges::find(running_, object) != running_.end();
}

void FileSyncs::end(Object object) {
  {
    std::lock_guard lock(mutex_);
    running_.erase(std::ranges::find(running_, object));
  }
  ended_.notify_all();
}

void FileSyncs::note_failure(Object object, int error) {
  struct stat st {};
  const bool known = ::fstat(object.fd, &st) == 0;  // else it was no file at all
  std::lock_guard lock(mutex_);
  const std::uint64_t number = failures_.load(std::memory_order_relaxed);
  if (known) keep(failure_of(st, object, error, number));
  verifier_.renew();
  failures_.store(number + 1, std::memory_order_release);
}

/// In place of the one before it of that file: a disk that is gone fails thousands of syncs of a
/// few files while one call of another file is under way.
void FileSyncs::keep(const Failure& failure) {
  const auto same = std::ranges::find_if(
      failed_, [&](const Failure& known) { return known.is_of_same(failure); });
  if (same != failed_.end()) {
    *same = failure;
  } else if (failed_.size() < kKept) {
    failed_.push_back(failure);
  } else {
    Failure& oldest = *std::ranges::min_element(failed_, {}, &Failure::number);
    forgotten_ = oldest.number + 1;
    oldest = failure;
  }
}

int FileSyncs::failed_since(std::uint64_t since, Object object) const {
  if (failures() <= since) return 0;
  struct stat st {};
  if (::fstat(object.fd, &st) != 0) return errno;
  std::lock_guard lock(mutex_);
  const Failure asked = failure_of(st, object, 0, since);
  for (const Failure& failure : failed_) {
    if (failure.number >= since && failure.is_of_same(asked)) return failure.error;
  }
  return since < forgotten_ ? EIO : 0;
}

}  // namespace nfsrdma
