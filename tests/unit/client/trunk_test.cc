// SPDX-License-Identifier: Apache-2.0
#include "client/trunk.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/client/fake_environment.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;

/// A mount's RpcClient, connected to one address, and its Trunk. Whether an address leads to the
/// same server is what the test says once it has answered the call that asks.
class TrunkTest : public testing::Test {
 protected:
  TrunkTest() {
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    RpcClientOptions options = impatient_options(false);
    options.timeo = seconds(60);
    rpc_ = std::make_unique<RpcClient>(std::move(environment), options);
    group_.spawn(connect());
    first_ = environment_->transport();
    first_->accept();
    trunk_ = std::make_unique<Trunk>(
        *rpc_, [this](const OpContext& op, RpcConnection& way) { return ask(op, way); });
  }
  ~TrunkTest() override {
    trunk_.reset();
    rpc_->abort_all();
    EXPECT_EQ(group_.running(), 0u);
  }

  Task<void> connect() {
    std::string detail;
    [[maybe_unused]] Result<void> done = co_await rpc_->connect(&detail);
  }
  Task<Result<bool>> ask(const OpContext& op, RpcConnection& way) {
    RpcCallLease call = rpc_->prepare(100003, 4, 0, op);
    call->set_way(way);
    NFSRDMA_CO_CHECK_OK(co_await call->run());
    co_return same_;
  }
  static Task<void> keep(Task<Result<void>> task, std::optional<Result<void>>* out) {
    out->emplace(co_await std::move(task));
  }
  void join() {
    joined_.reset();
    detail_.clear();
    group_.spawn(keep(trunk_->join({{TransportKind::kTcp,
                                     SocketAddress::parse("192.0.2.2", 2049).value(), nullptr}},
                                   &detail_),
                      &joined_));
    environment_->settle();
  }
  void accept_and_answer() {
    second_ = environment_->transport();
    ASSERT_NE(second_, first_);
    second_->accept();
    ASSERT_EQ(second_->out().size(), 1u);
    second_->answer({});
    environment_->settle();
  }
  Task<void> null() {
    RpcCallLease call = rpc_->prepare(100003, 4, 0, op_);
    [[maybe_unused]] Result<void> done = co_await call->run();
  }
  std::size_t in_use() const { return rpc_->connections().size(); }

  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<RpcClient> rpc_;
  FakeTransport* first_ = nullptr;
  FakeTransport* second_ = nullptr;
  std::unique_ptr<Trunk> trunk_;
  bool same_ = true;
  std::optional<Result<void>> joined_;
  std::string detail_;
  OpContext op_;
  TaskGroup group_;
};

TEST_F(TrunkTest, AnAddressIsUsedOnceTheServerHasShownThatItIsTheSame) {
  join();
  EXPECT_FALSE(joined_.has_value());
  EXPECT_EQ(in_use(), 1u);
  accept_and_answer();
  ASSERT_TRUE(joined_.has_value());
  EXPECT_TRUE(joined_->ok());
  EXPECT_EQ(in_use(), 2u);
}

TEST_F(TrunkTest, AnotherServerIsNeverSentACall) {
  same_ = false;
  join();
  accept_and_answer();
  ASSERT_TRUE(joined_.has_value());
  EXPECT_EQ(joined_->error().sys, EXDEV);
  EXPECT_NE(detail_.find("another server is there"), std::string::npos) << detail_;
  for (int i = 0; i < 3; ++i)
    group_.spawn(null());
  ASSERT_EQ(first_->out().size(), 3u);
  for (int i = 0; i < 3; ++i)
    first_->answer({});
  // And is let go of.
  environment_->advance(seconds(1));
  EXPECT_EQ(environment_->transport(), first_);
  environment_->advance(seconds(1000));
  EXPECT_EQ(environment_->made(), 2u);
}

TEST_F(TrunkTest, AnAddressThatDoesNotConnectIsAnErrorThatNamesIt) {
  join();
  environment_->transport()->refuse(ECONNREFUSED);
  environment_->settle();
  ASSERT_TRUE(joined_.has_value());
  EXPECT_EQ(joined_->error().sys, ECONNREFUSED);
  EXPECT_NE(detail_.find("192.0.2.2:2049"), std::string::npos) << detail_;
}

TEST_F(TrunkTest, OneThatSaysNothingIsGivenUpInTime) {
  join();
  environment_->advance(Trunk::kPatience + seconds(1));
  ASSERT_TRUE(joined_.has_value());
  EXPECT_EQ(joined_->error().sys, ETIMEDOUT);

  join();
  environment_->transport()->accept();
  environment_->advance(Trunk::kPatience + seconds(1));
  ASSERT_TRUE(joined_.has_value());
  EXPECT_EQ(joined_->error().sys, ETIMEDOUT);
  EXPECT_EQ(in_use(), 1u);
}

TEST_F(TrunkTest, ALostAddressIsTriedAgainWhileTheMountIsInUse) {
  join();
  accept_and_answer();
  second_->lose();
  environment_->settle();
  EXPECT_EQ(in_use(), 1u);
  group_.spawn(null());  // which the test does not answer: the mount is in use
  environment_->advance(seconds(16));
  ASSERT_EQ(environment_->made(), 3u);
  accept_and_answer();
  EXPECT_EQ(in_use(), 2u);
}

TEST_F(TrunkTest, NobodyAsksForItWhileTheMountRests) {
  join();
  accept_and_answer();
  environment_->advance(seconds(60));
  second_->lose();
  environment_->settle();
  environment_->advance(seconds(3600));
  EXPECT_EQ(environment_->made(), 2u);
}

TEST_F(TrunkTest, AfterALossAnotherServerMayBeThere) {
  join();
  accept_and_answer();
  second_->lose();
  environment_->settle();
  group_.spawn(null());
  same_ = false;
  environment_->advance(seconds(16));
  accept_and_answer();
  EXPECT_EQ(in_use(), 1u);
  // The next attempt is later, over a connection of its own, and finds the right one again.
  same_ = true;
  const std::size_t made = environment_->made();
  environment_->advance(seconds(29));
  EXPECT_EQ(environment_->made(), made);
  environment_->advance(seconds(2));
  ASSERT_EQ(environment_->made(), made + 1);
  accept_and_answer();
  EXPECT_EQ(in_use(), 2u);
}

TEST_F(TrunkTest, StopEndsWhatIsUnderWay) {
  join();
  environment_->transport()->accept();
  trunk_->stop();
  ASSERT_TRUE(joined_.has_value());
  EXPECT_FALSE(joined_->ok());
  EXPECT_EQ(rpc_->outstanding(), 0u);
  join();
  EXPECT_FALSE(joined_->ok());
}

}  // namespace
}  // namespace nfsrdma
