// SPDX-License-Identifier: Apache-2.0
// MountList: who mounted what, for DUMP (showmount -a). Only a hint, as RFC 1813 says: clients that
// vanish stay in it until the oldest entries are pushed out. Shared by all threads.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace nfsrdma {

class MountList {
 public:
  static constexpr std::size_t kMaxEntries = 4096;
  struct Entry {
    std::string host;
    std::string directory;
  };

  void add(std::string_view host, std::string_view directory) {
    std::lock_guard lock(mutex_);
    erase(host, directory);
    if (entries_.size() >= kMaxEntries) entries_.pop_front();
    entries_.push_back({std::string(host), std::string(directory)});
  }
  void remove(std::string_view host, std::string_view directory) {
    std::lock_guard lock(mutex_);
    erase(host, directory);
  }
  void remove_all(std::string_view host) {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& e) { return e.host == host; });
  }
  /// In order of mounting, until `visit` says false.
  void for_each(const std::function<bool(const Entry&)>& visit) const {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (!visit(entry)) return;
    }
  }

 private:
  void erase(std::string_view host, std::string_view directory) {
    std::erase_if(entries_,
                  [&](const Entry& e) { return e.host == host && e.directory == directory; });
  }
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // guarded by mutex_
};

}  // namespace nfsrdma
