// SPDX-License-Identifier: Apache-2.0
#include "server/reply_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace nfsrdma {
namespace {

using Verdict = ReplyCache::Verdict;

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration d) { now_ += d; }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

class Waiter final : public ReplayWaiter {
 public:
  void on_original_done() override { ++done; }
  void on_superseded() override { ++superseded; }
  int done = 0;
  int superseded = 0;
};

SocketAddress address(const std::string& host, std::uint16_t port = 700) {
  return SocketAddress::parse(host, port).value();
}

std::vector<std::byte> arguments(std::size_t size = 128, int fill = 0) {
  return std::vector<std::byte>(size, static_cast<std::byte>(fill));
}

ReplyCache::Key key(const std::string& host, std::uint32_t xid) {
  return ReplyCache::make_key(address(host), xid, 100003, 3, 12, arguments());
}

struct Answer {
  Verdict verdict;
  ReplyCache::Entry* entry = nullptr;
  std::string body;
};

class ReplyCacheTest : public testing::Test {
 protected:
  Answer begin(ReplyCache& cache, const ReplyCache::Key& k, std::uint64_t connection = 1) {
    Answer answer{};
    std::byte room[70000];
    std::size_t size = 0;
    answer.verdict = cache.begin(k, connection, waiter_, &answer.entry, room, &size);
    if (answer.verdict == Verdict::kReplay) answer.body = as_text(ByteSpan(room).first(size));
    return answer;
  }
  void remember(ReplyCache& cache, const ReplyCache::Key& k, std::string_view body,
                ReplyCache::Keep how = ReplyCache::Keep::kLong) {
    Answer answer = begin(cache, k);
    ASSERT_EQ(answer.verdict, Verdict::kNew);
    cache.finish(answer.entry, as_bytes(body), how);
  }
  void write(ReplyCache& cache, const ReplyCache::Key& k) {
    remember(cache, k, "written", ReplyCache::Keep::kBriefly);
  }
  FakeClock clock_;
  Waiter waiter_;
};

TEST_F(ReplyCacheTest, AnUnknownCallIsNew) {
  ReplyCache cache(1 << 20, clock_);
  Answer answer = begin(cache, key("192.0.2.1", 1));
  EXPECT_EQ(answer.verdict, Verdict::kNew);
  cache.abandon(answer.entry);
}

TEST_F(ReplyCacheTest, AFinishedCallIsReplayed) {
  ReplyCache cache(1 << 20, clock_);
  remember(cache, key("192.0.2.1", 1), "results");
  Answer again = begin(cache, key("192.0.2.1", 1));
  EXPECT_EQ(again.verdict, Verdict::kReplay);
  EXPECT_EQ(again.body, "results");
}

TEST_F(ReplyCacheTest, AnEmptyResultIsReplayedToo) {
  ReplyCache cache(1 << 20, clock_);
  remember(cache, key("192.0.2.1", 1), "");
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1)).verdict, Verdict::kReplay);
}

TEST_F(ReplyCacheTest, ThePortDoesNotCount) {
  const auto m = arguments();
  EXPECT_EQ(ReplyCache::make_key(address("192.0.2.1", 700), 1, 100003, 3, 12, m),
            ReplyCache::make_key(address("192.0.2.1", 50000), 1, 100003, 3, 12, m));
}

TEST_F(ReplyCacheTest, AMappedAddressIsItsIpv4Address) {
  const auto m = arguments();
  EXPECT_EQ(ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 3, 12, m),
            ReplyCache::make_key(address("::ffff:192.0.2.1"), 1, 100003, 3, 12, m));
}

TEST_F(ReplyCacheTest, EverythingElseCounts) {
  const auto m = arguments();
  const ReplyCache::Key base = ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 3, 12, m);
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.2"), 1, 100003, 3, 12, m));
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.1"), 1, 100005, 3, 12, m));
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 4, 12, m));
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 3, 13, m));
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.1"), 2, 100003, 3, 12, m));
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 3, 12, arguments(132)));
  EXPECT_NE(base, ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 3, 12, arguments(128, 7)));
}

