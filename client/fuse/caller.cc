// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/caller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

/// The numbers behind "Groups:" in a /proc/PID/status.
std::vector<gid_t> parse_groups(std::string_view status) {
  std::vector<gid_t> groups;
  constexpr std::string_view kLabel = "\nGroups:";
  std::size_t at = status.find(kLabel);
  if (at == std::string_view::npos) return groups;
  std::string_view line = status.substr(at + kLabel.size());
  line = line.substr(0, line.find('\n'));
  const char* p = line.data();
  const char* end = p + line.size();
  while (p < end) {
    gid_t gid = 0;
    auto [next, error] = std::from_chars(p, end, gid);
    if (error == std::errc()) {
      groups.push_back(gid);
      p = next;
    } else {
      ++p;
    }
  }
  return groups;
}

}  // namespace

std::size_t CallerCache::KeyHash::operator()(const Key& key) const {
  std::uint64_t mixed = static_cast<std::uint64_t>(key.pid) * 0x9e3779b97f4a7c15u;
  mixed ^= (static_cast<std::uint64_t>(key.uid) << 32 | key.gid) * 0xc2b2ae3d27d4eb4fu;
  return mixed ^ (mixed >> 29);
}

std::vector<gid_t> CallerCache::read_groups(pid_t pid) {
  UniqueFd fd(::open(fmt::format("/proc/{}/status", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::string text;
  char piece[4096];
  // A process can be in 65536 groups: the file is longer than one page then.
  for (ssize_t n; (n = ::read(fd.get(), piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(n));
  }
  return parse_groups(text);
}

CallerRef CallerCache::intern(Caller caller) {
  std::erase(caller.groups, caller.gid);
  std::sort(caller.groups.begin(), caller.groups.end());
  std::erase_if(known_, [](const auto& weak) { return weak.expired(); });
  for (const std::weak_ptr<const Caller>& weak : known_) {
    CallerRef ref = weak.lock();
    if (ref != nullptr && *ref == caller) return ref;
  }
  CallerRef ref = std::make_shared<const Caller>(std::move(caller));
  known_.push_back(ref);
  return ref;
}

CallerRef CallerCache::find(uid_t uid, gid_t gid, pid_t pid, TimePoint now) {
  if (pid <= 0) return without_groups(uid, gid);
  const Key key{pid, uid, gid};
  if (auto it = by_process_.find(key); it != by_process_.end()) {
    if (now < it->second.until) return it->second.caller;
    by_process_.erase(it);
  }
  if (by_process_.size() >= kMostEntries) {
    std::erase_if(by_process_, [now](const auto& row) { return now >= row.second.until; });
    if (by_process_.size() >= kMostEntries) by_process_.clear();
  }
  CallerRef caller = intern(Caller{uid, gid, reader_(pid)});
  by_process_.emplace(key, Entry{caller, now + kKeep});
  return caller;
}

CallerRef CallerCache::without_groups(uid_t uid, gid_t gid) {
  return intern(Caller{uid, gid, {}});
}

}  // namespace nfsrdma
