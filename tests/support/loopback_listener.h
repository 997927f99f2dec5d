// SPDX-License-Identifier: Apache-2.0
// A TCP socket that listens on loopback, at a port that the kernel chose.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::test {

/// `address`: where it listens. `host`: an IPv4 address of this machine. `flags`: of socket(2).
inline UniqueFd listen_on_loopback(SocketAddress* address, const std::string& host = "127.0.0.1",
                                   int flags = 0) {
  UniqueFd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  const SocketAddress any = SocketAddress::parse(host, 0).value();
  EXPECT_EQ(::bind(out.get(), any.data(), any.length()), 0);
  EXPECT_EQ(::listen(out.get(), 16), 0);
  *address = SocketAddress::local_of(out.get()).value();
  return out;
}

}  // namespace nfsrdma::test
