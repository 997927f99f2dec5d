// SPDX-License-Identifier: Apache-2.0
// nfs-rdma cp: between local directories, and from a server that lists what it likes.
#include "client/tool/copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "client/tool/arguments.h"
#include "tests/support/temporary_directory.h"

namespace nfsrdma::tool {
namespace {

namespace fs = std::filesystem;

using test::content_of;
using test::put_file;
using test::stat_of;

/// A file of a FakeSide: what a local one has.
class FakeFile final : public SideFile {
 public:
  FakeFile(FileIdentity found, std::string path)
      : SideFile(std::move(found)), path_(std::move(path)) {}
  Task<Result<std::size_t>> read(std::span<std::byte> into, std::uint64_t offset) override {
    const std::string content = content_of(path_);
    if (offset >= content.size()) co_return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), content.size() - offset);
    std::memcpy(into.data(), content.data() + offset, count);
    co_return count;
  }
  Task<Result<void>> write(std::span<const std::byte>, std::uint64_t) override { return no(); }
  Task<Result<void>> truncate(std::uint64_t) override { return no(); }
  Task<Result<std::uint64_t>> finish() override { co_return std::uint64_t{0}; }
  Task<Result<void>> set_metadata(struct stat) override { return no(); }

 private:
  static Task<Result<void>> no() { co_return Error{Errc::kSystem, EROFS, "fake"}; }
  std::string path_;
};

/// A server to read from. Its files have what local files have.
class FakeSide final : public Side {
 public:
  void add_file(const std::string& directory, const std::string& name, const std::string& from) {
    struct stat st = stat_of(from);
    st.st_dev += 1;
    add(directory, name, st);
    files_[join(directory, name)] = from;
  }
  void add_link(const std::string& directory, const std::string& name, const std::string& target) {
    struct stat st {};
    st.st_mode = S_IFLNK | 0777;
    add(directory, name, st);
    links_[join(directory, name)] = target;
  }
  void add_directory(const std::string& directory, const std::string& name) {
    struct stat st {};
    st.st_mode = S_IFDIR | 0755;
    add(directory, name, st);
  }
  void add_error(const std::string& directory, const std::string& name, int number) {
    lists_[directory].push_back({name, {}, {}, Error{Errc::kSystem, number, "fake"}});
  }

  bool remote() const override { return true; }
  Task<Result<struct stat>> status(std::string path, bool, std::string*) override {
    for (const auto& [directory, entries] : lists_) {
      for (const SideEntry& entry : entries) {
        if (join(directory, entry.name) == path) co_return entry.status;
      }
    }
    struct stat st {};
    st.st_mode = S_IFDIR | 0755;
    co_return st;
  }
  Task<Result<FileIdentity>> identity(std::string path) override {
    NFSRDMA_CO_TRY(const struct stat st, co_await status(std::move(path), true, nullptr));
    co_return FileIdentity{st, "fake", ""};
  }
  Task<Result<std::shared_ptr<Side>>> below(std::string) override { co_return kNo; }
  Task<Result<std::vector<SideEntry>>> list(std::string path) override { co_return lists_[path]; }
  Task<Result<std::unique_ptr<SideFile>>> open(std::string path) override {
    NFSRDMA_CO_TRY(FileIdentity found, co_await identity(path));
    co_return std::unique_ptr<SideFile>(std::make_unique<FakeFile>(found, files_.at(path)));
  }
  Task<Result<std::unique_ptr<SideFile>>> create(std::string, mode_t) override { co_return kNo; }
  Task<Result<std::string>> readlink(std::string path) override { co_return links_.at(path); }
  Task<Result<void>> symlink(std::string, std::string) override { return no(); }
  Task<Result<void>> mkdir(std::string, mode_t) override { return no(); }
  Task<Result<void>> remove(std::string) override { return no(); }
  Task<Result<void>> rmdir(std::string) override { return no(); }
  Task<Result<void>> set_metadata(std::string, struct stat, bool) override { return no(); }

 private:
  static constexpr Error kNo{Errc::kSystem, EROFS, "fake"};
  static Task<Result<void>> no() { co_return kNo; }
  void add(const std::string& directory, const std::string& name, const struct stat& st) {
    lists_[directory].push_back({name, st, {}, {}});
  }

