// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/file_syncs.h"

#include <sys/stat.h>

#include <algorithm>

namespace nfsrdma {

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
  failed_[number % kKept] = known ? Failure{st.st_dev, st.st_ino, object.whole, error} : Failure{};
  verifier_.renew();
  failures_.store(number + 1, std::memory_order_release);
}

int FileSyncs::failed_since(std::uint64_t since, Object object) const {
  if (failures() <= since) return 0;
  struct stat st {};
  if (::fstat(object.fd, &st) != 0) return errno;
  std::lock_guard lock(mutex_);
  const std::uint64_t now = failures_.load(std::memory_order_relaxed);
  if (now - since > kKept) return EIO;
  for (std::uint64_t i = since; i < now; ++i) {
    const Failure& failure = failed_[i % kKept];
    if (failure.error == 0 || failure.whole != object.whole || failure.device != st.st_dev) {
      continue;
    }
    if (failure.whole || failure.inode == st.st_ino) return failure.error;
  }
  return 0;
}

}  // namespace nfsrdma
