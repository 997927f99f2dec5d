// SPDX-License-Identifier: Apache-2.0
#include "config/default_paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace nfsrdma {
namespace {

/// As a user whom nobody else is, in a child: 0 when directories below his place in /tmp are made,
/// or an errno.
int make_as(uid_t uid) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(uid, uid, uid) != 0) ::_exit(255);
    const std::string directory = "/tmp/nfs-rdma-" + std::to_string(uid) + "/state/client-locks";
    ::_exit(make_directories(directory, 0700) ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(DefaultPaths, WhatAnotherUserHasMadeInTmpIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user cannot be two; run as root for this";
  const uid_t uid = 100000 + static_cast<uid_t>(::getpid());
  const std::string place = "/tmp/nfs-rdma-" + std::to_string(uid);
  ASSERT_EQ(::mkdir(place.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(place.c_str(), 0777), 0);
  EXPECT_EQ(make_as(uid), EPERM);
  ASSERT_EQ(::rmdir(place.c_str()), 0);
  ASSERT_EQ(::symlink("/tmp", place.c_str()), 0);
  EXPECT_EQ(make_as(uid), EPERM);
  ASSERT_EQ(::unlink(place.c_str()), 0);
  EXPECT_EQ(make_as(uid), 0);
  EXPECT_EQ(::rmdir((place + "/state/client-locks").c_str()), 0);
  EXPECT_EQ(::rmdir((place + "/state").c_str()), 0);
  EXPECT_EQ(::rmdir(place.c_str()), 0);
}

}  // namespace
}  // namespace nfsrdma
