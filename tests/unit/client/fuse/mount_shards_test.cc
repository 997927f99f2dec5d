// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/mount_shards.h"

#include "client/fuse/mounted_remote.h"
#include "tests/unit/client/fuse/shard_fixture.h"

namespace nfsrdma {
namespace {

constexpr std::size_t kLarge = 1 << 20;
constexpr std::size_t kSmall = 4096;
constexpr auto kYes = MountShards::Awaited::kYes;
constexpr auto kNo = MountShards::Awaited::kNo;

class MountShardsTest : public ShardFixture {
 protected:
  MountShardsTest() : main_(main_server_.mount(*loop_)), shards_(*main_, true) {}
  ~MountShardsTest() override {
    shards_.abort_all();
    while (tasks_.running() != 0)
      loop_->turn(Duration(-1));
  }
  DataShard& add(FakeServer& server) {
    auto shard = start(server);
    DataShard& added = *shard;
    shards_.add(std::move(shard));
    return added;
  }
  void start_read(DataShard& shard, std::size_t bytes) {
    tasks_.spawn(keep(shard.read(op_, shard_test_file(), 0, memory_.emplace_back(bytes), nullptr),
                      &reads_.emplace_back()));
  }

  FakeServer main_server_, first_server_, second_server_;
  std::list<std::vector<std::byte>> memory_;
  std::list<std::optional<Result<ReadResult>>> reads_;
  std::unique_ptr<AsyncMount> main_;
  MountShards shards_;
};

TEST_F(MountShardsTest, AloneTheMainThreadDoesEverything) {
  EXPECT_EQ(shards_.count(), 1u);
  EXPECT_TRUE(shards_.settled());
  const MountShards::OnMain busy(shards_, 10 * kLarge);
  EXPECT_EQ(shards_.choose(kYes, kLarge), nullptr);
  EXPECT_EQ(shards_.choose(kNo, kLarge), nullptr);
}

TEST_F(MountShardsTest, ALoneReadPaysNoHandOver) {
  add(first_server_);
  EXPECT_EQ(shards_.choose(kYes, kLarge), nullptr);
  EXPECT_EQ(shards_.choose(kYes, kSmall), nullptr);
}

TEST_F(MountShardsTest, AReadBesideOthersGoesWhereTheLeastIsUnderWay) {
  DataShard& first = add(first_server_);
  DataShard& second = add(second_server_);
  EXPECT_EQ(shards_.count(), 3u);
  {
    const MountShards::OnMain busy(shards_, 2 * kLarge);
    EXPECT_EQ(shards_.choose(kYes, kLarge), &first);
    EXPECT_EQ(shards_.choose(kYes, kSmall), &first);
    start_read(first, kLarge);
    EXPECT_EQ(shards_.choose(kYes, kLarge), &second);
    start_read(second, kLarge + 1);
    EXPECT_EQ(shards_.choose(kYes, kLarge), &first);
    start_read(first, 2 * kLarge);
    start_read(second, 2 * kLarge);
    EXPECT_EQ(shards_.choose(kYes, kLarge), nullptr);
  }
  // The main thread's is over.
  EXPECT_EQ(shards_.choose(kYes, kLarge), nullptr);
}

TEST_F(MountShardsTest, SmallReadsAreSpreadOnceEightAreUnderWay) {
  DataShard& first = add(first_server_);
  std::list<MountShards::OnMain> busy;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(shards_.choose(kYes, kSmall), nullptr) << i;
    busy.emplace_back(shards_, kSmall);
  }
  EXPECT_EQ(shards_.choose(kYes, kSmall), &first);
  EXPECT_EQ(shards_.choose(kNo, kSmall), &first);
}

TEST_F(MountShardsTest, WithoutProcessorsToSpareSmallOnesStay) {
  MountShards shards(*main_, false);
  auto shard = start(first_server_);
  DataShard& added = *shard;
  shards.add(std::move(shard));
  const MountShards::OnMain busy(shards, 10 * kLarge);
  EXPECT_EQ(shards.choose(kYes, kSmall), nullptr);
  EXPECT_EQ(shards.choose(kYes, kLarge), &added);
}

TEST_F(MountShardsTest, WhatNobodyWaitsForIsLeftToTheDataShards) {
  DataShard& first = add(first_server_);
  DataShard& second = add(second_server_);
  EXPECT_EQ(shards_.choose(kNo, MountShards::kLarge - 1), nullptr);
  EXPECT_EQ(shards_.choose(kNo, MountShards::kLarge), &first);
  start_read(first, kLarge);
  EXPECT_EQ(shards_.choose(kNo, kLarge), &second);
  start_read(second, 2 * kLarge);
  EXPECT_EQ(shards_.choose(kNo, kLarge), &first);  // though the main thread is idle
}

TEST_F(MountShardsTest, OneThatCannotConnectIsLeftOut) {
  shards_.add(start(std::make_unique<FakeAttacher>(first_server_, "no route")));
  add(second_server_);
  EXPECT_TRUE(shards_.settled());
  EXPECT_EQ(shards_.drop_failed(), std::vector<std::string>{"no route"});
  EXPECT_EQ(shards_.count(), 2u);
  EXPECT_TRUE(shards_.drop_failed().empty());
}

TEST_F(MountShardsTest, OneThatAttachesIsWaitedForAndThere) {
  std::promise<void> gate;
  shards_.add(
      DataShard::start(*loop_, std::make_unique<FakeAttacher>(first_server_, gate.get_future()))
          .value());
  EXPECT_FALSE(shards_.settled());
  gate.set_value();
  while (!shards_.settled())
    loop_->turn(Duration(-1));
  EXPECT_TRUE(shards_.drop_failed().empty());
  EXPECT_EQ(shards_.count(), 2u);
}

TEST_F(MountShardsTest, AbortReachesAllThreads) {
  DataShard& first = add(first_server_);
  start_read(first, kLarge);
  std::vector<std::byte> small(8);
  tasks_.spawn(keep(main_->read(op_, shard_test_file(), 0, small), &reads_.emplace_back()));
  shards_.abort_all();
  for (const auto& read : reads_) {
    turn_until(read);
    EXPECT_EQ(read->error().sys, EIO);
  }
}

TEST_F(MountShardsTest, ReportAndTotalsCoverAllThreads) {
  DataShard& first = add(first_server_);
  start_read(first, kLarge);
  first_server_.on_thread([&] { first_server_.connect(); });
  std::vector<std::byte> small(8);
  tasks_.spawn(keep(main_->read(op_, shard_test_file(), 0, small), &reads_.emplace_back()));
  main_server_.connect();
  const std::vector<ShardReport> reports = shards_.report();
  ASSERT_EQ(reports.size(), 2u);
  for (const ShardReport& report : reports) {
    EXPECT_EQ(report.connections.size(), 1u);
    EXPECT_EQ(report.calls_outstanding, 1u);
  }
  EXPECT_EQ(sum_of(reports).totals.calls, 2u);  // the fake transports say 1 each
}

TEST_F(MountShardsTest, MountedRemoteCountsAndSpreads) {
  add(first_server_);
  MountedRemote remote(shards_, EIO);
  const RequestContext context(nullptr, nullptr);
  auto read = [&](std::size_t bytes) {
    tasks_.spawn(keep(remote.read(context, shard_test_file(), 0, memory_.emplace_back(bytes)),
                      &reads_.emplace_back()));
  };
  std::optional<Result<WriteResult>> written;
  auto calls_of_first = [&] {
    std::size_t calls = 0;
    first_server_.on_thread([&] { calls = first_server_.calls(); });
    return calls;
  };
  read(kLarge);  // nobody is busy: the main thread
  EXPECT_EQ(main_server_.calls(), 1u);
  read(kLarge);  // the main thread is
  EXPECT_EQ(calls_of_first(), 1u);
  memory_.emplace_back(kLarge);
  tasks_.spawn(keep(
      remote.write(context, shard_test_file(), 0, memory_.back(), Stability::kUnstable), &written));
  EXPECT_EQ(calls_of_first(), 2u);
  std::optional<Result<WriteResult>> stable;
  tasks_.spawn(keep(
      remote.write(context, shard_test_file(), 0, memory_.back(), Stability::kFileSync), &stable));
  EXPECT_EQ(main_server_.calls(), 2u);  // somebody waits, and the shard has more to do
  EXPECT_EQ(calls_of_first(), 2u);
  shards_.abort_all();
  turn_until(written);
  turn_until(stable);
  EXPECT_EQ(errno_of(written->error()), EIO);
  for (const auto& done : reads_)
    turn_until(done);
  // What is over does not count.
  EXPECT_EQ(shards_.choose(kYes, kLarge), nullptr);
}

TEST(OutageWatch, TellsOfAnOutageOnce) {
  OutageWatch watch;
  EXPECT_FALSE(watch.heard());
  EXPECT_TRUE(watch.silent());
  EXPECT_FALSE(watch.silent());
  EXPECT_TRUE(watch.heard());
  EXPECT_FALSE(watch.heard());
  EXPECT_TRUE(watch.silent());
}

TEST(MountThreads, EachHasAConnectionAndTheRestIsSpread) {
  EXPECT_EQ(connections_of_thread(1, 1, 0), 1u);
  EXPECT_EQ(connections_of_thread(4, 1, 0), 4u);
  for (std::uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(connections_of_thread(1, 3, i), 1u);
  EXPECT_EQ(connections_of_thread(5, 3, 0), 2u);
  EXPECT_EQ(connections_of_thread(5, 3, 1), 2u);
  EXPECT_EQ(connections_of_thread(5, 3, 2), 1u);
}

TEST(MountThreads, ByDefaultThereIsASecondOneWhereItCanRun) {
  EXPECT_EQ(default_mount_threads(0), 1u);  // not known
  EXPECT_EQ(default_mount_threads(1), 1u);
  EXPECT_EQ(default_mount_threads(2), 2u);
  EXPECT_EQ(default_mount_threads(64), 2u);
}

}  // namespace
}  // namespace nfsrdma
