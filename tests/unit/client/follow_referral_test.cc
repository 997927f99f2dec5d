// SPDX-License-Identifier: Apache-2.0
// Which servers are tried for a referral, in which order, and when it is given up. The trees are
// made up; addresses are numbers, so that nobody is asked for names.
#include "client/follow_referral.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "client/put_off.h"

namespace nfsrdma {
namespace {

/// A world of servers, by "host:/path".
class World final : public TreeOpener {
 public:
  struct Place {
    std::optional<Referral> refers;
    std::optional<Error> fails;
  };
  Task<Result<void>> open(MountSettings settings, std::string* detail,
                          std::optional<ReferralMet>* met) override {
    EXPECT_FALSE(settings.addresses.empty());
    const std::string where = settings.host + ":" + settings.path;
    asked.push_back(where);
    last = settings;
    const auto it = places.find(where);
    if (it == places.end()) {
      *detail = "nobody there";
      co_return Error{Errc::kSystem, ECONNREFUSED, "connect"};
    }
    if (it->second.fails) co_return *it->second.fails;
    if (it->second.refers) {
      *met = ReferralMet{*it->second.refers, settings.path, ""};
      co_return kReferralMet;
    }
    co_return Result<void>();
  }

  std::map<std::string, Place> places;
  std::vector<std::string> asked;
  MountSettings last;
};

Referral to(const std::string& root, std::vector<ReferralTarget> targets) {
  Referral referral;
  referral.root = root;
  referral.targets = std::move(targets);
  return referral;
}

class FollowReferral : public testing::Test {
 protected:
  FollowReferral() : loop_(EventLoop::create().value()) {
    start_.host = "127.0.0.1";
    start_.path = "/start";
    start_.rdma_port = 20300;
    start_.tcp_port = 20301;
    start_.soft = true;
    start_.connections = 3;
    start_.addresses = {SocketAddress::resolve("127.0.0.1", 20300).value().front()};
  }
  Result<void> follow(const Referral& referral) {
    ReferralTrail trail(start_);
    const ReferralMet met{referral, "/start", ""};
    Result<void> done =
        run_to_completion(*loop_, follow_referral(*loop_, start_, met, world_, &trail, &detail_));
    hops_ = trail.referrals();
    return done;
  }

  std::unique_ptr<EventLoop> loop_;
  World world_;
  MountSettings start_;
  std::string detail_;
  std::size_t hops_ = 0;
};

TEST_F(FollowReferral, TheFirstThatAnswersIsIt) {
  world_.places["127.0.0.3:/x"] = {};
  world_.places["127.0.0.4:/x"] = {};
  ASSERT_TRUE(
      follow(to("/start", {{"127.0.0.2", 0, "/x"}, {"127.0.0.3", 0, "/x"}, {"127.0.0.4", 0, "/x"}}))
          .ok());
  EXPECT_EQ(world_.asked, (std::vector<std::string>{"127.0.0.2:/x", "127.0.0.3:/x"}));
  EXPECT_EQ(hops_, 1u);
  EXPECT_EQ(detail_, "");
}

/// Linux's client goes to the usual ports, too, whatever the first server's are.
TEST_F(FollowReferral, OptionsAreInheritedAndPortsAreNot) {
  world_.places["127.0.0.2:/x"] = {};
  ASSERT_TRUE(follow(to("/start", {{"127.0.0.2", 0, "/x"}})).ok());
  EXPECT_TRUE(world_.last.soft);
  EXPECT_EQ(world_.last.connections, 3u);
  EXPECT_EQ(world_.last.rdma_port, 20049);
  EXPECT_EQ(world_.last.tcp_port, 2049);
  ASSERT_TRUE(follow(to("/start", {{"127.0.0.2", 20050, "/x"}})).ok());
  EXPECT_EQ(world_.last.rdma_port, 20050);
  EXPECT_EQ(world_.last.tcp_port, 20050);
}

TEST_F(FollowReferral, NoHostIsTheSameServerWhereItIs) {
  world_.places["127.0.0.1:/x"] = {};
  ASSERT_TRUE(follow(to("/start", {{"", 0, "/x"}})).ok());
  EXPECT_EQ(world_.last.rdma_port, 20300);
  EXPECT_EQ(world_.last.tcp_port, 20301);
}

TEST_F(FollowReferral, PeopleAreToldOfAnotherServerByItsOwnName) {
  start_.put_off = std::make_shared<PutOff>(start_.host);
  world_.places["127.0.0.1:/x"] = {};
  world_.places["127.0.0.2:/x"] = {};
  ASSERT_TRUE(follow(to("/start", {{"127.0.0.2", 0, "/x"}})).ok());
  EXPECT_EQ(world_.last.put_off, nullptr) << "it gets one of its own";
  for (const char* same : {"", "127.0.0.1"}) {
    ASSERT_TRUE(follow(to("/start", {{same, 0, "/x"}})).ok());
    EXPECT_EQ(world_.last.put_off, start_.put_off);
  }
}

TEST_F(FollowReferral, OneReferralMayLeadToAnother) {
  world_.places["127.0.0.2:/x"] = {to("/x", {{"127.0.0.3", 0, "/y"}}), {}};
  world_.places["127.0.0.3:/y"] = {};
  ASSERT_TRUE(follow(to("/start", {{"127.0.0.2", 0, "/x"}})).ok());
  EXPECT_EQ(hops_, 2u);
}

TEST_F(FollowReferral, ACircleIsNamed) {
  world_.places["127.0.0.2:/x"] = {to("/x", {{"127.0.0.3", 0, "/y"}}), {}};
  world_.places["127.0.0.3:/y"] = {to("/y", {{"127.0.0.2", 0, "/x"}}), {}};
  const Result<void> done = follow(to("/start", {{"127.0.0.2", 0, "/x"}}));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, ELOOP);
  EXPECT_NE(detail_.find("127.0.0.2:/x"), std::string::npos) << detail_;
  EXPECT_NE(detail_.find("circle"), std::string::npos) << detail_;
  EXPECT_EQ(world_.asked.size(), 2u);
}

TEST_F(FollowReferral, TheStartBelongsToTheCircle) {
  const Result<void> done = follow(to("/start", {{"", 0, "/start"}}));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, ELOOP);
  EXPECT_TRUE(world_.asked.empty());
}

