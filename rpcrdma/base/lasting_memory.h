// SPDX-License-Identifier: Apache-2.0
// LastingMemory: tells the fabrics of memory that serves many operations, one after the other, such
// as the blocks of a FUSE mount. An adapter may keep it registered, without any right for the peer,
// and expose parts of it per operation by a memory window, which costs a fraction of a
// registration. Nothing else is kept registered: memory that its owner may give back behind our
// back must not be. Process-wide, thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

class LastingMemory {
 public:
  /// `bytes` stay where they are while this lives, and overlap no other such memory.
  explicit LastingMemory(MutableByteSpan bytes);
  ~LastingMemory();
  LastingMemory(const LastingMemory&) = delete;
  LastingMemory& operator=(const LastingMemory&) = delete;

  struct Piece {
    MutableByteSpan bytes;
    std::uint64_t id = 0;  // never used again
  };
  /// The piece that all of `part` lies in.
  static std::optional<Piece> find(ByteSpan part);
  /// Is it still there?
  static bool lasts(const Piece& piece);

 private:
  std::byte* begin_;
};

}  // namespace nfsrdma
