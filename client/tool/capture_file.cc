// SPDX-License-Identifier: Apache-2.0
#include "client/tool/capture_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <limits>
#include <utility>

namespace nfsrdma::tool {

namespace {

// Block types, and what we look at in a block; the server writes little-endian.
constexpr std::uint32_t kStatisticsBlock = 5;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::size_t kLeastBlock = 12;
constexpr std::size_t kMostBlock = std::size_t{16} << 20;
constexpr std::size_t kStatisticsOptions = 20;
constexpr std::uint16_t kDroppedOption = 5;

template <typename T>
T number_at(std::string_view bytes, std::size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// What a statistics block says was dropped.
std::uint64_t dropped_of(std::string_view block) {
  std::size_t at = kStatisticsOptions;
  while (at + 4 <= block.size()) {
    const auto code = number_at<std::uint16_t>(block, at);
    const auto length = number_at<std::uint16_t>(block, at + 2);
    if (code == 0) break;
    if (code == kDroppedOption && length == 8) return number_at<std::uint64_t>(block, at + 4);
    at += 4 + ((std::size_t{length} + 3) & ~std::size_t{3});
  }
  return 0;
}

/// A pipe that is ready takes as much without blocking; files are never waited for.
std::size_t most_at_once(int fd) {
  struct stat status {};
  const bool file = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  return file ? std::numeric_limits<std::size_t>::max() : PIPE_BUF;
}

}  // namespace

CaptureFile::CaptureFile(int fd, std::uint64_t most_packets, CloseFile close_file,
                         std::function<bool(int fd)> wait)
    : fd_(fd),
      most_packets_(most_packets),
      close_file_(close_file),
      wait_(std::move(wait)),
      most_at_once_(most_at_once(fd)) {}

bool CaptureFile::add(std::string_view bytes, std::string* why) {
  unfinished_ += bytes;
  std::string_view rest = unfinished_;
  while (rest.size() >= 8) {
    const auto length = number_at<std::uint32_t>(rest, 4);
    if (length < kLeastBlock || length % 4 != 0 || length > kMostBlock) {
      *why = "what the server sent is no pcapng";
      return false;
    }
    if (rest.size() < length) break;
    take_block(number_at<std::uint32_t>(rest, 0), rest.substr(0, length));
    rest.remove_prefix(length);
  }
  unfinished_.erase(0, unfinished_.size() - rest.size());
  const bool written = write(out_, why);
  out_.clear();
  return written;
}

void CaptureFile::take_block(std::uint32_t type, std::string_view block) {
  if (type == kStatisticsBlock) {
    lost_ = dropped_of(block);
    statistics_ = block;
    return;
  }
  if (type == kPacketBlock) {
    if (full()) return;
    ++packets_;
  }
  out_ += block;
}

bool CaptureFile::finish(std::string* why) {
  const bool written = write(statistics_, why);
  statistics_.clear();
  if (!written) return false;
  const Result<void> there = hand_over(fd_, close_file_);
  if (!there.ok()) *why = std::strerror(there.error().sys);
  return there.ok();
}

bool CaptureFile::write(std::string_view bytes, std::string* why) {
  while (!bytes.empty()) {
    if (wait_ && !wait_(fd_)) {
      *why = "nobody takes what is written there";
      return false;
    }
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), most_at_once_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      *why = std::strerror(errno);
      return false;
    }
    bytes_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace nfsrdma::tool
