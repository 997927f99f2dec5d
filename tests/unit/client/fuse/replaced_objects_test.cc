// SPDX-License-Identifier: Apache-2.0
// FileSystem: objects that others replaced or removed, servers that do not answer.
#include "tests/unit/client/fuse/file_system_fixture.h"

#include <algorithm>

namespace nfsrdma {
namespace {

// --- what another client replaced ---

/// How the server answers for a directory that is gone.
class ReplacedDirectoryTest : public FileSystemTest, public testing::WithParamInterface<bool> {
 protected:
  void TearDown() override {
    kept_.clear();  // before the file system that they belong to
    FileSystemTest::TearDown();
  }
  /// d1/d2/.../dN with a file, known to the mount; then all of it is replaced by the same with
  /// other contents. Gives the mount's old node of the deepest directory.
  NodeRef replaced(int levels) {
    make_tree(levels, "old");
    NodeRef node = fs_->root;
    for (int i = 1; i <= levels; ++i) {
      NodeRef next;
      EXPECT_EQ(run(fs_->lookup(me_, node, "d" + std::to_string(i), &next)), 0);
      kept_.push_back(next);
      node = next;
    }
    remote_.remove_elsewhere(*remote_.root_object(), "d1", GetParam());
    make_tree(levels, "new");
    return node;
  }
  void make_tree(int levels, const std::string& data) {
    deepest_ = remote_.root_object();
    for (int i = 1; i <= levels; ++i) {
      deepest_ = remote_.add_directory(*deepest_, "d" + std::to_string(i));
    }
    remote_.add_file_in(*deepest_, "file", data);
  }
  std::vector<NodeRef> kept_;
  MemoryRemote::ObjectRef deepest_;
};
INSTANTIATE_TEST_SUITE_P(, ReplacedDirectoryTest, testing::Bool(), [](const auto& row) {
  return std::string(row.param ? "StillKnown" : "Stale");
});

TEST_P(ReplacedDirectoryTest, ALookupIsAnsweredByItsSuccessor) {
  for (int levels : {1, 2, 3, 4}) {
    NodeRef node = replaced(levels);
    NodeRef found;
    ASSERT_EQ(run(fs_->lookup(me_, node, "file", &found)), 0) << levels;
    EXPECT_EQ(read(found, 0, 10), "new");
    EXPECT_EQ(fs_->entry_seconds(*node), 0) << "the kernel must not keep it";
    remote_.remove_elsewhere(*remote_.root_object(), "d1", GetParam());
  }
}

TEST_P(ReplacedDirectoryTest, AnAbsentNameIsAbsentThere) {
  NodeRef node = replaced(3);
  NodeRef found;
  EXPECT_EQ(run(fs_->lookup(me_, node, "nothing", &found)), ENOENT);
  EXPECT_EQ(fs_->entry_seconds(*node), 0);
}

TEST_P(ReplacedDirectoryTest, ChangingAFileInItIsStaleUnlessItIsOpenHere) {
  NodeRef node = replaced(2);
  NodeRef file;
  ASSERT_EQ(run(fs_->lookup(me_, node, "file", &file)), 0);
  remote_.remove_elsewhere(*remote_.root_object(), "d1", GetParam());
  SetAttributes mode;
  mode.mode = 0640;
  EXPECT_EQ(run(fs_->setattr(me_, file, mode)), ESTALE);
  EXPECT_EQ(run(fs_->set_xattr(me_, file, "user.a", "b", XattrThere::kEither)), ESTALE);
  if (!GetParam()) return;
  fs_->adopt_open(*file, me_.caller, O_RDWR);
  EXPECT_EQ(run(fs_->setattr(me_, file, mode)), 0) << "fchmod(2)";
  close(file);
}

TEST_P(ReplacedDirectoryTest, MakingSomethingInItIsStaleSoThatTheKernelGoesTheWayAgain) {
  NodeRef node = replaced(3);
  NodeRef made;
  auto maker = [&](Remote& remote) {
    return remote.create(me_, node->handle, "x", CreateMode::kGuarded, {});
  };
  EXPECT_EQ(run(fs_->make(me_, node, "x", maker, &made)), ESTALE);
  NodeRef again;
  ASSERT_EQ(run(fs_->lookup(me_, fs_->root, "d1", &again)), 0);
  EXPECT_NE(again, kept_[0]) << "found by name, not remembered";
}

TEST_P(ReplacedDirectoryTest, OpeningItIsStaleAndItsParentIsAskedAgain) {
  NodeRef node = replaced(4);
  EXPECT_EQ(run(fs_->permit(me_, node, access_bits::kRead, true)), ESTALE);
  NodeRef at = fs_->root;
  for (int i = 1; i <= 4; ++i) {
    NodeRef next;
    ASSERT_EQ(run(fs_->lookup(me_, at, "d" + std::to_string(i), &next)), 0);
    at = next;
  }
  EXPECT_NE(at, node);
}

TEST_P(ReplacedDirectoryTest, WithoutASuccessorTheNameIsAbsent) {
  NodeRef node = replaced(2);
  remote_.remove_elsewhere(*remote_.root_object(), "d1", GetParam());
  NodeRef found;
  EXPECT_EQ(run(fs_->lookup(me_, node, "file", &found)), ENOENT);
}

TEST_F(FileSystemTest, OpeningAFileThatWasReplacedIsStale) {
  remote_.add_file("a", "old");
  NodeRef node = look("a");
  remote_.remove_elsewhere(*remote_.root_object(), "a", true);
  remote_.add_file("a", "new");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), ESTALE);
  NodeRef found = look("a");
  EXPECT_EQ(last_error_, 0);
  EXPECT_NE(found, node);
}

