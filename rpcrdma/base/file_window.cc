// SPDX-License-Identifier: Apache-2.0
// Every window is in one list, for settle(pieces): who sends knows addresses, not windows. It is
// looked at when a send failed with EFAULT, which is rare, and when a window is made or ends.
#include "rpcrdma/base/file_window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace nfsrdma {

namespace {

struct AllWindows {
  std::mutex mutex;
  std::vector<FileWindow*> list;
};

AllWindows& all_windows() {
  static AllWindows all;
  return all;
}

/// Address space that nobody can read; at `where` in the place of what is there.
void* reserve_space(void* where, std::size_t size) {
  const int fixed = where != nullptr ? MAP_FIXED : 0;
  return ::mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

/// Set when a file could not be mapped in its window: from then on each is tried elsewhere first,
/// where nothing can be taken away. Most servers never meet such a file, and save the two calls.
std::atomic<bool> try_elsewhere{false};

bool can_be_mapped(int fd, std::uint64_t offset, std::size_t size) {
  void* place = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (place == MAP_FAILED) return false;
  ::munmap(place, size);
  return true;
}

/// Are all pages of this mapping in the page cache? A filter on system calls may forbid to ask.
FileWindow::Shown all_cached(std::byte* data, std::size_t size) {
  std::array<unsigned char, 1024> pages;
  const std::size_t page = FileWindow::page_size();
  while (size > 0) {
    const std::size_t piece = std::min(size, pages.size() * page);
    if (::mincore(data, piece, pages.data()) != 0) return FileWindow::Shown::kNo;
    const auto end = pages.begin() + static_cast<std::ptrdiff_t>(piece / page);
    if (std::any_of(pages.begin(), end, [](unsigned char in) { return (in & 1) == 0; })) {
      return FileWindow::Shown::kNotCached;
    }
    data += piece;
    size -= piece;
  }
  return FileWindow::Shown::kAll;
}

/// By way of the kernel, which stops where a page cannot be read.
std::size_t copy_readable(std::byte* to, std::byte* from, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const iovec local{to + done, size - done};
    const iovec remote{from + done, size - done};
    const ssize_t n = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

std::size_t FileWindow::page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::unique_ptr<FileWindow> FileWindow::reserve(std::size_t size) {
  void* space = reserve_space(nullptr, size);
  if (space == MAP_FAILED) return nullptr;
  std::unique_ptr<FileWindow> window(new FileWindow(static_cast<std::byte*>(space), size));
  AllWindows& all = all_windows();
  std::lock_guard lock(all.mutex);
  all.list.push_back(window.get());
  return window;
}

FileWindow::~FileWindow() {
  {
    AllWindows& all = all_windows();
    std::lock_guard lock(all.mutex);
    std::erase(all.list, this);
  }
  if (!retired_) ::munmap(data_, size_);
}

FileWindow::Shown FileWindow::show(int fd, std::uint64_t offset, std::size_t bytes) {
  const std::size_t size = whole_pages(bytes);
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own || size > size_ || retired_) return Shown::kNo;
  const bool careful = try_elsewhere.load(std::memory_order_relaxed);
  if (careful && !can_be_mapped(own.get(), offset, size)) return Shown::kNo;
  if (::mmap(data_, size, PROT_READ, MAP_SHARED | MAP_FIXED, own.get(),
             static_cast<off_t>(offset)) == MAP_FAILED) {
    try_elsewhere.store(true, std::memory_order_relaxed);
    close_hole(size);
    return Shown::kNo;
  }
  shown_ = size;
  offset_ = offset;
  fd_ = std::move(own);
  if (const Shown cached = all_cached(data_, size); cached != Shown::kAll) return cached;
  // One call instead of a page fault for each few pages while sending.
  if (::madvise(data_, size, MADV_POPULATE_READ) != 0) return Shown::kNo;
  return Shown::kAll;
}

bool FileWindow::hide() {
  fd_.reset();
  const std::size_t size = std::exchange(shown_, 0);
  if (retired_) return false;
  return size == 0 || reserve_space(data_, size) != MAP_FAILED || close_hole(size);
}

/// That something is there says nothing: the reservation, which the kernel leaves in place when it
/// fails early, looks like anybody's memory.
bool FileWindow::close_hole(std::size_t size) {
  void* const place =
      ::mmap(data_, size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (place == data_) return true;
  if (place != MAP_FAILED) ::munmap(place, size);  // Linux before 4.17 takes it for a hint
  fd_.reset();
  shown_ = 0;
  retired_ = true;
  return false;
}

bool FileWindow::settle() {
  if (retired_) return false;
  if (!fd_) return true;
  void* own = ::mmap(nullptr, shown_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return false;
  const std::size_t readable = copy_readable(static_cast<std::byte*>(own), data_, shown_);
  struct stat now;
  const bool good =
      readable == shown_ || (::fstat(fd_.get(), &now) == 0 &&
                             offset_ + readable >= static_cast<std::uint64_t>(now.st_size));
  if (!good || ::mremap(own, shown_, shown_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED) {
    ::munmap(own, shown_);
    if (good) close_hole(shown_);
    return false;
  }
  fd_.reset();
  return true;
}

bool FileWindow::settle(std::span<const iovec> pieces) {
  AllWindows& all = all_windows();
  std::lock_guard lock(all.mutex);
  bool found = false;
  for (FileWindow* window : all.list) {
    const bool touched = std::any_of(pieces.begin(), pieces.end(), [&](const iovec& piece) {
      const auto* at = static_cast<const std::byte*>(piece.iov_base);
      return at >= window->data_ && at < window->data_ + window->size_;
    });
    if (!touched || !window->fd_) continue;
    if (!window->settle()) return false;
    found = true;
  }
  return found;
}

}  // namespace nfsrdma
