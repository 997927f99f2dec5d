// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/write_verifier.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(WriteVerifier, RenewingChangesIt) {
  WriteVerifier verifier;
  const std::uint64_t before = verifier.value();
  EXPECT_EQ(verifier.value(), before);
  verifier.renew();
  EXPECT_NE(verifier.value(), before);
}

TEST(WriteVerifier, TwoStartsDiffer) {
  EXPECT_NE(WriteVerifier().value(), WriteVerifier().value());
}

}  // namespace
}  // namespace nfsrdma