  std::map<std::string, std::vector<SideEntry>> lists_;
  std::map<std::string, std::string> files_, links_;
};

class CopyTest : public testing::Test {
 protected:
  CopyTest() : driver_(LoopDriver::create().value()) {}

  std::string at(const std::string& name) const { return top_.path() + "/" + name; }
  Place local(const std::string& name) const {
    return {local_, at(name), at(name), last_component(at(name))};
  }
  Place remote(const std::string& path = "") const {
    return {server_, path, "nfs://h/tree", path.empty() ? "tree" : last_component(path)};
  }
  /// What cp does with one of its sources; *said_ is what it complains.
  bool copy(const Place& from, const Place& to) {
    Progress progress(false);
    Copier copier(options_, progress, links_);
    testing::internal::CaptureStderr();
    const bool all_well = driver_->run(copier.copy(from, to));
    said_ = testing::internal::GetCapturedStderr();
    return all_well;
  }
  bool says(const std::string& text) const { return said_.find(text) != std::string::npos; }
  template <typename T>
  T run(Task<T> task) {
    return driver_->run(std::move(task));
  }

  std::unique_ptr<LoopDriver> driver_;
  test::TemporaryDirectory top_;
  std::shared_ptr<FakeSide> server_ = std::make_shared<FakeSide>();
  std::shared_ptr<Side> local_ = make_local_side();
  CopyOptions options_{true, false, 022};
  std::set<std::string> links_;
  std::string said_;
};

// --- onto itself ---

TEST_F(CopyTest, AFileOntoItselfStaysAsItIs) {
  put_file(at("file"), "content");
  fs::create_symlink("file", at("link"));
  fs::create_hard_link(at("file"), at("hard"));
  for (const char* target : {"file", "link", "hard"}) {
    EXPECT_FALSE(copy(local("file"), local(target))) << target;
    EXPECT_TRUE(says("'" + at("file") + "' and '" + at(target) + "' are the same file")) << said_;
    EXPECT_EQ(content_of(at("file")), "content") << target;
  }
}

TEST_F(CopyTest, ADirectoryOntoItselfStaysAsItIs) {
  fs::create_directory(at("dir"));
  put_file(at("dir/file"), "content");
  EXPECT_FALSE(copy(local("dir"), {local_, top_.path(), top_.path(), last_component(top_.path())}));
  EXPECT_TRUE(says("are the same file")) << said_;
  EXPECT_EQ(content_of(at("dir/file")), "content");
}

TEST_F(CopyTest, ADirectoryIsNotCopiedIntoItself) {
  fs::create_directories(at("dir/sub"));
  for (const char* target : {"dir/sub", "dir/new", "dir"}) {
    EXPECT_FALSE(copy(local("dir"), local(target))) << target;
    EXPECT_TRUE(says("cannot copy a directory, '" + at("dir") + "', into itself")) << said_;
  }
  EXPECT_FALSE(fs::exists(at("dir/new")));
  EXPECT_TRUE(fs::is_empty(at("dir/sub")));
}

TEST_F(CopyTest, WhatMayBeTheSourceIsNotCutBeforeItIsRead) {
  // A server of this machine exports that very file; a local file system says who it is otherwise.
  const std::string content(5'000'001, 'x');
  put_file(at("file"), content);
  server_->add_file("", "file", at("file"));
  EXPECT_TRUE(copy(remote("file"), local("file"))) << said_;
  EXPECT_EQ(content_of(at("file")), content);
}

TEST_F(CopyTest, WhatWasThereIsGone) {
  put_file(at("file"), "new");
  put_file(at("old"), "old, and longer");
  EXPECT_TRUE(copy(local("file"), local("old"))) << said_;
  EXPECT_EQ(content_of(at("old")), "new");
}

/// As of a file system that finds out only then that there is no room.
int close_without_room(int fd) {
  ::close(fd);
  errno = ENOSPC;
  return -1;
}

TEST_F(CopyTest, WhatAFileSystemTellsAtTheCloseIsToldOn) {
  local_ = make_local_side(close_without_room);
  put_file(at("file"), "content");
  fs::create_directory(at("dir"));
  put_file(at("dir/file"), "content");
  for (const char* what : {"file", "dir"}) {
    EXPECT_FALSE(copy(local(what), local("copy-of-" + std::string(what)))) << what;
    EXPECT_TRUE(says("No space left on device (close)")) << said_;
  }
}

