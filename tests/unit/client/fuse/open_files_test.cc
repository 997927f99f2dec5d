// SPDX-License-Identifier: Apache-2.0
// FileSystem: the server has a file open for as long as anybody here has.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

using Log = std::vector<std::string>;

class OpenFilesTest : public FileSystemTest {
 protected:
  void SetUp() override {
    remote_.speak_version_4();
    remote_.keeps_open = true;
    FileSystemTest::SetUp();
    remote_.add_file("a", "data");
    node_ = look("a");
    remote_.log.clear();
  }
  void TearDown() override {
    node_.reset();
    FileSystemTest::TearDown();
  }
  int open(int flags = O_RDONLY) {
    bool keep = false;
    return run(fs_->open(me_, node_, flags, &keep));
  }
  void close(int flags = O_RDONLY) { FileSystemTest::close(node_, flags); }
  /// What the server was told, without reading and writing.
  Log told() {
    Log log = std::exchange(remote_.log, {});
    std::erase_if(log, [](const std::string& one) { return one.starts_with("write"); });
    return log;
  }
  void deny(std::uint32_t rights) { remote_.root_object()->names["a"]->denied[0] = rights; }

  NodeRef node_;
};

TEST_F(OpenFilesTest, TheLastCloseClosesIt) {
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(open(O_RDWR), 0);
  EXPECT_EQ(told(), (Log{"open", "open"}));
  close();
  EXPECT_EQ(told(), Log{});
  close(O_RDWR);
  EXPECT_EQ(told(), Log{"close"});
}

TEST_F(OpenFilesTest, WhoOpenedAFileToReadIsAskedForTheRightToWriteBeforeItIsCut) {
  EXPECT_EQ(run(fs_->permit_cut(me_, node_, O_RDONLY)), 0);
  deny(access_bits::kModify);
  EXPECT_EQ(open(), 0);  // asks for all rights once more
  remote_.calls.clear();
  EXPECT_EQ(run(fs_->permit_cut(me_, node_, O_RDONLY)), EACCES);
  EXPECT_EQ(remote_.calls, (std::map<std::string, int>{})) << "the open's answer said it all";
  EXPECT_EQ(run(fs_->permit_cut(me_, node_, O_WRONLY)), 0) << "was allowed at open(2)";
  EXPECT_EQ(run(fs_->permit_cut(me_, node_, O_RDWR)), 0);
  close();
}

TEST_F(OpenFilesTest, TheServerHearsWhatNobodyUsesAnyMore) {
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(open(O_RDWR), 0);
  EXPECT_EQ(open(O_WRONLY), 0);
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node_, O_RDONLY, &keep)), 0);
  told();
  close(O_RDWR);
  EXPECT_EQ(told(), Log{});
  close(O_WRONLY);
  EXPECT_EQ(told(), Log{"narrow 0 to 1"});
  fs_->close(node_, other_.caller, O_RDONLY);
  EXPECT_EQ(told(), Log{"narrow 1000 to 0"});
  // Programs are read.
  EXPECT_EQ(open(O_RDWR), 0);
  EXPECT_EQ(open(0x20), 0);
  told();
  close();
  close(O_RDWR);
  EXPECT_EQ(told(), Log{"narrow 0 to 1"});
  close(0x20);
  EXPECT_EQ(told(), Log{"close"});
}

TEST_F(OpenFilesTest, DataGoesInFrontOfTheNarrowing) {
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(open(O_RDWR), 0);
  EXPECT_EQ(write(node_, 0, "more"), 0);
  remote_.log.clear();
  close(O_RDWR);
  run(fs_->getattr(me_, node_));
  EXPECT_EQ(remote_.root_object()->names["a"]->stable_data, "more");
  EXPECT_EQ(remote_.log.back(), "narrow 0 to 1");
  close();
}

