// SPDX-License-Identifier: Apache-2.0
// OpenDirectory: the pages of a directory that the kernel reads on and on.
#include <gtest/gtest.h>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

class OpenDirectoryTest : public testing::Test {
 protected:
  /// The answer to a request from `cookie`: entries with these cookies.
  bool page_comes(std::uint64_t cookie, std::initializer_list<std::uint64_t> cookies,
                  bool last = false) {
    directory_.page.clear();
    for (const std::uint64_t one : cookies) {
      ListedName entry;
      entry.cookie = one;
      directory_.page.push_back(std::move(entry));
    }
    directory_.last_page = last;
    return directory_.turn_page(cookie);
  }

  OpenDirectory directory_{};
};

TEST_F(OpenDirectoryTest, GoesOnInThePageAtHand) {
  EXPECT_FALSE(directory_.place_of(0)) << "there is none";
  ASSERT_TRUE(page_comes(0, {3, 5, 9}));
  EXPECT_EQ(directory_.place_of(0), 0u);
  EXPECT_EQ(directory_.place_of(3), 1u);
  EXPECT_EQ(directory_.place_of(9), 3u);
  EXPECT_FALSE(directory_.place_of(4));
}

TEST_F(OpenDirectoryTest, OneCookieForSeveralEntriesLeadsOn) {
  ASSERT_TRUE(page_comes(0, {3, 5, 3, 9, 0}, true));
  EXPECT_EQ(directory_.place_of(3), 3u);
  EXPECT_EQ(directory_.place_of(0), 5u);
}

TEST_F(OpenDirectoryTest, PagesInACircleAreRefused) {
  ASSERT_TRUE(page_comes(0, {7, 7}));
  EXPECT_FALSE(page_comes(7, {7, 7}));
  EXPECT_FALSE(directory_.place_of(7));
  EXPECT_FALSE(page_comes(7, {7, 7})) << "however often it is asked for";
}

TEST_F(OpenDirectoryTest, PagesThatLeadBackAreRefused) {
  bool circle = false;
  std::uint64_t cookie = 0;
  for (int pages = 0; pages < 100 && !circle; ++pages) {
    const std::uint64_t next = cookie < 12 ? cookie + 2 : 4;
    circle = !page_comes(cookie, {next - 1, next});
    cookie = next;
  }
  EXPECT_TRUE(circle);
}

TEST_F(OpenDirectoryTest, WhoGoesBackMayReadAgain) {
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t cookie : {0, 10, 20, 30})
      ASSERT_TRUE(page_comes(cookie, {cookie + 5, cookie + 10}));
    ASSERT_TRUE(page_comes(20, {25, 30}));
    ASSERT_TRUE(page_comes(30, {35, 40}));
    ASSERT_TRUE(page_comes(30, {35, 40}));
  }
}

TEST_F(OpenDirectoryTest, TheLastPageMayHaveAnyCookies) {
  ASSERT_TRUE(page_comes(0, {7}));
  EXPECT_TRUE(page_comes(7, {7}, true));
}

}  // namespace
}  // namespace nfsrdma
