// SPDX-License-Identifier: Apache-2.0
#include "server/credentials.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/group_source.h"
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

CallerIdentity mapped(const RpcCredentials& credentials, const SquashRule& rule) {
  CallerIdentity identity;
  map_identity(credentials, rule, nullptr, &identity);
  return identity;
}

constexpr SquashRule kNoSquash{false, false, 65534, 65534};
constexpr SquashRule kRootSquash{true, false, 111, 222};
constexpr SquashRule kAllSquash{false, true, 111, 222};

TEST(Squash, NoneLeavesEverybodyAlone) {
  const CallerIdentity identity = mapped(user(0, 0, {0, 5}), kNoSquash);
  EXPECT_EQ(identity.uid, 0u);
  EXPECT_EQ(identity.gid, 0u);
  EXPECT_EQ(identity.group_list()[0], 0u);
}

TEST(Squash, RootBecomesAnonymous) {
  const CallerIdentity identity = mapped(user(0, 0, {0, 5}), kRootSquash);
  EXPECT_EQ(identity.uid, 111u);
  EXPECT_EQ(identity.gid, 222u);
  EXPECT_EQ(identity.group_list()[0], 222u);
  EXPECT_EQ(identity.group_list()[1], 5u);
}

TEST(Squash, GroupRootOfOthersIsSquashedToo) {
  const CallerIdentity identity = mapped(user(1000, 0), kRootSquash);
  EXPECT_EQ(identity.uid, 1000u);
  EXPECT_EQ(identity.gid, 222u);
}

TEST(Squash, AllBecomeAnonymousWithoutGroups) {
  const CallerIdentity identity = mapped(user(1000, 1000, {5}), kAllSquash);
  EXPECT_EQ(identity.uid, 111u);
  EXPECT_EQ(identity.gid, 222u);
  EXPECT_EQ(identity.group_count, 0u);
}

TEST(Squash, AuthNoneIsAnonymous) {
  EXPECT_EQ(mapped(RpcCredentials{}, SquashRule{false, false, 7, 8}).uid, 7u);
}

TEST(Squash, TheInvalidUidIsAnonymous) {
  EXPECT_EQ(mapped(user(~0u, ~0u), SquashRule{false, false, 7, 8}).uid, 7u);
  EXPECT_EQ(mapped(user(~0u, ~0u), SquashRule{false, false, 7, 8}).gid, 8u);
}

TEST(Identity, TagsTellIdentitiesApart) {
  const auto tag = [](const RpcCredentials& c) { return mapped(c, kNoSquash).tag; };
  EXPECT_EQ(tag(user(1, 2, {3})), tag(user(1, 2, {3})));
  EXPECT_NE(tag(user(1, 2, {3})), tag(user(1, 2, {4})));
  EXPECT_NE(tag(user(1, 2, {3})), tag(user(1, 2)));
  EXPECT_NE(tag(user(1, 2)), tag(user(2, 1)));
}

class ManyGroups final : public GroupSource {
 public:
  bool knows(std::uint32_t) override { return true; }
  bool groups(std::uint32_t, CallerIdentity* identity) override {
    identity->group_count = 100;
    for (std::uint32_t i = 0; i < 100; ++i)
      identity->groups[i] = 1000 + i;
    return true;
  }
};

TEST(Identity, ManagedGroupsReplaceTheCallsAndMayBeMoreThanSixteen) {
  ManyGroups source;
  CallerIdentity identity;
  map_identity(user(1, 2, {3}), kNoSquash, &source, &identity);
  EXPECT_EQ(identity.group_count, 100u);
  EXPECT_EQ(identity.groups[99], 1099u);
}

class Switching : public ::testing::Test {
 protected:
  void SetUp() override { NFSRDMA_NEEDS_ROOT(); }
  static std::uint32_t fsuid() { return static_cast<std::uint32_t>(::setfsuid(~0u)); }
  ServingThread thread_;
};

TEST_F(Switching, ActsAsTheCaller) {
  thread_.run([] {
    AsCaller acting(mapped(user(1000, 1001, {7, 8}), kNoSquash));
    EXPECT_TRUE(acting.ok());
    EXPECT_EQ(fsuid(), 1000u);
    gid_t groups[4];
    EXPECT_EQ(::getgroups(4, groups), 2);
    EXPECT_EQ(groups[1], 8u);
  });
}

TEST_F(Switching, StaysOnItsThread) {
  thread_.run([] { AsCaller acting(mapped(user(1000, 1000), kNoSquash)); });
  EXPECT_EQ(fsuid(), 0u);
}

TEST_F(Switching, ServerSectionsHaveTheServersRightsAndGiveThemBack) {
  thread_.run([] {
    AsCaller acting(mapped(user(1000, 1000), kNoSquash));
    {
      AsServer privileged;
      EXPECT_EQ(fsuid(), 0u);
    }
    EXPECT_EQ(fsuid(), 1000u);
  });
}

TEST_F(Switching, ACallerCannotReadWhatIsRootsAlone) {
  TemporaryDirectory home;
  put_file(home.path() + "/f", "x", 0600);
  thread_.run([&] {
    AsCaller acting(mapped(user(1000, 1000), kNoSquash));
    UniqueFd fd(::open((home.path() + "/f").c_str(), O_RDONLY));
    EXPECT_FALSE(fd);
  });
}

TEST_F(Switching, FsetidIsRaisedOnlyWhereAskedFor) {
  TemporaryDirectory home;
  const std::string file = home.path() + "/f";
  put_file(file, "", 0755);
  ASSERT_EQ(::chown(file.c_str(), 0, 4242), 0);
  thread_.run([&] {
    AsCaller acting(mapped(user(0, 0), kNoSquash));
    ::chmod(file.c_str(), 02755);
    EXPECT_EQ(stat_of(file).st_mode & S_ISGID, 0u);
    {
      WithFsetid raised;
      ::chmod(file.c_str(), 02755);
    }
    EXPECT_EQ(stat_of(file).st_mode & S_ISGID, unsigned{S_ISGID});
    ::chmod(file.c_str(), 0755);
    ::chmod(file.c_str(), 02755);
    EXPECT_EQ(stat_of(file).st_mode & S_ISGID, 0u);
  });
}

TEST_F(Switching, ReturningToRootDoesNotBringFsetidBack) {
  TemporaryDirectory home;
  const std::string file = home.path() + "/f";
  put_file(file, "x", 0755);
  thread_.run([&] {
    { AsCaller acting(mapped(user(1000, 1000), kNoSquash)); }
    AsCaller acting(mapped(user(0, 0), kNoSquash));
    ::chmod(file.c_str(), 06755);
    UniqueFd fd(::open(file.c_str(), O_WRONLY));
    EXPECT_EQ(::pwrite(fd.get(), "y", 1, 0), 1);
    EXPECT_EQ(stat_of(file).st_mode & 07777, 0755u);
  });
}

}  // namespace
}  // namespace nfsrdma::test
