// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/lock_waits.h"

#include <algorithm>

namespace nfsrdma::nfs4 {

void LockWaits::count(ClientId client, std::size_t less) {
  size_ -= less;
  const auto its = by_client_.find(client);
  its->second -= less;
  if (its->second == 0) by_client_.erase(its);
}

void LockWaits::remove_if(List* list, const std::function<bool(const LockWait&)>& gone) {
  const auto end = std::remove_if(list->begin(), list->end(), [&](const LockWait& wait) {
    if (!gone(wait)) return false;
    count(wait.client, 1);
    return true;
  });
  list->erase(end, list->end());
}

void LockWaits::add(const FileKey& file, LockWait wait) {
  remove(file, wait.client, wait.owner);
  if (size_ >= limits_.all) return;
  if (const auto its = by_client_.find(wait.client);
      its != by_client_.end() && its->second >= limits_.per_client) {
    return;
  }
  if (const auto list = files_.find(file);
      list != files_.end() && list->second.size() >= limits_.per_file) {
    return;
  }
  ++size_;
  ++by_client_[wait.client];
  files_[file].push_back(std::move(wait));
}

void LockWaits::remove(const FileKey& file, ClientId client, const std::string& owner) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  remove_if(&found->second,
            [&](const LockWait& wait) { return wait.client == client && wait.owner == owner; });
  if (found->second.empty()) files_.erase(found);
}

void LockWaits::end_client(ClientId client) {
  if (!by_client_.contains(client)) return;
  for (auto next = files_.begin(); next != files_.end();) {
    remove_if(&next->second, [&](const LockWait& wait) { return wait.client == client; });
    next = next->second.empty() ? files_.erase(next) : std::next(next);
  }
}

std::vector<FileKey> LockWaits::files() const {
  std::vector<FileKey> out;
  for (const auto& [key, list] : files_)
    out.push_back(key);
  return out;
}

std::vector<LockWait> LockWaits::take(const FileKey& file,
                                      const std::function<bool(const LockWait&)>& free) {
  std::vector<LockWait> out;
  const auto found = files_.find(file);
  if (found == files_.end()) return out;
  remove_if(&found->second, [&](const LockWait& wait) {
    if (!free(wait)) return false;
    out.push_back(wait);
    return true;
  });
  if (found->second.empty()) files_.erase(found);
  return out;
}

}  // namespace nfsrdma::nfs4
