// SPDX-License-Identifier: Apache-2.0
// OpenOwners: the open-owners of minor version 0 that are used again, each for one file at a time
// (their requests go one by one), and with one identity: the server wants only the first OPEN of
// each confirmed (RFC 7530, 16.18). One that may be out of step is not given back.
//
// From minor version 1 on nothing is confirmed: an owner is used once, for its number.
//
// On the session's thread.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "client/nfs4/owner_sequence.h"
#include "client/op_context.h"

namespace nfsrdma::nfs4 {

class OpenOwners {
 public:
  struct Owner {
    AuthSys identity;
    std::uint64_t number = 0;
    OwnerSequence sequence;
  };
  using OwnerPtr = std::unique_ptr<Owner>;

  OwnerPtr take(const AuthSys& identity) {
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const OwnerPtr& owner) {
      return owner->identity == identity;
    });
    if (found == idle_.rend()) {
      auto made = std::make_unique<Owner>();
      made->identity = identity;
      made->number = kFirst + ++last_;
      return made;
    }
    OwnerPtr owner = std::move(*found);
    idle_.erase(std::next(found).base());
    return owner;
  }
  void give_back(OwnerPtr owner) {
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(owner));
  }
  /// The server knows one of them no more, and perhaps none of the same age.
  void forget_idle() { idle_.clear(); }

 private:
  /// Those of FileLocks count from 1.
  static constexpr std::uint64_t kFirst = 3ull << 62;
  static constexpr std::size_t kMostIdle = 64;

  std::vector<OwnerPtr> idle_;
  std::uint64_t last_ = 0;
};

}  // namespace nfsrdma::nfs4