TEST_F(ReplyCacheTest, BytesBehindTheChecksummedOnesDoNotCount) {
  auto a = arguments(1000), b = arguments(1000);
  b[ReplyCache::kChecksummedBytes] = std::byte{1};
  EXPECT_EQ(ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, a),
            ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, b));
  b[ReplyCache::kChecksummedBytes - 1] = std::byte{1};
  EXPECT_NE(ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, a),
            ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, b));
}

TEST_F(ReplyCacheTest, CallsWithoutArgumentsAreToldApartByTheRest) {
  EXPECT_EQ(ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, {}),
            ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, {}));
  EXPECT_NE(ReplyCache::make_key(address("192.0.2.1"), 1, 1, 1, 1, {}),
            ReplyCache::make_key(address("192.0.2.1"), 2, 1, 1, 1, {}));
}

TEST_F(ReplyCacheTest, ADuplicateOnTheSameConnectionIsDroppedWhileRunning) {
  ReplyCache cache(1 << 20, clock_);
  Answer first = begin(cache, key("192.0.2.1", 1), 1);
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1), 1).verdict, Verdict::kDrop);
  cache.finish(first.entry, {});
  EXPECT_EQ(waiter_.done, 0);
}

TEST_F(ReplyCacheTest, ADuplicateOnAnotherConnectionWaitsAndThenReplays) {
  ReplyCache cache(1 << 20, clock_);
  Answer first = begin(cache, key("192.0.2.1", 1), 1);
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1), 2).verdict, Verdict::kWait);
  EXPECT_EQ(waiter_.done, 0);
  cache.finish(first.entry, as_bytes("x"));
  EXPECT_EQ(waiter_.done, 1);
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1), 2).body, "x");
}

TEST_F(ReplyCacheTest, AnAbandonedCallIsNewForItsWaiter) {
  ReplyCache cache(1 << 20, clock_);
  Answer first = begin(cache, key("192.0.2.1", 1), 1);
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1), 2).verdict, Verdict::kWait);
  cache.abandon(first.entry);
  EXPECT_EQ(waiter_.done, 1);
  Answer second = begin(cache, key("192.0.2.1", 1), 2);
  EXPECT_EQ(second.verdict, Verdict::kNew);
  cache.abandon(second.entry);
}

TEST_F(ReplyCacheTest, AThirdDuplicateSupersedesTheSecond) {
  ReplyCache cache(1 << 20, clock_);
  Answer first = begin(cache, key("192.0.2.1", 1), 1);
  Waiter second, third;
  ReplyCache::Entry* entry = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(cache.begin(key("192.0.2.1", 1), 2, second, &entry, {}, &size), Verdict::kWait);
  EXPECT_EQ(cache.begin(key("192.0.2.1", 1), 3, third, &entry, {}, &size), Verdict::kWait);
  EXPECT_EQ(second.superseded, 1);
  cache.finish(first.entry, {});
  EXPECT_EQ(second.done, 0);
  EXPECT_EQ(third.done, 1);
}

TEST_F(ReplyCacheTest, TooSmallARoomIsToldTheSize) {
  ReplyCache cache(1 << 20, clock_);
  remember(cache, key("192.0.2.1", 1), "results");
  ReplyCache::Entry* entry = nullptr;
  std::byte room[6] = {};
  std::size_t size = 0;
  EXPECT_EQ(cache.begin(key("192.0.2.1", 1), 1, waiter_, &entry, room, &size), Verdict::kReplay);
  EXPECT_EQ(size, 7u);
  EXPECT_EQ(room[0], std::byte{0});
}

TEST_F(ReplyCacheTest, LongResultsAreKeptWhole) {
  ReplyCache cache(1 << 20, clock_);
  const std::string body(ReplyCache::kInlineBody + 1, 'b');
  remember(cache, key("192.0.2.1", 1), body);
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1)).body, body);
}

TEST_F(ReplyCacheTest, HugeResultsAreNotKept) {
  ReplyCache cache(8 << 20, clock_);
  remember(cache, key("192.0.2.1", 1), std::string(ReplyCache::kMaxBody + 1, 'b'));
  Answer again = begin(cache, key("192.0.2.1", 1));
  EXPECT_EQ(again.verdict, Verdict::kNew);
  cache.abandon(again.entry);
}

