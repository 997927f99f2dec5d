// SPDX-License-Identifier: Apache-2.0
// UnstableData: what was written to one file and answered UNSTABLE. The server may lose it until a
// COMMIT comes back with the verifier of the WRITE (RFC 1813, 3.3.7 and 3.3.21), so it is kept here
// until then. Plain bookkeeping, no calls.
//
//   uint64_t mark = data.mark();
//   commit = COMMIT ...
//   data.committed(mark, commit.verifier);
//   while (data.has_lost()) { piece = data.take_lost(); WRITE it; data.wrote(...); }  then again
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

class UnstableData {
 public:
  struct Piece {
    std::uint64_t offset = 0;
    ByteSpan bytes;
    std::shared_ptr<const std::vector<std::byte>> memory;  // holds `bytes`, of this piece alone
  };
  /// What a piece takes beside its bytes.
  static constexpr std::size_t kPieceMemory = 256;

  /// `data` was written at `offset` and answered UNSTABLE with `verifier`: keeps a copy. It takes
  /// the place of older data of the same range.
  void wrote(std::uint64_t offset, ByteSpan data, std::uint64_t verifier);
  /// The same for data kept already (a piece written again).
  void wrote(Piece piece, std::uint64_t verifier);
  /// The range is stable with other data now (a FILE_SYNC write), or gone.
  void forget(std::uint64_t offset, std::uint64_t length);
  void truncated(std::uint64_t size);

  /// Everything so far will be covered by a COMMIT that is sent from now on.
  std::uint64_t mark() const { return serial_; }
  /// A COMMIT sent at `mark` was answered with `verifier`: what it covers is stable, or lost when
  /// it was written under another verifier.
  void committed(std::uint64_t mark, std::uint64_t verifier);
  bool has_lost() const { return !lost_.empty(); }
  /// One lost piece, to be written again. Nothing newer overlaps it.
  std::optional<Piece> take_lost();

  /// That all of it takes, what was lost included.
  std::size_t memory() const { return memory_; }
  bool empty() const { return kept_.empty() && lost_.empty(); }

 private:
  struct Kept {
    Piece piece;
    std::uint64_t verifier = 0;
    std::uint64_t serial = 0;
  };
  using Map = std::map<std::uint64_t, Kept>;  // by offset; never overlapping, within one map

  void cut(Map& map, std::uint64_t begin, std::uint64_t end);
  void add(Map& map, Kept kept);
  Map::iterator remove(Map& map, Map::iterator it);

  Map kept_;
  Map lost_;
  std::uint64_t serial_ = 0;
  std::size_t memory_ = 0;
};

}  // namespace nfsrdma
