// SPDX-License-Identifier: Apache-2.0
// FileSystem: what is not asked with a delegation, and what happens when it ends.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

class DelegatedFileTest : public FileSystemTest {
 protected:
  void SetUp() override {
    remote_.speak_version_4();
    remote_.delegates = true;
    FileSystemTest::SetUp();
  }
  int open_as(RequestContext context, const NodeRef& node, int flags, bool* keep = nullptr) {
    bool ignored = false;
    return run(fs_->open(std::move(context), node, flags, keep != nullptr ? keep : &ignored));
  }
  void use(const NodeRef& node, int flags = O_RDONLY) {
    ASSERT_EQ(open_as(me_, node, flags), 0);
    close(node, flags);
  }
  /// Calls to the server while `what` runs.
  template <typename What>
  int calls(What what) {
    const auto sum = [this] {
      int all = 0;
      for (const auto& [name, count] : remote_.calls)
        all += name == "ask" ? 0 : count;
      return all;
    };
    const int before = sum();
    what();
    return sum() - before;
  }
};

TEST_F(DelegatedFileTest, IsAskedForAtTheSecondOpen) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  EXPECT_EQ(remote_.calls["ask"], 0);
  use(node);
  EXPECT_EQ(remote_.calls["ask"], 1);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kRead);
  EXPECT_EQ(calls([&] {
              for (int i = 0; i < 5; ++i) {
                use(node);
                EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
              }
            }),
            0);
}

TEST_F(DelegatedFileTest, AttributesAreGoodForLong) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  EXPECT_LE(fs_->attribute_seconds(*node), 60);
  use(node);
  EXPECT_GE(fs_->attribute_seconds(*node), 600);
}

TEST_F(DelegatedFileTest, RightsAreAskedForOncePerUser) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  file->denied[1000] = access_bits::kRead;
  EXPECT_EQ(open_as(other_, node, O_RDONLY), EACCES) << "not by the promise that another has";
  EXPECT_EQ(calls([&] { EXPECT_EQ(open_as(other_, node, O_RDONLY), EACCES); }), 0);
}

TEST_F(DelegatedFileTest, ARecallEndsWhatWasBelieved) {
  auto file = remote_.add_file("a", "old");
  NodeRef node = look("a");
  use(node);
  use(node);
  outdated_.clear();
  remote_.recall(*file);
  EXPECT_EQ(outdated_, std::vector{node->id});
  EXPECT_EQ(fs_->attribute_seconds(*node), 0);
  remote_.write_elsewhere(*file, "newer");
  bool keep = true;
  EXPECT_EQ(open_as(me_, node, O_RDONLY, &keep), 0);
  EXPECT_EQ(invalidated_, std::vector{node->id});
  EXPECT_EQ(node->attributes.size, 5u);
  EXPECT_EQ(remote_.calls["give back"], 1);
}

TEST_F(DelegatedFileTest, OneThatOthersWantIsNotAskedForAtOnce) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  remote_.recall(*file);
  const int before = remote_.calls["ask"];
  use(node);
  use(node);
  EXPECT_EQ(remote_.calls["ask"], before);
}

TEST_F(DelegatedFileTest, WritersGetABetterOne) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  use(node, O_RDWR);
  EXPECT_EQ(remote_.calls["give way"], 1);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kNone);
  use(node, O_RDWR);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kWrite);
  EXPECT_EQ(calls([&] { use(node, O_RDWR); }), 0);
  EXPECT_EQ(calls([&] { use(node); }), 0);
}

TEST_F(DelegatedFileTest, DataIsKeptBackAsFarAsTheServerAllows) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node, O_RDWR);
  use(node, O_RDWR);
  EXPECT_FALSE(fs_->may_keep_back(*node));
  remote_.may_keep_back = 6;
  EXPECT_TRUE(fs_->may_keep_back(*node));
  ASSERT_EQ(write(node, 0, "longer text"), 0);
  EXPECT_FALSE(fs_->may_keep_back(*node));
}

