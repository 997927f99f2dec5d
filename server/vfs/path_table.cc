// SPDX-License-Identifier: Apache-2.0
// The path table and its log. See path_table.h.
//
// The log: a line of magic, then records of
//   u64 export id, u64 inode, u64 birth, u32 mount key, u64 parent inode, u64 parent birth,
//   u8 length of the name, name
// all big-endian; an object without a name is gone. A torn last record (power loss) ends the
// reading there.
#include "server/vfs/path_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/log.h"
#include "server/credentials.h"

namespace nfsrdma {

namespace {

constexpr std::string_view kMagic = "nfs-rdma paths 1\n";
constexpr std::size_t kFixed = 8 * 3 + 4 + 8 * 2 + 1;

std::size_t size_of(const PathTable::Place& place) {
  return kFixed + place.name.size();
}

void append_record(const InodeKey& child, const PathTable::Place& place, std::string* out) {
  std::byte fixed[kFixed];
  store_be64(fixed, child.export_id);
  store_be64(fixed + 8, child.inode);
  store_be64(fixed + 16, child.birth);
  store_be32(fixed + 24, child.mount_key);
  store_be64(fixed + 28, place.parent_inode);
  store_be64(fixed + 36, place.parent_birth);
  fixed[44] = static_cast<std::byte>(place.name.size());
  out->append(reinterpret_cast<const char*>(fixed), kFixed).append(place.name);
}

bool write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string read_whole(const std::string& path) {
  std::string content;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return content;
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return content;
  content.resize(static_cast<std::size_t>(st.st_size));
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t n = ::read(fd.get(), content.data() + have, content.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  content.resize(have);
  return content;
}

// A chain of directories longer than this is not gone up.
constexpr int kMaxDepth = 256;

}  // namespace

PathTable::~PathTable() {
  if (thread_.joinable()) thread_.join();
}

/// How many bytes of it are whole records.
std::size_t PathTable::replay_locked(std::string_view file) {
  const auto* p = reinterpret_cast<const std::byte*>(file.data());
  std::size_t left = file.size();
  while (left >= kFixed) {
    const auto name_size = static_cast<std::size_t>(p[44]);
    if (left < kFixed + name_size) break;
    const InodeKey key{load_be64(p), load_be64(p + 8), load_be64(p + 16), load_be32(p + 24)};
    if (name_size == 0) {
      if (const auto gone = entries_.find(key); gone != entries_.end()) erase_locked(gone);
    } else {
      enter_locked(key, {load_be64(p + 28), load_be64(p + 36),
                         std::string(reinterpret_cast<const char*>(p + kFixed), name_size)});
    }
    p += kFixed + name_size;
    left -= kFixed + name_size;
  }
  return file.size() - left;
}

// By whomever it is called: the state directory is the server's.
void PathTable::load_locked() {
  if (loaded_) return;
  loaded_ = true;
  const AsServer privileged;
  const std::string content = read_whole(path_);
  std::size_t whole = 0;
  if (content.starts_with(kMagic)) {
    whole = kMagic.size() + replay_locked(std::string_view(content).substr(kMagic.size()));
  }
  // Always rewritten: drops outdated records and a torn end.
  const std::string now = contents_locked();
  if (put_in_place_locked(write_aside(now), now.size())) return;
  // No room for a second one, perhaps: the one there is goes on.
  if (whole > 0) log_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (log_ && ::ftruncate(log_.get(), static_cast<off_t>(whole)) != 0) log_.reset();
  log_bytes_ = whole;
  compact_at_ = 2 * whole;
  if (!log_) log_warning("{}: cannot be written, file handles will not survive a restart", path_);
}

std::string PathTable::contents_locked() {
  std::string out(kMagic);
  out.reserve(kMagic.size() + live_bytes_);
  // In the order in which they were seen.
  seen_.for_each([&out](const Entry& entry) { append_record(*entry.key, entry.place, &out); });
  return out;
}

/// A log that is to take the place of the one there is; none: an error.
UniqueFd PathTable::write_aside(const std::string& contents) const {
  const std::string aside = path_ + ".new";
  UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!fd || (write_all(fd.get(), contents) && ::fsync(fd.get()) == 0)) return fd;
  ::unlink(aside.c_str());
  return {};
}

/// With the records that have come since its contents were taken.
bool PathTable::put_in_place_locked(UniqueFd aside, std::size_t bytes) {
  const std::string since = std::exchange(since_, {});
  if (!aside || !write_all(aside.get(), since)) return false;
  if (::rename((path_ + ".new").c_str(), path_.c_str()) != 0) return false;
  log_ = std::move(aside);
  log_bytes_ = bytes + since.size();
  return true;
}

void PathTable::compact_when_due_locked() {
  const std::size_t enough = std::max({small_log_, 2 * live_bytes_, compact_at_});
  if (compacting_ || log_bytes_ <= enough) return;
  if (thread_.joinable()) thread_.join();  // it is over
  // Threads have the identity of who starts them.
  const AsServer privileged;
  compacting_ = true;
  try {
    thread_ = std::thread([this] { compact(); });
  } catch (const std::system_error&) {
    compacting_ = false;
    compact_at_ = 2 * log_bytes_;
  }
}

/// The thread.
void PathTable::compact() {
  ::pthread_setname_np(::pthread_self(), "paths");
  std::string contents;
  {
    std::lock_guard lock(mutex_);
    contents = contents_locked();
    since_.clear();
  }
  UniqueFd aside = write_aside(contents);
  std::lock_guard lock(mutex_);
  const bool done = put_in_place_locked(std::move(aside), contents.size());
  compact_at_ = done ? 0 : 2 * log_bytes_;
  if (!done) log_warning("{}: {}", path_, system_error("writing a new one").message());
  compacting_ = false;
}

void PathTable::append_locked(const InodeKey& child, const Place& place) {
  if (!log_) return;
  std::string record;
  append_record(child, place, &record);
  if (!write_all(log_.get(), record)) {
    log_warning("handle-paths: {}", system_error("write").message());
    log_.reset();
    return;
  }
  log_bytes_ += record.size();
  if (compacting_) since_ += record;
  compact_when_due_locked();
}

/// With the directories above it, without which it is not found.
void PathTable::touch_locked(const InodeKey& key, Entry& entry) {
  seen_.push_back(entry);
  // Nothing goes before the table is full.
  if (entries_.size() < most_ / 2) return;
  InodeKey above = key;
  const Entry* at = &entry;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    above.inode = at->place.parent_inode;
    above.birth = at->place.parent_birth;
    const auto found = entries_.find(above);
    if (found == entries_.end()) return;
    seen_.push_back(found->second);
    at = &found->second;
  }
}