TEST_F(CopyTest, ALinkStaysALinkWithR) {
  put_file(at("file"), "content");
  fs::create_directory(at("dir"));
  put_file(at("dir/file"), "content");
  fs::create_symlink("dir", at("to-dir"));
  fs::create_symlink("nowhere", at("dangling"));
  for (const char* link : {"to-dir", "dangling"}) {
    const std::string target = at("copy-of-" + std::string(link));
    EXPECT_TRUE(copy(local(link), local("copy-of-" + std::string(link)))) << said_;
    EXPECT_EQ(fs::read_symlink(target), fs::read_symlink(at(link)));
  }
  EXPECT_TRUE(copy(local("to-dir/"), local("tree"))) << said_;
  EXPECT_EQ(content_of(at("tree/file")), "content");
  fs::create_symlink("file", at("link"));
  options_.recursive = false;
  EXPECT_TRUE(copy(local("link"), local("followed"))) << said_;
  EXPECT_FALSE(fs::is_symlink(at("followed")));
  EXPECT_EQ(content_of(at("followed")), "content");
}

TEST_F(CopyTest, ALinkTakesThePlaceOfNothingThatItLeadsTo) {
  put_file(at("file"), "content");
  fs::create_symlink("file", at("link"));
  for (const char* target : {"file", "link"}) {
    EXPECT_FALSE(copy(local("link"), local(target))) << target;
    EXPECT_TRUE(says("are the same file")) << said_;
  }
  EXPECT_FALSE(fs::is_symlink(at("file")));
}

TEST_F(CopyTest, ADeviceIsATargetWhateverItsSize) {
  // Nothing is to be written where somebody has put a file in its place.
  ASSERT_TRUE(S_ISCHR(stat_of("/dev/zero").st_mode));
  put_file(at("file"), "content");
  EXPECT_TRUE(copy(local("file"), {local_, "/dev/zero", "/dev/zero", "zero"})) << said_;
}

TEST_F(CopyTest, HolesStayHoles) {
  constexpr std::uint64_t kSize = 16 << 20;
  put_file(at("file"), "begin");
  fs::resize_file(at("file"), kSize);
  ASSERT_LT(stat_of(at("file")).st_blocks * 512, 1 << 20);
  put_file(at("old"), std::string(2 << 20, 'x'));
  for (const char* target : {"new", "old"}) {
    EXPECT_TRUE(copy(local("file"), local(target))) << said_;
    EXPECT_LE(stat_of(at(target)).st_blocks * 512, 1 << 20) << target;
    EXPECT_EQ(content_of(at(target)), content_of(at("file"))) << target;
  }
}

TEST(SamenessOfFiles, IsCertainOnOneServerOnly) {
  FileIdentity one;
  one.status.st_mode = S_IFREG;
  one.status.st_ino = 12;
  one.status.st_dev = 7;
  one.server = "a 20049 2049";
  one.peer = "192.0.2.1:20049";
  FileIdentity other = one;
  EXPECT_EQ(sameness(one, other), Sameness::kSame);
  other.server = "alias 20049 2049";
  EXPECT_EQ(sameness(one, other), Sameness::kSame);
  other.peer = "192.0.2.2:20049";
  EXPECT_EQ(sameness(one, other), Sameness::kPerhaps);
  other.status.st_mtim.tv_nsec = 1;
  EXPECT_EQ(sameness(one, other), Sameness::kDifferent);
  other = one;
  other.status.st_ino = 13;
  EXPECT_EQ(sameness(one, other), Sameness::kDifferent);
  one.peer = other.peer = "";
  other = one;
  other.server = "b 20049 2049";
  other.status.st_size = 1;
  EXPECT_EQ(sameness(one, other), Sameness::kDifferent);
}

// --- a server that wants files written elsewhere ---

class HostileServer : public CopyTest {
 protected:
  HostileServer() {
    put_file(at("victim"), "mine");
    put_file(at("payload"), "theirs");
    fs::create_directory(at("victims"));
    fs::create_directory(at("out"));
  }
  void expect_unharmed() {
    EXPECT_EQ(content_of(at("victim")), "mine");
    EXPECT_TRUE(fs::is_empty(at("victims")));
  }
};

