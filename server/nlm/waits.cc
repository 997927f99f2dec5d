// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/waits.h"

#include <algorithm>
#include <utility>

namespace nfsrdma::nlm {

namespace {

/// As many owners as Linux follows.
constexpr int kLongestCircle = 10;

}  // namespace

bool Waits::add(Wait wait) {
  List& list = files_[wait.file];
  const auto same =
      std::ranges::find_if(list, [&](const Wait& other) { return other.wish == wait.wish; });
  if (same != list.end()) {
    same->host = std::move(wait.host);
    same->handle = std::move(wait.handle);
    same->local_holder = wait.local_holder;
    return true;
  }
  const auto counted = by_client_.find(wait.wish.client);
  const std::size_t of_client = counted == by_client_.end() ? 0 : counted->second;
  if (of_client >= limits_.per_client || size() >= limits_.all || list.size() >= limits_.per_file) {
    if (list.empty()) files_.erase(wait.file);
    return false;
  }
  wait.id = ++last_id_;
  ++by_client_[wait.wish.client];
  file_of_[wait.id] = wait.file;
  list.push_back(std::move(wait));
  return true;
}

void Waits::forget(const Wait& wait) {
  file_of_.erase(wait.id);
  const auto counted = by_client_.find(wait.wish.client);
  if (--counted->second == 0) by_client_.erase(counted);
}

bool Waits::cancel(const nfs4::FileKey& file, const Wish& wish) {
  const auto list = files_.find(file);
  if (list == files_.end()) return false;
  const auto found =
      std::ranges::find_if(list->second, [&](const Wait& w) { return w.wish == wish; });
  return found != list->second.end() && remove(found->id);
}

bool Waits::remove(std::uint64_t id) {
  const auto its_file = file_of_.find(id);
  if (its_file == file_of_.end()) return false;
  const auto list = files_.find(its_file->second);
  const auto found = std::ranges::find_if(list->second, [id](const Wait& w) { return w.id == id; });
  forget(*found);
  list->second.erase(found);
  if (list->second.empty()) files_.erase(list);
  return true;
}

std::vector<Wait> Waits::take(const std::function<bool(const Wait&)>& which) {
  std::vector<Wait> taken;
  for (const auto& [file, list] : files_) {
    for (const Wait& wait : list) {
      if (which(wait)) taken.push_back(wait);
    }
  }
  for (const Wait& wait : taken)
    remove(wait.id);
  return taken;
}

void Waits::remove_within(const nfs4::FileKey& file, const Wish& wish) {
  if (!has_file(file)) return;
  for (const Wait& wait : of_file(file)) {
    const bool within =
        wish.range.first <= wait.wish.range.first && wait.wish.range.last <= wish.range.last;
    if (wait.wish.client == wish.client && wait.wish.owner == wish.owner && within) {
      remove(wait.id);
    }
  }
}

std::vector<nfs4::ClientId> Waits::clients() const {
  std::vector<nfs4::ClientId> out;
  for (const auto& [client, count] : by_client_)
    out.push_back(client);
  return out;
}

void Waits::end_client(nfs4::ClientId client) {
  if (!by_client_.contains(client)) return;
  take([client](const Wait& wait) { return wait.wish.client == client; });
}

std::vector<Wait> Waits::of_file(const nfs4::FileKey& file) const {
  const auto list = files_.find(file);
  return list == files_.end() ? List{} : list->second;
}

std::vector<nfs4::FileKey> Waits::behind_local_holders() const {
  std::vector<nfs4::FileKey> out;
  for (const auto& [file, list] : files_) {
    if (std::ranges::any_of(list, [](const Wait& wait) { return wait.local_holder; })) {
      out.push_back(file);
    }
  }
  return out;
}

bool Waits::closes_circle(const nfs4::FileKey& file, const Wish& wish,
                          const HolderOf& holder_of) const {
  nfs4::FileKey at = file;
  Wish waiting = wish;
  for (int i = 0; i < kLongestCircle; ++i) {
    const Wish holder = holder_of(at, waiting);
    if (holder.client == 0) return false;
    if (holder.client == wish.client && holder.owner == wish.owner) return i > 0;
    // An owner that waits is one process, and waits for one thing.
    const Wait* next = nullptr;
    for (const auto& [other, list] : files_) {
      const auto found = std::ranges::find_if(list, [&](const Wait& w) {
        return w.wish.client == holder.client && w.wish.owner == holder.owner;
      });
      if (found == list.end()) continue;
      next = &*found;
      at = other;
      break;
    }
    if (next == nullptr) return false;
    waiting = next->wish;
  }
  return false;
}

}  // namespace nfsrdma::nlm
