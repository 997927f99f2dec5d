// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/waits.h"

#include <gmock/gmock.h>

namespace nfsrdma::nlm {
namespace {

using testing::ElementsAre;

Wish wish(nfs4::ClientId client, const std::string& owner, std::uint64_t first = 0,
          std::uint64_t last = 9) {
  return {client, owner, LockKind::kWrite, {first, last}};
}

Wait wait_for(const nfs4::FileKey& file, const Wish& what) {
  Wait out;
  out.wish = what;
  out.file = file;
  return out;
}

std::vector<std::string> owners(const Waits& waits, const nfs4::FileKey& file) {
  std::vector<std::string> out;
  for (const Wait& one : waits.of_file(file))
    out.push_back(one.wish.owner);
  return out;
}

TEST(NlmWaits, ComeInTheOrderInWhichTheyAsked) {
  Waits waits({});
  waits.add(wait_for("f", wish(1, "a")));
  waits.add(wait_for("f", wish(2, "b")));
  waits.add(wait_for("g", wish(2, "c")));
  EXPECT_THAT(owners(waits, "f"), ElementsAre("a", "b"));
  EXPECT_EQ(waits.size(), 3u);
}

TEST(NlmWaits, WhoAsksAgainKeepsItsPlace) {
  Waits waits({});
  waits.add(wait_for("f", wish(1, "a")));
  waits.add(wait_for("f", wish(2, "b")));
  waits.add(wait_for("f", wish(1, "a")));
  EXPECT_THAT(owners(waits, "f"), ElementsAre("a", "b"));
}

TEST(NlmWaits, CancelTakesOutTheVerySameWish) {
  Waits waits({});
  waits.add(wait_for("f", wish(1, "a")));
  EXPECT_FALSE(waits.cancel("f", wish(1, "a", 0, 8)));
  EXPECT_FALSE(waits.cancel("g", wish(1, "a")));
  EXPECT_FALSE(waits.cancel("f", wish(2, "a")));
  EXPECT_TRUE(waits.cancel("f", wish(1, "a")));
  EXPECT_TRUE(waits.empty());
  EXPECT_FALSE(waits.has_file("f"));
}

TEST(NlmWaits, UnlockTakesOutWhatIsWithinItsRange) {
  Waits waits({});
  waits.add(wait_for("f", wish(1, "a", 0, 9)));
  waits.add(wait_for("f", wish(1, "a", 5, 20)));
  waits.add(wait_for("f", wish(1, "b", 0, 9)));
  waits.remove_within("f", wish(1, "a", 0, 10));
  EXPECT_THAT(owners(waits, "f"), ElementsAre("a", "b"));
}

TEST(NlmWaits, OfAClientThatIsGoneNothingStays) {
  Waits waits({});
  waits.add(wait_for("f", wish(1, "a")));
  waits.add(wait_for("g", wish(1, "b")));
  waits.add(wait_for("g", wish(2, "c")));
  waits.end_client(1);
  EXPECT_FALSE(waits.has_file("f"));
  EXPECT_THAT(owners(waits, "g"), ElementsAre("c"));
}

TEST(NlmWaits, AreBoundedByClientByFileAndAltogether) {
  Waits waits({.per_client = 2, .all = 4, .per_file = 3});
  EXPECT_TRUE(waits.add(wait_for("f", wish(1, "a"))));
  EXPECT_TRUE(waits.add(wait_for("f", wish(1, "b"))));
  EXPECT_FALSE(waits.add(wait_for("g", wish(1, "c"))));
  EXPECT_FALSE(waits.has_file("g"));
  EXPECT_TRUE(waits.add(wait_for("f", wish(2, "d"))));
  EXPECT_FALSE(waits.add(wait_for("f", wish(3, "e"))));
  EXPECT_TRUE(waits.add(wait_for("g", wish(3, "e"))));
  EXPECT_FALSE(waits.add(wait_for("h", wish(4, "f"))));
  // Room that was given back is there again.
  waits.end_client(1);
  EXPECT_TRUE(waits.add(wait_for("h", wish(4, "f"))));
}

TEST(NlmWaits, ACircleOfTwoIsSeen) {
  Waits waits({});
  // b waits in f for a, and a is about to wait in g for b.
  waits.add(wait_for("f", wish(1, "b")));
  const auto holder = [](const nfs4::FileKey& file, const Wish&) {
    return file == "f" ? wish(1, "a") : wish(1, "b");
  };
  EXPECT_TRUE(waits.closes_circle("g", wish(1, "a"), holder));
  EXPECT_FALSE(waits.closes_circle("g", wish(2, "a"), holder)) << "another host's";
}

TEST(NlmWaits, WhoWaitsForSomebodyWhoDoesNotWaitIsInNoCircle) {
  Waits waits({});
  const auto holder = [](const nfs4::FileKey&, const Wish&) { return wish(1, "b"); };
  EXPECT_FALSE(waits.closes_circle("g", wish(1, "a"), holder));
}

TEST(NlmWaits, BehindLocalHoldersIsWhatIsMarked) {
  Waits waits({});
  Wait marked = wait_for("f", wish(1, "a"));
  marked.local_holder = true;
  waits.add(std::move(marked));
  waits.add(wait_for("g", wish(1, "b")));
  EXPECT_THAT(waits.behind_local_holders(), ElementsAre("f"));
}

}  // namespace
}  // namespace nfsrdma::nlm
