// SPDX-License-Identifier: Apache-2.0
// OwnerSequence: the sequence ids of one open-owner or lock-owner of minor version 0 (RFC 7530
// 9.1.7). What changes the owner's state runs once; a retry of the last request gets its answer.
// Minor version 1 has slots for that, and ignores these numbers.
//
// Pure. The caller serialises, and finishes a request before it begins the owner's next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {

class OwnerSequence {
 public:
  enum class Verdict : std::uint8_t {
    kNew,     // run it, then finish()
    kReplay,  // answer with reply()
    kBad,     // NFS4ERR_BAD_SEQID
  };
  /// `operation`: its number in the protocol; another one under the last id is no retry. A fresh
  /// owner takes any id.
  Verdict begin(std::uint32_t seqid, std::uint32_t operation) {
    NFSRDMA_CHECK(!running_);
    if (used_ && seqid == last_) {
      return operation == operation_ && !reply_.empty() ? Verdict::kReplay : Verdict::kBad;
    }
    if (used_ && seqid != last_ + 1) return Verdict::kBad;  // they wrap to 0
    running_ = true;
    asked_ = {seqid, operation};
    return Verdict::kNew;
  }
  /// A lock-owner's first lock came in its open-owner's sequence, and brought along where its own
  /// begins.
  void start(std::uint32_t seqid) {
    used_ = true;
    last_ = seqid;
    reply_.clear();
  }
  bool used() const { return used_; }
  /// Would begin() say kReplay?
  bool is_retry(std::uint32_t seqid, std::uint32_t operation) const {
    return used_ && seqid == last_ && operation == operation_ && !reply_.empty();
  }
  /// The result as it was encoded. `counts`: false for the errors that leave the id unused
  /// (counts_in_sequence()): the client asks the next one under the same id.
  void finish(bool counts, std::span<const std::byte> reply) {
    NFSRDMA_CHECK(running_);
    running_ = false;
    if (!counts) return;
    used_ = true;
    std::tie(last_, operation_) = asked_;
    reply_.assign(reply.begin(), reply.end());
  }
  std::span<const std::byte> reply() const { return reply_; }

 private:
  bool used_ = false;
  bool running_ = false;
  std::uint32_t last_ = 0;
  std::uint32_t operation_ = 0;
  std::pair<std::uint32_t, std::uint32_t> asked_;
  std::vector<std::byte> reply_;
};

/// Does a result with this nfsstat4 use up the sequence id? All do but these.
constexpr bool counts_in_sequence(std::uint32_t status) {
  constexpr std::uint32_t kStaleClientid = 10022, kStaleStateid = 10023, kBadStateid = 10025,
                          kBadSeqid = 10026, kBadXdr = 10036, kResource = 10018,
                          kNoFilehandle = 10020, kMoved = 10019;
  switch (status) {
    case kStaleClientid:
    case kStaleStateid:
    case kBadStateid:
    case kBadSeqid:
    case kBadXdr:
    case kResource:
    case kNoFilehandle:
    case kMoved:
      return false;
    default:
      return true;
  }
}

}  // namespace nfsrdma::nfs4
