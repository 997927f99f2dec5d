// SPDX-License-Identifier: Apache-2.0
#include "server/files/directory_reader.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "rpcrdma/base/timestamp.h"

namespace nfsrdma {

namespace {

constexpr std::size_t kMaxChunk = 65536;
constexpr std::size_t kMinChunk = 1024;  // holds an entry with the longest name

/// One directory is read at a time on a thread.
alignas(dirent64) thread_local std::array<std::byte, kMaxChunk> t_entries;

}  // namespace

DirectoryReader::~DirectoryReader() {
  if (!stream_.fd) return;
  const std::size_t left = filled_ - taken_;
  if (left > 0 && left <= DirectoryStream::kMostAhead) {
    const auto begin = t_entries.begin() + static_cast<std::ptrdiff_t>(taken_);
    stream_.ahead.assign(begin, begin + static_cast<std::ptrdiff_t>(left));
    stream_.ahead_cookie = taken_cookie_;
    stream_.ahead_ctime = directory_.attributes.st_ctim;
  }
  if (left > 0) stream_.position.reset();
  call_.server().files.give_back(*directory_.file, std::move(stream_));
}

int DirectoryReader::open(std::uint64_t cookie, std::size_t chunk) {
  chunk_ = std::clamp(chunk, kMinChunk, kMaxChunk);
  if (const int error = call_.server().files.take_stream(*directory_.file, call_.caller(),
                                                         directory_.attributes, &stream_)) {
    return error;
  }
  taken_cookie_ = cookie;
  const auto wanted = static_cast<std::int64_t>(cookie);
  // From the start always anew: a stream at position 0 may have been there for a while.
  if (wanted != 0 && stream_.position == wanted) return 0;
  const std::vector<std::byte> ahead = std::exchange(stream_.ahead, {});
  if (wanted != 0 && !ahead.empty() && stream_.ahead_cookie == cookie &&
      same_time(stream_.ahead_ctime, directory_.attributes.st_ctim)) {
    std::copy(ahead.begin(), ahead.end(), t_entries.begin());
    filled_ = ahead.size();
    return 0;
  }
  if (::lseek(stream_.fd.get(), wanted, SEEK_SET) < 0) return errno;
  stream_.position = wanted;
  return 0;
}

DirectoryReader::Next DirectoryReader::next(DirectoryEntry* entry, int* error) {
  if (used_ == filled_) {
    const long n = ::syscall(SYS_getdents64, stream_.fd.get(), t_entries.data(), chunk_);
    taken_ = used_ = filled_ = 0;
    if (n < 0) {
      *error = errno;
      return Next::kError;
    }
    if (n == 0) return Next::kEnd;
    filled_ = static_cast<std::size_t>(n);
  }
  const auto* found = reinterpret_cast<const dirent64*>(t_entries.data() + used_);
  used_ += found->d_reclen;
  entry->inode = found->d_ino;
  entry->cookie = static_cast<std::uint64_t>(found->d_off);
  entry->name = found->d_name;
  used_cookie_ = entry->cookie;
  // The kernel stands behind everything that it gave.
  if (used_ == filled_) stream_.position = found->d_off;
  const bool parent_of_top = std::string_view(found->d_name) == ".." &&
                             directory_.file->inode() == call_.exported().top->root_inode &&
                             directory_.file->device() == call_.exported().top->device;
  if (parent_of_top) entry->inode = directory_.file->inode();
  return Next::kEntry;
}

}  // namespace nfsrdma