TEST_F(FileSystemTest, AFileRemovedElsewhereStaysUsableWhileItIsOpen) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = opened("a");
  remote_.remove_elsewhere(*remote_.root_object(), "a", true);
  age(node);
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(read(node, 0, 10), "data");
  close(node);
}

TEST_F(FileSystemTest, LinkCountsThatAreAlwaysZeroMeanNothing) {
  auto directory = remote_.add_directory(*remote_.root_object(), "d");
  directory->attributes.nlink = 0;
  remote_.add_file_in(*directory, "f", "data");
  NodeRef node = look("d"), found;
  EXPECT_EQ(run(fs_->lookup(me_, node, "f", &found)), 0);
  EXPECT_EQ(run(fs_->lookup(me_, node, "nothing", &found)), ENOENT);
  EXPECT_EQ(run(fs_->permit(me_, node, access_bits::kRead, true)), 0);
}

TEST_F(FileSystemTest, AppendingGoesToTheEndThatTheServerKnows) {
  auto file = remote_.add_file("a", "1234");
  NodeRef node = look("a");
  std::uint64_t offset = 4;
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 4u);
  remote_.write_elsewhere(*file, "12345678");
  bool keep = false;
  ASSERT_EQ(run(fs_->open(me_, node, O_WRONLY | O_APPEND, &keep)), 0);
  invalidated_.clear();
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id}) << "the kernel has it elsewhere";
  write(node, offset, "90");
  offset = 6;  // where the kernel goes on
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 10u);
  close(node);
}

/// The kernel may have let the answer go that told it.
TEST_F(FileSystemTest, AppendingNeverGoesBeforeTheEndThatIsKnown) {
  remote_.add_file("a", "12345678");
  NodeRef node = look("a");
  ASSERT_FALSE(node->kernel_size_old);
  std::uint64_t offset = 4;
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 8u);
  offset = 10;  // what it has written itself meanwhile
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 10u);
}

// --- rights that are taken away ---

TEST_F(FileSystemTest, ClosingADirectoryMakesTheKernelAskForItsNames) {
  auto directory = remote_.add_directory(*remote_.root_object(), "d");
  remote_.add_file_in(*directory, "f", "data");
  NodeRef node = look("d"), found;
  ASSERT_EQ(run(fs_->lookup(me_, node, "f", &found)), 0);
  node->names.clear();  // others changed something: the kernel may have the name all the same
  SetAttributes set;
  set.mode = 0700;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_EQ(expired_, std::vector<std::string>{"f"});
  EXPECT_EQ(fs_->entry_seconds(*node), 0);
}

