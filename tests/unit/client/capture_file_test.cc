// SPDX-License-Identifier: Apache-2.0
// What `nfs-rdma capture` makes of a server's stream: whole blocks, and one of statistics.
#include "client/tool/capture_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::tool {
namespace {

std::string number(std::uint32_t value) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &value, 4);
  return out;
}
std::string block(std::uint32_t type, const std::string& body) {
  const auto length = static_cast<std::uint32_t>(body.size() + 12);
  return number(type) + number(length) + body + number(length);
}
std::string packet(const std::string& body) {
  return block(6, body);
}
/// Interface, time, then the option for what was dropped between two others.
std::string statistics(std::uint32_t dropped) {
  return block(5, std::string(12, '\0') + number(8 << 16 | 2) + std::string(8, '\0') +
                      number(8 << 16 | 5) + number(dropped) + number(0) + number(0));
}

class CaptureFileTest : public testing::Test {
 protected:
  std::string written() const {
    std::string out(4096, '\0');
    const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), 0);
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
  }
  UniqueFd fd_{::memfd_create("capture", MFD_CLOEXEC)};
  std::string why_;
};

/// Who is told to end does not hang in a pipe whose reader has stopped.
TEST_F(CaptureFileTest, APipeThatTakesNothingMoreIsLeftWhenNobodyWaitsForIt) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  CaptureFile file(writer.get(), 0, ::close, [](int fd) {
    pollfd ready{fd, POLLOUT, 0};
    return ::poll(&ready, 1, 0) == 1;
  });
  EXPECT_FALSE(file.add(packet(std::string(std::size_t{4} << 20, 'x')), &why_));
  EXPECT_GE(file.bytes(), 4096u);
  EXPECT_NE(why_.find("nobody takes"), std::string::npos) << why_;
}

TEST_F(CaptureFileTest, OnlyWholeBlocksAreWritten) {
  CaptureFile file(fd_.get(), 0);
  const std::string all = block(0x0a0d0d0a, "head") + packet("abcd") + packet("efghijkl");
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(file.add(all.substr(i, 1), &why_)) << why_;
    // Never a part of one.
    const std::size_t size = written().size();
    EXPECT_TRUE(size == 0 || size == 16 || size == 32 || size == 52) << size;
  }
  EXPECT_EQ(written(), all);
  EXPECT_EQ(file.packets(), 2u);
  EXPECT_EQ(file.bytes(), all.size());
}

TEST_F(CaptureFileTest, TheLastStatisticsStandAtTheEnd) {
  CaptureFile file(fd_.get(), 0);
  ASSERT_TRUE(file.add(packet("abcd") + statistics(3) + packet("efgh"), &why_));
  EXPECT_EQ(file.lost(), 3u);
  ASSERT_TRUE(file.add(statistics(7) + packet("ijkl"), &why_));
  EXPECT_EQ(file.lost(), 7u);
  ASSERT_TRUE(file.finish(&why_));
  EXPECT_EQ(written(), packet("abcd") + packet("efgh") + packet("ijkl") + statistics(7));
}

TEST_F(CaptureFileTest, NoMorePacketsThanWanted) {
  CaptureFile file(fd_.get(), 2);
  ASSERT_TRUE(file.add(packet("abcd"), &why_));
  EXPECT_FALSE(file.full());
  ASSERT_TRUE(file.add(packet("efgh") + packet("ijkl"), &why_));
  EXPECT_TRUE(file.full());
  EXPECT_EQ(file.packets(), 2u);
  EXPECT_EQ(written(), packet("abcd") + packet("efgh"));
}

TEST_F(CaptureFileTest, WhatIsNoPcapngIsRefused) {
  for (const std::uint32_t length : {0u, 8u, 13u, 1u << 30}) {
    CaptureFile file(fd_.get(), 0);
    EXPECT_FALSE(file.add(number(6) + number(length), &why_)) << length;
    EXPECT_EQ(why_, "what the server sent is no pcapng");
  }
  EXPECT_EQ(written(), "");
}

TEST_F(CaptureFileTest, AFullDiskIsSaid) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CaptureFile file(full.get(), 0);
  EXPECT_FALSE(file.add(packet("abcd"), &why_));
  EXPECT_EQ(why_, std::strerror(ENOSPC));
}

TEST_F(CaptureFileTest, WhatIsToldAtTheCloseIsToldOn) {
  const CloseFile close_without_room = [](int fd) {
    ::close(fd);
    errno = ENOSPC;
    return -1;
  };
  CaptureFile file(fd_.get(), 0, close_without_room);
  ASSERT_TRUE(file.add(packet("abcd"), &why_));
  EXPECT_FALSE(file.finish(&why_));
  EXPECT_EQ(why_, "No space left on device");
}

}  // namespace
}  // namespace nfsrdma::tool