TEST_F(HostileServer, ANameThatIsListedTwiceIsOneOfThem) {
  server_->add_link("", "x", at("victim"));
  server_->add_file("", "x", at("payload"));
  EXPECT_FALSE(copy(remote(), local("out")));
  EXPECT_TRUE(says("nfs://h/tree/x: left out, the directory lists this name twice")) << said_;
  expect_unharmed();
}

TEST_F(HostileServer, ALinkOfARunBeforeIsNotWrittenThrough) {
  fs::create_directory(at("out/tree"));
  fs::create_symlink(at("victim"), at("out/tree/x"));
  server_->add_file("", "x", at("payload"));
  server_->add_file("", "y", at("payload"));
  EXPECT_FALSE(copy(remote(), local("out")));
  EXPECT_TRUE(says(at("out/tree/x") + ": ") && says("a symbolic link is in the way")) << said_;
  EXPECT_EQ(content_of(at("out/tree/y")), "theirs");  // the rest is copied
  expect_unharmed();
}

TEST_F(HostileServer, ALinkOfARunBeforeIsNoDirectory) {
  fs::create_directory(at("out/tree"));
  fs::create_symlink(at("victims"), at("out/tree/d"));
  server_->add_directory("", "d");
  server_->add_file("d", "x", at("payload"));
  server_->add_link("d", "y", "nowhere");
  EXPECT_FALSE(copy(remote(), local("out")));
  EXPECT_TRUE(says("cannot overwrite non-directory '" + at("out/tree/d") + "' with directory"))
      << said_;
  expect_unharmed();
}

TEST_F(HostileServer, ALinkOfARunBeforeIsNoTarget) {
  fs::create_symlink(at("victims"), at("out/tree"));
  server_->add_file("", "x", at("payload"));
  EXPECT_FALSE(copy(remote(), local("out")));
  EXPECT_TRUE(says("cannot overwrite non-directory")) << said_;
  expect_unharmed();
}

TEST_F(HostileServer, ALinkOfTheSameCommandIsNotWrittenThrough) {
  server_->add_link("a", "x", at("victim"));
  server_->add_file("b", "x", at("payload"));
  EXPECT_TRUE(copy({server_, "a", "nfs://h/a/.", "."}, local("out"))) << said_;
  EXPECT_FALSE(copy({server_, "b/x", "nfs://h/b/x", "x"}, local("out")));
  EXPECT_TRUE(says("a symbolic link that was just made")) << said_;
  expect_unharmed();
}

TEST_F(HostileServer, ASideOfATreeGoesThroughNoLink) {
  fs::create_symlink(at("victims"), at("out/d"));
  put_file(at("victims/old"), "mine");
  auto tree = run(local_->below(at("out")));
  ASSERT_TRUE(tree.ok());
  Side& side = **tree;
  EXPECT_FALSE(run(side.create("d/x", 0600)).ok());
  EXPECT_FALSE(run(side.mkdir("d/x", 0700)).ok());
  EXPECT_FALSE(run(side.symlink("target", "d/x")).ok());
  EXPECT_FALSE(run(side.remove("d/old")).ok());
  EXPECT_FALSE(run(side.set_metadata("d/old", stat_of(at("victim")), true)).ok());
  EXPECT_FALSE(run(side.list("d")).ok());
  EXPECT_FALSE(run(side.below("d")).ok());
  fs::remove(at("victims/old"));
  expect_unharmed();
}

TEST_F(HostileServer, AFifoInTheWayKeepsNobodyWaiting) {
  fs::create_directory(at("out/tree"));
  ASSERT_EQ(::mkfifo(at("out/tree/x").c_str(), 0600), 0);
  server_->add_file("", "x", at("payload"));
  EXPECT_FALSE(copy(remote(), local("out")));
}

