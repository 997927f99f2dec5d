// SPDX-License-Identifier: Apache-2.0
// The table, the bounds and the sweeper of the descriptor cache. What an entry's descriptors may be
// used for is in fd_access.cc.
#include "server/vfs/fd_cache.h"

#include <pthread.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

/// Handles end in a keyed MAC, so its bits are as good as any hash and nobody can choose them.
std::uint64_t hash_of(const FileHandle& handle) {
  std::uint64_t hash = 0;
  if (handle.size >= sizeof hash) {
    std::memcpy(&hash, handle.data.data() + handle.size - sizeof hash, sizeof hash);
  }
  return hash;
}

constexpr std::size_t kMinPerStripe = 4;
constexpr int kEvictionAttempts = 8;

}  // namespace

FdCache::FdCache(FileSyncs& syncs, std::size_t max_files)
    : syncs_(syncs), stripe_capacity_(std::max(kMinPerStripe, max_files / kStripes)) {
  for (Stripe& stripe : stripes_) {
    stripe.buckets.resize(std::bit_ceil(stripe_capacity_), nullptr);
  }
  sweeper_ = std::thread([this] { run_sweeper(); });
}

FdCache::~FdCache() {
  {
    std::lock_guard lock(sweeper_mutex_);
    stop_ = true;
  }
  sweeper_wake_.notify_one();
  sweeper_.join();
  for (auto& [device, upkeep] : upkeep_)
    upkeep.thread.join();
  for (Stripe& stripe : stripes_) {
    while (FileEntry* entry = stripe.by_use.front()) {
      unlink_locked(stripe, *entry);
      entry->drop();
    }
  }
}

FileEntry* FdCache::lookup_locked(Stripe& stripe, std::uint64_t hash, const FileHandle& handle) {
  FileEntry* entry = stripe.buckets[(hash >> 8) & (stripe.buckets.size() - 1)];
  while (entry != nullptr && (entry->hash_ != hash || !(entry->handle_ == handle))) {
    entry = entry->chain_;
  }
  return entry;
}

void FdCache::unlink_locked(Stripe& stripe, FileEntry& entry) {
  FileEntry** link = &stripe.buckets[(entry.hash_ >> 8) & (stripe.buckets.size() - 1)];
  while (*link != &entry)
    link = &(*link)->chain_;
  *link = entry.chain_;
  entry.unlink();
  --stripe.count;
  size_.fetch_sub(1, std::memory_order_relaxed);
}

FilePin FdCache::find(const FileHandle& handle) {
  const std::uint64_t hash = hash_of(handle);
  Stripe& stripe = stripe_of(hash);
  std::lock_guard lock(stripe.mutex);
  FileEntry* entry = lookup_locked(stripe, hash, handle);
  if (entry == nullptr) return {};
  entry->references_.fetch_add(1, std::memory_order_relaxed);
  entry->last_used_ = epoch_.load(std::memory_order_relaxed);
  if (stripe.by_use.front() != entry) stripe.by_use.push_front(*entry);
  return FilePin(entry);
}

FilePin FdCache::make_private(Opened opened) {
  auto* entry = new FileEntry;
  entry->hash_ = hash_of(opened.handle);
  entry->handle_ = opened.handle;
  entry->parts_ = opened.parts;
  entry->path_fd_ = std::move(opened.path_fd);
  entry->path_rights_ = opened.path_rights;
  entry->device_ = opened.attributes.st_dev;
  entry->inode_ = opened.attributes.st_ino;
  entry->fsid_ = opened.fsid;
  entry->type_ = opened.attributes.st_mode & S_IFMT;
  return FilePin(entry);
}

