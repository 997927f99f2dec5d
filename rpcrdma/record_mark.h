// SPDX-License-Identifier: Apache-2.0
// Record marking (RFC 5531, section 11): each fragment of a record on a TCP stream is preceded by
// its length, the highest bit says that it is the record's last.
#pragma once

#include <cstdint>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

inline constexpr std::size_t kRecordMarkBytes = 4;
inline constexpr std::uint32_t kLastFragment = 0x80000000;

/// More fragments than this in one record are refused: empty ones could keep a connection busy for
/// ever. There are clients that send no more than 4 KiB in one: 1,025 for the largest WRITE.
inline constexpr std::uint32_t kMaxFragments = 16384;

/// Where in a record the stream is. Feed it the marks, tell it what was taken of the fragments.
class RecordCursor {
 public:
  explicit RecordCursor(std::size_t max_record) : max_record_(max_record) {}

  /// A mark is the next thing in the stream.
  bool at_mark() const { return fragment_left_ == 0 && !complete(); }
  /// False when the record breaks a limit: close the connection.
  bool take_mark(std::uint32_t mark) {
    const std::size_t length = mark & ~kLastFragment;
    last_ = (mark & kLastFragment) != 0;
    started_ = true;
    if (++fragments_ > kMaxFragments || length > max_record_ - known_bytes_) return false;
    known_bytes_ += length;
    fragment_left_ = length;
    return true;
  }
  void take(std::size_t bytes) { fragment_left_ -= bytes; }

  /// Bytes of the record announced so far.
  std::size_t known_bytes() const { return known_bytes_; }
  std::size_t fragment_left() const { return fragment_left_; }
  bool last_fragment() const { return last_; }
  bool started() const { return started_; }
  bool complete() const { return started_ && last_ && fragment_left_ == 0; }
  void reset() {
    known_bytes_ = fragment_left_ = 0;
    fragments_ = 0;
    started_ = last_ = false;
  }

 private:
  std::size_t max_record_;
  std::size_t known_bytes_ = 0;
  std::size_t fragment_left_ = 0;
  std::uint32_t fragments_ = 0;
  bool started_ = false;
  bool last_ = false;
};

}  // namespace nfsrdma
