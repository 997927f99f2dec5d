// SPDX-License-Identifier: Apache-2.0
// Names that are read ahead of those who look at one object after another: when, how many, and that
// they hide nothing that was changed meanwhile.
#include "client/fuse/names_ahead.h"

#include <fmt/format.h>

#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart = TimePoint(seconds(1000));

NamesAhead::Nodes nodes(std::size_t count) {
  return NamesAhead::Nodes(count);
}
void miss(NamesAhead& ahead, unsigned times, TimePoint now = kStart) {
  for (unsigned i = 0; i < times; ++i)
    ahead.missed(now);
}

TEST(NamesAhead, CostsNoMoreThanTheLookupsDid) {
  NamesAhead ahead;
  miss(ahead, NamesAhead::kBegin - 1);
  EXPECT_FALSE(ahead.due(kStart));
  miss(ahead, 1);
  EXPECT_TRUE(ahead.due(kStart));
  ahead.take(nodes(NamesAhead::kBegin * NamesAhead::kEntriesForOne), kStart);
  EXPECT_FALSE(ahead.due(kStart));
  miss(ahead, 1);
  EXPECT_TRUE(ahead.due(kStart));
}

TEST(NamesAhead, WhatNobodyAsksForIsGivenUp) {
  NamesAhead ahead;
  miss(ahead, 100'000);
  ahead.take(nodes(NamesAhead::kMostUnused), kStart);
  EXPECT_FALSE(ahead.due(kStart));
  ahead.hit(kStart);
  EXPECT_TRUE(ahead.due(kStart));
}

TEST(NamesAhead, APauseBeginsAnew) {
  NamesAhead ahead;
  for (unsigned i = 0; i < 100; ++i)
    miss(ahead, 1, kStart + i * milliseconds(1100));
  EXPECT_FALSE(ahead.due(kStart + seconds(200)));
}

TEST(NamesAhead, NothingIsBelievedForLong) {
  NamesAhead ahead;
  ahead.take(nodes(1), kStart);
  ahead.take(nodes(1), kStart + milliseconds(500));
  EXPECT_FALSE(ahead.forget(kStart + milliseconds(999)));
  EXPECT_FALSE(ahead.forget(kStart + milliseconds(1000)));
  EXPECT_TRUE(ahead.forget(kStart + milliseconds(1500)));
}

TEST(NamesAhead, TheEndOfTheDirectoryIsNotReadAgainAtOnce) {
  NamesAhead ahead;
  miss(ahead, 100);
  ahead.cookie = ahead.verifier = 7;
  ahead.start_over(kStart);
  EXPECT_FALSE(ahead.due(kStart));
  EXPECT_EQ(ahead.cookie + ahead.verifier, 0u);
  EXPECT_TRUE(ahead.due(kStart + seconds(1)));
  ahead.refused(kStart);
  EXPECT_FALSE(ahead.due(kStart + seconds(29)));
}

class ReadingAhead : public FileSystemTest {
 protected:
  static constexpr int kFiles = 60;

  void SetUp() override {
    FileSystemTest::SetUp();
    for (int i = 0; i < kFiles; ++i)
      remote_.add_file(name(i), "data");
    age(fs_->root);
  }
  static std::string name(int i) { return fmt::format("f{:02}", i); }
  void look_at_all() {
    for (int i = 0; i < kFiles; ++i)
      EXPECT_NE(look(name(i)), nullptr) << name(i);
  }
  int lookups() { return remote_.calls["lookup"]; }
  int listings() { return remote_.calls["readdir"]; }
};

TEST_F(ReadingAhead, WhoLooksAtOneAfterAnotherIsToldOfTheRest) {
  look_at_all();
  EXPECT_EQ(listings(), 1);
  EXPECT_EQ(lookups(), static_cast<int>(NamesAhead::kBegin));
  EXPECT_EQ(look("f59")->attributes.size, 4u);
}

TEST_F(ReadingAhead, AFewAreNotEnough) {
  for (int i = 0; i < static_cast<int>(NamesAhead::kBegin) - 1; ++i)
    look(name(i));
  EXPECT_EQ(listings(), 0);
}

TEST_F(ReadingAhead, NamesThatAreNotThereAreAskedFor) {
  for (int i = 0; i < 50; ++i)
    look(fmt::format("absent{}", i));
  EXPECT_EQ(listings(), 0);
  look_at_all();
  const int before = lookups();
  // Who made it has told us by other ways, perhaps.
  remote_.add_file("new");
  EXPECT_NE(look("new"), nullptr);
  EXPECT_EQ(lookups(), before + 1);
}

TEST_F(ReadingAhead, WhoRemovesOneAfterAnotherIsToldOfTheRest) {
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_NE(look(name(i)), nullptr);
    EXPECT_EQ(run(fs_->remove(me_, fs_->root, name(i))), 0);
    EXPECT_EQ(look(name(i)), nullptr);
  }
  EXPECT_EQ(lookups(), static_cast<int>(NamesAhead::kBegin));
  EXPECT_TRUE(remote_.root_object()->names.empty());
}

