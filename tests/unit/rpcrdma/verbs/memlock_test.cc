// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "rpcrdma/verbs/memlock_account.h"

namespace nfsrdma::verbs {
namespace {

constexpr std::uint64_t kPage = 4096;

MemlockLimit bound(std::uint64_t bytes) {
  return {bytes, false, false};
}

/// Never touched, only counted.
ByteSpan span_at(std::uintptr_t address, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(address), size};
}

TEST(MemlockAccount, CountsWholePages) {
  MemlockAccount account;
  ASSERT_TRUE(account.take(span_at(kPage + 4095, 2), bound(1 << 20)).ok());
  EXPECT_EQ(account.pinned(), 2 * kPage);
  ASSERT_TRUE(account.take(span_at(8 * kPage, kPage), bound(1 << 20)).ok());
  EXPECT_EQ(account.pinned(), 3 * kPage);
  account.give_back(span_at(kPage + 4095, 2));
  account.give_back(span_at(8 * kPage, kPage));
  EXPECT_EQ(account.pinned(), 0U);
}

TEST(MemlockAccount, CountsTheSameBytesTwiceAsTheKernelDoes) {
  MemlockAccount account;
  ASSERT_TRUE(account.take(span_at(kPage, kPage), bound(kPage * 2)).ok());
  ASSERT_TRUE(account.take(span_at(kPage, kPage), bound(kPage * 2)).ok());
  EXPECT_FALSE(account.take(span_at(kPage, kPage), bound(kPage * 2)).ok());
}

TEST(MemlockAccount, RefusesBeyondTheLimitWithTheRemedy) {
  MemlockAccount account;
  ASSERT_TRUE(account.take(span_at(kPage, kPage), bound(2 * kPage)).ok());
  auto refused = account.take(span_at(16 * kPage, 2 * kPage), bound(2 * kPage));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kExhausted);
  EXPECT_EQ(refused.error().sys, ENOMEM);
  for (const char* part : {"ulimit -l", "LimitMEMLOCK=", "CAP_IPC_LOCK"}) {
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
  }
  EXPECT_EQ(account.pinned(), kPage) << "what was refused is not counted";
  EXPECT_TRUE(account.take(span_at(16 * kPage, kPage), bound(2 * kPage)).ok());
}

TEST(MemlockAccount, DoesNotBindThePrivilegedOrUnlimited) {
  MemlockAccount account;
  EXPECT_TRUE(account.take(span_at(kPage, 64 * kPage), {kPage, true, false}).ok());
  EXPECT_TRUE(account.take(span_at(kPage, 64 * kPage), {kPage, false, true}).ok());
}

TEST(MemlockAccount, WhenTheKernelRefusesWithoutLimitItIsSomethingElse) {
  MemlockAccount account;
  EXPECT_EQ(account.refusal(1, {0, true, false}).message().find("ulimit"), std::string::npos);
  // siw of older kernels looks at the limit whatever the capability.
  EXPECT_NE(account.refusal(1, {kPage, false, true}).message().find("ulimit"), std::string::npos);
}

TEST(MemlockAccount, ShowsTheRemedyForAQueueThatTheLimitMayForbid) {
  MemlockAccount account;
  for (int err : {ENOMEM, EPERM}) {
    const Error refused = account.queue_refusal("ibv_create_cq", err, bound(kPage));
    EXPECT_EQ(refused.code, Errc::kExhausted);
    EXPECT_EQ(refused.sys, err);
    EXPECT_NE(refused.message().find("LimitMEMLOCK="), std::string::npos) << refused.message();
  }
}

TEST(MemlockAccount, BlamesNothingElseOfAQueueOnTheLimit) {
  MemlockAccount account;
  for (const Error& other : {account.queue_refusal("ibv_create_cq", EINVAL, bound(kPage)),
                             account.queue_refusal("ibv_create_cq", ENOMEM, {0, true, false})}) {
    EXPECT_EQ(other.code, Errc::kSystem);
    EXPECT_NE(other.message().find("ibv_create_cq"), std::string::npos) << other.message();
  }
}

TEST(MemlockLimit, IsThatOfTheProcess) {
  rlimit memlock{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &memlock), 0);
  const MemlockLimit limit = memlock_limit();
  EXPECT_EQ(limit.unlimited, memlock.rlim_cur == RLIM_INFINITY);
  EXPECT_TRUE(limit.unlimited || limit.bytes == memlock.rlim_cur);
}

}  // namespace
}  // namespace nfsrdma::verbs