PathTable::Entry& PathTable::enter_locked(const InodeKey& key, Place place) {
  const auto [found, is_new] = entries_.try_emplace(key);
  Entry& entry = found->second;
  if (!is_new) live_bytes_ -= size_of(entry.place);
  entry.key = &found->first;
  entry.place = std::move(place);
  live_bytes_ += size_of(entry.place);
  touch_locked(key, entry);
  // A handle of long ago goes; the first one seen is never the one just entered.
  if (entries_.size() > most_) erase_locked(entries_.find(*seen_.front()->key));
  return entry;
}

void PathTable::erase_locked(Entries::iterator entry) {
  live_bytes_ -= size_of(entry->second.place);
  entries_.erase(entry);
}

void PathTable::note(const InodeKey& child, std::uint64_t parent_inode, std::uint64_t parent_birth,
                     std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return;
  std::lock_guard lock(mutex_);
  load_locked();
  const auto found = entries_.find(child);
  if (found != entries_.end()) {
    const Place& place = found->second.place;
    if (place.parent_inode == parent_inode && place.parent_birth == parent_birth &&
        place.name == name) {
      return touch_locked(child, found->second);
    }
  }
  const Entry& entry = enter_locked(child, {parent_inode, parent_birth, std::string(name)});
  append_locked(child, entry.place);
}

bool PathTable::find(const InodeKey& key, Place* place) {
  std::lock_guard lock(mutex_);
  load_locked();
  auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  touch_locked(key, found->second);
  *place = found->second.place;
  return true;
}

void PathTable::forget(const InodeKey& key) {
  std::lock_guard lock(mutex_);
  load_locked();
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  erase_locked(found);
  append_locked(key, {});
}

std::size_t PathTable::size() {
  std::lock_guard lock(mutex_);
  load_locked();
  return entries_.size();
}

}  // namespace nfsrdma
