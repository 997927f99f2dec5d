// SPDX-License-Identifier: Apache-2.0
// How many handshakes may be under way: of one address, of all, and that their places come back.
#include "rpcrdma/iwarp/half_open.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::iwarp {
namespace {

SocketAddress peer(const char* host, std::uint16_t port = 1) {
  return SocketAddress::parse(host, port).value();
}

TEST(HalfOpenTest, OneAddressHasSoManyWhateverItsPorts) {
  HalfOpenLimit limit(2, 100);
  const auto one = limit.enter(peer("192.0.2.1", 1));
  const auto two = limit.enter(peer("192.0.2.1", 2));
  EXPECT_TRUE(one);
  EXPECT_TRUE(two);
  EXPECT_FALSE(limit.enter(peer("192.0.2.1", 3)));
  EXPECT_TRUE(limit.enter(peer("192.0.2.2")));
}

/// A host may have any of its addresses; and they may be a LAN full of hosts.
TEST(HalfOpenTest, ANetworkOfIpv6HasSomeTimesWhatAnAddressHas) {
  HalfOpenLimit limit(2, 100);
  const auto one = limit.enter(peer("2001:db8::1"));
  const auto two = limit.enter(peer("2001:db8::1"));
  EXPECT_TRUE(two);
  EXPECT_FALSE(limit.enter(peer("2001:db8::1")));
  std::vector<HalfOpenLimit::Slot> others;
  others.reserve(6);
  for (int i = 2; i < 8; ++i)
    others.push_back(limit.enter(peer(("2001:db8::ffff:" + std::to_string(i)).c_str())));
  EXPECT_TRUE(others.back());
  EXPECT_FALSE(limit.enter(peer("2001:db8:0:0:3::3")));
  EXPECT_TRUE(limit.enter(peer("2001:db8:0:1::1")));
  others.pop_back();
  EXPECT_TRUE(limit.enter(peer("2001:db8:0:0:3::3")));
}

TEST(HalfOpenTest, AllTogetherHaveSoMany) {
  HalfOpenLimit limit(2, 3);
  std::vector<HalfOpenLimit::Slot> slots;
  for (const char* host : {"192.0.2.1", "192.0.2.2", "2001:db8::1"})
    slots.push_back(limit.enter(peer(host)));
  EXPECT_TRUE(slots.back());
  EXPECT_FALSE(limit.enter(peer("192.0.2.4")));
  slots.pop_back();
  EXPECT_TRUE(limit.enter(peer("192.0.2.4")));
}

/// A handshake under way, and its peer.
struct Handshake {
  UniqueFd ours, theirs;
  HalfOpenLimit::Slot slot;
  Handshake(HalfOpenLimit& limit, const char* host) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ours = UniqueFd(pair[0]);
    theirs = UniqueFd(pair[1]);
    slot = limit.enter(peer(host), ours.get());
  }
  bool is_in() const { return static_cast<bool>(slot); }
  bool was_ended() const {
    char byte;
    return ::recv(theirs.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
};

TEST(HalfOpenTest, TheOldestOfWhoeverHasMostEndsForANewOne) {
  HalfOpenLimit limit(4, 4);
  Handshake honest(limit, "192.0.2.1");
  Handshake first(limit, "192.0.2.2"), second(limit, "192.0.2.2"), third(limit, "192.0.2.2");
  Handshake next(limit, "192.0.2.3");
  EXPECT_TRUE(next.is_in());
  EXPECT_TRUE(first.was_ended());
  for (const Handshake* other : {&honest, &second, &third, &next})
    EXPECT_FALSE(other->was_ended());
  first.slot = {};  // counted no more already
  Handshake another(limit, "192.0.2.4");
  EXPECT_TRUE(another.is_in());
  EXPECT_TRUE(second.was_ended());
  EXPECT_FALSE(honest.was_ended());
}

TEST(HalfOpenTest, ANetworkOfIpv6HasMostWithOneHandshakeOfEachAddress) {
  HalfOpenLimit limit(4, 13);
  Handshake honest(limit, "192.0.2.1"), too(limit, "192.0.2.1");
  std::vector<std::unique_ptr<Handshake>> others;
  for (int i = 1; i < 12; ++i) {
    others.push_back(
        std::make_unique<Handshake>(limit, ("2001:db8::" + std::to_string(i)).c_str()));
  }
  Handshake one(limit, "192.0.2.3");
  EXPECT_TRUE(honest.was_ended()) << "eleven of a network are no more than two of an address";
  for (int i = 0; i < 2; ++i) {
    others.push_back(
        std::make_unique<Handshake>(limit, ("2001:db8::a:" + std::to_string(i)).c_str()));
  }
  EXPECT_TRUE(others[0]->was_ended());
  EXPECT_FALSE(too.was_ended());
}

TEST(HalfOpenTest, WhoHasSentNothingEndsFirstAndWhoHasAskedNever) {
  HalfOpenLimit limit(4, 3);
  Handshake asked(limit, "192.0.2.1"), heard(limit, "192.0.2.1"), silent(limit, "192.0.2.1");
  asked.slot.settle();
  heard.slot.heard();
  Handshake next(limit, "192.0.2.2");
  EXPECT_TRUE(silent.was_ended());
  next.slot.settle();
  Handshake another(limit, "192.0.2.3");
  EXPECT_TRUE(heard.was_ended());
  another.slot.settle();
  EXPECT_FALSE(asked.was_ended());
  EXPECT_FALSE(Handshake(limit, "192.0.2.4").is_in());
}

TEST(HalfOpenTest, ThoseThatWereEndedAndAreNotGoneHaveALimitToo) {
  HalfOpenLimit limit(1, 2);
  std::vector<std::unique_ptr<Handshake>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_unique<Handshake>(limit, ("192.0.2." + std::to_string(i)).c_str()));
    EXPECT_EQ(all.back()->is_in(), i < 4) << i;
  }
  all.front().reset();
  EXPECT_TRUE(Handshake(limit, "192.0.2.9").is_in());
}