FilePin FdCache::insert(Opened opened) {
  FilePin fresh = make_private(std::move(opened));
  FilePin existing;
  FilePin evicted;  // closed after the lock was given back
  bool first = false;
  {
    Stripe& stripe = stripe_of(fresh->hash_);
    std::lock_guard lock(stripe.mutex);
    if (FileEntry* entry = lookup_locked(stripe, fresh->hash_, fresh->handle_)) {
      entry->references_.fetch_add(1, std::memory_order_relaxed);
      existing = FilePin(entry);
    } else {
      if (stripe.count >= stripe_capacity_) evicted = FilePin(evict_locked(stripe));
      if (stripe.count < stripe_capacity_) {
        fresh->references_.fetch_add(1, std::memory_order_relaxed);
        FileEntry*& bucket = stripe.buckets[(fresh->hash_ >> 8) & (stripe.buckets.size() - 1)];
        fresh->chain_ = bucket;
        bucket = &*fresh;
        fresh->last_used_ = epoch_.load(std::memory_order_relaxed);
        stripe.by_use.push_front(*fresh);
        ++stripe.count;
        first = size_.fetch_add(1, std::memory_order_relaxed) == 0;
      } else {
        fresh->left_out_ = true;
      }
    }
  }
  if (first) {
    // The mutex is what keeps the sweeper from missing this between its check and its wait.
    std::lock_guard lock(sweeper_mutex_);
    sweeper_wake_.notify_one();
  }
  return existing ? std::move(existing) : std::move(fresh);
}

/// The least recently used entry that nobody pins and that may be closed, taken out of the table;
/// null when the oldest few are all in use.
FileEntry* FdCache::evict_locked(Stripe& stripe) {
  for (int attempt = 0; attempt < kEvictionAttempts; ++attempt) {
    FileEntry* entry = stripe.by_use.back();
    if (entry == nullptr) return nullptr;
    const bool idle = entry->references_.load(std::memory_order_acquire) == 1;
    if (idle && !entry->unstable.load(std::memory_order_acquire)) {
      unlink_locked(stripe, *entry);
      return entry;
    }
    stripe.by_use.push_front(*entry);
  }
  return nullptr;
}

void FdCache::forget(const FileHandle& handle) {
  const std::uint64_t hash = hash_of(handle);
  Stripe& stripe = stripe_of(hash);
  FilePin removed;
  std::lock_guard lock(stripe.mutex);
  if (FileEntry* entry = lookup_locked(stripe, hash, handle)) {
    unlink_locked(stripe, *entry);
    removed = FilePin(entry);
  }
}

void FdCache::end_writing(FilePin file) {
  constexpr std::uint32_t kTablesAndOurs = 2;
  FilePin closed;  // without the locks
  std::vector<UniqueFd> writers;
  Stripe& stripe = stripe_of(file->hash_);
  std::lock_guard lock(stripe.mutex);
  // Pins come from the table, under this lock, or from other pins: nobody gets one meanwhile.
  if (lookup_locked(stripe, file->hash_, file->handle_) != &*file ||
      file->references_.load(std::memory_order_acquire) != kTablesAndOurs ||
      file->unstable.load(std::memory_order_acquire)) {
    return;
  }
  if ((file->path_rights_ & kRightWrite) != 0) {
    unlink_locked(stripe, *file);
    closed = FilePin(&*file);
    return;
  }
  std::lock_guard its_lock(file->mutex_);
  writers.swap(file->retired_);
  if (file->write_fd_) writers.push_back(std::move(file->write_fd_));
}

void FdCache::flush_unstable(FileEntry& file) {
  if (!file.unstable.exchange(false, std::memory_order_acq_rel)) return;
  int fd;
  {
    std::lock_guard lock(file.mutex_);
    fd = file.data_slot(kRightWrite);
  }
  if (fd < 0) return;
  // Nobody closes it: we have a pin.
  if (const int error = syncs_.run({fd}, [fd] { return ::fsync(fd); })) {
    static thread_local RateLimit limit(10, std::chrono::seconds(10));
    if (limit.allow()) {
      log_error("{}; clients will resend unstable data",
                system_error("fsync of a file gone idle", error).message());
    }
  }
}

