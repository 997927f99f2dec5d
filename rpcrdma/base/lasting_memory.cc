// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/lasting_memory.h"

#include <map>
#include <mutex>

namespace nfsrdma {

namespace {

struct Pieces {
  std::mutex mutex;
  std::uint64_t next_id = 1;
  std::map<const std::byte*, LastingMemory::Piece> by_begin;
};

Pieces& pieces() {
  // Never destroyed: memory may last longer than static objects.
  static Pieces* const all = new Pieces;
  return *all;
}

}  // namespace

LastingMemory::LastingMemory(MutableByteSpan bytes) : begin_(bytes.data()) {
  Pieces& all = pieces();
  std::lock_guard lock(all.mutex);
  all.by_begin[begin_] = {bytes, all.next_id++};
}

LastingMemory::~LastingMemory() {
  Pieces& all = pieces();
  std::lock_guard lock(all.mutex);
  all.by_begin.erase(begin_);
}

std::optional<LastingMemory::Piece> LastingMemory::find(ByteSpan part) {
  Pieces& all = pieces();
  std::lock_guard lock(all.mutex);
  auto after = all.by_begin.upper_bound(part.data());
  if (after == all.by_begin.begin()) return std::nullopt;
  const Piece& piece = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(part.data() - piece.bytes.data());
  if (offset > piece.bytes.size() || part.size() > piece.bytes.size() - offset) return std::nullopt;
  return piece;
}

bool LastingMemory::lasts(const Piece& piece) {
  Pieces& all = pieces();
  std::lock_guard lock(all.mutex);
  auto found = all.by_begin.find(piece.bytes.data());
  return found != all.by_begin.end() && found->second.id == piece.id;
}

}  // namespace nfsrdma
