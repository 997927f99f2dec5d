// SPDX-License-Identifier: Apache-2.0
// Who listens, by the real /proc; tables of a test's making are in port_holder_test.cc.
#include "rpcrdma/base/listening_sockets.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

/// A listening socket of the loopback, and its port.
UniqueFd listen_somewhere(std::uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), generic, length) != 0 || ::listen(fd.get(), 1) != 0 ||
      ::getsockname(fd.get(), generic, &length) != 0) {
    return {};
  }
  *port = ntohs(address.sin_port);
  return fd;
}

TEST(ListeningSockets, NameTheProcess) {
  std::uint16_t port = 0;
  const UniqueFd fd = listen_somewhere(&port);
  ASSERT_TRUE(fd);
  const SocketHolder holder = holder_of_sockets("/proc", listening_inodes("/proc", port));
  EXPECT_EQ(holder.pid, std::to_string(::getpid()));
  EXPECT_EQ(holder.name, "base_test");
}

TEST(ListeningSockets, OfNobodyNothingIsSaid) {
  const SocketHolder holder = holder_of_sockets("/proc", {});
  EXPECT_TRUE(holder.pid.empty());
  EXPECT_FALSE(holder.hidden);
}

/// Descriptors of others can be listed by root and not be read without the right to trace: as in
/// the unit of the service.
TEST(ListeningSockets, WhatMayNotBeReadIsHiddenNotAbsent) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can have a right and lay it down";
  int told[2], over[2];
  ASSERT_EQ(::pipe(told), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(over[1]);
    std::uint16_t port = 0;
    const UniqueFd fd = listen_somewhere(&port);
    char byte;
    if (::setuid(1000) != 0 || ::write(told[1], &port, sizeof port) != sizeof port) ::_exit(1);
    ::_exit(::read(over[0], &byte, 1) == 0 ? 0 : 1);
  }
  std::uint16_t port = 0;
  ASSERT_EQ(::read(told[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  const std::set<std::string> inodes = listening_inodes("/proc", port);
  const pid_t looker = ::fork();
  if (looker == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    ::syscall(SYS_capget, &header, data);
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    if (::syscall(SYS_capset, &header, data) != 0) ::_exit(2);
    const SocketHolder holder = holder_of_sockets("/proc", inodes);
    ::_exit(holder.pid.empty() && holder.hidden ? 0 : 3);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(looker, &status, 0), looker);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(inodes.size(), 1u);
  for (const int fd : {over[0], over[1], told[0], told[1]})
    ::close(fd);
  EXPECT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace nfsrdma
