// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace nfsrdma {
namespace {

/// In a process of its own, whose streams the test may close: is it so there?
bool in_a_child(const std::function<bool()>& so) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(so() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(StandardStreams, AClosedOneKeepsItsNumber) {
  for (const ClosedStream use : {ClosedStream::kIsNull, ClosedStream::kFails}) {
    for (const int closed : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      EXPECT_TRUE(in_a_child([&] {
        ::close(closed);
        hold_standard_streams(use);
        const int next = ::open("/dev/zero", O_RDONLY);
        return next > STDERR_FILENO;
      })) << closed;
    }
  }
}

TEST(StandardStreams, AllOfThemAtOnce) {
  EXPECT_TRUE(in_a_child([] {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::close(fd);
    hold_standard_streams(ClosedStream::kIsNull);
    char byte = 0;
    return ::write(STDOUT_FILENO, "x", 1) == 1 && ::write(STDERR_FILENO, "x", 1) == 1 &&
           ::read(STDIN_FILENO, &byte, 1) == 0 && ::open("/dev/zero", O_RDONLY) > STDERR_FILENO;
  }));
}

TEST(StandardStreams, WhatCannotBeWrittenIsNotLostWithoutAnError) {
  EXPECT_TRUE(in_a_child([] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    hold_standard_streams(ClosedStream::kFails);
    char byte = 0;
    return ::write(STDOUT_FILENO, "x", 1) < 0 && ::read(STDIN_FILENO, &byte, 1) < 0;
  }));
}

TEST(StandardStreams, AnOpenOneStaysWhatItIs) {
  EXPECT_TRUE(in_a_child([] {
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) return false;
    hold_standard_streams(ClosedStream::kIsNull);
    char byte = 0;
    return ::write(STDOUT_FILENO, "y", 1) == 1 && ::read(ends[0], &byte, 1) == 1 && byte == 'y';
  }));
}

}  // namespace
}  // namespace nfsrdma
