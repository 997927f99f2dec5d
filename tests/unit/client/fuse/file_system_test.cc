// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/client/fuse/memory_remote.h"

namespace nfsrdma {
namespace {

CallerRef caller(uid_t uid) {
  return std::make_shared<const Caller>(Caller{uid, uid, {}});
}

class FileSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(EventLoop::create()).value();
    build({});
  }
  void TearDown() override {
    remote_.release();
    run(fs_->finish());
    fs_.reset();
  }
  void build(FileSystemOptions options) {
    if (fs_ != nullptr) run(fs_->finish());
    KernelCache kernel;
    kernel.drop_data = [this](std::uint64_t id) { invalidated_.push_back(id); };
    kernel.drop_attributes = [this](std::uint64_t id) { outdated_.push_back(id); };
    kernel.expire_name = [this](std::uint64_t, const std::string& name) {
      expired_.push_back(name);
    };
    fs_ = std::make_unique<FileSystem>(*loop_, remote_, options, std::move(kernel));
    ASSERT_EQ(run(fs_->start(me_)), 0);
  }
  template <typename T>
  T run(Task<T> task) {
    return run_to_completion(*loop_, std::move(task));
  }
  /// Runs `task` as far as it gets while answers are held back.
  void start(Task<int> task, int* result) {
    struct Store {
      static Task<void> run(Task<int> inner, int* out) { *out = co_await std::move(inner); }
    };
    started_.spawn(Store::run(std::move(task), result));
  }
  NodeRef look(const std::string& name, RequestContext context) {
    NodeRef node;
    last_error_ = run(fs_->lookup(std::move(context), fs_->root, name, &node));
    if (node != nullptr) fs_->nodes.reference(node);
    return node;
  }
  NodeRef look(const std::string& name) { return look(name, me_); }
  NodeRef opened(const std::string& name) {
    NodeRef node = look(name);
    bool keep = false;
    EXPECT_EQ(run(fs_->open(me_, node, O_RDWR, &keep)), 0);
    return node;
  }
  int write(const NodeRef& node, std::uint64_t offset, const std::string& text) {
    return run(fs_->writer_of(*node).write(me_, node, offset, as_bytes(text), nullptr));
  }
  std::string read(const NodeRef& node, std::uint64_t offset, std::size_t size) {
    std::string out(size, '?');
    std::size_t count = 0;
    MutableByteSpan sink(reinterpret_cast<std::byte*>(out.data()), size);
    EXPECT_EQ(run(fs_->read(me_, node, offset, sink, &count)), 0);
    out.resize(count);
    return out;
  }
  int fsync(const NodeRef& node) {
    FileWriter& writer = fs_->writer_of(*node);
    const int error = run(writer.flush(me_, node, true));
    return error != 0 ? error : writer.take_error();
  }
  void age(const NodeRef& node) { node->timer.expire(); }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& [name, object] : remote_.root_object()->names)
      out.push_back(name);
    return out;
  }

  MemoryRemote remote_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<FileSystem> fs_;
  TaskGroup started_;
  std::vector<std::uint64_t> invalidated_;
  std::vector<std::uint64_t> outdated_;
  std::vector<std::string> expired_;
  RequestContext me_{caller(0), nullptr};
  RequestContext other_{caller(1000), nullptr};
  int last_error_ = 0;
};

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
  fs_->close(node);
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
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id}) << "the kernel has it elsewhere";
  write(node, offset, "90");
  offset = 6;  // where the kernel goes on
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 10u);
  fs_->close(node);
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

// --- names ---

TEST_F(FileSystemTest, AFreshNameIsAnsweredFromTheCache) {
  remote_.add_file("a");
  age(fs_->root);
  look("a");
  look("a");
  EXPECT_EQ(remote_.calls["lookup"], 1);
}

TEST_F(FileSystemTest, AnAbsentNameIsAnsweredFromTheCache) {
  look("a");
  look("a");
  EXPECT_EQ(last_error_, ENOENT);
  EXPECT_EQ(remote_.calls["lookup"], 1);
}

TEST_F(FileSystemTest, WithPositiveLookupCacheAnAbsentNameIsAskedAgain) {
  FileSystemOptions options;
  options.cache_absent_names = false;
  build(options);
  look("a");
  look("a");
  EXPECT_EQ(remote_.calls["lookup"], 2);
}

TEST_F(FileSystemTest, ACachedNameIsAskedAgainForAnotherCaller) {
  remote_.add_file("a");
  look("a");
  look("a", other_);
  EXPECT_EQ(remote_.calls["lookup"], 2);
}

TEST_F(FileSystemTest, ACallerThatMayNotSearchIsRefusedFromTheCache) {
  remote_.add_file("a");
  remote_.root_object()->denied[1000] = access_bits::kLookup;
  look("a");
  EXPECT_EQ(run(fs_->permit(other_, fs_->root, access_bits::kLookup, false)), EACCES);
  look("a", other_);
  EXPECT_EQ(last_error_, EACCES);
}