TEST_F(FollowReferral, ThereAreNoMoreThanEight) {
  for (int i = 1; i < 20; ++i) {
    world_.places["127.0.0.2:/" + std::to_string(i)] = {
        to("/" + std::to_string(i), {{"127.0.0.2", 0, "/" + std::to_string(i + 1)}}), {}};
  }
  const Result<void> done = follow(to("/start", {{"127.0.0.2", 0, "/1"}}));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, ELOOP);
  EXPECT_EQ(world_.asked.size(), kMostReferrals);
}

/// However wide the tree of referrals is that servers make up.
TEST_F(FollowReferral, TriesAreBounded) {
  std::vector<ReferralTarget> many;
  many.reserve(64);
  for (int i = 0; i < 64; ++i)
    many.push_back({"127.0.0.2", 0, "/" + std::to_string(i)});
  const Result<void> done = follow(to("/start", many));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, ETIMEDOUT);
  EXPECT_EQ(world_.asked.size(), kMostReferralTries);
  EXPECT_LT(detail_.size(), 2000u);
}

TEST_F(FollowReferral, WhyTheLastFailedIsTheError) {
  world_.places["127.0.0.3:/x"] = {{}, Error{Errc::kSystem, EACCES, "there"}};
  const Result<void> done = follow(to("/start", {{"127.0.0.2", 0, "/x"}, {"127.0.0.3", 0, "/x"}}));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, EACCES);
  EXPECT_NE(detail_.find("127.0.0.2:/x: nobody there"), std::string::npos) << detail_;
  EXPECT_NE(detail_.find("127.0.0.3:/x"), std::string::npos) << detail_;
}

TEST_F(FollowReferral, ARootThatIsNotOnTheWayIsEnoent) {
  const Result<void> done = follow(to("/elsewhere", {{"127.0.0.2", 0, "/x"}}));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, ENOENT);
  EXPECT_TRUE(world_.asked.empty());
}

TEST_F(FollowReferral, WhoIsToldToStopTriesNoFurther) {
  CancelToken stop;
  stop.cancel();
  start_.stop = &stop;
  ASSERT_FALSE(follow(to("/start", {{"127.0.0.2", 0, "/x"}, {"127.0.0.3", 0, "/x"}})).ok());
  EXPECT_EQ(world_.asked.size(), 1u);
}

}  // namespace
}  // namespace nfsrdma