TEST_F(DelegatedFileTest, WhatWasKeptBackIsStableBeforeItIsGivenBack) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node, O_RDWR);
  use(node, O_RDWR);
  ASSERT_EQ(write(node, 0, "mine"), 0);
  remote_.log.clear();
  remote_.hold();
  remote_.recall(*file);
  remote_.release();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "mine");
  ASSERT_FALSE(remote_.log.empty());
  EXPECT_EQ(remote_.log.back(), "give back mine");
  EXPECT_EQ(remote_.log.front().substr(0, 5), "write");
}

/// Servers keep WRITEs waiting for a read delegation, even of who writes.
TEST_F(DelegatedFileTest, AReadOneGoesBackBeforeAnythingIsWritten) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  ASSERT_EQ(open_as(me_, node, O_WRONLY), 0);
  EXPECT_EQ(remote_.calls["give way"], 1);
  EXPECT_LE(fs_->attribute_seconds(*node), 60);
  EXPECT_EQ(write(node, 0, "more"), 0);
  EXPECT_EQ(fsync(node), 0);
  close(node, O_WRONLY);
}

TEST_F(DelegatedFileTest, AReadOneGoesBackBeforeTheFileIsCut) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  SetAttributes set;
  set.mode = 0600;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_EQ(remote_.calls["give way"], 0);
  set = {};
  set.size = 2;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_EQ(remote_.calls["give way"], 1);
}

/// It came to a reader while somebody wrote here, and the kernel may have pages locked.
TEST_F(DelegatedFileTest, ARecalledReadOneWaitsNeitherForDataNorForTheKernel) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  ASSERT_EQ(open_as(me_, node, O_WRONLY), 0);
  use(node);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kRead);
  hold_kernel_ = true;
  remote_.hold();
  remote_.log.clear();
  remote_.delegated.clear();  // it is on its way here
  ASSERT_EQ(write(node, 0, "mine"), 0);
  fs_->write_back_all();
  ASSERT_FALSE(remote_.log.empty());
  remote_.delegated[node->handle] = DelegationKind::kRead;
  remote_.recall(*file);
  EXPECT_EQ(remote_.log.back(), "give way");
  remote_.release();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "mine");
  close(node, O_WRONLY);
}

TEST_F(DelegatedFileTest, WhoAsksHearsOfDataThatIsStillHere) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node, O_RDWR);
  use(node, O_RDWR);
  const auto before = remote_.holder->held_attributes(file->handle);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->size, 4u);
  EXPECT_EQ(before->change, node->attributes.change);
  remote_.hold();
  ASSERT_EQ(write(node, 4, " and more"), 0);
  const auto after = remote_.holder->held_attributes(file->handle);
  EXPECT_EQ(after->size, 13u);
  EXPECT_NE(after->change, before->change);
  remote_.release();
  const std::array<std::byte, 1> nobody{std::byte{99}};
  EXPECT_FALSE(remote_.holder->held_attributes(FileHandle(nobody)).has_value());
}

TEST_F(DelegatedFileTest, ALockNeedNotEmptyTheCaches) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  const FileLock wanted{7, LockKind::kWrite, {0, 9}};
  use(node, O_RDWR);
  ASSERT_EQ(open_as(me_, node, O_RDWR), 0);
  invalidated_.clear();
  ASSERT_EQ(run(fs_->lock(me_, node, wanted, LockWait::kNo, O_RDWR, 1)), 0);
  EXPECT_TRUE(invalidated_.empty());
  ASSERT_EQ(run(fs_->unlock(me_, node, wanted)), 0);
  remote_.delegated.clear();
  ASSERT_EQ(run(fs_->lock(me_, node, wanted, LockWait::kNo, O_RDWR, 1)), 0);
  EXPECT_EQ(invalidated_, std::vector{node->id});
  ASSERT_EQ(run(fs_->unlock(me_, node, wanted)), 0);
  close(node);
}

TEST_F(DelegatedFileTest, OfAFileThatIsRemovedHereItGoesBack) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_EQ(remote_.calls["give back"], 1);
}

TEST_F(DelegatedFileTest, OfAFileThatTheKernelHasForgottenItGoesBack) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  use(node);
  fs_->nodes.forget(node->id, node->lookups);
  node.reset();
  fs_->root->names.clear();
  remote_.recall(*file);
  EXPECT_EQ(remote_.calls["give back"], 1);
}

