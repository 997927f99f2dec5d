// SPDX-License-Identifier: Apache-2.0
#include "client/path_tree.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(NormalisedPath, RemovesEmptyDotAndDotDot) {
  EXPECT_EQ(normalised_path("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(normalised_path("/../.."), "/");
  EXPECT_EQ(normalised_path(""), "/");
}

TEST(LongestPrefix, TakesTheDeepestExportAboveThePath) {
  EXPECT_EQ(longest_prefix({"/", "/srv", "/srv/data"}, "/srv/data/x/y"), "/srv/data");
}

TEST(LongestPrefix, ComparesWholeComponents) {
  EXPECT_EQ(longest_prefix({"/srv/da"}, "/srv/data"), "");
  EXPECT_EQ(longest_prefix({"/srv/data/"}, "/srv/data"), "/srv/data");
}

TEST(LongestPrefix, RootExportCoversEverything) {
  EXPECT_EQ(longest_prefix({"/"}, "/x"), "/");
}

}  // namespace
}  // namespace nfsrdma
