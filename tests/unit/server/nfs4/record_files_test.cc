// SPDX-License-Identifier: Apache-2.0
// ClientRecords on real files, of a process that is killed.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/unit/server/nfs4/simulated_disk.h"

namespace nfsrdma::nfs4::test {
namespace {

using ::testing::HasSubstr;

class RecordFiles : public ::testing::Test {
 protected:
  RecordFiles() {
    char name[] = "/tmp/nfsrdma-records-XXXXXX";
    home_ = ::mkdtemp(name);
  }
  ~RecordFiles() override { std::filesystem::remove_all(home_); }

  std::unique_ptr<ClientRecords> open(std::string* why = nullptr) {
    std::string ignored;
    return ClientRecords::open(home_ + "/state", 0, why != nullptr ? why : &ignored);
  }
  std::string log() const { return home_ + "/state/nfs4-clients/log"; }
  void put_log(std::string_view content) {
    std::filesystem::create_directories(home_ + "/state/nfs4-clients");
    std::ofstream(log(), std::ios::binary) << content;
  }

  std::string home_;
};

TEST_F(RecordFiles, AreForTheServerAlone) {
  auto records = open();
  ASSERT_NE(records, nullptr);
  struct stat st {};
  ASSERT_EQ(::stat(log().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat((home_ + "/state/nfs4-clients").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
}

TEST_F(RecordFiles, HoldWhatWasAdded) {
  std::uint32_t boot = 0;
  {
    auto records = open();
    ASSERT_NE(records, nullptr);
    boot = records->boot();
    ASSERT_TRUE(records->add("one").ok());
    ASSERT_TRUE(records->add("two").ok());
    ASSERT_TRUE(records->remove("one").ok());
  }
  // Left behind by a crash before the rename.
  std::ofstream(log() + ".new") << std::string(100'000, 'x');
  auto records = open();
  ASSERT_NE(records, nullptr);
  EXPECT_EQ(records->before(), Owners{"two"});
  EXPECT_EQ(records->boot(), boot + 1);
}

TEST_F(RecordFiles, AreForOneServerAtATime) {
  auto records = open();
  std::string why;
  EXPECT_EQ(open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr(home_ + "/state/nfs4-clients"));
  EXPECT_THAT(why, HasSubstr("another server"));
  records.reset();
  EXPECT_NE(open(), nullptr);
}

TEST_F(RecordFiles, ThatAreForeignAreNamedAndKept) {
  for (const std::string& content :
       {std::string(), std::string("hello"), std::string("nfs-rdma nfs4 clients 2\nwhatever"),
        std::string("nfs-rdma nfs4 clients 1\n")}) {
    put_log(content);
    std::string why;
    EXPECT_EQ(open(&why), nullptr);
    EXPECT_THAT(why, HasSubstr(log()));
    EXPECT_THAT(why, HasSubstr("move it away"));
    EXPECT_EQ(std::filesystem::file_size(log()), content.size());
  }
}

TEST_F(RecordFiles, OfANewerVersionAreCalledSo) {
  put_log("nfs-rdma nfs4 clients 2\n0123456789abcdef");
  std::string why;
  EXPECT_EQ(open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr("newer version"));
}

TEST_F(RecordFiles, MustBeFiles) {
  std::filesystem::create_directories(log());
  std::string why;
  EXPECT_EQ(open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr(log()));
  std::filesystem::remove(log());
  put_log("");
  std::filesystem::rename(log(), home_ + "/elsewhere");
  std::filesystem::create_symlink(home_ + "/elsewhere", log());
  EXPECT_EQ(open(&why), nullptr);
  std::filesystem::remove(log());
  ASSERT_EQ(::mkfifo(log().c_str(), 0600), 0);
  EXPECT_EQ(open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr("not a regular file"));
}

TEST_F(RecordFiles, AFullDiskIsAnErrorAndNoDamage) {
  auto records = open();
  ASSERT_TRUE(records->add("one").ok());
  // A limit on the size of files stands for the full disk: the write is cut short.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{std::filesystem::file_size(log()) + 100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto refused = records->add(std::string(1000, 'x'));
  const auto small = records->add("two");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(refused.ok());
  EXPECT_TRUE(small.ok());  // there was room for that one
  ASSERT_TRUE(records->add("three").ok());
  records.reset();
  EXPECT_EQ(open()->before(), (Owners{"one", "two", "three"}));
}

TEST_F(RecordFiles, ThreadsMayAddAtTheSameTime) {
  auto records = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&records, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string owner = std::to_string(t) + "." + std::to_string(i);
        EXPECT_TRUE(records->add(owner).ok());
        EXPECT_TRUE(records->add("shared").ok());
        if (i % 2 != 0) continue;
        EXPECT_TRUE(records->remove(owner).ok());
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(records->size(), 41u);
  records.reset();
  EXPECT_EQ(open()->before().size(), 41u);
}

TEST_F(RecordFiles, SurviveKillAtAnyMoment) {
  std::size_t acknowledged = 0;  // owners "0" to this one are recorded
  for (int round = 0; round < 8; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto records = open();
      for (std::size_t i = 0; records != nullptr; ++i) {
        if (!records->add(std::to_string(i)).ok()) break;
        if (::write(pipe_ends[1], "x", 1) != 1) break;
      }
      ::_exit(1);
    }
    ::close(pipe_ends[1]);
    // Until a number of them are acknowledged, then the end, in the middle of whatever comes next.
    std::size_t count = 0;
    char byte = 0;
    const std::size_t enough = 10 + static_cast<std::size_t>(round) * 7;
    while (count < enough && ::read(pipe_ends[0], &byte, 1) == 1)
      ++count;
    ASSERT_EQ(count, enough);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    while (::read(pipe_ends[0], &byte, 1) == 1)
      ++count;
    ::close(pipe_ends[0]);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    acknowledged = std::max(acknowledged, count);

    std::string why;
    auto records = open(&why);
    ASSERT_NE(records, nullptr) << why;
    for (std::size_t i = 0; i < acknowledged; ++i)
      EXPECT_TRUE(records->before().contains(std::to_string(i))) << i;
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