TEST_F(ReplyCacheTest, AnswersAgeOut) {
  ReplyCache cache(1 << 20, clock_);
  remember(cache, key("192.0.2.1", 1), "old");
  clock_.advance(ReplyCache::kLifetime);
  EXPECT_EQ(begin(cache, key("192.0.2.1", 1)).verdict, Verdict::kReplay);
  clock_.advance(std::chrono::nanoseconds(1));
  Answer late = begin(cache, key("192.0.2.1", 1));
  EXPECT_EQ(late.verdict, Verdict::kNew);
  cache.abandon(late.entry);
}

TEST_F(ReplyCacheTest, TheBoundHolds) {
  ReplyCache cache(64 << 10, clock_);
  for (std::uint32_t xid = 0; xid < 5000; ++xid)
    remember(cache, key("192.0.2.1", xid), "r");
  EXPECT_LE(cache.stats().bytes, std::uint64_t{64} << 10);
  EXPECT_GT(cache.stats().evicted, 4000u);
}

TEST_F(ReplyCacheTest, TheOldestAnswerGoesFirst) {
  ReplyCache cache(64 << 10, clock_);
  for (std::uint32_t xid = 0; xid < 1000; ++xid)
    remember(cache, key("192.0.2.1", xid), "r");
  EXPECT_EQ(begin(cache, key("192.0.2.1", 999)).verdict, Verdict::kReplay);
  Answer oldest = begin(cache, key("192.0.2.1", 0));
  EXPECT_EQ(oldest.verdict, Verdict::kNew);
  cache.abandon(oldest.entry);
}

TEST_F(ReplyCacheTest, ABusyClientCannotEvictAModestOne) {
  ReplyCache cache(256 << 10, clock_);
  for (std::uint32_t xid = 0; xid < 20; ++xid)
    remember(cache, key("192.0.2.7", xid), "modest");
  for (std::uint32_t xid = 0; xid < 20000; ++xid)
    remember(cache, key("192.0.2.1", xid), "busy");
  for (std::uint32_t xid = 0; xid < 20; ++xid) {
    EXPECT_EQ(begin(cache, key("192.0.2.7", xid)).body, "modest") << xid;
  }
}

/// Four times what fits in all.
TEST_F(ReplyCacheTest, OfWhatIsKeptBrieflyAClientHasTheLastAndNothingElseGoesForIt) {
  ReplyCache cache(1 << 20, clock_);
  remember(cache, key("192.0.2.1", 100000), "removed");
  write(cache, key("192.0.2.7", 1));
  for (std::uint32_t xid = 0; xid < 10000; ++xid)
    write(cache, key("192.0.2.1", xid));
  EXPECT_EQ(begin(cache, key("192.0.2.1", 9999)).body, "written");
  EXPECT_EQ(begin(cache, key("192.0.2.1", 100000)).body, "removed");
  EXPECT_EQ(begin(cache, key("192.0.2.7", 1)).body, "written");
  EXPECT_EQ(cache.stats().entries, ReplyCache::kStripes * ReplyCache::kMostBrief + 2);
  EXPECT_EQ(cache.stats().evicted, 0u);
}

TEST_F(ReplyCacheTest, WhatIsKeptBrieflyGoesFirst) {
  ReplyCache cache(256 << 10, clock_);
  std::uint32_t xid = 0;
  for (; xid < 200; ++xid)
    remember(cache, key("192.0.2.1", xid), "removed");
  for (; xid < 3000; ++xid)
    write(cache, key("192.0.2.1", xid));
  for (xid = 0; xid < 200; ++xid)
    EXPECT_EQ(begin(cache, key("192.0.2.1", xid)).body, "removed");
}

