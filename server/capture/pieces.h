// SPDX-License-Identifier: Apache-2.0
// Walks through bytes that lie in several pieces.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

inline std::size_t total_size(std::span<const ByteSpan> pieces) {
  std::size_t total = 0;
  for (const ByteSpan& piece : pieces)
    total += piece.size();
  return total;
}

class PieceCursor {
 public:
  explicit PieceCursor(std::span<const ByteSpan> pieces) : pieces_(pieces) {}

  /// Appends the next `bytes` of them to `out`; fewer when they end.
  void take(std::size_t bytes, std::vector<ByteSpan>& out) {
    while (bytes > 0 && next_ < pieces_.size()) {
      const ByteSpan rest = pieces_[next_].subspan(used_);
      const ByteSpan part = rest.first(std::min(bytes, rest.size()));
      if (!part.empty()) out.push_back(part);
      bytes -= part.size();
      used_ += part.size();
      if (part.size() < rest.size()) return;
      ++next_;
      used_ = 0;
    }
  }

 private:
  std::span<const ByteSpan> pieces_;
  std::size_t next_ = 0;
  std::size_t used_ = 0;  // of pieces_[next_]
};

}  // namespace nfsrdma
