// SPDX-License-Identifier: Apache-2.0
// Groups of listeners: what the kernel says of a socket of ours, and a tree of the test's making.
#include "server/listener_cgroup.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

#include "rpcrdma/base/unique_fd.h"
#include "tests/support/exported_directory.h"

namespace nfsrdma::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ListenerCgroup, TheKernelTellsThatOfASocket) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(fd.get(), generic, length), 0);
  ASSERT_EQ(::getsockname(fd.get(), generic, &length), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_THAT(cgroups_of_listeners(port), IsEmpty()) << "it does not listen yet";
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  const std::set<std::uint64_t> ids = cgroups_of_listeners(port);
  if (ids.empty()) GTEST_SKIP() << "this kernel, or this sandbox, does not tell";
  EXPECT_THAT(ids, SizeIs(1));
}

class CgroupTree : public ::testing::Test {
 protected:
  std::uint64_t make(const std::string& path, const std::string& pids) {
    const std::string at = root.path() + "/" + path;
    std::filesystem::create_directories(at);
    put_file(at + "/cgroup.procs", pids);
    struct stat st {};
    EXPECT_EQ(::stat(at.c_str(), &st), 0);
    return st.st_ino;
  }
  TemporaryDirectory root, proc;
};

TEST_F(CgroupTree, AUnitIsFoundByItsIdWithItsProcesses) {
  make("system.slice/other.service", "7\n");
  const std::uint64_t id = make("system.slice/web.service", "811\n812\n");
  std::filesystem::create_directory(proc.path() + "/811");
  put_file(proc.path() + "/811/comm", "nginx\n");
  const std::optional<Cgroup> found = find_cgroup(root.path(), proc.path(), id);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "web.service");
  EXPECT_THAT(found->processes, ElementsAre("811 (nginx)", "812 (?)"));
  EXPECT_FALSE(found->more);
}

TEST_F(CgroupTree, OfManyProcessesThereAreAFew) {
  const std::uint64_t id = make("user.slice/session-3.scope", "1\n2\n3\n4\n5\n");
  const std::optional<Cgroup> found = find_cgroup(root.path(), proc.path(), id);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->processes, SizeIs(4));
  EXPECT_TRUE(found->more);
}

TEST_F(CgroupTree, WhatIsGoneEmptyOrTheRootIsNothing) {
  const std::uint64_t empty = make("system.slice/nfs-server.service", "");
  EXPECT_FALSE(find_cgroup(root.path(), proc.path(), empty));
  EXPECT_FALSE(find_cgroup(root.path(), proc.path(), 0));
  EXPECT_FALSE(find_cgroup(root.path() + "/none", proc.path(), empty));
  struct stat st {};
  ASSERT_EQ(::stat(root.path().c_str(), &st), 0);
  put_file(root.path() + "/cgroup.procs", "1\n");
  EXPECT_FALSE(find_cgroup(root.path(), proc.path(), st.st_ino));
}

}  // namespace
}  // namespace nfsrdma::test
