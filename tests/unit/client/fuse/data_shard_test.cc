// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/client/fuse/shard_fixture.h"

namespace nfsrdma {
namespace {

class NotingAnswer final : public ReadAnswer {
 public:
  void whole(ByteSpan data) override {
    bytes = data.size();
    thread = std::this_thread::get_id();
    ++times;
  }
  std::size_t bytes = 0;
  int times = 0;
  std::thread::id thread;
};

class DataShardTest : public ShardFixture {
 protected:
  void start_read(DataShard& shard, std::size_t bytes) {
    memory_.assign(bytes, std::byte{0});
    tasks_.spawn(keep(shard.read(op_, shard_test_file(), 7, memory_, &answer_), &read_));
  }
  void start_write(DataShard& shard, std::size_t bytes) {
    memory_.assign(bytes, std::byte{5});
    tasks_.spawn(
        keep(shard.write(op_, shard_test_file(), 7, memory_, Stability::kUnstable), &written_));
  }
  std::size_t calls_out() {
    std::size_t calls = 0;
    server_.on_thread([&] { calls = server_.calls(); });
    return calls;
  }

  FakeServer server_;
  std::vector<std::byte> memory_;
  NotingAnswer answer_;
  std::optional<Result<ReadResult>> read_;
  std::optional<Result<WriteResult>> written_;
};

TEST_F(DataShardTest, AReadGoesOverAndComesBack) {
  auto shard = start(server_);
  ASSERT_EQ(shard->state(), DataShard::State::kUsable);
  start_read(*shard, 1000);
  EXPECT_EQ(shard->bytes_under_way(), 1000u);
  EXPECT_EQ(calls_out(), 1u);
  std::thread::id there;
  server_.on_thread([&] {
    there = std::this_thread::get_id();
    server_.answer_read(1000, false);
  });
  EXPECT_FALSE(read_);  // main's coroutine goes on in main's loop only
  turn_until(read_);
  ASSERT_TRUE(read_->ok());
  EXPECT_EQ((*read_)->count, 1000u);
  EXPECT_EQ(memory_, std::vector<std::byte>(1000, std::byte{'x'}));
  EXPECT_EQ(shard->bytes_under_way(), 0u);
  // Who waits for the data got it where it arrived.
  EXPECT_EQ(answer_.times, 1);
  EXPECT_EQ(answer_.bytes, 1000u);
  EXPECT_EQ(answer_.thread, there);
  EXPECT_NE(there, std::this_thread::get_id());
}

TEST_F(DataShardTest, AShortReadIsAnsweredByWhoAsked) {
  auto shard = start(server_);
  start_read(*shard, 1000);
  server_.on_thread([&] { server_.answer_read(999, true); });
  turn_until(read_);
  ASSERT_TRUE(read_->ok());
  EXPECT_EQ((*read_)->count, 999u);
  EXPECT_EQ(answer_.times, 0);
}

TEST_F(DataShardTest, AWriteCarriesDataAndIdentity) {
  auto shard = start(server_);
  op_.identity.uid = 4711;
  start_write(*shard, 1000);
  server_.on_thread([&] {
    ASSERT_EQ(server_.calls(), 1u);
    const ClientCall& call = *server_.transport().out().front();
    EXPECT_EQ(call.payload.data(), memory_.data());  // from where it lies
    EXPECT_EQ(call.payload.size(), 1000u);
    xdr::Decoder decoder(call.head);
    xdr::rpc_msg header;
    ASSERT_TRUE(xdr::decode(decoder, header));
    xdr::Decoder body(header.cbody.cred.body);
    xdr::authsys_parms parms;
    ASSERT_TRUE(xdr::decode(body, parms));
    EXPECT_EQ(parms.uid, 4711u);
    server_.answer_write(1000, 77);
  });
  turn_until(written_);
  ASSERT_TRUE(written_->ok());
  EXPECT_EQ((*written_)->count, 1000u);
  EXPECT_EQ((*written_)->verifier, 77u);
}

TEST_F(DataShardTest, ManyAtOnceEndInTheOrderOfTheirAnswers) {
  auto shard = start(server_);
  std::vector<std::byte> other(500);
  std::optional<Result<ReadResult>> second;
  start_read(*shard, 1000);
  tasks_.spawn(keep(shard->read(op_, shard_test_file(), 0, other, nullptr), &second));
  EXPECT_EQ(shard->bytes_under_way(), 1500u);
  EXPECT_EQ(calls_out(), 2u);
  server_.on_thread([&] { server_.answer_read(1000, false); });
  turn_until(read_);
  EXPECT_FALSE(second);
  EXPECT_EQ(shard->bytes_under_way(), 500u);
  server_.on_thread([&] { server_.answer_read(500, false, 'y'); });
  turn_until(second);
  EXPECT_EQ(other, std::vector<std::byte>(500, std::byte{'y'}));
}

TEST_F(DataShardTest, ACancelledReadEnds) {
  auto shard = start(server_);
  CancelToken cancel;
  op_.cancel = &cancel;
  start_read(*shard, 1000);
  EXPECT_EQ(calls_out(), 1u);
  cancel.cancel();
  turn_until(read_);
  ASSERT_FALSE(read_->ok());
  EXPECT_EQ(read_->error().sys, EINTR);
  EXPECT_EQ(calls_out(), 0u);  // the transport has let go of the memory
  EXPECT_EQ(answer_.times, 0);
}

TEST_F(DataShardTest, ACancellationThatComesTooLateIsNone) {
  auto shard = start(server_);
  CancelToken cancel;
  op_.cancel = &cancel;
  start_read(*shard, 1000);
  server_.on_thread([&] { server_.answer_read(1000, false); });
  // The shard is done with it, main has not heard of that.
  cancel.cancel();
  turn_until(read_);
  EXPECT_TRUE(read_->ok());
  EXPECT_EQ(calls_out(), 0u);  // the shard has seen the cancellation by now
}

TEST_F(DataShardTest, WhatIsCancelledBeforehandIsNotHandedOver) {
  auto shard = start(server_);
  CancelToken cancel;
  cancel.cancel();
  op_.cancel = &cancel;
  start_read(*shard, 1000);
  ASSERT_TRUE(read_);
  EXPECT_EQ(read_->error().sys, EINTR);
  start_write(*shard, 1000);
  ASSERT_TRUE(written_);
  EXPECT_EQ(written_->error().sys, EINTR);
}

TEST_F(DataShardTest, AbortEndsWhatIsThereAndWhatComes) {
  auto shard = start(server_);
  start_read(*shard, 1000);
  EXPECT_EQ(calls_out(), 1u);
  shard->abort_all();
  turn_until(read_);
  EXPECT_EQ(read_->error().sys, EIO);
  start_write(*shard, 1000);
  turn_until(written_);
  EXPECT_EQ(written_->error().sys, EIO);
}

TEST_F(DataShardTest, ALostConnectionCostsTheTransferTime) {
  auto shard = start(server_);
  start_write(*shard, 1000);
  server_.on_thread([&] {
    ASSERT_EQ(server_.calls(), 1u);
    server_.transport().lose();
    server_.environment().settle();
    server_.transport().accept();
    ASSERT_EQ(server_.calls(), 1u);
    server_.answer_write(1000, 78);
  });
  turn_until(written_);
  ASSERT_TRUE(written_->ok());
  EXPECT_EQ((*written_)->verifier, 78u);
}

TEST_F(DataShardTest, OneThatCannotAttachSaysWhy) {
  auto shard = start(std::make_unique<FakeAttacher>(server_, "no route"));
  EXPECT_EQ(shard->state(), DataShard::State::kFailed);
  EXPECT_EQ(shard->failure(), "no route");
  shard->abort_all();  // nothing there, no harm
  const ShardReport report = shard->answer(*shard->ask(), TimePoint::max());
  EXPECT_TRUE(report.connections.empty());
}

TEST_F(DataShardTest, MayGoWhileItAttaches) {
  std::promise<void> gate;
  auto shard =
      DataShard::start(*loop_, std::make_unique<FakeAttacher>(server_, gate.get_future())).value();
  EXPECT_EQ(shard->state(), DataShard::State::kAttaching);
  gate.set_value();
  shard.reset();
  // Its word comes, and finds nobody.
  EXPECT_TRUE(loop_->turn(Duration::zero()));
}

TEST_F(DataShardTest, AnAbortBeforeItHasAttachedHoldsAfterwards) {
  std::promise<void> gate;
  auto shard =
      DataShard::start(*loop_, std::make_unique<FakeAttacher>(server_, gate.get_future())).value();
  shard->abort_all();
  gate.set_value();
  wait_for(*shard);
  start_read(*shard, 1000);
  turn_until(read_);
  EXPECT_EQ(read_->error().sys, EIO);
}

TEST_F(DataShardTest, AReportIsFreshOrWhatWasKnownBefore) {
  auto shard = start(server_);
  start_read(*shard, 1000);
  EXPECT_EQ(calls_out(), 1u);
  ShardReport report = shard->answer(*shard->ask(), TimePoint::max());
  EXPECT_EQ(report.connections.size(), 1u);
  EXPECT_EQ(report.calls_outstanding, 1u);
  // The thread is held up: nobody waits for it longer than said.
  std::promise<void> gate;
  std::promise<void> held;
  std::thread holder([&] {
    server_.on_thread([&] {
      held.set_value();
      gate.get_future().wait();
      server_.answer_read(1000, false);
    });
  });
  held.get_future().wait();
  auto question = shard->ask();
  report = shard->answer(*question, std::chrono::steady_clock::now());
  EXPECT_EQ(report.calls_outstanding, 1u);
  gate.set_value();
  holder.join();
  report = shard->answer(*question, TimePoint::max());
  EXPECT_EQ(report.calls_outstanding, 0u);
  turn_until(read_);
  EXPECT_TRUE(read_->ok());
}

}  // namespace
}  // namespace nfsrdma
