// SPDX-License-Identifier: Apache-2.0
// The change attribute: by hand, at random against a model of a kernel with coarse times, and on a
// real file.
#include "server/vfs/change_counter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

struct stat attributes_at(std::uint64_t ctime, std::uint64_t inode = 2) {
  struct stat out {};
  out.st_dev = 1;
  out.st_ino = inode;
  out.st_ctim = {static_cast<time_t>(ctime / kSecond), static_cast<long>(ctime % kSecond)};
  return out;
}

class ChangeCounterTest : public ::testing::Test {
 protected:
  std::uint64_t look(std::uint64_t ctime, std::uint64_t inode = 2) {
    return counter.value(attributes_at(ctime, inode), counter.now(1, inode));
  }
  /// A whole change from ctime `before` to `after`.
  std::uint64_t change(std::uint64_t before, std::uint64_t after, std::uint64_t inode = 2) {
    ChangeCounter::Change one(counter, 1, inode);
    one.before(attributes_at(before, inode));
    return one.finish(attributes_at(after, inode));
  }
  ChangeCounter counter;
};

TEST_F(ChangeCounterTest, IsCtimeWhereThatIsEnough) {
  EXPECT_EQ(look(5 * kSecond + 7), 5 * kSecond + 7);
  EXPECT_EQ(change(5 * kSecond + 7, 5 * kSecond + 8), 5 * kSecond + 8);
  EXPECT_EQ(look(5 * kSecond + 8), 5 * kSecond + 8);
}

TEST_F(ChangeCounterTest, DiffersAfterEveryChangeWithinOneTick) {
  std::uint64_t last = look(100);
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t value = change(100, 100);
    EXPECT_GT(value, last);
    EXPECT_EQ(look(100), value);
    last = value;
  }
  // The next tick is far away, and then ctime is enough again.
  EXPECT_EQ(change(100, 4'000'100), 4'000'100u);
  EXPECT_EQ(look(4'000'100), 4'000'100u);
}

TEST_F(ChangeCounterTest, OtherInodesHaveNoPartInIt) {
  change(100, 100, 2);
  for (std::uint64_t inode = 3; inode < 5000; ++inode)
    ASSERT_EQ(look(100, inode), 100u) << inode;
}

TEST_F(ChangeCounterTest, WhoLooksDuringAChangeSeesAnotherValueAfterIt) {
  ChangeCounter::Change one(counter, 1, 2);
  EXPECT_EQ(one.before(attributes_at(100)), 100u);
  // The kernel has set ctime but not written everything yet.
  EXPECT_EQ(look(200), 200u);
  EXPECT_EQ(one.finish(attributes_at(200)), 201u);
  EXPECT_EQ(look(200), 201u);
}

TEST_F(ChangeCounterTest, AttributesFromTheMiddleOfAChangeThatHasEndedAreNotTrusted) {
  const ChangeCounter::Moment moment = counter.now(1, 2);
  ChangeCounter::Change one(counter, 1, 2);
  one.before(attributes_at(100));
  const struct stat in_the_middle = attributes_at(200);
  EXPECT_EQ(one.finish(attributes_at(200)), 200u);
  const std::uint64_t told = counter.value(in_the_middle, moment);
  EXPECT_GT(look(200), told);
}

TEST_F(ChangeCounterTest, ManyOtherChangesSinceTheMomentErrOnTheSafeSide) {
  const ChangeCounter::Moment moment = counter.now(1, 2);
  for (int i = 0; i < 20; ++i)
    change(100 + i * 10, 110 + i * 10);
  const std::uint64_t told = counter.value(attributes_at(300), moment);
  EXPECT_GT(look(300), told);
}