TEST_F(FileSystemTest, ClosingADirectoryMakesTheKernelAskForNamesThatThereWasNoRoomFor) {
  auto directory = remote_.add_directory(*remote_.root_object(), "d");
  remote_.add_file_in(*directory, "f", "data");
  remote_.add_file_in(*directory, "forgotten", "data");
  remote_.add_file("elsewhere");
  age(fs_->root);
  NodeRef node = look("d"), found, forgotten;
  const NodeRef elsewhere = look("elsewhere");
  ASSERT_EQ(run(fs_->lookup(me_, node, "f", &found)), 0);
  ASSERT_EQ(run(fs_->lookup(me_, node, "forgotten", &forgotten)), 0);
  fs_->nodes.reference(found);
  for (std::size_t i = 0; i < NameCache::kMostNames; ++i)
    node->names.note(std::to_string(i));
  SetAttributes set;
  set.mode = 0700;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  const auto times = [this](const char* name) {
    return std::count(expired_.begin(), expired_.end(), name);
  };
  EXPECT_EQ(times("f"), 1);
  EXPECT_EQ(times("forgotten"), 0) << "the kernel does not have it any more";
  EXPECT_EQ(times("elsewhere"), 0);
  expired_.clear();
  ASSERT_EQ(run(fs_->set_acl(me_, node, "deny")), 0);
  EXPECT_EQ(times("f"), 0) << "the kernel has been told";
}

TEST_F(FileSystemTest, OpeningADirectoryLeavesTheKernelsNames) {
  auto directory = remote_.add_directory(*remote_.root_object(), "d");
  remote_.add_file_in(*directory, "f", "data");
  NodeRef node = look("d"), found;
  ASSERT_EQ(run(fs_->lookup(me_, node, "f", &found)), 0);
  SetAttributes set;
  set.mode = 0777;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_TRUE(expired_.empty());
}

// --- a server that does not answer ---

TEST_F(FileSystemTest, StatfsOfASilentServerIsAnsweredFromMemory) {
  remote_.hold();
  FsStat space;
  EXPECT_EQ(run(fs_->space(me_, fs_->root, &space)), 0);
  EXPECT_EQ(space.total_bytes, 4096u * 1000);
}

TEST_F(FileSystemTest, FilesWithUnwrittenDataAreNamedByPath) {
  auto directory = remote_.add_directory(*remote_.root_object(), "d");
  remote_.add_file_in(*directory, "f", "");
  NodeRef node = look("d"), file;
  ASSERT_EQ(run(fs_->lookup(me_, node, "f", &file)), 0);
  EXPECT_TRUE(fs_->unwritten_files(10).empty());
  write(file, 0, "data");
  EXPECT_EQ(fs_->unwritten_files(10), std::vector<std::string>{"d/f"});
  EXPECT_TRUE(fs_->unwritten_files(0).empty());
}

TEST(EndedBySignal, ReadsFlagsAndExitCode) {
  auto stat = [](unsigned flags, unsigned code) {
    std::string text = "7 (a) b) S 1 7 7 0 -1 " + std::to_string(flags);
    for (int field = 10; field < 52; ++field)
      text += " 1";
    return text + " " + std::to_string(code) + "\n";
  };
  EXPECT_TRUE(ended_by_signal(stat(0x400044, 9)));
  EXPECT_TRUE(ended_by_signal(stat(4, 15 | 0x80)));
  EXPECT_FALSE(ended_by_signal(stat(4, 1 << 8))) << "exit(1)";
  EXPECT_FALSE(ended_by_signal(stat(0x400040, 9))) << "not on its way out";
  EXPECT_FALSE(ended_by_signal("7 (a"));
}

}  // namespace
}  // namespace nfsrdma
