// SPDX-License-Identifier: Apache-2.0
// Which threads the watchdog takes for alive although they do not answer: those that wait for a
// file system. A pipe that nobody writes to stands for one here, as a hanging FUSE does.
#include "server/watchdog.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

namespace nfsrdma {
namespace {

/// Until the kernel shows the thread in that system call.
bool waits_in(pid_t thread, long call) {
  for (int i = 0; i < 1'000'000; ++i) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
    long number = -1;
    if (file >> number && number == call) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(Watchdog, AThreadThatReadsAFileWaitsInTheKernel) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<pid_t> id{0};
  std::thread reader([&] {
    id = ::gettid();
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  });
  while (id == 0)
    std::this_thread::yield();
  EXPECT_TRUE(waits_in(id, SYS_read));
  EXPECT_TRUE(thread_waits_in_kernel(id));
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  reader.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Watchdog, AThreadThatWaitsForAnotherDoesNot) {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::atomic<pid_t> id{0};
  std::thread waiter([&] {
    id = ::gettid();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return over; });
  });
  while (id == 0)
    std::this_thread::yield();
  EXPECT_TRUE(waits_in(id, SYS_futex));
  EXPECT_FALSE(thread_waits_in_kernel(id));
  {
    std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  waiter.join();
}

TEST(Watchdog, AThreadThatRunsOrIsGoneDoesNot) {
  EXPECT_FALSE(thread_waits_in_kernel(::gettid()));
  EXPECT_FALSE(thread_waits_in_kernel(1 << 30));
}

}  // namespace
}  // namespace nfsrdma
