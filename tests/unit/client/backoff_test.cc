// SPDX-License-Identifier: Apache-2.0
#include "client/backoff.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Backoff, FirstRetryIsImmediateThenDoublesUpToALimit) {
  Backoff backoff;
  EXPECT_EQ(backoff.next(), Duration::zero());
  EXPECT_EQ(backoff.next(), milliseconds(50));
  EXPECT_EQ(backoff.next(), milliseconds(100));
  for (int i = 0; i < 20; ++i)
    static_cast<void>(backoff.next());
  EXPECT_EQ(backoff.next(), Backoff::kLongest);
  backoff.reset();
  EXPECT_EQ(backoff.next(), Duration::zero());
}

}  // namespace
}  // namespace nfsrdma
