// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/command_thread.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <thread>
#include <vector>

namespace nfsrdma::verbs {
namespace {

TEST(CommandThread, RunsElsewhereAndAlwaysOnTheSameThread) {
  CommandThread commands;
  const auto first = commands.run([] { return std::this_thread::get_id(); });
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(commands.run([] { return std::this_thread::get_id(); }), first);
}

TEST(CommandThread, OneServesTheWholeProcess) {
  const auto mine = CommandThread::of_process().run([] { return std::this_thread::get_id(); });
  std::thread::id others;
  std::thread([&] {
    others = CommandThread::of_process().run([] { return std::this_thread::get_id(); });
  }).join();
  EXPECT_EQ(others, mine);
}

TEST(CommandThread, TakesNoSignals) {
  CommandThread commands;
  sigset_t blocked;
  sigemptyset(&blocked);
  commands.run([&] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); });
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0) << "the caller's own mask stays";
}

TEST(CommandThread, BringsErrnoBack) {
  CommandThread commands;
  errno = 0;
  commands.run([] { errno = ENODEV; });
  EXPECT_EQ(errno, ENODEV);
}

TEST(CommandThread, GivesMoveOnlyResults) {
  CommandThread commands;
  EXPECT_EQ(*commands.run([] { return std::make_unique<int>(7); }), 7);
}

TEST(CommandThread, ServesCallersOneAtATime) {
  CommandThread commands;
  int count = 0;  // not atomic: the thread sanitizer watches
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 100; ++j)
        commands.run([&] { ++count; });
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(commands.run([&] { return count; }), 400);
}

}  // namespace
}  // namespace nfsrdma::verbs
