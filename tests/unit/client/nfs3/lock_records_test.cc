// SPDX-License-Identifier: Apache-2.0
// What is remembered of a mount that had locks, and what becomes of it when the mount has died.
#include "client/nfs3/lock_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/client/nfs3/file_locks_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr ByteRange kAll{0, UINT64_MAX};

class LockRecordsTest : public Nfs3LocksTest {
 protected:
  LockRecordsTest() {
    std::string pattern = "/tmp/nfs-rdma-records.XXXXXX";
    top_ = ::mkdtemp(pattern.data());
    directory_ = top_ + "/state/client-locks";
    op_.identity.gid = 100;
    const std::array<std::uint32_t, 2> groups{7, 8};
    op_.identity.set_groups(groups);
    make_anew();
  }
  ~LockRecordsTest() override {
    end();
    std::filesystem::remove_all(top_);
  }
  void make_anew() {
    end();
    make(directory_);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored))
      names.push_back(entry.path().filename());
    return names;
  }
  std::string text() const {
    EXPECT_EQ(files().size(), 1u);
    std::ifstream in(directory_ + "/" + files().at(0));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<nfs3::DeadRecord> dead() { return nfs3::dead_records(directory_, server_); }
  /// Another mount of the same host, that finds what this one has left.
  void succeed() {
    end();
    caller_.name = "host.next";
    caller_.id = 99;
    make(directory_);
    locks_->free_of_the_dead(dead());
  }

  std::string top_, directory_;
};

TEST_F(LockRecordsTest, AMountThatLocksNothingLeavesNothing) {
  EXPECT_EQ(read(), 0);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, WhoMayHaveLocksIsOnTheDiskBeforeTheServerIsAsked) {
  manager_.silent = true;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 9}});
  const std::string line = fmt::format("lock {} 4711 100,7,8 0102fe\n", svid(1));
  EXPECT_EQ(
      text(),
      "nfs-rdma locks 1\nserver 192.0.2.1 20049 2049\ncaller 0123456789abcdef host.test\n" + line);
  struct stat status {};
  ASSERT_EQ(::stat((directory_ + "/" + files()[0]).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  end();
  EXPECT_EQ(number(done), EIO);
}

TEST_F(LockRecordsTest, AnOwnerIsNotedOnceForEachFile) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  const std::string once = text();
  EXPECT_EQ(lock({1, LockKind::kWrite, {20, 29}}), 0);
  EXPECT_EQ(unlock(1, {0, 9}), 0);
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(text(), once);
  EXPECT_EQ(lock({2, LockKind::kRead, {50, 59}}), 0);
  EXPECT_NE(text(), once);
}

TEST_F(LockRecordsTest, AMountThatLivesIsNotTakenForDead) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_THAT(dead(), IsEmpty());
}

TEST_F(LockRecordsTest, OneThatEndsOrderlyLeavesNothing) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  bool over = false;
  group_.spawn(note_end(nfs_->end(op_), &over));
  serve_for(seconds(1));
  EXPECT_TRUE(over);
  end();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, WhatADeadOneHadIsFreedByItsNameWhereTheNameCounts) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.seen.clear();
  succeed();
  serve_for(seconds(1));
  EXPECT_THAT(manager_.freed, ElementsAre("host.test"));
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_UNLOCK), 1u)
      << "a server need not believe it, and does not say so";
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, ElsewhereByUnlockingWhatEachOwnerMayHave) {
  nlm_on_nfs_ = false;
  ways_->registered = SocketAddress::parse("192.0.2.1", 32803).value();
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {20, 29}}), 0);
  EXPECT_EQ(unlock(2, kAll), 0);  // its line stays
  // Of others of the same host, as far as that server knows.
  manager_.locks.lock(4711, LockKind::kWrite, {40, 49});
  const std::string owner = manager_.seen.front().owner;
  manager_.seen.clear();
  succeed();
  serve_for(seconds(1));
  EXPECT_THAT(manager_.freed, IsEmpty());
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_UNLOCK), 2u);
  for (const FakeLockManager::Seen& one : manager_.seen) {
    if (one.procedure != Proc::NLMPROC4_UNLOCK) continue;
    EXPECT_EQ(one.caller, "host.test");
    EXPECT_EQ(one.uid, 4711u);
    EXPECT_EQ(one.file, "\x01\x02\xfe");
    EXPECT_EQ(one.length, 0u);
  }
  ASSERT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(manager_.locks.held()[0].owner, 4711u);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, AServerThatDoesNotFreeByNameIsAskedForEach) {
  manager_.has_free_all = false;
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  succeed();
  serve_for(seconds(1));
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, AServerThatWaitsForItsOldClientsIsAskedAgain) {
  manager_.has_free_all = false;
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.in_grace = true;
  succeed();
  serve_for(seconds(30));
  EXPECT_EQ(files().size(), 1u);
  manager_.in_grace = false;
  serve_for(seconds(6));
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, AServerThatIsAwayIsWaitedForAndTheNextMountGoesOn) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.silent = true;
  succeed();
  serve_for(seconds(30));
  EXPECT_EQ(files().size(), 1u);
  manager_.silent = false;
  succeed();
  serve_for(seconds(10));
  EXPECT_THAT(manager_.freed, ElementsAre("host.test"));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LockRecordsTest, OneMountAtATimeSeesToTheDead) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  end();
  const std::vector<nfs3::DeadRecord> first = dead();
  EXPECT_EQ(first.size(), 1u);
  EXPECT_THAT(dead(), IsEmpty());
}

