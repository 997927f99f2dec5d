// SPDX-License-Identifier: Apache-2.0
#include "client/mount/command_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace nfsrdma {
namespace {

bool parse(std::vector<const char*> arguments, MountCommandLine* line, std::string* error) {
  return parse_mount_command_line(arguments, line, error);
}

TEST(MountCommandLine, TakesOptionsBehindTheOperandsAsMountPassesThem) {
  MountCommandLine line;
  std::string error;
  ASSERT_TRUE(parse({"server:/srv", "/mnt", "-v", "-o", "ro,port=20050"}, &line, &error)) << error;
  EXPECT_TRUE(line.verbose);
  EXPECT_TRUE(line.options.read_only);
  EXPECT_EQ(line.options.rdma_port(), 20050);
}

TEST(MountCommandLine, TakesRepeatedOptionListsInOrder) {
  MountCommandLine line;
  std::string error;
  ASSERT_TRUE(parse({"-oro,soft", "server:/srv", "/mnt", "-o", "hard"}, &line, &error)) << error;
  EXPECT_TRUE(line.options.read_only);
  EXPECT_EQ(line.options.recovery, MountRecovery::kHard);
}

TEST(MountCommandLine, TakesBundledFlags) {
  MountCommandLine line;
  std::string error;
  ASSERT_TRUE(parse({"-Fnvr", "server:/srv", "/mnt"}, &line, &error)) << error;
  EXPECT_TRUE(line.foreground && line.verbose && line.options.read_only);
  EXPECT_FALSE(line.fake);
}

/// mount -f has its helpers mount nothing; mount(8).
TEST(MountCommandLine, FakesWhenMountDoes) {
  for (const char* word : {"-f", "-sfnv", "--fake"}) {
    MountCommandLine line;
    std::string error;
    ASSERT_TRUE(parse({"server:/srv", "/mnt", word}, &line, &error)) << error;
    EXPECT_TRUE(line.fake) << word;
    EXPECT_FALSE(line.foreground) << word;
  }
}

TEST(MountCommandLine, SloppyCountsWhereverItStands) {
  MountCommandLine line;
  std::string error;
  EXPECT_TRUE(parse({"server:/srv", "/mnt", "-o", "nonsense", "-s"}, &line, &error)) << error;
}

TEST(MountCommandLine, IgnoresTheTypeThatMountPasses) {
  MountCommandLine line;
  std::string error;
  ASSERT_TRUE(parse({"server:/srv", "/mnt", "-t", "nfs-rdma.x", "-o", "rw"}, &line, &error));
  EXPECT_EQ(line.mount_point, "/mnt");
}

TEST(MountCommandLine, HelpNeedsNoOperands) {
  MountCommandLine line;
  std::string error;
  ASSERT_TRUE(parse({"-h"}, &line, &error));
  EXPECT_TRUE(line.show_help);
}

struct BadLine {
  std::vector<const char*> arguments;
  const char* message;
};

class BadCommandLine : public testing::TestWithParam<BadLine> {};

TEST_P(BadCommandLine, GetsOneClearLine) {
  MountCommandLine line;
  std::string error;
  EXPECT_FALSE(parse(GetParam().arguments, &line, &error));
  EXPECT_EQ(error, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadCommandLine,
    testing::Values(BadLine{{}, "expected SERVER:/PATH and MOUNTPOINT; try -h"},
                    BadLine{{"server:/srv"}, "expected SERVER:/PATH and MOUNTPOINT; try -h"},
                    BadLine{{"server:/srv", "/mnt", "/more"}, "unexpected argument '/more'"},
                    BadLine{{"server:/srv", "/mnt", "-x"}, "unknown option '-x'; try -h"},
                    BadLine{{"server:/srv", "/mnt", "--foo"}, "unknown option '--foo'; try -h"},
                    BadLine{{"server:/srv", "/mnt", "-o"}, "option '-o' needs a value"},
                    BadLine{{"server:/srv", "/mnt", "-o", "vres=3"},
                            "unknown mount option 'vres'; did you mean 'vers'?"}));

}  // namespace
}  // namespace nfsrdma
