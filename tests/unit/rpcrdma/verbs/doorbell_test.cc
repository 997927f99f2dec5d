// SPDX-License-Identifier: Apache-2.0
// What holds of doorbells without a device; that they ring is seen in verbs_device_test.
#include "rpcrdma/verbs/doorbell.h"

#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "rpcrdma/verbs/command_thread.h"

namespace nfsrdma::verbs {
namespace {

constexpr std::uint32_t kDriver = 15;
#ifdef NFSRDMA_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// A file that is no RDMA device, and so has none of its ioctls.
class DoorbellTest : public ::testing::Test {
 protected:
  DoorbellTest() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~DoorbellTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int file() const { return ends_[1]; }
  std::string arrived() const {
    std::array<char, 256> bytes;
    const ssize_t count = ::read(ends_[0], bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(count)};
  }
  static std::string post_send() {
    struct {
      ib_uverbs_cmd_hdr head;
      std::array<std::uint32_t, 6> body;
    } command{{IB_USER_VERBS_CMD_POST_SEND, sizeof command / 4, 1}, {}};
    return {reinterpret_cast<const char*>(&command), sizeof command};
  }

  CommandThread commands_;

 private:
  std::array<int, 2> ends_{};
};

TEST_F(DoorbellTest, WritesElsewhereAreLeftAlone) {
  const Doorbell bell(file() + 1000, kDriver, commands_);
  ASSERT_EQ(::write(file(), "abc", 3), 3);
  EXPECT_EQ(arrived(), "abc");
}

TEST_F(DoorbellTest, IsNoneWithoutAScope) {
  ssize_t result = 0;
  EXPECT_FALSE(Doorbell::rings(file(), post_send().data(), post_send().size(), &result));
}

TEST_F(DoorbellTest, IsNoneBehindItsScope) {
  { const Doorbell bell(file(), kDriver, commands_); }
  ssize_t result = 0;
  EXPECT_FALSE(Doorbell::rings(file(), post_send().data(), post_send().size(), &result));
}

TEST_F(DoorbellTest, IsHandedOverWhereTheKernelHasNoSuchIoctl) {
  const Doorbell bell(file(), kDriver, commands_);
  const std::string command = post_send();
  for (int i = 0; i < 2; ++i) {
    ssize_t result = 0;
    ASSERT_TRUE(Doorbell::rings(file(), command.data(), command.size(), &result));
    EXPECT_EQ(result, static_cast<ssize_t>(command.size()));
    EXPECT_EQ(arrived(), command);
    EXPECT_TRUE(Doorbell::refused());
  }
}

TEST_F(DoorbellTest, OtherCommandsTellNothingOfTheIoctl) {
  const bool refused_before = Doorbell::refused();
  const Doorbell bell(file(), kDriver, commands_);
  std::string command = post_send();
  const std::uint32_t other = IB_USER_VERBS_CMD_POST_RECV;
  std::memcpy(command.data(), &other, sizeof other);
  ssize_t result = 0;
  ASSERT_TRUE(Doorbell::rings(file(), command.data(), command.size(), &result));
  EXPECT_EQ(arrived(), command);
  EXPECT_EQ(Doorbell::refused(), refused_before);
}

TEST(Doorbell, BrokenQueuePairsTellNothingOfTheIoctl) {
  for (const int err : {ENOTTY, EPROTONOSUPPORT, EOPNOTSUPP})
    EXPECT_TRUE(Doorbell::says_that_there_is_none(err)) << err;
  for (const int err : {0, ENOTCONN, EINVAL, ENOMEM, EIO})
    EXPECT_FALSE(Doorbell::says_that_there_is_none(err)) << err;
}

TEST_F(DoorbellTest, GivesErrnoOfAFailedOne) {
  const Doorbell bell(-1, kDriver, commands_);
  ssize_t result = 0;
  ASSERT_TRUE(Doorbell::rings(-1, post_send().data(), post_send().size(), &result));
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EBADF);
}

// A sanitizer has a write() of its own: then the kernel gets it as it is, and nobody counts on us.
TEST_F(DoorbellTest, WritesOfTheWholeProgramComeHere) {
  const bool refused_before = Doorbell::refused();
  const Doorbell bell(file(), kDriver, commands_);
  const std::string command = post_send();
  ASSERT_EQ(::write(file(), command.data(), command.size()), static_cast<ssize_t>(command.size()));
  EXPECT_EQ(arrived(), command);
  EXPECT_EQ(Doorbell::available(), !kSanitized);
  EXPECT_EQ(Doorbell::refused(), refused_before || !kSanitized);
}

}  // namespace
}  // namespace nfsrdma::verbs
