// SPDX-License-Identifier: Apache-2.0
// FileWindow: a piece of address space in which pages of a file can be shown, so that a socket is
// sent what the page cache has without a copy of our own in between.
//
// Nobody but the kernel may read what a window shows: whoever shortens the file takes the pages
// away, and a look from user space is then SIGBUS, while sendmsg() only gives EFAULT. So a window
// is for what goes out as it is, by a socket, with no checksum and no copy of ours. Who does want
// to look settles the window first; who gets EFAULT settles what it was sending and tries again.
//
// Owned by a BufferPool and lent as a Buffer (rpcrdma/buffer_pool.h), on that shard's thread. While
// it shows something it holds a descriptor of the file.
//
// A mapping that fails may have taken away what was at its place, and the memory of another thread
// may be there by then. Such a hole is closed at once; where that cannot be done the window is
// retired: nobody maps, unmaps or looks at anything there any more.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class FileWindow {
 public:
  /// How show() came out.
  enum class Shown : std::uint8_t {
    kAll,
    kNotCached,  // some of it would have to be read from the disk
    kNo,         // this file, or this system, cannot be mapped
  };

  /// Address space only; null when there is none. `size` is a multiple of page_size().
  static std::unique_ptr<FileWindow> reserve(std::size_t size);
  /// Shows nothing any more, unless it was retired.
  ~FileWindow();
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  static std::size_t page_size();
  /// `bytes` rounded up to pages.
  static std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page_size() - 1) & ~(page_size() - 1);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// `bytes` of the file from `offset` on, which is a multiple of page_size(), begin at data().
  /// They lie before the end of the file. Does not wait for a disk, as long as the thread may ask
  /// mincore() about the file: its owner, who may write it, or CAP_FOWNER.
  Shown show(int fd, std::uint64_t offset, std::size_t bytes);
  /// Lets go of the file. False when the kernel does not take the pages back: the window is not to
  /// be used again then.
  bool hide();

  /// Makes what is shown memory of our own, at the same place: what was beyond the end of a file
  /// that was shortened meanwhile is zeros. False when the file cannot be read for another reason,
  /// or without memory: what was shown is not to be sent then.
  bool settle();
  /// All windows that `pieces` touch. False as above, or when there are none.
  static bool settle(std::span<const iovec> pieces);

 private:
  explicit FileWindow(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  /// Behind a mapping of `size` that failed. False: the window is retired.
  bool close_hole(std::size_t size);

  std::byte* data_;
  std::size_t size_;
  std::size_t shown_ = 0;  // bytes, whole pages; 0: nothing
  std::uint64_t offset_ = 0;
  UniqueFd fd_;  // none: settled
  bool retired_ = false;
};

}  // namespace nfsrdma
