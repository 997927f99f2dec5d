// SPDX-License-Identifier: Apache-2.0
// Who has a file open here, and for what: which of that the server need not keep open any more.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/fuse/caller.h"
#include "client/nfs_types.h"

namespace nfsrdma {

class Openers {
 public:
  /// `access`: access_bits::kRead and kModify, at least one of them.
  void add(const CallerRef& caller, std::uint32_t access) {
    Row* row = find(*caller);
    if (row == nullptr) row = &rows_.emplace_back(Row{caller, {}});
    ++row->opens[place_of(access)];
  }
  /// One open less.
  void remove(const CallerRef& caller, std::uint32_t access) {
    Row* row = find(*caller);
    if (row == nullptr || row->opens[place_of(access)] == 0) return;
    --row->opens[place_of(access)];
    std::erase_if(rows_, [](const Row& one) { return one.access() == 0; });
  }
  /// What the server may know this caller to have it open for. The server is shown the first 16
  /// groups alone, so that whoever differs in groups only counts as the same.
  std::uint32_t access_of(const Caller& caller) const {
    std::uint32_t access = 0;
    for (const Row& row : rows_)
      if (row.caller->uid == caller.uid && row.caller->gid == caller.gid) access |= row.access();
    return access;
  }

 private:
  static constexpr std::array<std::uint32_t, 3> kKinds{access_bits::kRead, access_bits::kModify,
                                                       access_bits::kRead | access_bits::kModify};
  struct Row {
    CallerRef caller;
    std::array<std::size_t, kKinds.size()> opens;  // by kKinds

    std::uint32_t access() const {
      std::uint32_t sum = 0;
      for (std::size_t i = 0; i < kKinds.size(); ++i)
        if (opens[i] > 0) sum |= kKinds[i];
      return sum;
    }
  };

  static std::size_t place_of(std::uint32_t access) {
    const auto* found = std::find(kKinds.begin(), kKinds.end(), access);
    return found == kKinds.end() ? 0 : static_cast<std::size_t>(found - kKinds.begin());
  }
  Row* find(const Caller& caller) {
    for (Row& row : rows_)
      if (*row.caller == caller) return &row;
    return nullptr;
  }

  std::vector<Row> rows_;
};

}  // namespace nfsrdma
