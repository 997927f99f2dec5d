// SPDX-License-Identifier: Apache-2.0
// AwaitedOpens: the OPENs of one COMPOUND whose results wait for the disk. Where that fails, the
// client hears of an error, or of nothing, and so could never close what it does not know of: they
// are undone, with the delegations that came along.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

struct AwaitedOpen {
  std::uint32_t index = 0;  // of its operation
  ClientId client = 0;
  FileKey file;
  OpenStates::Answer answer;
  Share share;
  std::optional<Stateid> delegation;
  // In minor version 0, once its turn is over; else 0:
  std::uint64_t generation = 0;  // of its owner
  OwnerKey owner;
  std::uint32_t seqid = 0;
};

class AwaitedOpens {
 public:
  void add(AwaitedOpen&& open) { opens_.push_back(std::move(open)); }
  /// The last one, to be completed. Null: there is none, or it is of another operation.
  AwaitedOpen* of(std::uint32_t index) {
    return opens_.empty() || opens_.back().index != index ? nullptr : &opens_.back();
  }
  void clear() { opens_.clear(); }
  /// All of them. The one that is operation `failed`, if any is, gets `status` for its answer,
  /// encoded in `reply`; those behind it have never come, as far as the client knows. Without the
  /// state's mutex.
  void undo(ServerState& state, std::uint32_t failed, xdr::nfsstat4 status,
            std::span<const std::byte> reply);

 private:
  std::vector<AwaitedOpen> opens_;
};

}  // namespace nfsrdma::nfs4
