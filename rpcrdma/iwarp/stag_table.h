// SPDX-License-Identifier: Apache-2.0
// The STags of one device: which bytes a peer may touch, on which connection, and how. An STag is
// index << 8 | key; the index starts at a random number, the key changes with every use of a slot,
// so that an old STag does not name new memory.
//
// A slot stays taken from add() to remove(), also when the peer invalidated it in between.
#pragma once

#include <cstdint>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma::iwarp {

enum class StagFault : std::uint8_t {
  kNone,
  kInvalid,  // no such STag, or withdrawn
  kStream,   // another connection's
  kAccess,
  kWrap,  // offset + length goes beyond 2^64
  kBounds,
};

struct StagEntry {
  std::byte* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t base_offset = 0;  // tagged offset of base[0]
  std::uint64_t scope = 0;        // the connection's number
  std::uint64_t placed_end = 0;   // highest byte that the peer has placed so far, plus one
  std::uint32_t next_free = 0;
  Access access = Access::kLocal;
  std::uint8_t key = 0;
  bool valid = false;
  bool taken = false;
  bool was_used = false;
};

struct StagAccess {
  StagFault fault = StagFault::kInvalid;
  StagEntry* entry = nullptr;  // valid until the next add()
  std::uint64_t position = 0;  // of the first byte in the region
};

/// What the engine asks about STags.
class StagDirectory {
 public:
  virtual ~StagDirectory() = default;
  /// May `scope`'s peer touch [offset, offset + length) of `stag` with `access`?
  virtual StagAccess check(std::uint32_t stag, std::uint64_t offset, std::uint64_t length,
                           std::uint64_t scope, Access access) = 0;
  /// A Send with Invalidate of `scope`'s peer named `stag`. False: a violation. An STag that was
  /// withdrawn before counts as done (the reply crossed with our giving up).
  virtual bool invalidate(std::uint32_t stag, std::uint64_t scope) = 0;
};

class StagTable final : public StagDirectory {
 public:
  /// `seed` 0 takes one from the system.
  explicit StagTable(std::uint64_t seed = 0, std::uint32_t max_entries = 1u << 20);

  struct Added {
    std::uint32_t stag = 0;
    std::uint64_t offset = 0;
  };
  /// False when the table is full.
  bool add(MutableByteSpan bytes, Access access, std::uint64_t scope, Added* added);
  /// Frees the slot; returns the scope it had.
  std::uint64_t remove(std::uint32_t stag);

  StagAccess check(std::uint32_t stag, std::uint64_t offset, std::uint64_t length,
                   std::uint64_t scope, Access access) override;
  bool invalidate(std::uint32_t stag, std::uint64_t scope) override;

  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::uint32_t kNoFree = 0xffffffffu;
  bool grow();
  std::uint64_t random();
  /// kNoFree when out of range.
  std::uint32_t slot_of(std::uint32_t stag) const;
  std::uint32_t stag_of(std::uint32_t slot) const;

  std::vector<StagEntry> entries_;
  std::uint32_t max_entries_;
  std::uint32_t first_free_ = kNoFree;
  std::uint32_t last_free_ = kNoFree;
  std::uint32_t base_index_;
  std::size_t in_use_ = 0;
  std::uint64_t random_state_;
};

}  // namespace nfsrdma::iwarp