TEST_F(FileSystemTest, NamesAreForgottenWhenTheDirectoryChangedElsewhere) {
  look("a");
  remote_.add_file("a");
  age(fs_->root);
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  EXPECT_NE(look("a"), nullptr);
}

TEST_F(FileSystemTest, OwnChangesKeepTheOtherNames) {
  remote_.add_file("a");
  age(fs_->root);
  look("a");
  look("b");
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "b")), ENOENT);
  NodeRef a = look("a");
  ASSERT_EQ(run(fs_->link(me_, a, fs_->root, "c")), 0);
  const int before = remote_.calls["lookup"];
  look("a");
  look("c");
  EXPECT_EQ(remote_.calls["lookup"], before);
}

TEST_F(FileSystemTest, ALateAnswerDoesNotHideANameMadeMeanwhile) {
  int result = -1;
  NodeRef found;
  remote_.hold();
  start(fs_->lookup(me_, fs_->root, "a", &found), &result);
  // The file comes into being after the server looked, as far as the client can tell.
  ++fs_->root->names_epoch;
  remote_.release();
  EXPECT_EQ(result, ENOENT);
  remote_.add_file("a");
  EXPECT_NE(look("a"), nullptr);
}

TEST_F(FileSystemTest, TheKernelKeepsNoNamesOfAPrivateDirectory) {
  remote_.root_object()->attributes.mode = 0700;
  age(fs_->root);
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  EXPECT_EQ(fs_->entry_seconds(*fs_->root), 0);
}

TEST_F(FileSystemTest, TheKernelKeepsNamesOfAPublicDirectory) {
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  EXPECT_GT(fs_->entry_seconds(*fs_->root), 0);
}

TEST_F(FileSystemTest, OneHandleIsOneNode) {
  NodeRef first = (remote_.add_file("a"), age(fs_->root), look("a"));
  ASSERT_EQ(run(fs_->link(me_, first, fs_->root, "b")), 0);
  EXPECT_EQ(look("b"), first);
}

TEST_F(FileSystemTest, ForgettingDropsTheNode) {
  remote_.add_file("a");
  age(fs_->root);
  const std::size_t before = fs_->nodes.alive();
  const std::uint64_t id = look("a")->id;
  fs_->nodes.forget(id, 1);
  EXPECT_EQ(fs_->nodes.find(id), nullptr);
  EXPECT_EQ(fs_->nodes.alive(), before);
}

TEST_F(FileSystemTest, UnwrittenDataKeepsAForgottenNode) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  {
    NodeRef node = look("a");
    ASSERT_EQ(write(node, 0, "data"), 0);
    fs_->nodes.forget(node->id, 1);
  }
  run(fs_->finish());
  EXPECT_EQ(file->stable_data, "data");
}

// --- permissions ---

TEST_F(FileSystemTest, OpenAsksAsTheCaller) {
  auto file = remote_.add_file("a");
  file->denied[1000] = access_bits::kRead;
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node, O_RDONLY, &keep)), EACCES);
  EXPECT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  fs_->close(node);
}

TEST_F(FileSystemTest, OpenForReadingAndWritingNeedsBothRights) {
  auto file = remote_.add_file("a");
  file->denied[1000] = access_bits::kModify;
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node, O_RDWR, &keep)), EACCES);
  EXPECT_EQ(run(fs_->open(other_, node, O_RDONLY, &keep)), 0);
  fs_->close(node);
}

TEST_F(FileSystemTest, OpenForExecutionNeedsExecuteOnly) {
  auto file = remote_.add_file("a");
  file->denied[1000] = access_bits::kRead;
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node, O_RDONLY | 0x20, &keep)), 0);
  fs_->close(node);
}

// --- close-to-open ---

TEST_F(FileSystemTest, OpenKeepsPagesOfAnUnchangedFile) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_TRUE(keep);
  fs_->close(node);
}

TEST_F(FileSystemTest, OpenDropsPagesOfAFileChangedElsewhere) {
  auto file = remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.write_elsewhere(*file, "three");
  bool keep = true;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_FALSE(keep);
  EXPECT_EQ(fs_->visible(*node).size, 5u);
  EXPECT_EQ(outdated_, std::vector<std::uint64_t>{node->id});
  fs_->close(node);
}

TEST_F(FileSystemTest, OpenOfAnUnchangedFileLeavesTheKernelsAttributes) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  EXPECT_TRUE(outdated_.empty());
  fs_->close(node);
}

TEST_F(FileSystemTest, OwnWritesKeepThePages) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(write(node, 0, "two"), 0);
  ASSERT_EQ(fsync(node), 0);
  fs_->close(node);
  bool keep = false;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_TRUE(keep);
  fs_->close(node);
}

