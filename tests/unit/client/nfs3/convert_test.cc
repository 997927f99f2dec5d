// SPDX-License-Identifier: Apache-2.0
// Between NFSv3's wire types and the client's own.
#include "client/nfs3/convert.h"

#include <gtest/gtest.h>

#include <utility>

namespace nfsrdma::nfs3 {
namespace {

using Time = std::pair<std::int64_t, long>;

Time there_and_back(std::int64_t seconds, long nanoseconds = 7) {
  xdr::fattr3 attributes{};
  attributes.mtime = to_wire(timespec{static_cast<time_t>(seconds), nanoseconds});
  const timespec back = from_wire(attributes).mtime;
  return {back.tv_sec, back.tv_nsec};
}

TEST(Nfs3Convert, SecondsAreUnsigned) {
  EXPECT_EQ(there_and_back(0), Time(0, 7));
  EXPECT_EQ(there_and_back(INT32_MAX), Time(INT32_MAX, 7));
  EXPECT_EQ(there_and_back(INT64_C(2524608000)), Time(INT64_C(2524608000), 7)) << "the year 2050";
  EXPECT_EQ(there_and_back(UINT32_MAX), Time(UINT32_MAX, 7));
}

TEST(Nfs3Convert, ATimeThatCannotBeSaidBecomesTheNearestOne) {
  EXPECT_EQ(there_and_back(-1, 999'999'999), Time(0, 0));
  EXPECT_EQ(there_and_back(INT64_MIN), Time(0, 0));
  EXPECT_EQ(there_and_back(std::int64_t{UINT32_MAX} + 1), Time(UINT32_MAX, 0));
  EXPECT_EQ(there_and_back(INT64_MAX), Time(UINT32_MAX, 0));
}

}  // namespace
}  // namespace nfsrdma::nfs3