TEST_F(HostileServer, LinksThatTheUserNamesAreFollowed) {
  fs::create_symlink(at("elsewhere"), at("link"));
  server_->add_file("", "x", at("payload"));
  EXPECT_TRUE(copy(remote("x"), local("link"))) << said_;
  EXPECT_EQ(content_of(at("elsewhere")), "theirs");
  fs::create_symlink("out", at("to-out"));
  EXPECT_TRUE(copy(remote(), local("to-out"))) << said_;
  EXPECT_EQ(content_of(at("out/tree/x")), "theirs");
}

TEST_F(HostileServer, ATreeIsCopiedTwice) {
  server_->add_directory("", "d");
  server_->add_directory("d", "e");
  server_->add_file("d/e", "x", at("payload"));
  server_->add_file("d", "y", at("payload"));
  server_->add_link("d/e", "l", "x");
  options_.preserve = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(copy(remote(), local("out"))) << said_;
    EXPECT_EQ(content_of(at("out/tree/d/e/l")), "theirs");
    EXPECT_EQ(content_of(at("out/tree/d/y")), "theirs");
  }
  EXPECT_EQ(stat_of(at("out/tree/d/e")).st_mode & 07777, 0755u);
}

TEST_F(HostileServer, NamesDoNothingToATerminal) {
  server_->add_error("", "\033]0;x\007", EACCES);
  EXPECT_FALSE(copy(remote(), local("out")));
  EXPECT_TRUE(says("nfs://h/tree/?]0;x?: Permission denied")) << said_;
}

// --- what cannot be looked at ---

TEST_F(CopyTest, WhatCannotBeLookedAtIsNamed) {
  put_file(at("payload"), "x");
  server_->add_error("", "locked", EACCES);
  server_->add_file("", "file", at("payload"));
  EXPECT_FALSE(copy(remote(), local("out")));
  EXPECT_TRUE(says("nfs://h/tree/locked: Permission denied")) << said_;
  EXPECT_TRUE(fs::exists(at("out/file")));
}

/// For tests of what root may do and others may not.
class AsNobody : public CopyTest {
 protected:
  AsNobody() {
    if (::geteuid() == 0) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~AsNobody() override {
    if (::getuid() == 0) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
};

TEST_F(AsNobody, AListHasWhatCannotBeLookedAt) {
  fs::create_directory(at("dir"));
  put_file(at("dir/file"), "x");
  ASSERT_EQ(::chmod(at("dir").c_str(), 0444), 0);
  auto entries = run(local_->list(at("dir")));
  ASSERT_EQ(::chmod(at("dir").c_str(), 0755), 0);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 1u);
  ASSERT_TRUE(entries->front().error);
  EXPECT_EQ(entries->front().error->sys, EACCES);
}

TEST(IsGone, OnlyWhatWasRemoved) {
  EXPECT_TRUE(is_gone({Errc::kSystem, ENOENT, ""}));
  EXPECT_TRUE(is_gone({Errc::kSystem, ESTALE, ""}));
  for (const int number : {EACCES, EIO, ETIMEDOUT, EMFILE, EPERM, EREMOTE}) {
    EXPECT_FALSE(is_gone({Errc::kSystem, number, ""})) << number;
  }
}

// --- set-user-id ---

TEST_F(AsNobody, NothingRunsWithTheRightsOfWhoCouldNotBeMadeItsOwner) {
  put_file(at("file"), "x");
  struct stat from = stat_of(at("file"));
  from.st_mode = S_IFREG | 06755;
  from.st_uid = 0;
  auto file = run(local_->create(at("file"), 0600));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(run((*file)->set_metadata(from)).ok());
  EXPECT_EQ(stat_of(at("file")).st_mode & 07777, 0755u);
  ASSERT_EQ(::chmod(at("file").c_str(), 0600), 0);
  ASSERT_TRUE(run(local_->set_metadata(at("file"), from, false)).ok());
  EXPECT_EQ(stat_of(at("file")).st_mode & 07777, 0755u);
}

TEST_F(AsNobody, WhatIsTheCallersOwnKeepsItsMode) {
  put_file(at("file"), "x");
  struct stat from = stat_of(at("file"));
  from.st_mode = S_IFREG | 04751;
  ASSERT_TRUE(run(local_->set_metadata(at("file"), from, false)).ok());
  EXPECT_EQ(stat_of(at("file")).st_mode & 07777, 04751u);
}

}  // namespace
}  // namespace nfsrdma::tool
