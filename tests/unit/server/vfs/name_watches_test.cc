// SPDX-License-Identifier: Apache-2.0
// Who has a file watched hears of changes of its names and attributes, and of nothing else.
#include "server/vfs/name_watches.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/exported_directory.h"

namespace nfsrdma::test {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Key = NameWatches::Key;

class NameWatchesTest : public testing::Test {
 protected:
  NameWatchesTest() {
    for (const char* name : {"file", "other"})
      std::ofstream(path(name)) << "text";
    auto made = NameWatches::create(*loop_, [this](Key key) { told_.insert(key); });
    EXPECT_TRUE(made.ok());
    if (made.ok()) watches_ = std::move(*made);
  }
  ~NameWatchesTest() override { watches_.reset(); }
  void SetUp() override { ASSERT_NE(watches_, nullptr); }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  bool watch(Key key, const std::string& name) {
    const UniqueFd fd(::open(path(name).c_str(), O_PATH | O_CLOEXEC));
    return watches_->watch(key, fd.get());
  }
  /// Whose files have changed since this was asked last. The kernel queues events as they happen.
  std::set<Key> told() {
    for (int i = 0; i < 3; ++i)
      loop_->turn(Duration::zero());
    return std::exchange(told_, {});
  }

  TemporaryDirectory directory_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::set<Key> told_;
  std::unique_ptr<NameWatches> watches_;
};

TEST_F(NameWatchesTest, ARenameIsTold) {
  ASSERT_TRUE(watch(1, "file"));
  std::filesystem::rename(path("file"), path("new"));
  EXPECT_THAT(told(), UnorderedElementsAre(1));
  std::filesystem::rename(path("new"), path("file"));
  EXPECT_THAT(told(), UnorderedElementsAre(1)) << "it goes on";
}

TEST_F(NameWatchesTest, AnotherNameIsTold) {
  ASSERT_TRUE(watch(1, "file"));
  std::filesystem::create_hard_link(path("file"), path("link"));
  EXPECT_THAT(told(), UnorderedElementsAre(1));
}

TEST_F(NameWatchesTest, AttributesAreTold) {
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(1));
}

TEST_F(NameWatchesTest, ARemovalIsToldThoughTheFileIsOpen) {
  const UniqueFd open(::open(path("file").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_EQ(::unlink(path("file").c_str()), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(1));
}

TEST_F(NameWatchesTest, AFileThatIsReplacedIsTold) {
  ASSERT_TRUE(watch(1, "file"));
  std::filesystem::rename(path("other"), path("file"));
  EXPECT_THAT(told(), UnorderedElementsAre(1));
}

TEST_F(NameWatchesTest, DataIsNotTold) {
  ASSERT_TRUE(watch(1, "file"));
  std::ofstream(path("file"), std::ios::app) << "more";
  std::string text;
  std::ifstream(path("file")) >> text;
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(NameWatchesTest, OtherFilesAreNotTold) {
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_EQ(::chmod(path("other").c_str(), 0600), 0);
  std::filesystem::rename(path("other"), path("third"));
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(NameWatchesTest, AllWhoWatchAFileHearOfIt) {
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_TRUE(watch(2, "file"));
  ASSERT_TRUE(watch(3, "other"));
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(1, 2));
}

/// The kernel has one watch of a file, whoever wants it.
TEST_F(NameWatchesTest, WhoGoesDoesNotTakeTheOthersWatchAlong) {
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_TRUE(watch(2, "file"));
  watches_->drop(1);
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(2));
}

TEST_F(NameWatchesTest, WhoHasGoneHearsNothingAndMayComeBack) {
  ASSERT_TRUE(watch(1, "file"));
  watches_->drop(1);
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  EXPECT_THAT(told(), IsEmpty());
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_EQ(::chmod(path("file").c_str(), 0640), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(1));
}

TEST_F(NameWatchesTest, ByHardLinksItIsOneFile) {
  std::filesystem::create_hard_link(path("file"), path("link"));
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_TRUE(watch(2, "link"));
  std::filesystem::rename(path("link"), path("moved"));
  EXPECT_THAT(told(), UnorderedElementsAre(1, 2));
}

TEST_F(NameWatchesTest, AFileThatIsGoneForGoodLeavesTheOthers) {
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_TRUE(watch(2, "other"));
  ASSERT_EQ(::unlink(path("file").c_str()), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(1));
  watches_->drop(1);
  ASSERT_EQ(::chmod(path("other").c_str(), 0600), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(2));
}

TEST_F(NameWatchesTest, WhatIsNotWatchedMayBeDropped) {
  watches_->drop(7);
  ASSERT_TRUE(watch(1, "file"));
  watches_->drop(1);
  watches_->drop(1);
  ASSERT_TRUE(watch(2, "file"));
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(2));
}

TEST_F(NameWatchesTest, WhatCannotBeWatchedIsSaid) {
  EXPECT_FALSE(watches_->watch(1, -1));
  ASSERT_TRUE(watch(2, "file"));
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  EXPECT_THAT(told(), UnorderedElementsAre(2));
}

TEST_F(NameWatchesTest, ManyChangesAtOnceAreAllRead) {
  for (Key key = 0; key < 300; ++key) {
    const std::string name = "many" + std::to_string(key);
    std::ofstream(path(name)) << "";
    ASSERT_TRUE(watch(key, name));
  }
  for (Key key = 0; key < 300; ++key)
    ASSERT_EQ(::chmod(path("many" + std::to_string(key)).c_str(), 0600), 0);
  EXPECT_EQ(told().size(), 300u);
}

TEST_F(NameWatchesTest, WhoIsToldMayDropAndWatch) {
  told();  // it has been added to the loop
  watches_.reset();
  std::set<Key> heard;
  watches_ = NameWatches::create(*loop_, [this, &heard](Key key) {
               heard.insert(key);
               watches_->drop(key);
               if (key == 1) watch(2, "other");
             }).value();
  ASSERT_TRUE(watch(1, "file"));
  ASSERT_EQ(::chmod(path("file").c_str(), 0600), 0);
  told();
  ASSERT_EQ(::chmod(path("file").c_str(), 0640), 0);
  ASSERT_EQ(::chmod(path("other").c_str(), 0600), 0);
  told();
  EXPECT_THAT(heard, UnorderedElementsAre(1, 2));
}

}  // namespace
}  // namespace nfsrdma::test
