// SPDX-License-Identifier: Apache-2.0
// WriteBehind: the data of one file that applications wrote and the server has not made stable yet.
// Pure bookkeeping: no calls, no time. client/fuse/file_writer.* sends what it says.
//
// Data is in one of three states, each newer than the next:
//   dirty     only here; what is appended to a piece joins it, and pieces that touch are sent
//             together, up to the size of a WRITE
//   in flight in a WRITE that is not answered. Never two at a time for the same byte: WRITEs may
//             overtake each other, so newer data of the range waits until the older is answered
//   unstable  answered UNSTABLE; kept until a COMMIT comes back with the verifier of its WRITE.
//             When the verifier differs the server lost it, and what nothing newer covers
//             becomes dirty again (RFC 1813, 3.3.7 and 3.3.21). In doubt: something says that the
//             server may have lost it, and the COMMIT that tells is not answered yet
#pragma once

#include <cstdint>
#include <list>
#include <optional>

#include "client/fuse/extent_map.h"

namespace nfsrdma {

class WriteBehind {
 public:
  /// A WRITE that is under way.
  struct Flight {
    Extent extent;
  };
  using FlightRef = std::list<Flight>::iterator;

  explicit WriteBehind(std::uint32_t write_size) : write_size_(write_size), dirty_(write_size) {}

  /// New data, copied.
  void write(std::uint64_t offset, ByteSpan data, const CallerRef& writer);
  /// New data that lies in `block` already.
  void adopt(std::uint64_t offset, BlockRef block, std::uint32_t block_offset, std::uint32_t length,
             const CallerRef& writer);

  /// The next WRITE to send; it counts as in flight from now on. With `all` also pieces that are
  /// shorter than a whole WRITE. Pieces that must wait for one in flight are passed over.
  std::optional<FlightRef> next(bool all);
  /// The server took `count` bytes (a short count leaves the rest dirty).
  void written(FlightRef flight, std::uint32_t count, bool stable, std::uint64_t verifier);
  /// The server refused it: the data is gone.
  void refused(FlightRef flight) { flights_.erase(flight); }
  /// It was not sent after all (or its fate is unknown): dirty again.
  void returned(FlightRef flight);

  /// Everything unstable now is covered by a COMMIT sent from now on: its mark.
  std::uint64_t commit_mark() const { return serial_; }
  /// A COMMIT sent at `mark` was answered. True when all it covered is stable now; false: some of
  /// it is dirty again and must be written and committed once more.
  bool committed(std::uint64_t mark, std::uint64_t verifier);
  /// Does a COMMIT have to come before what is here may be forgotten?
  bool unstable(std::uint64_t offset, std::uint64_t length) const {
    return unstable_.overlaps(offset, length);
  }
  /// Forgets unstable data (a failed COMMIT was reported).
  void drop_unstable() {
    unstable_.clear();
    doubted_at_ = 0;
  }
  /// The file was cut: what was behind `size` must not come back. Nothing dirty or in flight.
  void truncated(std::uint64_t size);

  /// Does the server lack some byte of the range?
  bool pending(std::uint64_t offset, std::uint64_t length) const;
  bool in_doubt(std::uint64_t offset, std::uint64_t length) const {
    return in_doubt() && unstable(offset, length);
  }
  bool clean() const { return dirty_.empty() && flights_.empty(); }
  bool stable() const { return clean() && unstable_.empty(); }
  bool has_unstable() const { return !unstable_.empty(); }
  /// A piece of at least a whole WRITE waits.
  bool has_full() const { return dirty_.full() > 0 || dirty_.bytes() >= 4ull * write_size_; }
  std::uint64_t unstable_bytes() const { return unstable_.bytes(); }
  std::uint64_t bytes_held() const;
  /// Whoever goes by what the server says of the file has to see what is unstable now committed
  /// first: the server restarted, or somebody else changed the file.
  void doubt() {
    if (has_unstable()) doubted_at_ = serial_;
  }
  bool in_doubt() const { return doubted_at_ > 0 && has_unstable(); }
  /// One behind the last byte that the server may lack; 0: none.
  std::uint64_t pending_end() const;
  /// A flush of this file is exactly one WRITE: it can ask for FILE_SYNC and save the COMMIT.
  bool single_write() const;

 private:
  bool flying(std::uint64_t offset, std::uint64_t length) const;
  void make_dirty_below(Extent extent);
  Extent take_joined(ExtentMap::Map::iterator first);
  bool append_in_place(std::uint64_t offset, ByteSpan data, const CallerRef& writer);

  std::uint32_t write_size_;
  ExtentMap dirty_;  // its full ones are those of at least write_size_
  std::list<Flight> flights_;
  ExtentMap unstable_;
  std::uint64_t serial_ = 0;
  std::uint64_t verifier_ = 0;    // of what became unstable last
  std::uint64_t doubted_at_ = 0;  // serial_; 0: no doubt
};

}  // namespace nfsrdma
