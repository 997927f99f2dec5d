// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/notifier.h"

#include <cerrno>

namespace nfsrdma {

Notifier::Notifier(fuse_session* session) : session_(session), thread_([this] { run(); }) {}

Notifier::~Notifier() {
  stop();
}

void Notifier::invalidate(std::uint64_t node) {
  std::lock_guard lock(mutex_);
  if (stopping_) return;
  pending_[node];
  changed_.notify_one();
}

void Notifier::invalidate(std::uint64_t node, std::function<void()> done) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    done();
    return;
  }
  pending_[node].push_back(std::move(done));
  changed_.notify_one();
}

void Notifier::expire_name(std::uint64_t directory, const std::string& name) {
  std::lock_guard lock(mutex_);
  names_.emplace(directory, name);
  changed_.notify_one();
}

void Notifier::invalidate_attributes(std::uint64_t node) {
  // A negative offset leaves the pages alone.
  ::fuse_lowlevel_notify_inval_inode(session_, node, -1, 0);
}

void Notifier::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  const auto left = std::exchange(pending_, {});
  lock.unlock();
  for (const auto& [node, waiting] : left) {
    for (const auto& done : waiting)
      done();
  }
}

void Notifier::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!names_.empty()) {
      const auto row = names_.extract(names_.begin());
      const auto& [directory, name] = row.value();
      lock.unlock();
      // Older kernels can only drop it altogether.
      if (::fuse_lowlevel_notify_expire_entry(session_, directory, name.c_str(), name.size(),
                                              FUSE_LL_EXPIRE_ONLY) == -ENOSYS) {
        ::fuse_lowlevel_notify_inval_entry(session_, directory, name.c_str(), name.size());
      }
      lock.lock();
      continue;
    }
    if (pending_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto row = pending_.extract(pending_.begin());
    lock.unlock();
    // ENOENT: the kernel has forgotten the file meanwhile, which is as good.
    ::fuse_lowlevel_notify_inval_inode(session_, row.key(), 0, 0);
    for (auto& done : row.mapped())
      done();
    lock.lock();
  }
}

}  // namespace nfsrdma