TEST_F(LockRecordsTest, AMountOfAnotherServerLeavesItAlone) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  end();
  for (const nfs3::RecordedServer& other :
       {nfs3::RecordedServer{{"192.0.2.2"}, 20049, 2049}, nfs3::RecordedServer{{}, 20049, 2049},
        nfs3::RecordedServer{{"192.0.2.1"}, 20050, 2050}}) {
    EXPECT_THAT(nfs3::dead_records(directory_, other), IsEmpty());
  }
  // By another of its addresses and ports it is the same.
  const nfs3::RecordedServer same{{"198.51.100.1", "192.0.2.1"}, 20049, 2050};
  EXPECT_EQ(nfs3::dead_records(directory_, same).size(), 1u);
}

TEST(RecordedServers, APortThatIsNotUsedMakesThemNotTheSame) {
  MountSettings settings;
  settings.addresses = {SocketAddress::parse("192.0.2.1", 0).value()};
  settings.proto = ProtoChoice::kRdma;
  const nfs3::RecordedServer by_rdma = nfs3::RecordedServer::of(settings);
  settings.proto = ProtoChoice::kTcp;
  const nfs3::RecordedServer by_tcp = nfs3::RecordedServer::of(settings);
  EXPECT_FALSE(by_rdma.may_be(by_tcp));
  settings.proto = ProtoChoice::kAuto;
  const nfs3::RecordedServer by_any = nfs3::RecordedServer::of(settings);
  EXPECT_TRUE(by_any.may_be(by_rdma));
  EXPECT_TRUE(by_tcp.may_be(by_any));
}

TEST_F(LockRecordsTest, WhatIsNoRecordIsLeftAlone) {
  std::filesystem::create_directories(directory_ + "/folder");
  for (const char* content : {"", "something else\n", "nfs-rdma locks 1\n",
                              "nfs-rdma locks 1\nserver 192.0.2.1 20049 2049\n",
                              "nfs-rdma locks 1\nserver 192.0.2.1 x 2049\ncaller 01 name\n"}) {
    std::ofstream(directory_ + "/file") << content;
    EXPECT_THAT(dead(), IsEmpty()) << content;
    EXPECT_EQ(files().size(), 2u);
  }
}

TEST_F(LockRecordsTest, LinesThatACrashHasCutOrSpoiltAreLeftOut) {
  nfs3::DeadRecord record;
  const std::string head =
      "nfs-rdma locks 1\nserver 192.0.2.1 20049 2049\ncaller 00000000000000ff some.name\n";
  ASSERT_TRUE(nfs3::parse_lock_record(
      head + "lock 5 0 0 0a0b\nlock x 0 0 0a0b\nlock 6 0 0 0a0\nlock 7 0 0 \nlock 8 0\n" +
          std::string(40, '\0') + "\nlock 9 1 2,3 ff\nlock 10 0 0 0a",
      &record));
  EXPECT_EQ(record.caller.id, 0xffu);
  EXPECT_EQ(record.caller.name, "some.name");
  ASSERT_EQ(record.owners.size(), 2u);
  EXPECT_EQ(record.owners[0].svid, 5u);
  EXPECT_EQ(as_text(record.owners[0].file.bytes()), "\x0a\x0b");
  EXPECT_EQ(record.owners[1].svid, 9u);
  EXPECT_EQ(record.owners[1].identity.uid, 1u);
  EXPECT_EQ(record.owners[1].identity.gid, 2u);
  EXPECT_EQ(record.owners[1].identity.group_count, 1u);
}

TEST_F(LockRecordsTest, ADirectoryThatCannotBeMadeIsDoneWithout) {
  end();
  std::ofstream(top_ + "/file") << "in the way";
  make(top_ + "/file/client-locks");
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {20, 29}}), 0);
  EXPECT_EQ(manager_.locks.held().size(), 2u);
}

TEST_F(LockRecordsTest, AFileOfManyThatAreGoneDoesNotGrowForEver) {
  nfs3::LockRecords records(*environment_, directory_, server_, {"many", 5});
  bool over = false;
  group_.spawn(note_end(records.begin(nullptr), &over));
  environment_->settle();
  ASSERT_TRUE(over);
  auto size = [&] { return std::filesystem::file_size(records.path()); };
  // One after the other: the file begins anew when nothing is left.
  std::uintmax_t most = 0;
  for (std::uint32_t owner = 0; owner < 3000; ++owner) {
    records.note(owner, op_.identity, file_);
    records.forget(owner, file_);
    most = std::max(most, size());
  }
  EXPECT_LT(most, 32u << 10);
  // With one that stays: another file.
  records.note(1, op_.identity, file_);
  for (std::uint32_t owner = 2; owner < 60000; ++owner) {
    records.note(owner, op_.identity, file_);
    records.forget(owner, file_);
    if (owner % 1000 == 0) most = std::max(most, size());
  }
  EXPECT_LT(most, 2u << 20);
  EXPECT_EQ(files().size(), 1u);
  EXPECT_THAT(dead(), IsEmpty());
  std::ifstream in(records.path());
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(content, HasSubstr("lock 1 4711"));
  EXPECT_THAT(content, Not(HasSubstr("lock 2 4711")));
}

}  // namespace
}  // namespace nfsrdma
