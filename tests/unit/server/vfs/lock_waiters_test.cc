// SPDX-License-Identifier: Apache-2.0
// Who waits for record locks: children that do, and others that wait for something else.
#include "server/vfs/lock_waiters.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <regex>
#include <thread>

#include "rpcrdma/base/unique_fd.h"
#include "server/vfs/record_locks.h"

namespace nfsrdma {
namespace {

using ::testing::Not;
using Kind = RecordLock::Kind;

/// A process that does one thing, which may take for ever: it ends with the object.
class Process {
 public:
  explicit Process(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ != 0) return;
    act();
    ::_exit(0);
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  /// Until it has done its thing.
  void join() { ::waitpid(std::exchange(pid_, -1), nullptr, 0); }

 private:
  pid_t pid_;
};

/// Files of the test, and what is known of those who wait for them. Other processes of the machine
/// may lock files as they like.
class LockWaitersTest : public testing::Test {
 protected:
  UniqueFd new_file() {
    paths_.emplace_back("/tmp/lock-waiters-XXXXXX");
    return UniqueFd(::mkostemp(paths_.back().data(), O_CLOEXEC));
  }
  ~LockWaitersTest() override {
    for (const std::string& path : paths_)
      ::unlink(path.c_str());
  }
  static void lock(const UniqueFd& fd, Kind kind, std::uint64_t first = 0,
                   std::uint64_t last = kLastByte) {
    ASSERT_EQ(set_record_lock(fd.get(), {kind, first, last}), 0);
  }
  /// A child that waits for a lock, as lockf() does (`posix`) or by a descriptor of its own.
  Process waiter(std::size_t file, bool posix, off_t start = 0, off_t length = 0) {
    return Process([&] {
      const int fd = ::open(paths_[file].c_str(), O_RDWR);
      struct flock wanted {};
      wanted.l_type = F_WRLCK;
      wanted.l_start = start;
      wanted.l_len = length;
      ::fcntl(fd, posix ? F_SETLKW : F_OFD_SETLKW, &wanted);
    });
  }
  static bool awaited(const UniqueFd& fd) {
    return awaited_files().contains(locked_file_name(fd.get()));
  }
  static void until_awaited(const UniqueFd& fd) {
    while (!awaited(fd))
      std::this_thread::yield();
  }
  /// Until the kernel says that the process waits for that kind of lock.
  static void until_listed(const std::string& kind, pid_t process) {
    const std::regex waits("-> " + kind + " .* " + std::to_string(process) + " ");
    for (bool found = false; !found; std::this_thread::yield()) {
      std::ifstream locks("/proc/locks");
      for (std::string line; std::getline(locks, line);)
        found = found || std::regex_search(line, waits);
    }
  }

  std::vector<std::string> paths_;
};

TEST_F(LockWaitersTest, AFileHasItsNameForAsLongAsItIsLocked) {
  const UniqueFd file = new_file();
  EXPECT_EQ(locked_file_name(file.get()), "");
  lock(file, Kind::kWrite, 0, 9);
  const std::string name = locked_file_name(file.get());
  EXPECT_THAT(name, testing::MatchesRegex("[0-9a-f]+:[0-9a-f]+:[0-9]+"));
  lock(file, Kind::kRead, 20, 29);
  EXPECT_EQ(locked_file_name(file.get()), name);
  lock(file, Kind::kNone);
  EXPECT_EQ(locked_file_name(file.get()), "");
}

TEST_F(LockWaitersTest, ADescriptorWithoutALockHasNoName) {
  const UniqueFd file = new_file();
  lock(file, Kind::kRead);
  const UniqueFd other(::open(paths_[0].c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(locked_file_name(other.get()), "") << "the lock is the other's";
  EXPECT_EQ(locked_file_name(-1), "");
  EXPECT_EQ(locked_file_name(1 << 30), "");
}

TEST_F(LockWaitersTest, FilesHaveNamesOfTheirOwn) {
  const UniqueFd one = new_file(), two = new_file();
  const UniqueFd again(::open(paths_[0].c_str(), O_RDWR | O_CLOEXEC));
  lock(one, Kind::kRead);
  lock(two, Kind::kRead);
  lock(again, Kind::kRead);
  EXPECT_NE(locked_file_name(one.get()), locked_file_name(two.get()));
  EXPECT_EQ(locked_file_name(one.get()), locked_file_name(again.get()));
}

TEST_F(LockWaitersTest, OnlyTheFileThatSomebodyWaitsForIsNamed) {
  const UniqueFd wanted = new_file(), other = new_file();
  lock(wanted, Kind::kWrite);
  lock(other, Kind::kWrite);
  EXPECT_FALSE(awaited(wanted));
  const Process child = waiter(0, true);
  until_awaited(wanted);
  EXPECT_FALSE(awaited(other));
}

TEST_F(LockWaitersTest, WhoWaitsByADescriptorIsSeenToo) {
  const UniqueFd file = new_file();
  lock(file, Kind::kRead);
  const Process child = waiter(0, false);
  until_awaited(file);
}

TEST_F(LockWaitersTest, WhoHasGotTheLockWaitsNoMore) {
  const UniqueFd file = new_file();
  lock(file, Kind::kWrite, 0, 9);
  Process child = waiter(0, true, 0, 10);
  until_awaited(file);
  lock(file, Kind::kWrite, 20, 29);  // so that the file keeps its name
  lock(file, Kind::kNone, 0, 9);
  child.join();
  EXPECT_FALSE(awaited(file));
}

TEST_F(LockWaitersTest, WhoIsKilledWaitsNoMore) {
  const UniqueFd file = new_file();
  lock(file, Kind::kWrite);
  {
    const Process child = waiter(0, true);
    until_awaited(file);
  }
  EXPECT_FALSE(awaited(file));
}

TEST_F(LockWaitersTest, OneOfTwoThatWaitIsEnough) {
  const UniqueFd file = new_file();
  lock(file, Kind::kWrite, 0, 9);
  lock(file, Kind::kWrite, 20, 29);
  Process first = waiter(0, true, 0, 10);
  until_awaited(file);
  const Process second = waiter(0, true, 20, 10);
  lock(file, Kind::kNone, 0, 9);
  first.join();
  until_awaited(file);
}

/// flock() and record locks do not see each other: a client's record lock is in nobody's way there.
TEST_F(LockWaitersTest, WhoWaitsForAnotherKindOfLockIsNotMeant) {
  const UniqueFd file = new_file();
  lock(file, Kind::kWrite);
  ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
  const Process child([this] {
    const int fd = ::open(paths_[0].c_str(), O_RDWR);
    ::flock(fd, LOCK_EX);
  });
  until_listed("FLOCK", child.pid());
  EXPECT_FALSE(awaited(file));
}

/// The kernel names no file then: one that nobody has locked must not be taken for it.
TEST_F(LockWaitersTest, WhoWaitsForALeaseIsNotMeant) {
  const UniqueFd unlocked = new_file();
  new_file().reset();
  const UniqueFd leased(::open(paths_[1].c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_NE(::signal(SIGIO, SIG_IGN), SIG_ERR);
  ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_RDLCK), 0);
  const Process child([this] { ::open(paths_[1].c_str(), O_WRONLY); });
  until_listed("LEASE", child.pid());
  EXPECT_FALSE(awaited(unlocked));
  EXPECT_THAT(awaited_files(), Not(testing::Contains("")));
}

}  // namespace
}  // namespace nfsrdma
