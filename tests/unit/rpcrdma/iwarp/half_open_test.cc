// SPDX-License-Identifier: Apache-2.0
// How many handshakes may be under way: of one address, of all, and that their places come back.
#include "rpcrdma/iwarp/half_open.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

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
