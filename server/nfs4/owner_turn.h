// SPDX-License-Identifier: Apache-2.0
// OwnerTurn: one request of minor version 0 in the sequence of its open-owner or lock-owner. It is
// run once; a retry gets the first answer. Nothing to do in later minor versions.
#pragma once

#include <mutex>
#include <optional>

#include "server/nfs4/operations.h"
#include "server/nfs4/owner_sequences.h"

namespace nfsrdma::nfs4 {

/// Whose sequence a request belongs to, and its number in it. Empty: its stateid is nobody's, which
/// the operation itself finds out.
struct TurnOf {
  OwnerKey owner;
  std::uint32_t seqid = 0;
};
/// With the state's mutex.
std::optional<TurnOf> turn_of(Compound& compound, const xdr::OPEN4args& args);
std::optional<TurnOf> turn_of(Compound& compound, const xdr::OPEN_CONFIRM4args& args);
std::optional<TurnOf> turn_of(Compound& compound, const xdr::OPEN_DOWNGRADE4args& args);
std::optional<TurnOf> turn_of(Compound& compound, const xdr::CLOSE4args& args);
std::optional<TurnOf> turn_of(Compound& compound, const xdr::LOCK4args& args);
std::optional<TurnOf> turn_of(Compound& compound, const xdr::LOCKU4args& args);

class OwnerTurn {
 public:
  /// No turn of any sequence where turn_of() finds none.
  template <typename Args>
  OwnerTurn(Compound& compound, const Args& args, std::uint32_t operation)
      : compound_(compound), operation_(operation) {
    std::lock_guard lock(compound.state().mutex);
    if (const std::optional<TurnOf> turn = turn_of(compound, args)) begin(*turn);
  }
  OwnerTurn(const OwnerTurn&) = delete;
  OwnerTurn& operator=(const OwnerTurn&) = delete;
  /// Unfinished: as if it had not come.
  ~OwnerTurn();

  enum class What : std::uint8_t {
    kRun,     // then finish()
    kRefuse,  // answer with status()
    kReplay,  // answer with reply(); the current handle is what it was
  };
  What what() const { return what_; }
  xdr::nfsstat4 status() const { return status_; }
  std::span<const std::byte> reply() const { return reply_; }
  /// `reply`: the result as it is encoded, with `status` at its beginning.
  void finish(xdr::nfsstat4 status, std::span<const std::byte> reply);

 private:
  void begin(const TurnOf& turn);  // with the mutex
  SequencedOwner* owner();

  Compound& compound_;
  std::optional<OwnerKey> key_;
  std::uint64_t generation_ = 0;
  std::uint32_t seqid_ = 0;
  std::uint32_t operation_;
  What what_ = What::kRun;
  xdr::nfsstat4 status_ = xdr::nfsstat4::NFS4_OK;
  std::vector<std::byte> reply_;
};

}  // namespace nfsrdma::nfs4
