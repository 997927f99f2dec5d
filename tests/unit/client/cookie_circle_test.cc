// SPDX-License-Identifier: Apache-2.0
#include "client/cookie_circle.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(CookieCircle, PagesThatLeadOnAreNone) {
  CookieCircle circle;
  for (std::uint64_t cookie = 1; cookie < 10'000; ++cookie) {
    ASSERT_FALSE(circle.closes(cookie * cookie));
    ASSERT_EQ(circle.last(), cookie * cookie);
  }
}

TEST(CookieCircle, APageThatEndsWhereItBegan) {
  for (const std::uint64_t begin : {0, 5}) {
    CookieCircle circle(begin);
    EXPECT_TRUE(circle.closes(begin));
  }
  CookieCircle circle;
  for (const std::uint64_t cookie : {1, 2, 3, 4, 5})
    ASSERT_FALSE(circle.closes(cookie));
  EXPECT_TRUE(circle.closes(5));
}

TEST(CookieCircle, OfAnyLengthAndWhereverItBegins) {
  for (std::uint64_t before = 0; before < 40; ++before) {
    for (std::uint64_t length = 1; length < 40; ++length) {
      CookieCircle circle;
      std::uint64_t pages = 0;
      for (std::uint64_t cookie = 0;; ++pages) {
        ASSERT_LE(pages, 4 * (before + length)) << before << " then " << length;
        cookie = cookie + 1 < before + length ? cookie + 1 : before;
        if (circle.closes(cookie)) break;
      }
      EXPECT_GE(pages + 1, length) << before;
    }
  }
}

}  // namespace
}  // namespace nfsrdma
