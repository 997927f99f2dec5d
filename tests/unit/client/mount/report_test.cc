// SPDX-License-Identifier: Apache-2.0
#include "client/mount/report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace nfsrdma {
namespace {

class MountReportTest : public testing::Test {
 protected:
  MountReportTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as mount.nfs-rdma does
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    report_ = MountReport(UniqueFd(ends[1]));
  }

  std::string heard() {
    std::string text(100, '\0');
    const ssize_t n = ::read(reader_.get(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }

  UniqueFd reader_;
  MountReport report_{UniqueFd()};
};

TEST_F(MountReportTest, IsHeardOnce) {
  EXPECT_TRUE(report_.open());
  EXPECT_FALSE(report_.abandoned());
  EXPECT_TRUE(report_.send('K', "usable"));
  EXPECT_EQ(heard(), "Kusable");
  EXPECT_EQ(heard(), "") << "and the pipe ends";
  EXPECT_FALSE(report_.open());
  EXPECT_FALSE(report_.send('E', "later"));
}

TEST_F(MountReportTest, IsAbandonedWhenItsReaderIsGone) {
  reader_.reset();
  EXPECT_TRUE(report_.open());
  EXPECT_TRUE(report_.abandoned());
}

TEST_F(MountReportTest, SaysThatNobodyHeard) {
  reader_.reset();
  EXPECT_FALSE(report_.send('K', "usable"));
  EXPECT_FALSE(report_.open());
}

TEST_F(MountReportTest, WhoGoesLaterHasHeard) {
  EXPECT_TRUE(report_.send('B', "goes on"));
  reader_.reset();
  EXPECT_FALSE(report_.abandoned());
}

TEST(MountReport, InTheForegroundNobodyWaits) {
  MountReport report{UniqueFd()};
  EXPECT_FALSE(report.open());
  EXPECT_FALSE(report.abandoned());
  EXPECT_FALSE(report.send('E', "failed"));
}

}  // namespace
}  // namespace nfsrdma
