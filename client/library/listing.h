// SPDX-License-Identifier: Apache-2.0
// Listing: the entries of one directory as its pages come, all in memory. How many there are, and
// where a page ends, is the server's word: a circle of pages ends it, and so does kMostListed.
#pragma once

#include <vector>

#include "client/cookie_circle.h"
#include "client/nfs_types.h"
#include "nfsrdma/client.h"

namespace nfsrdma::client {

/// Bytes of entries: some twenty million of them.
inline constexpr std::uint64_t kMostListed = std::uint64_t{4} << 30;
inline constexpr Error kListedInACircle{Errc::kProtocol, EIO,
                                        "the server lists the directory in a circle"};
inline constexpr Error kTooMuchListed{Errc::kExhausted, EFBIG,
                                      "the directory's entries would take more than 4 GiB"};

class Listing final : public DirectoryVisitor {
 public:
  explicit Listing(std::uint64_t most = kMostListed) : most_(most) {}

  bool on_entry(const nfsrdma::DirectoryEntry& entry) override;
  /// After each page; the errors above.
  nfsrdma::Result<void> end_page(const DirectoryPage& page);
  std::vector<DirectoryEntry> take() { return std::move(entries_); }

 private:
  /// False: it is too much.
  bool room_for(std::size_t bytes);

  const std::uint64_t most_;
  std::uint64_t bytes_ = 0;
  std::vector<DirectoryEntry> entries_;
  CookieCircle circle_;
};

}  // namespace nfsrdma::client
