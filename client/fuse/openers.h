// SPDX-License-Identifier: Apache-2.0
// Who has a file open here, and for what: which of that the server need not keep open any more.
#pragma once

#include <cstdint>
#include <vector>

#include "client/fuse/caller.h"
#include "client/open_counts.h"

namespace nfsrdma {

class Openers {
 public:
  /// `access`: access_bits::kRead and kModify, at least one of them.
  void add(const CallerRef& caller, std::uint32_t access) {
    Row* row = find(*caller);
    if (row == nullptr) row = &rows_.emplace_back(Row{caller, {}});
    row->opens.add(access);
  }
  /// One open less.
  void remove(const CallerRef& caller, std::uint32_t access) {
    Row* row = find(*caller);
    if (row == nullptr) return;
    row->opens.remove(access);
    std::erase_if(rows_, [](const Row& one) { return one.opens.access() == 0; });
  }
  /// Of all of them.
  std::uint32_t access() const {
    std::uint32_t access = 0;
    for (const Row& row : rows_)
      access |= row.opens.access();
    return access;
  }
  /// What the server may know this caller to have it open for. The server is shown the first 16
  /// groups alone, so that whoever differs in groups only counts as the same.
  std::uint32_t access_of(const Caller& caller) const {
    std::uint32_t access = 0;
    for (const Row& row : rows_) {
      const bool same = row.caller->uid == caller.uid && row.caller->gid == caller.gid;
      if (same) access |= row.opens.access();
    }
    return access;
  }

 private:
  struct Row {
    CallerRef caller;
    OpenCounts opens;
  };

  Row* find(const Caller& caller) {
    for (Row& row : rows_)
      if (*row.caller == caller) return &row;
    return nullptr;
  }

  std::vector<Row> rows_;
};

}  // namespace nfsrdma