TEST_F(ChangeCounterTest, OverlappingChangesAreNotAloneAndEndWithValuesOfTheirOwn) {
  ChangeCounter::Change first(counter, 1, 2);
  first.before(attributes_at(100));
  ChangeCounter::Change second(counter, 1, 2);
  second.before(attributes_at(100));
  ChangeCounter::Change elsewhere(counter, 1, 3);
  elsewhere.before(attributes_at(100, 3));
  const std::uint64_t a = first.finish(attributes_at(200));
  const std::uint64_t seen = look(200);
  const std::uint64_t b = second.finish(attributes_at(200));
  EXPECT_EQ(seen, a);
  EXPECT_GT(b, a);
  EXPECT_EQ(look(200), b);
  EXPECT_FALSE(first.alone());
  EXPECT_FALSE(second.alone());
  elsewhere.finish(attributes_at(200, 3));
  EXPECT_TRUE(elsewhere.alone());
}

TEST_F(ChangeCounterTest, WhatWasGivenUpIsNoChange) {
  const std::uint64_t last = change(100, 100);
  {
    ChangeCounter::Change attempt(counter, 1, 2);
    EXPECT_EQ(attempt.before(attributes_at(100)), last);
    EXPECT_EQ(look(100), last);
    EXPECT_EQ(attempt.give_up(), last);
    EXPECT_TRUE(attempt.alone());
  }
  EXPECT_EQ(look(100), last);
  EXPECT_EQ(change(100, 100), last + 1);
}

TEST_F(ChangeCounterTest, WhatIsToldByAnAttemptCountsForChangesUnderWay) {
  ChangeCounter::Change real(counter, 1, 2);
  real.before(attributes_at(100));
  ChangeCounter::Change attempt(counter, 1, 2);
  EXPECT_EQ(attempt.before(attributes_at(200)), 200u);
  EXPECT_EQ(attempt.give_up(), 200u);
  EXPECT_FALSE(attempt.alone());
  EXPECT_EQ(real.finish(attributes_at(200)), 201u);
}

TEST_F(ChangeCounterTest, AChangeThatNobodyFinishedCountsAsMade) {
  {
    ChangeCounter::Change lost(counter, 1, 2);
    lost.before(attributes_at(100));
  }
  EXPECT_EQ(look(100), 101u);
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  { ChangeCounter::Change unseen(counter, 1, 2); }
  EXPECT_GT(look(100), change_of_time(now));
}

TEST_F(ChangeCounterTest, AClockThatWasSetBackDoesNotTakeItBackWhileTheInodeIsRemembered) {
  EXPECT_EQ(change(500, 400), 501u);
  EXPECT_EQ(look(400), 501u);
  EXPECT_EQ(change(400, 401), 502u);
}

