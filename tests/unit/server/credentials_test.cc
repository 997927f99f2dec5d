// SPDX-License-Identifier: Apache-2.0
#include "server/credentials.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

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

constexpr int kNoNamespace = 77;  // what a test fails with then

/// In a process in a user namespace of its own that has those users and groups ("0 0 1").
int with_users(const std::string& users, bool groups_may_be_set, const std::function<int()>& work) {
  int mapped[2];
  if (::pipe(mapped) != 0) return kNoNamespace;
  // In one step: who forks has the thread of ThreadSanitizer behind it, and then unshare() refuses.
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  if (child < 0) return kNoNamespace;
  char byte = 'y';
  if (child == 0) {
    if (::read(mapped[0], &byte, 1) != 1 || byte != 'y') ::_exit(kNoNamespace);
    ::_exit(work());
  }
  const std::string process = "/proc/" + std::to_string(child);
  const auto put = [&](const char* file, const std::string& text) {
    std::ofstream out(process + file);
    if (!(out << text << std::flush)) byte = 'n';
  };
  if (!groups_may_be_set) put("/setgroups", "deny");
  put("/gid_map", users);
  put("/uid_map", users);
  EXPECT_EQ(::write(mapped[1], &byte, 1), 1);
  for (const int fd : mapped)
    ::close(fd);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The capabilities alone say that it could.
TEST(SwitchingInAUserNamespace, WithoutGroupsThereIsNone) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_users("0 0 70000", false, [] {
    const Switching found = probe_switching();
    return !found.can && found.why_not.find("/proc/self/setgroups") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST(SwitchingInAUserNamespace, WithNobodyElseThereIsNone) {
  NFSRDMA_NEEDS_ROOT();
  for (const bool groups : {false, true}) {
    const int result = with_users("0 0 1", groups, [] {
      const Switching found = probe_switching();
      return !found.can && found.why_not.find("/proc/self/uid_map") != std::string::npos ? 0 : 1;
    });
    EXPECT_EQ(result, 0);
  }
}

TEST(SwitchingInAUserNamespace, ThereIsWithOthers) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_users("0 0 1001", true, [] {
    if (!probe_switching().can) return 1;
    if (!has_user(1000) || has_user(1001) || has_user(65534)) return 2;
    return has_group(1000) && !has_group(65534) ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
}

/// In each of the ways in which the kernel refuses.
TEST(SwitchingInAUserNamespace, WhoCannotBeLeavesTheServersRightsBehind) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_users("0 0 1001", true, [] {
    const auto fsuid = [] { return ::setfsuid(~0u); };
    const RpcCredentials cannot[] = {user(1000, 1000, {4242}), user(1000, 4242), user(4242, 1000)};
    int wrong = 0;
    for (const RpcCredentials& other : cannot) {
      ++wrong;
      AsCaller before(mapped(user(1000, 1000), kNoSquash));
      if (!before.ok() || fsuid() != 1000) return 10 + wrong;
      AsCaller acting(mapped(other, kNoSquash));
      if (acting.ok()) return 20 + wrong;
      AsServer privileged;
      if (fsuid() != 0) return 30 + wrong;
    }
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(Squash, NoneLeavesEverybodyAlone) {
  const CallerIdentity identity = mapped(user(0, 0, {0, 5}), kNoSquash);
  EXPECT_EQ(identity.uid, 0u);
  EXPECT_EQ(identity.gid, 0u);
  EXPECT_EQ(identity.groups[0], 0u);
}

TEST(Squash, RootBecomesAnonymous) {
  const CallerIdentity identity = mapped(user(0, 0, {0, 5}), kRootSquash);
  EXPECT_EQ(identity.uid, 111u);
  EXPECT_EQ(identity.gid, 222u);
  EXPECT_EQ(identity.groups[0], 222u);
  EXPECT_EQ(identity.groups[1], 5u);
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
  EXPECT_TRUE(identity.groups.empty());
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
  std::uint64_t answer_at_hand(std::uint32_t) override { return 1; }
  void groups(std::uint32_t, CallerIdentity* identity) override {
    identity->groups.clear();
    for (std::uint32_t i = 0; i < 1000; ++i)
      identity->groups.push_back(1000 + i);
  }
};

TEST(Identity, ManagedGroupsReplaceTheCallsAndMayBeMoreThanSixteen) {
  ManyGroups source;
  CallerIdentity identity;
  map_identity(user(1, 2, {3}), kNoSquash, &source, &identity);
  ASSERT_EQ(identity.groups.size(), 1000u);
  EXPECT_EQ(identity.groups[999], 1999u);
  const std::uint64_t tag = identity.tag;
  identity.groups[999] = 7;
  identity.seal();
  EXPECT_NE(identity.tag, tag) << "all of them count";
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

TEST_F(Switching, AServerSectionWithinAnotherDoesNotEndIt) {
  thread_.run([] {
    AsCaller acting(mapped(user(1000, 1000), kNoSquash));
    {
      AsServer outer;
      { AsServer inner; }
      EXPECT_EQ(fsuid(), 0u);
    }
    EXPECT_EQ(fsuid(), 1000u);
  });
}

TEST_F(Switching, ACallerIsInAllOfHisGroups) {
  thread_.run([] {
    ManyGroups source;
    CallerIdentity identity;
    map_identity(user(1, 2), kNoSquash, &source, &identity);
    AsCaller acting(identity);
    EXPECT_TRUE(acting.ok());
    EXPECT_EQ(::getgroups(0, nullptr), 1000);
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