/// Version 4.0: a change without a stateid is anybody's, and would have ours recalled.
class DelegatedByNameTest : public DelegatedFileTest {
 protected:
  void SetUp() override {
    DelegatedFileTest::SetUp();
    remote_.by_name = true;
  }
  NodeRef delegated(const std::string& name) {
    remote_.add_file(name, "data");
    NodeRef node = look(name);
    use(node);
    use(node);
    EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kRead);
    return node;
  }
};

TEST_F(DelegatedByNameTest, ItIsSaidWhereTheFileIs) {
  (void)delegated("a");
  EXPECT_EQ(remote_.place_of_open, "a");
}

TEST_F(DelegatedByNameTest, AWriterHasAReadOneGivenBackBeforeItWrites) {
  NodeRef node = delegated("a");
  ASSERT_EQ(open_as(me_, node, O_WRONLY), 0);
  EXPECT_EQ(remote_.calls["give way"], 1);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kNone);
  EXPECT_LE(fs_->attribute_seconds(*node), 60);
  EXPECT_EQ(write(node, 0, "more"), 0);
  close(node, O_WRONLY);
}

TEST_F(DelegatedByNameTest, NoReadOneIsAskedForWhileSomebodyWrites) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  ASSERT_EQ(open_as(me_, node, O_WRONLY), 0);
  for (int i = 0; i < 3; ++i)
    use(node);
  EXPECT_EQ(remote_.calls["ask"], 0);
  close(node, O_WRONLY);
  use(node);
  EXPECT_EQ(remote_.calls["ask"], 1);
}

TEST_F(DelegatedByNameTest, AWriterIsGivenOneToWrite) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node, O_WRONLY);
  use(node, O_WRONLY);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kWrite);
  use(node, O_WRONLY);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kWrite) << "it writes by that";
  EXPECT_EQ(remote_.calls["give way"], 0);
}

TEST_F(DelegatedByNameTest, OneThatAWriterHasOvertakenGoesBack) {
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  use(node);
  remote_.hold();
  int read = -1, written = -1;
  bool keep = false;
  start(fs_->open(me_, node, O_RDONLY, &keep), &read);
  start(fs_->open(me_, node, O_WRONLY, &keep), &written);
  EXPECT_EQ(remote_.calls["ask"], 1);
  remote_.release();
  for (int i = 0; i < 100 && (read < 0 || written < 0); ++i)
    loop_->turn(std::chrono::milliseconds(1));
  EXPECT_EQ(read, 0);
  EXPECT_EQ(written, 0);
  EXPECT_EQ(remote_.delegation(node->handle), DelegationKind::kNone);
  EXPECT_EQ(write(node, 0, "more"), 0);
  close(node, O_WRONLY);
  close(node, O_RDONLY);
}

TEST_F(DelegatedByNameTest, AnyOtherChangeHasItGivenBackFirst) {
  // MemoryRemote fails the test when it is not.
  SetAttributes set;
  set.mode = 0600;
  EXPECT_EQ(run(fs_->setattr(me_, delegated("a"), set)), 0);
  (void)delegated("b");
  EXPECT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "c")), 0);
  (void)delegated("d");
  EXPECT_EQ(run(fs_->rename(me_, fs_->root, "c", fs_->root, "d")), 0);
  EXPECT_EQ(run(fs_->link(me_, delegated("e"), fs_->root, "f")), 0);
  (void)delegated("g");
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "g")), 0);
  NodeRef open = delegated("h");
  ASSERT_EQ(open_as(me_, open, O_RDONLY), 0);
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "h")), 0) << "it gets another name";
  close(open, O_RDONLY);
}

TEST_F(DelegatedFileTest, NotWithoutCachingOfAttributes) {
  FileSystemOptions options;
  options.attributes.enabled = false;
  build(options);
  remote_.add_file("a", "data");
  NodeRef node = look("a");
  for (int i = 0; i < 3; ++i)
    use(node);
  EXPECT_EQ(remote_.calls["ask"], 0);
}

}  // namespace
}  // namespace nfsrdma
