// SPDX-License-Identifier: Apache-2.0
// Connections that share a receive queue: one that begins a Send and does not end it keeps a
// receive, and may not do so for ever while others wait.
#include "rpcrdma/iwarp/receive_queue.h"

#include "tests/unit/rpcrdma/iwarp/raw_peer.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr auto kMost = IwarpReceiveQueue::kMostForASend;
constexpr std::chrono::milliseconds kMoment{1};

// "hello" as one Send, and the two halves of one that says it twice.
constexpr char kHello[] = "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 00000000";
constexpr char kBegun[] = "00170143 00000000 00000000 00000001 00000000 68656c6c 6f000000 00000000";
constexpr char kEnded[] = "00174143 00000000 00000000 00000001 00000005 68656c6c 6f000000 00000000";

class SharedReceives : public RawPeerTest {
 protected:
  struct End final : QueuePairHandler {
    void on_disconnected(Error why) override {
      ++ended;
      reason = why;
    }
    int ended = 0;
    Error reason{};
    std::unique_ptr<QueuePair> queue_pair;
  };

  SharedReceives() {
    stop_the_clock();
    start();
    listen();
  }
  ~SharedReceives() override { ends_.clear(); }

  UniqueFd client() {
    std::string reply;
    return dial_and_ask(kLinuxRequest, &reply, 24);
  }
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override {
    if (ends_.empty()) {
      auto options = ours_.prepare(*loop_, request->device());
      ASSERT_TRUE(options.ok());
      options_ = *options;
    }
    ends_.push_back(std::make_unique<End>());
    options_.handler = ends_.back().get();
    auto queue_pair = request->accept(options_);
    ASSERT_TRUE(queue_pair.ok());
    ends_.back()->queue_pair = std::move(queue_pair).value();
  }
  void settle() {
    for (int i = 0; i < 5; ++i)
      turn();
  }
  void say_and_settle(const UniqueFd& fd, const char* what) {
    say(fd, what);
    settle();
  }
  /// Not a moment before, and its buffer goes to the one that waits.
  void first_ends_when_its_time_is_over() {
    let_pass(kMost - kMoment);
    EXPECT_EQ(ended(0), 0);
    EXPECT_TRUE(ours_.messages.empty());
    let_pass(kMoment);
    EXPECT_TRUE(until([&] { return ours_.messages.size() == 1; }));
    EXPECT_EQ(ended(0), 1);
  }
  int ended(std::size_t client) const { return ends_.at(client)->ended; }

  QueuePairOptions options_;
  std::vector<std::unique_ptr<End>> ends_;
};

TEST_F(SharedReceives, WhoDoesNotEndASendMakesRoomForOneThatWaits) {
  UniqueFd first = client();
  UniqueFd second = client();
  ours_.post_receives(1);
  say_and_settle(first, kBegun);
  say_and_settle(second, kHello);
  first_ends_when_its_time_is_over();
  EXPECT_EQ(ends_[0]->reason.code, Errc::kTimedOut);
  EXPECT_TRUE(hears_end(first));
  EXPECT_EQ(ended(1), 0);
}

TEST_F(SharedReceives, NobodyIsHurriedWhileThereAreReceives) {
  UniqueFd first = client();
  UniqueFd second = client();
  ours_.post_receives(2);
  say_and_settle(first, kBegun);
  say_and_settle(second, kHello);
  EXPECT_EQ(ours_.messages.size(), 1u);
  let_pass(std::chrono::hours(1));
  EXPECT_EQ(ended(0), 0);
  say_and_settle(first, kEnded);
  ASSERT_EQ(ours_.messages.size(), 2u);
  EXPECT_EQ(ours_.messages[1], "hellohello");
}

TEST_F(SharedReceives, WhoEndsItsSendInTimeStays) {
  UniqueFd first = client();
  UniqueFd second = client();
  ours_.post_receives(1);
  say_and_settle(first, kBegun);
  say_and_settle(second, kHello);
  let_pass(kMost - kMoment);
  say_and_settle(first, kEnded);
  let_pass(std::chrono::minutes(1));
  EXPECT_EQ(ended(0), 0);
  EXPECT_EQ(ours_.messages, std::vector<std::string>{"hellohello"});
  ours_.post_receives(1);
  EXPECT_TRUE(until([&] { return ours_.messages.size() == 2; }));
}

TEST_F(SharedReceives, TheOldestEndsAndNoMoreThanWait) {
  UniqueFd first = client();
  UniqueFd second = client();
  UniqueFd third = client();
  ours_.post_receives(2);
  say_and_settle(first, kBegun);
  let_pass(kMoment);
  say_and_settle(second, kBegun);
  // Both are overdue when somebody begins to wait.
  let_pass(2 * kMost);
  say_and_settle(third, kHello);
  EXPECT_TRUE(until([&] { return ours_.messages.size() == 1; }));
  EXPECT_EQ(ended(0), 1);
  let_pass(2 * kMost);
  EXPECT_EQ(ended(1), 0);
  EXPECT_EQ(ended(2), 0);
}

/// The receives were with calls when the wait began, and come back to one who keeps the first.
TEST_F(SharedReceives, SendThatBeginsWhileOthersWaitIsWatchedToo) {
  UniqueFd first = client();
  UniqueFd second = client();
  ASSERT_TRUE(until([&] { return ends_.size() == 2; }));
  say_and_settle(first, kBegun);
  say_and_settle(second, kHello);
  let_pass(std::chrono::minutes(1));
  EXPECT_EQ(ended(0), 0) << "it waits itself";
  ours_.post_receives(1);
  settle();
  first_ends_when_its_time_is_over();
  EXPECT_EQ(ended(1), 0);
}

TEST_F(SharedReceives, ConnectionThatIsDestroyedInASendIsForgotten) {
  UniqueFd first = client();
  UniqueFd second = client();
  ours_.post_receives(1);
  say_and_settle(first, kBegun);
  say_and_settle(second, kHello);
  ends_[0]->queue_pair.reset();
  EXPECT_TRUE(until([&] { return ours_.messages.size() == 1; }));
  let_pass(2 * kMost);
  EXPECT_EQ(ended(1), 0);
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
