// SPDX-License-Identifier: Apache-2.0
// Pauses: each ends when it is to, or within cancel() and nudge(), and costs the others nothing.
#include "client/pauses.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/client/fake_environment.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Counts how often somebody looks at the time, as whoever is woken does.
class LookedAt final : public ClientEnvironment {
 public:
  explicit LookedAt(FakeEnvironment& environment) : environment_(environment) {}
  std::size_t looks() const { return looks_; }
  TimePoint now() const override {
    ++looks_;
    return environment_.now();
  }
  std::unique_ptr<Alarm> make_alarm(std::function<void()> fire) override {
    return environment_.make_alarm(std::move(fire));
  }
  std::unique_ptr<ClientTransport> make_transport(const TransportCandidate& candidate,
                                                  Duration connect_timeout,
                                                  ClientTransportHandler& handler) override {
    return environment_.make_transport(candidate, connect_timeout, handler);
  }
  Result<std::unique_ptr<CallEndpoint>> make_call_endpoint(const SocketAddress& address,
                                                           CallAnswer answer) override {
    return environment_.make_call_endpoint(address, std::move(answer));
  }
  void run_soon(Deferred& item) override { environment_.run_soon(item); }
  void run_apart(std::function<void()> work, std::function<void()> done) override {
    environment_.run_apart(std::move(work), std::move(done));
  }

 private:
  FakeEnvironment& environment_;
  mutable std::size_t looks_ = 0;
};

class PausesTest : public testing::Test {
 protected:
  ~PausesTest() override {
    cancel_.cancel();
    EXPECT_EQ(group_.running(), 0u);
  }
  Task<void> wait(int name, Duration duration, CancelToken* cancel, const bool* enough) {
    co_await pauses_.pause(duration, cancel, enough);
    over_.push_back(name);
  }
  void start(int name, Duration duration, const bool* enough = nullptr) {
    group_.spawn(wait(name, duration, &cancel_, enough));
  }
  /// What is over since the last time, in the order of that.
  std::vector<int> over() { return std::exchange(over_, {}); }

  FakeEnvironment clock_;
  LookedAt environment_{clock_};
  Pauses pauses_{environment_};
  CancelToken cancel_;
  std::vector<int> over_;
  TaskGroup group_;
};

TEST_F(PausesTest, EachEndsWhenItIsTo) {
  start(1, seconds(3));
  start(2, seconds(1));
  start(3, seconds(2));
  start(4, seconds(2));
  start(5, seconds(0));
  EXPECT_EQ(over(), std::vector{5});
  clock_.advance(milliseconds(999));
  EXPECT_TRUE(over().empty());
  clock_.advance(milliseconds(1));
  EXPECT_EQ(over(), std::vector{2});
  clock_.advance(seconds(1));
  EXPECT_EQ(over(), (std::vector{3, 4}));
  start(6, milliseconds(500));
  clock_.advance(seconds(5));
  EXPECT_EQ(over(), (std::vector{6, 1}));
}

TEST_F(PausesTest, TheEndOfOneDoesNotWakeTheOthers) {
  constexpr int kMany = 200;
  for (int i = 0; i < kMany; ++i)
    start(i, milliseconds(100 + i));
  const std::size_t before = environment_.looks();
  clock_.advance(seconds(1));
  EXPECT_EQ(over().size(), std::size_t{kMany});
  EXPECT_LE(environment_.looks() - before, 5u * kMany);
}

TEST_F(PausesTest, AreOverWithinCancel) {
  CancelToken cancel;
  start(1, seconds(2));
  group_.spawn(wait(2, seconds(1), &cancel, nullptr));
  group_.spawn(wait(3, seconds(2), &cancel, nullptr));
  cancel.cancel();
  EXPECT_EQ(over().size(), 2u);
  clock_.advance(seconds(2));
  EXPECT_EQ(over(), std::vector{1});
}

/// Who has waited longest first, whenever their pauses end: the first who asks has what is there.
TEST_F(PausesTest, ANudgeEndsThoseThatHaveEnough) {
  bool enough = false;
  start(1, seconds(3), &enough);
  start(2, seconds(1));
  start(3, seconds(2), &enough);
  start(4, milliseconds(1500), &enough);
  pauses_.nudge();
  EXPECT_TRUE(over().empty());
  enough = true;
  EXPECT_TRUE(over().empty());
  pauses_.nudge();
  EXPECT_EQ(over(), (std::vector{1, 3, 4}));
  clock_.advance(seconds(1));
  EXPECT_EQ(over(), std::vector{2});
}

/// As those do who are told to look again.
TEST_F(PausesTest, ANudgeWakesNobodyTwice) {
  int rounds = 0;
  bool enough = true;
  const auto again = [&]() -> Task<void> {
    while (!cancel_.cancelled()) {
      enough = false;
      co_await pauses_.pause(seconds(1), &cancel_, &enough);
      ++rounds;
      enough = true;
    }
  };
  group_.spawn(again());
  enough = true;
  pauses_.nudge();
  EXPECT_EQ(rounds, 1);
  cancel_.cancel();
}

}  // namespace
}  // namespace nfsrdma
