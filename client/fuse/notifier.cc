// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/notifier.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace nfsrdma {

Notifier::Notifier(fuse_session* session)
    : session_(session),
      data_threads_(1),
      names_thread_([this] { drop_names(); }),
      attributes_thread_([this] { drop_attributes(); }) {
  data_threads_.front() = std::thread([this] { drop_data(); });
}

Notifier::~Notifier() {
  stop();
}

void Notifier::invalidate(std::uint64_t node, std::function<void()> done) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    done();
    return;
  }
  data_[node].push_back(std::move(done));
  call_data_thread();
}

void Notifier::call_data_thread() {
  data_due_.notify_one();
  if (data_.size() <= data_threads_.size() - busy_ || data_threads_.size() == kMostThreads) return;
  try {
    data_threads_.emplace_back([this] { drop_data(); });
    ++busy_;
  } catch (const std::system_error&) {
    // No more threads for us here: those that there are have to do.
  }
}

void Notifier::expire_name(std::uint64_t directory, const std::string& name) {
  std::lock_guard lock(mutex_);
  names_.emplace(directory, name);
  names_due_.notify_one();
}

void Notifier::invalidate_attributes(std::uint64_t node) {
  // A negative offset leaves the pages alone.
  ::fuse_lowlevel_notify_inval_inode(session_, node, -1, 0);
}

void Notifier::invalidate_attributes_soon(std::uint64_t node) {
  std::lock_guard lock(mutex_);
  attributes_.insert(node);
  attributes_due_.notify_one();
}

void Notifier::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    data_due_.notify_all();
    names_due_.notify_one();
    attributes_due_.notify_one();
  }
  for (std::thread& thread : data_threads_) {
    if (thread.joinable()) thread.join();
  }
  if (names_thread_.joinable()) names_thread_.join();
  if (attributes_thread_.joinable()) attributes_thread_.join();
  std::unique_lock lock(mutex_);
  const auto left = std::exchange(data_, {});
  lock.unlock();
  for (const auto& [node, waiting] : left) {
    for (const auto& done : waiting)
      done();
  }
}

void Notifier::drop_attributes() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (attributes_.empty()) {
      attributes_due_.wait(lock);
      continue;
    }
    const std::uint64_t node = attributes_.extract(attributes_.begin()).value();
    attributes_of_ = node;
    lock.unlock();
    invalidate_attributes(node);
    lock.lock();
    attributes_of_ = 0;
    if (data_.contains(node)) data_due_.notify_one();
  }
}

void Notifier::drop_names() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (names_.empty()) {
      names_due_.wait(lock);
      continue;
    }
    const auto row = names_.extract(names_.begin());
    const auto& [directory, name] = row.value();
    lock.unlock();
    // Older kernels can only drop it altogether.
    if (::fuse_lowlevel_notify_expire_entry(session_, directory, name.c_str(), name.size(),
                                            FUSE_LL_EXPIRE_ONLY) == -ENOSYS) {
      ::fuse_lowlevel_notify_inval_entry(session_, directory, name.c_str(), name.size());
    }
    lock.lock();
  }
}

void Notifier::drop_data() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = std::find_if(data_.begin(), data_.end(), [this](const auto& row) {
      return row.first != attributes_of_ && !being_dropped_.contains(row.first);
    });
    if (next == data_.end()) {
      --busy_;
      data_due_.wait(lock);
      ++busy_;
      continue;
    }
    const auto row = data_.extract(next);
    being_dropped_.insert(row.key());
    attributes_.erase(row.key());  // they go with the data
    lock.unlock();
    // ENOENT: the kernel has forgotten the file meanwhile, which is as good.
    ::fuse_lowlevel_notify_inval_inode(session_, row.key(), 0, 0);
    for (auto& done : row.mapped())
      done();
    lock.lock();
    being_dropped_.erase(row.key());
    if (data_.contains(row.key())) data_due_.notify_one();
  }
}

}  // namespace nfsrdma
