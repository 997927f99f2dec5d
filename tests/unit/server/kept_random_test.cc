// SPDX-License-Identifier: Apache-2.0
// Numbers that are drawn once and kept: file handles are good for as long as they stay the same.
#include "server/kept_random.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "tests/support/exported_directory.h"

namespace nfsrdma::test {
namespace {

using ::testing::HasSubstr;

constexpr KeptFile kFile{"numbers", "numbers of a test, version 1\n", "numbers: not ours, move it"};
const std::string kMagic(kFile.magic);

class KeptRandomTest : public testing::Test {
 protected:
  Result<KeptRandom> load() const { return load_or_draw(state_, kFile); }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file_, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(state_);
    std::ofstream(file_, std::ios::binary) << text;
  }
  /// It is refused in words, and stays as it is.
  void expect_left_alone(const std::string& text) const {
    write(text);
    const auto loaded = load();
    ASSERT_FALSE(loaded.ok()) << text.size();
    EXPECT_EQ(loaded.error().code, Errc::kUnsupported);
    EXPECT_THAT(loaded.error().message(), HasSubstr(kFile.not_known));
    EXPECT_EQ(content(), text);
  }
  static unsigned mode(const std::string& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777u : 0u;
  }

  TemporaryDirectory directory_;
  const std::string state_ = directory_.path() + "/var/lib/state";
  const std::string file_ = state_ + "/numbers";
};

/// In a process for which openat(O_TMPFILE), and linkat() where `links` is false, fail as on file
/// systems that have none.
int on_a_plain_file_system(bool links, const std::function<int()>& work) {
  const auto fail = [](int error) -> sock_filter {
    return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error));
  };
  const auto load = [](std::size_t offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
  };
  constexpr unsigned kTmpfileAlone = O_TMPFILE & ~O_DIRECTORY;
  sock_filter filter[] = {
      load(offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, links ? ~0u : static_cast<unsigned>(SYS_linkat), 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
      load(offsetof(seccomp_data, args[2])),  // its lower half, on little endian
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kTmpfileAlone, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      fail(EPERM),
      fail(EOPNOTSUPP),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  const pid_t child = ::fork();
  if (child == 0) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      ::_exit(77);  // no such filter
    }
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(KeptRandomTest, NeedNoFilesWithoutNames) {
  for (const bool links : {true, false}) {
    std::filesystem::remove_all(state_);
    const int result = on_a_plain_file_system(links, [this] { return load().ok() ? 0 : 1; });
    ASSERT_EQ(result, 0) << links;
    // Nothing else is left there, and it is the file that others make.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(state_), {}), 1) << links;
    const KeptRandom drawn = load().value();
    EXPECT_EQ(content(), kMagic + std::string(drawn.begin(), drawn.end()));
    EXPECT_EQ(mode(file_), 0600u);
  }
}

TEST_F(KeptRandomTest, AreDrawnOnceAndStayTheSame) {
  const KeptRandom drawn = load().value();
  EXPECT_EQ(load().value(), drawn);
  EXPECT_EQ(content(), kMagic + std::string(drawn.begin(), drawn.end()));
}

TEST_F(KeptRandomTest, AreOthersInEachDirectory) {
  EXPECT_NE(load().value(), load_or_draw(directory_.path() + "/other", kFile).value());
}

TEST_F(KeptRandomTest, AreForNobodyElseToRead) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(load().ok());
  ::umask(before);
  EXPECT_EQ(mode(file_), 0600u);
  EXPECT_EQ(mode(state_), 0700u);
}

TEST_F(KeptRandomTest, AStrictUmaskDoesNotTakeThemFromTheServer) {
  std::filesystem::create_directories(state_);
  const mode_t before = ::umask(0777);
  const bool drawn = load().ok();
  ::umask(before);
  EXPECT_TRUE(drawn);
  EXPECT_EQ(mode(file_), 0600u);
}

TEST_F(KeptRandomTest, ThoseThatAreThereAreTaken) {
  write(kMagic + "0123456789abcdef");
  const KeptRandom loaded = load().value();
  EXPECT_EQ(std::string(loaded.begin(), loaded.end()), "0123456789abcdef");
}

/// A new one in its place would make all file handles of clients stale.
TEST_F(KeptRandomTest, AFileOfAnotherFormIsNeverReplaced) {
  expect_left_alone("");
  expect_left_alone(kMagic);
  expect_left_alone(kMagic + "0123456789abcde");
  expect_left_alone(kMagic + "0123456789abcdef0");
  expect_left_alone(kMagic + std::string(100000, 'x'));
  expect_left_alone("numbers of a test, version 2\n0123456789abcdef");
  expect_left_alone(std::string(kMagic.size() + 16, '\0'));
}

TEST_F(KeptRandomTest, ALinkIsNotFollowed) {
  write(kMagic + "0123456789abcdef");
  std::filesystem::rename(file_, state_ + "/elsewhere");
  std::filesystem::create_symlink("elsewhere", file_);
  EXPECT_FALSE(load().ok());
  std::filesystem::remove(file_);
  std::filesystem::create_symlink("nowhere", file_);
  EXPECT_FALSE(load().ok());
  EXPECT_FALSE(std::filesystem::exists(state_ + "/nowhere"));
}

/// Nor does one wait for somebody to write.
TEST_F(KeptRandomTest, WhatIsNoFileIsAnError) {
  std::filesystem::create_directories(file_);
  EXPECT_FALSE(load().ok());
  std::filesystem::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(load().ok());
}

TEST_F(KeptRandomTest, ADirectoryThatCannotBeMadeIsAnError) {
  std::ofstream(directory_.path() + "/var") << "a file";
  EXPECT_FALSE(load().ok());
}

TEST_F(KeptRandomTest, NothingElseIsLeftInTheDirectory) {
  ASSERT_TRUE(load().ok());
  ASSERT_TRUE(load().ok());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(state_))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, std::set<std::string>{"numbers"});
}

TEST_F(KeptRandomTest, ServersThatStartTogetherAgree) {
  std::vector<KeptRandom> drawn(8);
  std::vector<std::thread> servers;
  servers.reserve(drawn.size());
  for (KeptRandom& one : drawn)
    servers.emplace_back([this, &one] { one = load().value(); });
  for (std::thread& server : servers)
    server.join();
  EXPECT_EQ(std::set<KeptRandom>(drawn.begin(), drawn.end()).size(), 1u);
  EXPECT_EQ(load().value(), drawn.front());
}

}  // namespace
}  // namespace nfsrdma::test