TEST_F(ReplyCacheTest, WhatIsKeptBrieflyHasAPlaceWhereAllAreTaken) {
  ReplyCache cache(256 << 10, clock_);
  std::uint32_t xid = 0;
  for (; xid < 5000; ++xid)
    remember(cache, key("192.0.2.1", xid), "removed");
  for (; xid < 5100; ++xid)
    write(cache, key("192.0.2.1", xid));
  for (xid = 5060; xid < 5100; ++xid)
    EXPECT_EQ(begin(cache, key("192.0.2.1", xid)).body, "written") << xid;
}

TEST_F(ReplyCacheTest, WhatCameBesideTheArgumentsTellsCallsApart) {
  const auto with = [](ByteSpan reduced) {
    return ReplyCache::make_key(address("192.0.2.1"), 1, 100003, 3, 7, arguments(), reduced);
  };
  EXPECT_EQ(with(arguments(4096, 1)), with(arguments(4096, 1)));
  EXPECT_NE(with(arguments(4096, 1)), with(arguments(4096, 2)));
  EXPECT_NE(with(arguments(4096, 1)), with(arguments(8192, 1)));
}

TEST_F(ReplyCacheTest, RunningCallsAreNeverEvicted) {
  ReplyCache cache(64 << 10, clock_);
  Answer running = begin(cache, key("192.0.2.1", 77777));
  for (std::uint32_t xid = 0; xid < 5000; ++xid)
    remember(cache, key("192.0.2.1", xid), "r");
  EXPECT_EQ(begin(cache, key("192.0.2.1", 77777)).verdict, Verdict::kDrop);
  cache.finish(running.entry, as_bytes("late"));
  EXPECT_EQ(begin(cache, key("192.0.2.1", 77777)).body, "late");
}

TEST_F(ReplyCacheTest, WhenOnlyRunningCallsAreLeftTheNextIsUncached) {
  ReplyCache cache(64 << 10, clock_);
  std::vector<ReplyCache::Entry*> running;
  Verdict last = Verdict::kNew;
  for (std::uint32_t xid = 0; xid < 5000 && last == Verdict::kNew; ++xid) {
    Answer answer = begin(cache, key("192.0.2.1", xid));
    last = answer.verdict;
    if (last == Verdict::kNew) running.push_back(answer.entry);
  }
  EXPECT_EQ(last, Verdict::kUncached);
  for (ReplyCache::Entry* entry : running)
    cache.abandon(entry);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(cache.stats().bytes, 0u);
}

/// Random steps against a model that never forgets: what the cache replays must be what was stored,
/// and what is running must be known to run.
TEST_F(ReplyCacheTest, AgreesWithAModel) {
  std::mt19937 random(20);
  ReplyCache cache(96 << 10, clock_);
  struct Model {
    ReplyCache::Entry* running = nullptr;
    std::string body;
    bool finished = false;
  };
  std::map<std::pair<int, std::uint32_t>, Model> model;
  for (int step = 0; step < 40000; ++step) {
    const int client = static_cast<int>(random() % 5);
    const std::uint32_t xid = random() % 200;
    Model& m = model[{client, xid}];
    const ReplyCache::Key k = key("192.0.2." + std::to_string(client + 1), xid);
    if (m.running != nullptr) {
      EXPECT_EQ(begin(cache, k).verdict, Verdict::kDrop);
      m.body = std::string(random() % 600, static_cast<char>('a' + step % 26));
      m.finished = random() % 4 != 0;
      if (m.finished) {
        cache.finish(m.running, as_bytes(m.body));
      } else {
        cache.abandon(m.running);
      }
      m.running = nullptr;
      continue;
    }
    Answer answer = begin(cache, k);
    if (answer.verdict == Verdict::kReplay) {
      ASSERT_TRUE(m.finished);
      ASSERT_EQ(answer.body, m.body);
    } else {
      ASSERT_TRUE(answer.verdict == Verdict::kNew || answer.verdict == Verdict::kUncached);
      m.running = answer.entry;
      m.finished = false;
    }
    ASSERT_LE(cache.stats().bytes, std::uint64_t{96} << 10);
  }
  for (auto& [_, m] : model) {
    if (m.running != nullptr) cache.abandon(m.running);
  }
}

}  // namespace
}  // namespace nfsrdma
