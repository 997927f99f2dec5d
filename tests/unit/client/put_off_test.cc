// SPDX-License-Identifier: Apache-2.0
#include "client/put_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace nfsrdma {
namespace {

using std::chrono::seconds;

PutOff::Call call_of(Duration so_far) {
  return {NfsVersion{4, 1}, "OPEN", "NFS4ERR_DELAY", so_far};
}

TEST(PutOff, TellsOfWhatTakesAMinuteAndAgainEveryFive) {
  PutOff put_off("filer");
  const TimePoint start{};
  EXPECT_EQ(put_off.told(call_of(seconds(59)), start), std::nullopt);
  const auto line = put_off.told(call_of(seconds(60)), start + seconds(1));
  ASSERT_TRUE(line);
  EXPECT_EQ(
      *line,
      "NFSv4.1: server filer has been putting off OPEN for 60 s (NFS4ERR_DELAY), still trying; its "
      "log may tell why");
  EXPECT_EQ(put_off.told(call_of(seconds(70)), start + seconds(300)), std::nullopt);
  EXPECT_TRUE(put_off.told(call_of(seconds(70)), start + seconds(301)));
}

// Threads of a mount ask the same server.
TEST(PutOff, IsToldOnceByAllThreads) {
  for (int round = 0; round < 50; ++round) {
    PutOff put_off("filer");
    std::atomic<int> lines{0};
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (put_off.told(call_of(seconds(60)), TimePoint{})) ++lines;
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    EXPECT_EQ(lines, 1);
  }
}

TEST(PutOff, WhatAServerIsCalledDoesNotReachTheTerminalAsItIs) {
  PutOff put_off("a\033[2Jb");
  const auto line = put_off.told(call_of(seconds(60)), TimePoint{});
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, testing::Not(testing::HasSubstr("\033")));
}

}  // namespace
}  // namespace nfsrdma
