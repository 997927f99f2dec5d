// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/name_watches.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "server/credentials.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

Result<std::unique_ptr<NameWatches>> NameWatches::create(EventLoop& loop, OnChange on_change) {
  std::unique_ptr<NameWatches> watches(new NameWatches(loop, std::move(on_change)));
  watches->inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watches->inotify_) return system_error("inotify_init1");
  loop.post([raw = watches.get()] {
    raw->added_ = raw->loop_.add(raw->inotify_.get(), EPOLLIN, *raw).ok();
  });
  return watches;
}

NameWatches::~NameWatches() {
  if (added_) loop_.remove(inotify_.get(), *this);
}

/// The file is looked up, which may take its time: not with the mutex, for which drop() waits.
bool NameWatches::watch(Key key, int path_fd) {
  {
    std::lock_guard lock(mutex_);
    ++adding_;
  }
  int watch = -1;
  {
    AsServer privileged;
    watch = ::inotify_add_watch(inotify_.get(), ProcPath(path_fd).c_str(),
                                IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
  }
  std::lock_guard lock(mutex_);
  if (watch >= 0) {
    keys_[watch].insert(key);
    watches_[key] = watch;
  }
  if (--adding_ == 0) end_unused();
  return watch >= 0;
}

void NameWatches::drop(Key key) {
  std::lock_guard lock(mutex_);
  const auto found = watches_.find(key);
  if (found == watches_.end()) return;
  keys_.at(found->second).erase(key);
  unused_.insert(found->second);
  watches_.erase(found);
  // Somebody may be about to use that watch: the file has only one.
  if (adding_ == 0) end_unused();
}

void NameWatches::end_unused() {
  for (const int watch : unused_) {
    const auto keys = keys_.find(watch);
    if (keys == keys_.end() || !keys->second.empty()) continue;
    ::inotify_rm_watch(inotify_.get(), watch);
    keys_.erase(keys);
  }
  unused_.clear();
}

void NameWatches::changed(int watch, bool ended) {
  std::set<Key> keys;
  {
    std::lock_guard lock(mutex_);
    const auto found = keys_.find(watch);
    if (found == keys_.end()) return;
    keys = found->second;
    if (ended) {
      for (const Key key : keys)
        watches_.erase(key);
      keys_.erase(found);
    }
  }
  for (const Key key : keys)
    on_change_(key);
}

void NameWatches::on_fd_ready(std::uint32_t) {
  alignas(inotify_event) char events[4096];
  for (;;) {
    const ssize_t size = ::read(inotify_.get(), events, sizeof events);
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, events + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      // (An overflow has no watch. What is lost then is a word about what has happened anyway.)
      changed(event.wd, (event.mask & IN_IGNORED) != 0);
    }
  }
}

}  // namespace nfsrdma
