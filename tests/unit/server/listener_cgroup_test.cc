// SPDX-License-Identifier: Apache-2.0
// Groups of listeners: what the kernel says of a socket of ours, and a tree of the test's making.
#include "server/listener_cgroup.h"

#include <gmock/gmock.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
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

/// Answers as the kernel gives them; what it says of real listeners is looked at in the lab
/// (lab_service_steps.sh: step_taken_port).
class ListenerCgroup : public ::testing::Test {
 protected:
  ListenerCgroup() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    kernel_.reset(ends[0]);
    asker_.reset(ends[1]);
  }
  template <typename T>
  static std::string bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string attribute(std::uint16_t type, const std::string& value) {
    rtattr head{};
    head.rta_type = type;
    head.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(value.size()));
    std::string out = bytes(head) + value;
    out.resize(RTA_ALIGN(out.size()));
    return out;
  }
  static std::string message(std::uint16_t type, const std::string& body) {
    nlmsghdr head{};
    head.nlmsg_type = type;
    head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(body.size()));
    return bytes(head) + body;
  }
  static std::string listener(std::uint16_t port, const std::string& attributes) {
    inet_diag_msg found{};
    found.id.idiag_sport = htons(port);
    return message(SOCK_DIAG_BY_FAMILY, bytes(found) + attributes);
  }
  static std::string group(std::uint64_t id) { return attribute(INET_DIAG_CGROUP_ID, bytes(id)); }
  std::set<std::uint64_t> read(const std::vector<std::string>& datagrams) {
    for (const std::string& datagram : datagrams)
      EXPECT_EQ(::send(kernel_.get(), datagram.data(), datagram.size(), 0),
                static_cast<ssize_t>(datagram.size()));
    kernel_.reset();  // else one that lacks its end would be waited for
    std::set<std::uint64_t> ids;
    read_listeners(asker_.get(), 2049, &ids);
    return ids;
  }
  UniqueFd kernel_, asker_;
};

TEST_F(ListenerCgroup, ThoseOfThePortAreFound) {
  const std::string other = attribute(INET_DIAG_SHUTDOWN, std::string(1, 0));
  EXPECT_THAT(read({listener(2049, other + group(11)) + listener(111, group(12)),
                    listener(2049, group(13) + other), message(NLMSG_DONE, "1234")}),
              ElementsAre(11, 13));
}

TEST_F(ListenerCgroup, NothingBehindTheEndCounts) {
  EXPECT_THAT(read({message(NLMSG_DONE, "1234"), listener(2049, group(11))}), IsEmpty());
}

TEST_F(ListenerCgroup, KernelsThatDoNotTellGiveNone) {
  EXPECT_THAT(read({listener(2049, ""), message(NLMSG_DONE, "1234")}), IsEmpty());
}

TEST_F(ListenerCgroup, WhatIsCutIsNotReadBeyondItsEnd) {
  rtattr longer{};
  longer.rta_type = INET_DIAG_CGROUP_ID;
  longer.rta_len = RTA_LENGTH(8);
  rtattr none{};
  EXPECT_THAT(
      read({listener(2049, bytes(longer) + "1234"), listener(2049, bytes(none) + group(11)),
            listener(2049, attribute(INET_DIAG_CGROUP_ID, "1234")),
            message(SOCK_DIAG_BY_FAMILY, "short"), listener(2049, group(12)).substr(0, 20)}),
      IsEmpty());
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