std::size_t FdCache::close(const FileScope& files) {
  std::size_t in_use = 0;
  for (Stripe& stripe : stripes_) {
    std::vector<FilePin> closed, unwritten;  // without the lock
    {
      std::lock_guard lock(stripe.mutex);
      stripe.by_use.for_each([&](FileEntry& entry) {
        if (!files.has(entry)) return;
        if (entry.references_.load(std::memory_order_acquire) != 1) {
          ++in_use;
        } else if (entry.unstable.load(std::memory_order_acquire)) {
          unwritten.push_back(FilePin::another(entry));
        } else {
          unlink_locked(stripe, entry);
          closed.emplace_back(&entry);
        }
      });
    }
    for (FilePin& file : unwritten)
      flush_unstable(*file);
    // To be closed the next time: somebody may be writing meanwhile.
    in_use += unwritten.size();
  }
  return in_use;
}

void FdCache::begin_sweep() {
  const std::uint64_t now = epoch_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::map<std::uint64_t, std::vector<FilePin>> found;  // by device
  for (Stripe& stripe : stripes_) {
    for (;;) {
      FilePin expired;
      {
        std::lock_guard lock(stripe.mutex);
        FileEntry* entry = stripe.by_use.back();
        if (entry == nullptr || entry->last_used_ + kIdleSeconds >= now) break;
        if (entry->references_.load(std::memory_order_acquire) != 1 || is_busy(entry->device_)) {
          // In use for so long (a slow disk, a slow client): look again in some seconds.
          entry->last_used_ = now;
          stripe.by_use.push_front(*entry);
          continue;
        }
        if (entry->unstable.load(std::memory_order_acquire)) {
          entry->references_.fetch_add(1, std::memory_order_relaxed);
          entry->last_used_ = now;
          stripe.by_use.push_front(*entry);
        } else {
          unlink_locked(stripe, *entry);
        }
        expired = FilePin(entry);
      }
      const std::uint64_t device = expired->device();
      found[device].push_back(std::move(expired));
    }
  }
  for (auto& [device, files] : found)
    begin_upkeep(device, files);
}

bool FdCache::is_busy(std::uint64_t device) {
  std::lock_guard lock(upkeep_mutex_);
  const auto known = upkeep_.find(device);
  return known != upkeep_.end() && known->second.under_way;
}

/// Syncs the files where that is due, and gives up the pins.
void FdCache::begin_upkeep(std::uint64_t device, std::vector<FilePin>& files) {
  std::lock_guard lock(upkeep_mutex_);
  // Those of others that are over.
  for (auto next = upkeep_.begin(); next != upkeep_.end();) {
    const auto entry = next++;
    if (entry->second.under_way) continue;
    entry->second.thread.join();
    upkeep_.erase(entry);
  }
  const auto [at, is_new] = upkeep_.try_emplace(device);
  if (!is_new) return;  // somebody else swept meanwhile: what is not synced yet comes again
  Upkeep& upkeep = at->second;
  upkeep.under_way = true;
  try {
    upkeep.thread = std::thread([this, &upkeep, files = std::move(files)]() mutable {
      ::pthread_setname_np(::pthread_self(), "upkeep");
      for (FilePin& file : files) {
        flush_unstable(*file);
        file.reset();
      }
      std::lock_guard ending(upkeep_mutex_);
      upkeep.under_way = false;
      upkeep_ended_.notify_all();
    });
  } catch (const std::system_error&) {
    upkeep_.erase(at);  // no thread to be had: the same
  }
}

void FdCache::sweep() {
  begin_sweep();
  std::unique_lock lock(upkeep_mutex_);
  upkeep_ended_.wait(lock, [this] {
    return std::ranges::none_of(upkeep_, [](const auto& entry) { return entry.second.under_way; });
  });
}

void FdCache::run_sweeper() {
  std::unique_lock lock(sweeper_mutex_);
  while (!stop_) {
    if (size() == 0) {
      sweeper_wake_.wait(lock, [this] { return stop_ || size() != 0; });
      continue;
    }
    if (sweeper_wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; })) return;
    lock.unlock();
    begin_sweep();
    lock.lock();
  }
}

}  // namespace nfsrdma
