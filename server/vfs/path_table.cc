// SPDX-License-Identifier: Apache-2.0
// The path table and its log. See path_table.h.
//
// The log: a line of magic, then records of
//   u64 export id, u64 inode, u64 birth, u32 mount key, u64 parent inode, u64 parent birth,
//   u8 length of the name, name
// all big-endian. A torn last record (power loss) ends the reading there.
#include "server/vfs/path_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

constexpr std::string_view kMagic = "nfs-rdma paths 1\n";
constexpr std::size_t kFixed = 8 * 3 + 4 + 8 * 2 + 1;
constexpr std::size_t kMaxRecord = kFixed + PathTable::kMaxName;

std::size_t encode_record(const InodeKey& child, const PathTable::Place& place, std::byte* out) {
  store_be64(out, child.export_id);
  store_be64(out + 8, child.inode);
  store_be64(out + 16, child.birth);
  store_be32(out + 24, child.mount_key);
  store_be64(out + 28, place.parent_inode);
  store_be64(out + 36, place.parent_birth);
  out[44] = static_cast<std::byte>(place.name.size());
  std::memcpy(out + kFixed, place.name.data(), place.name.size());
  return kFixed + place.name.size();
}

bool write_all(int fd, const void* data, std::size_t size) {
  return ::write(fd, data, size) == static_cast<ssize_t>(size);
}

std::string read_whole(const std::string& path) {
  std::string content;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return content;
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return content;
  content.resize(static_cast<std::size_t>(st.st_size));
  const ssize_t n = ::pread(fd.get(), content.data(), content.size(), 0);
  content.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return content;
}

}  // namespace

std::size_t PathTable::replay_locked(std::string_view file) {
  std::size_t records = 0;
  const auto* p = reinterpret_cast<const std::byte*>(file.data());
  std::size_t left = file.size();
  while (left >= kFixed) {
    const auto name_size = static_cast<std::size_t>(p[44]);
    if (left < kFixed + name_size) break;
    const InodeKey key{load_be64(p), load_be64(p + 8), load_be64(p + 16), load_be32(p + 24)};
    places_[key] = {load_be64(p + 28), load_be64(p + 36),
                    std::string(reinterpret_cast<const char*>(p + kFixed), name_size)};
    ++records;
    p += kFixed + name_size;
    left -= kFixed + name_size;
  }
  return records;
}

void PathTable::load_locked() {
  if (loaded_) return;
  loaded_ = true;
  const std::string path = state_dir_ + "/handle-paths";
  const std::string content = read_whole(path);
  std::size_t records = 0;
  if (content.starts_with(kMagic)) {
    records = replay_locked(std::string_view(content).substr(kMagic.size()));
  }
  // Always rewritten: drops outdated records and a torn end.
  if (records != 0 || !content.empty()) compact_locked();
  log_.reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  struct stat st;
  if (log_ && ::fstat(log_.get(), &st) == 0 && st.st_size == 0 &&
      !write_all(log_.get(), kMagic.data(), kMagic.size())) {
    log_.reset();
  }
  if (!log_) log_warning("{}: cannot be written, file handles will not survive a restart", path);
}

void PathTable::compact_locked() {
  const std::string path = state_dir_ + "/handle-paths";
  const std::string aside = path + ".new";
  UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return;
  std::vector<std::byte> out(kMagic.size());
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  std::byte record[kMaxRecord];
  for (const auto& [key, place] : places_) {
    const std::size_t size = encode_record(key, place, record);
    out.insert(out.end(), record, record + size);
  }
  if (!write_all(fd.get(), out.data(), out.size()) || ::fsync(fd.get()) != 0 ||
      ::rename(aside.c_str(), path.c_str()) != 0) {
    ::unlink(aside.c_str());
  }
}

void PathTable::append_locked(const InodeKey& child, const Place& place) {
  if (!log_) return;
  std::byte record[kMaxRecord];
  const std::size_t size = encode_record(child, place, record);
  if (!write_all(log_.get(), record, size)) {
    log_warning("handle-paths: {}", system_error("write").message());
    log_.reset();
  }
}

void PathTable::note(const InodeKey& child, std::uint64_t parent_inode, std::uint64_t parent_birth,
                     std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return;
  std::lock_guard lock(mutex_);
  load_locked();
  auto found = places_.find(child);
  if (found != places_.end()) {
    Place& place = found->second;
    if (place.parent_inode == parent_inode && place.parent_birth == parent_birth &&
        place.name == name) {
      return;
    }
    place = {parent_inode, parent_birth, std::string(name)};
    append_locked(child, place);
    return;
  }
  if (places_.size() >= kMaxEntries) return;
  Place place{parent_inode, parent_birth, std::string(name)};
  append_locked(child, place);
  places_.emplace(child, std::move(place));
}

bool PathTable::find(const InodeKey& key, Place* place) {
  std::lock_guard lock(mutex_);
  load_locked();
  auto found = places_.find(key);
  if (found == places_.end()) return false;
  *place = found->second;
  return true;
}

std::size_t PathTable::size() {
  std::lock_guard lock(mutex_);
  load_locked();
  return places_.size();
}

}  // namespace nfsrdma