TEST_F(ChangeCounterTest, RemembersTheLatestInodes) {
  for (std::uint64_t inode = 1; inode <= 100'000; ++inode)
    change(inode * 1000, inode * 1000, inode);
  // Inodes are spread: of a quarter of the places all are kept.
  for (std::uint64_t inode = 100'000 - ChangeCounter::kInodes / 8; inode <= 100'000; ++inode)
    ASSERT_EQ(look(inode * 1000, inode), inode * 1000 + 1) << inode;
  EXPECT_EQ(look(1000, 1), 1000u);
}

TEST_F(ChangeCounterTest, ARestartGoesBackToCtime) {
  change(100, 100);
  ChangeCounter restarted;
  EXPECT_EQ(restarted.value(attributes_at(100), restarted.now(1, 2)), 100u);
}

/// A file in a kernel whose ctime goes by ticks, with readers and writers that take turns in small
/// steps.
struct Model {
  explicit Model(unsigned seed) : random(seed) {}
  std::mt19937 random;
  ChangeCounter counter;
  std::uint64_t tick = 1000;
  std::uint64_t ctime = 1000;
  int version = 0;  // of the content

  struct Writer {
    std::optional<ChangeCounter::Change> change;
    int step = 0;
  };
  struct Reader {
    ChangeCounter::Moment moment = 0;
    struct stat seen {};
    int version = 0;
    std::uint64_t floor = 0;  // told to others before this one began
    int step = 0;
  };
  struct Told {
    std::uint64_t value;
    int version;
  };
  std::vector<Told> told;
  std::uint64_t largest = 0;

  void step(Writer& writer) {
    switch (writer.step++) {
      case 0:
        writer.change.emplace(counter, 1, 2);
        break;
      case 1:
        writer.change->before(attributes_at(ctime));
        break;
      case 2:
        ctime = tick;
        break;
      case 3:
        ++version;
        break;
      case 4:
        writer.change->finish(attributes_at(ctime));
        writer.change.reset();
        writer.step = 0;
        break;
    }
  }
  void step(Reader& reader) {
    switch (reader.step++) {
      case 0:
        reader.floor = largest;
        reader.moment = counter.now(1, 2);
        break;
      case 1:
        reader.seen = attributes_at(ctime);
        reader.version = version;
        break;
      case 2: {
        const std::uint64_t value = counter.value(reader.seen, reader.moment);
        EXPECT_GE(value, reader.floor) << "went backwards";
        largest = std::max(largest, value);
        told.push_back({value, reader.version});
        reader.step = 0;
        break;
      }
    }
  }
};

TEST(ChangeCounterModel, EqualValuesMeanEqualContentWhateverTheOrder) {
  constexpr std::uint64_t kTick = 1'000'000;
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    Model model(seed);
    std::vector<Model::Writer> writers(1 + seed % 3);
    std::vector<Model::Reader> readers(1 + seed % 2);
    for (int i = 0; i < 120; ++i) {
      const unsigned choice = static_cast<unsigned>(model.random() % 8);
      if (choice == 0) model.tick += kTick;
      if (choice < 4) model.step(writers[model.random() % writers.size()]);
      if (choice >= 4) model.step(readers[model.random() % readers.size()]);
    }
    for (auto& reader : readers)
      while (reader.step != 0)
        model.step(reader);
    for (auto& writer : writers)
      while (writer.step != 0)
        model.step(writer);
    Model::Reader last;
    for (int i = 0; i < 3; ++i)
      model.step(last);
    const Model::Told settled = model.told.back();
    ASSERT_EQ(settled.version, model.version);
    for (const Model::Told& one : model.told) {
      if (one.value == settled.value) {
        ASSERT_EQ(one.version, settled.version) << "seed " << seed;
      }
    }
  }
}

TEST(ChangeCounterFile, EveryWriteOfARealFileShows) {
  UniqueFd fd(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) fd.reset(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd);
  struct stat st;
  ASSERT_EQ(::fstat(fd.get(), &st), 0);
  ChangeCounter counter;
  std::uint64_t last = 0;
  ASSERT_EQ(counter.look(fd.get(), st.st_dev, st.st_ino, &st, &last), 0);
  for (int i = 0; i < 1000; ++i) {
    ChangeCounter::Change change(counter, st.st_dev, st.st_ino);
    EXPECT_EQ(change.before(st), last);
    ASSERT_EQ(::pwrite(fd.get(), "x", 1, i), 1);
    ASSERT_EQ(::fstat(fd.get(), &st), 0);
    const std::uint64_t after = change.finish(st);
    ASSERT_GT(after, last);
    std::uint64_t again = 0;
    ASSERT_EQ(counter.look(fd.get(), st.st_dev, st.st_ino, &st, &again), 0);
    ASSERT_EQ(again, after);
    last = after;
  }
}

TEST(ChangeCounterThreads, LookersAndChangersDoNotDisturbEachOther) {
  ChangeCounter counter;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&counter, t] {
      std::uint64_t last = 0;
      for (std::uint64_t i = 0; i < 2000; ++i) {
        if (t % 2 == 0) {
          ChangeCounter::Change change(counter, 1, 2);
          change.before(attributes_at(100));
          const std::uint64_t value = change.finish(attributes_at(100));
          EXPECT_GT(value, last);
          last = value;
        } else {
          const std::uint64_t value = counter.value(attributes_at(100), counter.now(1, 2));
          EXPECT_GE(value, last);
          last = value;
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_GE(counter.value(attributes_at(100), counter.now(1, 2)), 4100u);
}

}  // namespace
}  // namespace nfsrdma
