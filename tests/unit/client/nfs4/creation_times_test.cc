// SPDX-License-Identifier: Apache-2.0
// Files that are made with a verifier, whose times are set behind it: in the same COMPOUND once it
// is known that an access time can stand for the verifier, and what becomes of them when the
// answer is lost with the server.
#include "client/nfs4/creation_times.h"

#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Ops = std::vector<Op>;
using nfs4::CreationTimes;
using namespace access_bits;

constexpr std::int64_t kNow = 1'790'000'000;

TimePoint at(Duration since) {
  return TimePoint{} + std::chrono::hours(1) + since;
}
Attributes told(timespec atime, timespec ctime) {
  Attributes attributes;
  attributes.atime = atime;
  attributes.ctime = ctime;
  return attributes;
}
std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

TEST(CreationTimesTest, AreTheServersByLot) {
  CreationTimes times(7);
  EXPECT_FALSE(times.next(at(seconds(0))));
  times.made(at(seconds(0)), told({}, {kNow, 999'999'000}), std::nullopt);
  std::set<std::int64_t> all;
  for (int i = 0; i < 100; ++i) {
    const auto time = times.next(at(seconds(2)));
    ASSERT_TRUE(time);
    const std::int64_t late = nanoseconds({kNow + 2, 999'999'000}) - nanoseconds(*time);
    EXPECT_GE(late, 0);
    EXPECT_LT(late, CreationTimes::kLot);
    EXPECT_LT(time->tv_nsec, 1'000'000'000);
    all.insert(nanoseconds(*time));
  }
  EXPECT_GT(all.size(), 90u);
  EXPECT_FALSE(times.next(at(CreationTimes::kBelieved + seconds(1))));
}

TEST(CreationTimesTest, ProveNothingWhereTheyAreRounded) {
  CreationTimes times(7);
  times.made(at(seconds(0)), told({}, {kNow, 5}), std::nullopt);
  EXPECT_FALSE(times.prove());
  const auto time = times.next(at(seconds(0)));
  times.made(at(seconds(0)), told(*time, {kNow, 6}), time);
  EXPECT_TRUE(times.prove());
  times.made(at(seconds(0)), told({time->tv_sec, 0}, {kNow, 7}), time);
  EXPECT_FALSE(times.prove());
  EXPECT_FALSE(times.next(at(seconds(0))));
}

TEST(CreationTimesTest, AServerWithoutAClockIsNotBelieved) {
  CreationTimes times(7);
  for (const std::int64_t seconds_told :
       {std::int64_t{0}, std::int64_t{-5}, CreationTimes::kNoClock, INT64_MAX, INT64_MIN}) {
    times.made(at(seconds(0)), told({}, {seconds_told, 999'999'999}), std::nullopt);
    EXPECT_FALSE(times.next(at(seconds(0))));
  }
}

class CreationTimesOnTheWire : public OpensTest {
 protected:
  CreationTimesOnTheWire() : OpensTest(false) {
    server_->clock = timespec{kNow, 123};
    set_.mode = 0600;
  }
  using Made = std::optional<Result<CreateResult>>;

  void start(Made* out, std::uint32_t open_for) {
    group_.spawn(keep(nfs_->create_open(op_, directory_, "new", CreateMode::kExclusive, set_,
                                        OpenFor{.access = open_for}),
                      out));
    environment_->settle();
  }
  int make(std::uint32_t open_for = kModify) {
    server_->seen.clear();
    start(&made_, open_for);
    server_->serve_for(seconds(1));
    const int error = number(made_);
    if (error == 0 && open_for != 0) {
      nfs_->close((*made_)->handle);
      server_->serve_for(seconds(1));
      EXPECT_TRUE(server_->stateids.empty());
    }
    return error;
  }
  /// Until a SETATTR goes along with the OPEN.
  void learn() {
    ASSERT_EQ(make(), 0);
    ASSERT_EQ(make(), 0);
  }
  std::size_t times(Op op) const {
    std::size_t count = 0;
    for (const Ops& compound : server_->seen)
      count += static_cast<std::size_t>(std::count(compound.begin(), compound.end(), op));
    return count;
  }
  /// Another file is made, and its answer is lost with the server.
  int make_and_lose(timespec (*now)(timespec)) {
    Made made;
    start(&made, kModify);
    server_->run_unanswered();
    server_->atime = now(server_->atime);
    server_->restart();
    environment_->transport()->lose();
    server_->open_errors = {Stat::NFS4ERR_EXIST};
    server_->seen.clear();
    server_->serve_for(seconds(20));
    if (number(made) == 0) {
      EXPECT_EQ(nfs_->files_open(), 1u);
      nfs_->close((*made)->handle);
      server_->serve_for(seconds(1));
    }
    EXPECT_TRUE(server_->stateids.empty());
    return number(made);
  }

  const FileHandle directory_ = file_;
  SetAttributes set_;
  Made made_;
};

const Ops kInOne{Op::OP_SEQUENCE, Op::OP_PUTFH,   Op::OP_SAVEFH,    Op::OP_OPEN,   Op::OP_GETFH,
                 Op::OP_SETATTR,  Op::OP_GETATTR, Op::OP_RESTOREFH, Op::OP_GETATTR};

TEST_F(CreationTimesOnTheWire, GoAlongOnceTheyProveSomething) {
  ASSERT_EQ(make(), 0);
  ASSERT_GE(server_->seen.size(), 2u);
  EXPECT_EQ(server_->seen[1][2], Op::OP_SETATTR);
  EXPECT_EQ(nanoseconds(server_->atime), nanoseconds(*server_->clock));  // the server's "now"
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen[1][2], Op::OP_SETATTR);
  EXPECT_NE(nanoseconds(server_->atime), nanoseconds(*server_->clock));
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen.front(), kInOne);
  EXPECT_EQ(times(Op::OP_SETATTR), 1u);
  EXPECT_EQ(nanoseconds(made_->value().attributes->atime), nanoseconds(server_->atime));
  ASSERT_EQ(make(0), 0);
  EXPECT_EQ(times(Op::OP_SETATTR), 1u);
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_EQ(server_->seen.size(), 1u);
}

