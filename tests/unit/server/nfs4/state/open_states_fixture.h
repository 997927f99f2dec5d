// SPDX-License-Identifier: Apache-2.0
// An OpenStates and who asks it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {

using Status = OpenStates::Status;

inline constexpr Share kRead{kShareRead, 0}, kWrite{kShareWrite, 0},
    kBoth{kShareRead | kShareWrite, 0};
inline constexpr OpenStates::Asker kOne{1, 1}, kTwo{2, 1}, kOld{1, 0};

class OpenStatesFixture : public testing::Test {
 protected:
  explicit OpenStatesFixture(const OpenStates::Limits& limits = {}) : states_(7, limits) {}
  Stateid open(const OpenStates::Asker& asker, const std::string& owner, const FileKey& file,
               const Share& share = kBoth) {
    const auto answer = states_.open(asker, owner, file, share);
    EXPECT_EQ(answer.status, Status::kOk);
    return answer.stateid;
  }
  OpenStates::Answer lock(const OpenStates::Asker& asker, const Stateid& open,
                          const std::string& owner, LockKind kind, const ByteRange& range) {
    return states_.lock(asker, open, owner, kind, range, &denied_);
  }

  OpenStates states_;
  std::optional<OpenStates::Holder> denied_;
};

}  // namespace nfsrdma::nfs4
