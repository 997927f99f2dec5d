// SPDX-License-Identifier: Apache-2.0
// ClientRecords: who may reclaim after a restart, and logs that are not as they were left.
#include "tests/unit/server/nfs4/simulated_disk.h"

namespace nfsrdma::nfs4::test {
namespace {

using ::testing::HasSubstr;

// --- Who may reclaim ---

TEST(ClientRecords, TheFirstLifeHasNobodyToWaitFor) {
  Disk disk;
  auto records = start(disk);
  EXPECT_TRUE(records->before().empty());
  EXPECT_EQ(records->size(), 0u);
}

TEST(ClientRecords, WhoHadStateMayReclaim) {
  Disk disk;
  auto records = start(disk);
  ASSERT_TRUE(records->add("one").ok());
  ASSERT_TRUE(records->add("two").ok());
  ASSERT_TRUE(records->add("gone").ok());
  ASSERT_TRUE(records->remove("gone").ok());
  EXPECT_EQ(records->size(), 2u);
  EXPECT_EQ(left_on(disk), (Owners{"one", "two"}));
}

TEST(ClientRecords, OwnersAreAnyBytes) {
  Disk disk;
  std::string all;
  for (int i = 0; i < 1024; ++i)
    all.push_back(static_cast<char>(i));
  const std::string zeros(3, '\0');
  auto records = start(disk);
  ASSERT_TRUE(records->add(all).ok());
  ASSERT_TRUE(records->add("").ok());
  ASSERT_TRUE(records->add(zeros).ok());
  const auto refused = records->add(all + "x");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kInvalid);
  EXPECT_EQ(left_on(disk), (Owners{all, "", zeros}));
}

TEST(ClientRecords, WhoDidNotComeInTheGracePeriodIsDropped) {
  Disk disk;
  auto first = start(disk);
  ASSERT_TRUE(first->add("came").ok());
  ASSERT_TRUE(first->add("stayed away").ok());
  auto second = start(disk);
  ASSERT_TRUE(second->add("came").ok());
  ASSERT_TRUE(second->end_grace().ok());
  ASSERT_TRUE(second->add("new").ok());
  EXPECT_EQ(left_on(disk), (Owners{"came", "new"}));
}

TEST(ClientRecords, ASecondCrashInTheGracePeriodKeepsThoseThatCouldStillCome) {
  Disk disk;
  auto first = start(disk);
  for (const char* owner : {"came", "was on its way", "lost its lease"})
    ASSERT_TRUE(first->add(owner).ok());
  for (int crash = 0; crash < 3; ++crash) {
    auto again = start(disk);
    ASSERT_TRUE(again->add("came").ok());
    ASSERT_TRUE(again->remove("lost its lease").ok());
  }
  EXPECT_EQ(left_on(disk), (Owners{"came", "was on its way"}));
}

// RFC 8881 8.4.3: cut off over two restarts, while others had the lock in the life between.
TEST(ClientRecords, WhoMissedAWholeLifeMayNotReclaimInTheNext) {
  Disk disk;
  ASSERT_TRUE(start(disk)->add("cut off").ok());
  auto second = start(disk);
  ASSERT_TRUE(second->end_grace().ok());
  ASSERT_TRUE(second->add("other").ok());
  ASSERT_TRUE(second->remove("other").ok());
  EXPECT_EQ(left_on(disk), Owners{});
}

TEST(ClientRecords, WhoLostADelegationReclaimsNoneUntilTheGraceIsOver) {
  Disk disk;
  auto records = start(disk);
  for (const char* owner : {"lost", "kept", "ended"}) {
    ASSERT_TRUE(records->add(owner).ok());
  }
  EXPECT_TRUE(records->lose_delegation("lost").ok());
  EXPECT_TRUE(records->lose_delegation("ended").ok());
  EXPECT_TRUE(records->lose_delegation("unknown").ok());
  EXPECT_TRUE(records->lost_before().empty()) << "in this life it is not there to be reclaimed";
  ASSERT_TRUE(records->remove("ended").ok());
  ASSERT_TRUE(records->add("ended").ok()) << "a later life of that client";
  // Through any number of restarts, whether it has come or not.
  for (int crash = 0; crash < 3; ++crash) {
    records = start(disk);
    EXPECT_EQ(records->lost_before(), Owners{"lost"});
    if (crash == 1) {
      ASSERT_TRUE(records->add("lost").ok());
    }
  }
  ASSERT_TRUE(records->add("lost").ok());
  ASSERT_TRUE(records->end_grace().ok());
  EXPECT_EQ(left_on(disk), Owners{"lost"});
  records = start(disk);
  EXPECT_TRUE(records->lost_before().empty()) << "it had to give up what it believed in";
}

TEST(ClientRecords, RepeatingAChangeCostsNothing) {
  Disk disk;
  auto records = start(disk);
  ASSERT_TRUE(records->add("one").ok());
  const int changes = disk.changes;
  ASSERT_TRUE(records->add("one").ok());
  ASSERT_TRUE(records->remove("never seen").ok());
  ASSERT_TRUE(records->end_grace().ok());  // nobody was waited for
  EXPECT_EQ(disk.changes, changes);
}

// --- The number of the life ---

TEST(ClientRecords, EachLifeHasANumberOfItsOwn) {
  Disk disk;
  std::uint32_t last = 0;
  for (int life = 0; life < 20; ++life) {
    auto records = start(disk, 5);  // a clock that stands still
    EXPECT_GT(records->boot(), last);
    last = records->boot();
  }
}

TEST(ClientRecords, TheNumberSurvivesTheLossOfTheRecords) {
  Disk lost;
  const std::uint32_t before = start(lost, 1'800'000'000)->boot();
  Disk fresh;
  EXPECT_GT(start(fresh, 1'800'000'009)->boot(), before);
}

TEST(ClientRecords, AClockThatWasSetBackOrWrongDoesNotMatter) {
  Disk disk;
  const std::uint32_t before = start(disk, 1'800'000'000)->boot();
  EXPECT_EQ(start(disk, 7)->boot(), before + 1);
  EXPECT_EQ(start(disk, std::uint64_t{1} << 40)->boot(), before + 2);
}

TEST(ClientRecords, TheLogStaysSmall) {
  Disk disk;
  auto records = start(disk);
  ASSERT_TRUE(records->add("stays").ok());
  const std::string owner(1000, 'x');
  std::size_t largest = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(records->add(owner).ok());
    ASSERT_TRUE(records->remove(owner).ok());
    largest = std::max(largest, disk.content->size());
  }
  EXPECT_LT(largest, 80u << 10);
  EXPECT_EQ(left_on(disk), Owners{"stays"});
}

// --- Damage ---

/// A log with two records behind the beginning and where the last one starts.
Disk disk_with_records(std::size_t* last_record) {
  Disk disk;
  EXPECT_TRUE(start(disk)->add("old").ok());
  auto records = start(disk);
  EXPECT_TRUE(records->add("one").ok());
  *last_record = disk.content->size();
  EXPECT_TRUE(records->add("two").ok());
  return disk;
}

TEST(ClientRecordsDamage, EachFlippedBitIsNoticed) {
  std::size_t last_record = 0;
  const Disk good = disk_with_records(&last_record);
  for (std::size_t bit = 0; bit < good.content->size() * 8; ++bit) {
    Disk bad;
    bad.content = *good.content;
    (*bad.content)[bit / 8] = static_cast<char>((*bad.content)[bit / 8] ^ (1 << bit % 8));
    std::string why;
    auto records = ClientRecords::open(std::make_unique<DiskStorage>(bad), 0, &why);
    if (bit / 8 >= last_record) {
      // Not to be told from a record that was being written.
      ASSERT_NE(records, nullptr) << bit;
      EXPECT_EQ(records->before(), (Owners{"old", "one"}));
    } else {
      EXPECT_EQ(records, nullptr) << bit;
      EXPECT_THAT(why, HasSubstr("the disk")) << bit;
      EXPECT_THAT(why, HasSubstr("move it away")) << bit;
    }
  }
}

TEST(ClientRecordsDamage, AFileCutWithinItsBeginningIsNoCrash) {
  std::size_t last_record = 0;
  const Disk good = disk_with_records(&last_record);
  const std::size_t beginning = 24 + 16 + (12 + 8) + (12 + 3);  // magic, key, B, P "old"
  for (std::size_t size = 0; size < good.content->size(); ++size) {
    Disk cut;
    cut.content = good.content->substr(0, size);
    std::string why;
    auto records = ClientRecords::open(std::make_unique<DiskStorage>(cut), 0, &why);
    EXPECT_EQ(records != nullptr, size >= beginning) << size;
  }
}

TEST(ClientRecordsDamage, MoreThanARecordOfGarbageIsNoCrash) {
  std::size_t last_record = 0;
  Disk disk = disk_with_records(&last_record);
  *disk.content += std::string(2000, '\0');
  std::string why;
  EXPECT_EQ(ClientRecords::open(std::make_unique<DiskStorage>(disk), 0, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("damaged"));
}

TEST(ClientRecordsDamage, AClientCannotWriteRecordsByItsName) {
  // Its name holds a whole log, records and all; power fails while it is being written.
  std::size_t last_record = 0;
  const std::string log = *disk_with_records(&last_record).content;
  Disk disk;
  auto records = start(disk);
  ASSERT_TRUE(records->add("good").ok());
  const std::size_t size = disk.content->size();
  ASSERT_TRUE(records->add(log).ok());
  disk.content->resize(disk.content->size() - 1);
  EXPECT_EQ(left_on(disk), Owners{"good"});
  disk.content->resize(size);
  *disk.content += log;
  EXPECT_EQ(left_on(disk), Owners{"good"});
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