TEST(HalfOpenTest, APlaceIsFreeWhenItsHandshakeEnds) {
  HalfOpenLimit limit(1, 1);
  for (int i = 0; i < 10; ++i) {
    const auto slot = limit.enter(peer("192.0.2.1"));
    EXPECT_TRUE(slot) << i;
  }
}

/// Else a stranger who is refused often enough would keep everybody out.
TEST(HalfOpenTest, WhoIsRefusedTakesNoPlace) {
  HalfOpenLimit limit(1, 2);
  const auto first = limit.enter(peer("192.0.2.1"));
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(limit.enter(peer("192.0.2.1")));
  const auto other = limit.enter(peer("192.0.2.2"));
  EXPECT_TRUE(other);
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(limit.enter(peer("192.0.2.3")));
}

TEST(HalfOpenTest, AnIpv4AddressIsOneHoweverItIsWritten) {
  HalfOpenLimit limit(1, 100);
  const auto first = limit.enter(peer("192.0.2.1"));
  EXPECT_FALSE(limit.enter(peer("::ffff:192.0.2.1")));
  EXPECT_TRUE(limit.enter(peer("::ffff:192.0.2.2")));
}

TEST(HalfOpenTest, APlaceThatIsMovedIsTakenOnce) {
  HalfOpenLimit limit(2, 2);
  auto slot = limit.enter(peer("192.0.2.1"));
  HalfOpenLimit::Slot moved(std::move(slot));
  EXPECT_TRUE(moved);
  auto second = limit.enter(peer("192.0.2.1"));
  EXPECT_FALSE(limit.enter(peer("192.0.2.1")));
  second = std::move(moved);
  moved = HalfOpenLimit::Slot();
  EXPECT_TRUE(limit.enter(peer("192.0.2.1"))) << "one of the two is free";
  second = HalfOpenLimit::Slot();
  std::vector<HalfOpenLimit::Slot> again;
  again.reserve(3);
  for (int i = 0; i < 3; ++i)
    again.push_back(limit.enter(peer("192.0.2.1")));
  EXPECT_TRUE(again[1]);
  EXPECT_FALSE(again[2]);
}

TEST(HalfOpenTest, ALimitOfNothingLetsNobodyIn) {
  EXPECT_FALSE(HalfOpenLimit(0, 10).enter(peer("192.0.2.1")));
  EXPECT_FALSE(HalfOpenLimit(10, 0).enter(peer("192.0.2.1")));
}

TEST(HalfOpenTest, ThreadsNeverHaveMoreThanThereAre) {
  HalfOpenLimit limit(3, 3);
  std::atomic<int> inside{0};
  std::atomic<bool> too_many{false};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&limit, &inside, &too_many] {
      for (int i = 0; i < 2000; ++i) {
        const auto slot = limit.enter(peer("192.0.2.1"));
        if (!slot) continue;
        if (++inside > 3) too_many = true;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_FALSE(too_many);
  std::vector<HalfOpenLimit::Slot> slots;
  for (int i = 0; i < 3; ++i) {
    slots.push_back(limit.enter(peer("192.0.2.1")));
    EXPECT_TRUE(slots.back()) << "all places came back";
  }
}

}  // namespace
}  // namespace nfsrdma::iwarp