TEST_F(ReadingAhead, WhatNobodyAskedForIsForgotten) {
  look_at_all();
  const std::size_t before = fs_->nodes.alive();
  for (int i = 0; i < kFiles; ++i)
    remote_.add_file("g" + name(i));
  for (int i = 0; i < static_cast<int>(NamesAhead::kBegin); ++i)
    look("g" + name(i));
  // One listing a second.
  EXPECT_EQ(listings(), 1);
  EXPECT_EQ(fs_->nodes.alive(), before + NamesAhead::kBegin);
}

TEST_F(ReadingAhead, WhoMayNotReadTheDirectoryGoesOnWithout) {
  remote_.fail_listings_with = EACCES;
  look_at_all();
  EXPECT_EQ(lookups(), kFiles);
  EXPECT_EQ(listings(), 1);
}

TEST_F(ReadingAhead, NotWithoutCaches) {
  FileSystemOptions none;
  none.attributes.enabled = false;
  FileSystemOptions zero;
  zero.attributes.regular_min = seconds(0);
  FileSystemOptions off;
  off.read_names_ahead = false;
  FileSystemOptions no_names;
  no_names.cache_names = false;
  for (const FileSystemOptions& options : {none, zero, off, no_names}) {
    build(options);
    look_at_all();
    EXPECT_EQ(listings(), 0);
  }
}

TEST(NameCache, LearnsNothingOfWhatWasChangedMeanwhile) {
  NodeTable table;
  const std::array<std::byte, 1> bytes{std::byte{1}};
  const NodeRef node = table.obtain(FileHandle(bytes));
  NameCache names;
  const std::uint64_t asked = names.clock();
  names.store_absent("removed");
  names.forget("doubtful");
  names.store("made", node);
  names.learn("removed", node, asked);
  names.learn("doubtful", node, asked);
  names.learn_absent("made", asked);
  names.learn("other", node, asked);
  EXPECT_TRUE(names.find("removed").known);
  EXPECT_EQ(names.find("removed").node, nullptr);
  EXPECT_FALSE(names.find("doubtful").known);
  EXPECT_EQ(names.find("made").node, node);
  EXPECT_EQ(names.find("other").node, node);
  EXPECT_TRUE(names.current(asked));
  names.clear();
  EXPECT_FALSE(names.current(asked));
  EXPECT_FALSE(names.find("other").known);
  names.learn("removed", node, names.clock());
  EXPECT_EQ(names.find("removed").node, node);
}

TEST(NameCache, MakesRoomForNewNamesAlone) {
  NameCache names;
  for (std::size_t i = 0; i < NameCache::kMostNames; ++i)
    names.store_absent(std::to_string(i));
  names.store_absent("0");
  names.note("1");
  EXPECT_TRUE(names.find("2").known);
  EXPECT_FALSE(names.take_overflow());
  names.note("one more");
  EXPECT_FALSE(names.find("2").known);
  EXPECT_TRUE(names.take_overflow());
  EXPECT_FALSE(names.take_overflow());
}

}  // namespace
}  // namespace nfsrdma