TEST_F(FileSystemTest, AChangeElsewhereOfAnOpenFileInvalidatesItsPages) {
  auto file = remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  remote_.write_elsewhere(*file, "three");
  ASSERT_EQ(run(fs_->getattr(me_, node)), 0);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  fs_->close(node);
}

TEST_F(FileSystemTest, AWriteElsewhereBetweenOwnWritesIsNoticed) {
  auto file = remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  remote_.write_elsewhere(*file, "three");
  ASSERT_EQ(write(node, 0, "X"), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_FALSE(node->cache_valid);
  fs_->close(node);
}

TEST_F(FileSystemTest, AnOvertakenAnswerDoesNotBringOldAttributesBack) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = look("a");
  const Attributes old = node->attributes;
  const std::uint64_t started = fs_->begin_request();
  ASSERT_EQ(write(node, 0, "longer"), 0);
  ASSERT_EQ(fsync(node), 0);
  fs_->apply(*node, old, started);
  EXPECT_EQ(node->attributes.size, 6u);
}

// --- data ---

TEST_F(FileSystemTest, ASmallFileIsFlushedByOneStableWrite) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  ASSERT_EQ(write(node, 3, "def"), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(remote_.log, std::vector<std::string>{"write 0+6 as 0 sync"});
  EXPECT_EQ(file->stable_data, "abcdef");
  EXPECT_EQ(remote_.calls["commit"], 0);
}

TEST_F(FileSystemTest, LargerFilesAreWrittenUnstableAndCommittedOnce) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefghij"), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(remote_.calls["write"], 3);
  EXPECT_EQ(remote_.calls["commit"], 1);
  EXPECT_EQ(file->stable_data, "abcdefghij");
}

TEST_F(FileSystemTest, UncommittedDataSurvivesARestartOfTheServer) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);  // two whole WRITEs leave at once
  ASSERT_EQ(remote_.calls["write"], 2);
  remote_.restart();
  ASSERT_EQ(file->data, "");
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "abcdefgh");
}

TEST_F(FileSystemTest, TheLastCloseWritesBack) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  opened("a");
  write(node, 0, "abc");
  fs_->close(node);
  EXPECT_EQ(file->stable_data, "");
  fs_->close(node);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, AWriteErrorIsReportedOnceAtFsync) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.fail_writes_with = ENOSPC;
  ASSERT_EQ(write(node, 0, "abc"), 0);
  EXPECT_EQ(fsync(node), ENOSPC);
  remote_.fail_writes_with = 0;
  EXPECT_EQ(fsync(node), 0);
}

TEST_F(FileSystemTest, ACommitErrorIsReportedOnceAtFsync) {
  remote_.set_write_size(2);
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.fail_commits_with = EIO;
  ASSERT_EQ(write(node, 0, "abcdef"), 0);
  EXPECT_EQ(fsync(node), EIO);
  remote_.fail_commits_with = 0;
  EXPECT_EQ(fsync(node), 0);
}

TEST_F(FileSystemTest, ReadSeesUnwrittenData) {
  remote_.add_file("a", "......");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 2, "XY"), 0);
  EXPECT_EQ(read(node, 0, 10), "..XY..");
}

TEST_F(FileSystemTest, AReadBeforeUnwrittenDataDoesNotEndTheFile) {
  remote_.add_file("a", "ab");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 100, "X"), 0);
  EXPECT_EQ(read(node, 0, 4), std::string("ab\0\0", 4));
}

TEST_F(FileSystemTest, TheVisibleSizeCoversUnwrittenData) {
  remote_.add_file("a", "ab");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 2, "cd"), 0);
  EXPECT_EQ(fs_->visible(*node).size, 4u);
}

TEST_F(FileSystemTest, StatWritesBackFirst) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  ASSERT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(node->attributes.size, 3u);
  EXPECT_TRUE(same_time(node->attributes.mtime, file->attributes.mtime));
}

TEST_F(FileSystemTest, SettingTimesComesAfterTheData) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  SetAttributes set;
  set.mtime = SetAttributes::Time{false, {12345, 0}};
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->attributes.mtime.tv_sec, 12345);
}

TEST_F(FileSystemTest, ATruncatedFileDoesNotGrowBackAfterARestart) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);
  SetAttributes set;
  set.size = 2;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  remote_.restart();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->data, "ab");
}

TEST_F(FileSystemTest, WritesCarryTheWritersCredentials) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  const std::string text = "abc";
  ASSERT_EQ(run(fs_->writer_of(*node).write(other_, node, 0, as_bytes(text), nullptr)), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(remote_.log, std::vector<std::string>{"write 0+3 as 1000 sync"});
}

