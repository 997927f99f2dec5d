// SPDX-License-Identifier: Apache-2.0
// Between NFSv3's wire types and the client's own.
#include "client/nfs3/convert.h"

#include <gtest/gtest.h>

namespace nfsrdma::nfs3 {
namespace {

std::int64_t there_and_back(std::int64_t seconds) {
  xdr::fattr3 attributes{};
  attributes.mtime = to_wire(timespec{static_cast<time_t>(seconds), 7});
  EXPECT_EQ(attributes.mtime.nseconds, 7u);
  return from_wire(attributes).mtime.tv_sec;
}

TEST(Nfs3Convert, SecondsAreUnsigned) {
  EXPECT_EQ(there_and_back(0), 0);
  EXPECT_EQ(there_and_back(INT32_MAX), INT32_MAX);
  EXPECT_EQ(there_and_back(INT64_C(2524608000)), INT64_C(2524608000)) << "the year 2050";
  EXPECT_EQ(there_and_back(UINT32_MAX), std::int64_t{UINT32_MAX});
}

TEST(Nfs3Convert, ATimeThatCannotBeSaidBecomesTheNearestOne) {
  EXPECT_EQ(there_and_back(-1), 0);
  EXPECT_EQ(there_and_back(INT64_MIN), 0);
  EXPECT_EQ(there_and_back(std::int64_t{UINT32_MAX} + 1), std::int64_t{UINT32_MAX});
  EXPECT_EQ(there_and_back(INT64_MAX), std::int64_t{UINT32_MAX});
}

}  // namespace
}  // namespace nfsrdma::nfs3