TEST_F(OpenFilesTest, DataGoesInFrontOfTheClose) {
  EXPECT_EQ(open(O_RDWR), 0);
  EXPECT_EQ(write(node_, 0, "more"), 0);
  remote_.log.clear();
  close(O_RDWR);
  run(fs_->finish());
  ASSERT_FALSE(remote_.log.empty());
  EXPECT_EQ(remote_.log.back(), "close");
  EXPECT_EQ(remote_.root_object()->names["a"]->stable_data, "more");
}

/// Of a CREATE that the server has answered without the file's handle.
Task<Result<CreateResult>> made_and_not_told(Remote&) {
  co_return CreateResult{};
}

TEST_F(OpenFilesTest, WhatIsNoFileIsNotOpenedByWhoWouldHaveMadeOne) {
  const FileHandle root = fs_->root->handle;
  const std::string name = "link", text = "somewhere";
  ASSERT_TRUE(run(remote_.symlink(me_, root, name, text)).ok());
  const SetAttributes set;
  const FileSystem::Maker makers[] = {
      [&](Remote& remote) {
        return remote.create_open(me_, root, name, CreateMode::kGuarded, set, access_bits::kRead);
      },
      made_and_not_told};
  for (const FileSystem::Maker& maker : makers) {
    told();
    remote_.root_object()->names[name]->held = true;  // as an OPEN has it that is not told of
    NodeRef node;
    bool keep = false;
    EXPECT_EQ(run(fs_->make_open(me_, fs_->root, name, maker, O_RDWR, &node, &keep)), ESTALE);
    EXPECT_EQ(node->opens, 0u);
    EXPECT_EQ(told(), Log{"close"});
  }
}

TEST_F(OpenFilesTest, WhoComesLateOpensWhatSomebodyElseHasMade) {
  const FileHandle root = fs_->root->handle;
  const std::string name = "a";
  const SetAttributes set;
  const FileSystem::Maker maker = [&](Remote& remote) {
    return remote.create_open(me_, root, name, CreateMode::kGuarded, set, access_bits::kModify);
  };
  NodeRef node;
  bool keep = false;
  EXPECT_EQ(run(fs_->make_open(me_, fs_->root, name, maker, O_RDWR | O_TRUNC, &node, &keep)), 0);
  EXPECT_EQ(node, node_);
  EXPECT_EQ(node->opens, 1u);
  EXPECT_EQ(remote_.root_object()->names["a"]->data, "");
  close(O_RDWR);
}

TEST_F(OpenFilesTest, WhoIsRefusedLeavesItClosed) {
  deny(access_bits::kModify);
  EXPECT_EQ(open(O_RDWR), EACCES);
  EXPECT_EQ(told(), (Log{"open", "close"}));
  // But not under somebody who has it open.
  EXPECT_EQ(open(O_RDONLY), 0);
  EXPECT_EQ(open(O_RDWR), EACCES);
  EXPECT_EQ(told(), (Log{"open", "open", "narrow 0 to 1"}));
  close();
  EXPECT_EQ(told(), Log{"close"});
}

TEST_F(OpenFilesTest, WhoIsOpeningItKeepsItFromBeingClosed) {
  for (const bool refused : {false, true}) {
    EXPECT_EQ(open(), 0);
    if (refused) deny(access_bits::kRead);
    remote_.hold();
    int error = -1;
    bool keep = false;
    start(fs_->open(me_, node_, O_RDONLY, &keep), &error);
    told();
    close();
    EXPECT_EQ(told(), Log{});
    remote_.release();
    run(fs_->getattr(me_, node_));
    EXPECT_EQ(error, refused ? EACCES : 0);
    if (!refused) close();
    EXPECT_EQ(told(), (Log{"open", "close"}));
  }
}

TEST_F(OpenFilesTest, ADelegationIsNotAskedTwice) {
  remote_.delegates = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(open(), 0);
    close();
  }
  EXPECT_EQ(told(), (Log{"open", "close", "open", "close"}));
  EXPECT_EQ(open(), 0);
  close();
  EXPECT_EQ(told(), (Log{"note open", "close"}));
}

}  // namespace
}  // namespace nfsrdma