TEST_F(CreationTimesOnTheWire, AreNotToldWhereTheyAreRounded) {
  server_->atime_unit = 1000;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(make(), 0);
    EXPECT_EQ(server_->seen[1][2], Op::OP_SETATTR);
  }
  EXPECT_EQ(nanoseconds(server_->atime), nanoseconds(*server_->clock));
}

TEST_F(CreationTimesOnTheWire, WhatMayNotBeSetIsNow) {
  learn();
  server_->setattr_errors = {Stat::NFS4ERR_PERM, Stat::NFS4ERR_PERM};
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(times(Op::OP_SETATTR), 3u);
  EXPECT_EQ(nanoseconds(server_->atime), nanoseconds(*server_->clock));
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen[1][2], Op::OP_SETATTR);
}

TEST_F(CreationTimesOnTheWire, AFileWhoseAnswerIsLostIsKnownByIts) {
  learn();
  EXPECT_EQ(make_and_lose([](timespec time) { return time; }), 0);
  EXPECT_EQ(times(Op::OP_SETATTR), 0u);
  // Made by somebody else at the same time, as far as that can be.
  const auto another = [](timespec time) {
    time.tv_nsec ^= 1;
    return time;
  };
  EXPECT_EQ(make_and_lose(another), EEXIST);
}

TEST_F(CreationTimesOnTheWire, WhoComesLaterIsToldThatItIsThere) {
  learn();
  server_->open_errors = {Stat::NFS4ERR_EXIST};
  EXPECT_EQ(make(), EEXIST);
  EXPECT_EQ(times(Op::OP_LOOKUP), 0u);
}

}  // namespace
}  // namespace nfsrdma