TEST_F(FileSystemTest, WritersWaitWhenTheBudgetIsFull) {
  FileSystemOptions options;
  options.write_budget = 8;
  build(options);
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.hold();
  ASSERT_EQ(write(node, 0, "0123456789"), 0);
  int result = -1;
  const std::string text = "more";
  start(fs_->writer_of(*node).write(me_, node, 10, as_bytes(text), nullptr), &result);
  EXPECT_EQ(result, -1);
  remote_.release();
  EXPECT_EQ(result, 0);
}

TEST_F(FileSystemTest, AnInterruptedFlushKeepsTheData) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  Interrupt interrupt;
  int result = -1;
  remote_.hold();
  start(fs_->writer_of(*node).flush({me_.caller, &interrupt}, node, true), &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  remote_.release();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, RaisingAnInterruptMayEndTheRequestThatOwnsIt) {
  auto interrupt = std::make_unique<Interrupt>();
  struct Ends final : Cancellable {
    std::unique_ptr<Interrupt>* owner;
    void on_cancel() override { owner->reset(); }
  } call;
  call.owner = &interrupt;
  interrupt->token->enlist(call);
  interrupt->raise();
  EXPECT_EQ(interrupt, nullptr);
}

TEST_F(FileSystemTest, WriteThroughIsStableWhenItReturns) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  const std::string text = "abc";
  ASSERT_EQ(run(fs_->writer_of(*node).write_through(me_, node, 0, as_bytes(text), nullptr)), 0);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, ARewriteAfterARestartDoesNotUndoAWriteThrough) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "aaaaaaaa"), 0);
  const std::string text = "XX";
  ASSERT_EQ(run(fs_->writer_of(*node).write_through(me_, node, 2, as_bytes(text), nullptr)), 0);
  remote_.restart();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "aaXXaaaa");
}

// --- silly names ---

TEST_F(FileSystemTest, AnOpenFileKeepsWorkingWhenItsNameIsRemoved) {
  remote_.add_file("a", "data");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  look("a");
  EXPECT_EQ(last_error_, ENOENT);
  EXPECT_EQ(read(node, 0, 10), "data");
  ASSERT_EQ(names().size(), 1u);
  EXPECT_EQ(names()[0].substr(0, 4), ".nfs");
  fs_->close(node);
  EXPECT_TRUE(names().empty());
}

TEST_F(FileSystemTest, AnOpenFileKeepsWorkingWhenItIsReplaced) {
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  EXPECT_EQ(read(node, 0, 10), "old");
  EXPECT_EQ(read(look("a"), 0, 10), "new");
  fs_->close(node);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileSystemTest, AReplacedNameIsNeverAbsent) {
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  ASSERT_EQ(remote_.log.size(), 2u);
  EXPECT_EQ(remote_.log[0].substr(0, 9), "link .nfs");
  EXPECT_EQ(remote_.log[1], "rename b a");
  fs_->close(node);
}

TEST_F(FileSystemTest, WithoutLinksAReplacedOpenFileIsMovedAway) {
  remote_.no_links = true;
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  EXPECT_EQ(read(node, 0, 10), "old");
  fs_->close(node);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileSystemTest, AClosedFileIsRemovedAtOnce) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  fs_->close(node);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_TRUE(names().empty());
}

TEST_F(FileSystemTest, TheSillyNameOfAnOpenFileIsBusy) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, names()[0])), EBUSY);
  fs_->close(node);
}

TEST_F(FileSystemTest, RmdirWaitsForSillyNamesOnTheirWayOut) {
  NodeRef directory;
  const SetAttributes set;
  const std::string d = "d", f = "f";
  ASSERT_EQ(run(fs_->make(
                me_, fs_->root, "d",
                [&](Remote& remote) { return remote.mkdir(me_, fs_->root->handle, d, set); },
                &directory)),
            0);
  NodeRef file;
  ASSERT_EQ(run(fs_->make(
                me_, directory, "f",
                [&](Remote& remote) {
                  return remote.create(me_, directory->handle, f, CreateMode::kGuarded, set);
                },
                &file)),
            0);
  fs_->adopt_open(*file);
  ASSERT_EQ(run(fs_->remove(me_, directory, "f")), 0);
  remote_.hold();
  fs_->close(file);  // starts removing the silly name
  int result = -1;
  start(fs_->rmdir(me_, fs_->root, "d"), &result);
  remote_.release();
  EXPECT_EQ(result, 0);
}

TEST_F(FileSystemTest, RenamingAFileOntoItsOwnLinkHidesNothing) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->link(me_, node, fs_->root, "b")), 0);
  remote_.log.clear();
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "a", fs_->root, "b")), 0);
  EXPECT_EQ(remote_.log, std::vector<std::string>{"rename a b"});
  fs_->close(node);
}

}  // namespace
}  // namespace nfsrdma
