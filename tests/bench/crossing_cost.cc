// SPDX-License-Identifier: Apache-2.0
// What it costs a server to live outside the kernel, here: a system call that does nothing, and
// what a thread's sleep takes of the processor: going to sleep, being woken by another thread,
// coming back. scripts/bench-lab multiplies them with what it has counted. Prints a JSON object of
// nanoseconds of processor time.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace {

constexpr int kCalls = 50000;
constexpr int kSleeps = 5000;
constexpr int kRounds = 5;

/// Of all threads of the process.
std::int64_t processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

/// The least of some rounds: what comes on top is other work of the machine.
double least(int times, const std::function<void()>& work) {
  double result = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t before = processor_ns();
    work();
    result = std::min(result, static_cast<double>(processor_ns() - before) / times);
  }
  return result;
}

void empty_calls() {
  for (int number = 0; number < kCalls; ++number)
    ::syscall(SYS_getppid);
}

void require(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

/// A thread that waits for its eventfd with epoll, as a shard does.
struct Sleeper {
  int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int epoll = ::epoll_create1(EPOLL_CLOEXEC);

  Sleeper() {
    require(event >= 0 && epoll >= 0, "eventfd or epoll");
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    require(::epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted) == 0, "epoll_ctl");
  }
  ~Sleeper() {
    ::close(event);
    ::close(epoll);
  }
  void sleep() const {
    epoll_event got{};
    while (::epoll_wait(epoll, &got, 1, -1) != 1) {
    }
    std::uint64_t count = 0;
    require(::read(event, &count, sizeof(count)) == sizeof(count), "read");
  }
  void wake() const {
    const std::uint64_t one = 1;
    require(::write(event, &one, sizeof(one)) == sizeof(one), "write");
  }
};

/// Two threads wake each other in turn: 2 * kSleeps sleeps, with three system calls each.
void sleeps() {
  Sleeper here;
  Sleeper there;
  std::thread other([&] {
    for (int number = 0; number < kSleeps; ++number) {
      there.sleep();
      here.wake();
    }
  });
  for (int number = 0; number < kSleeps; ++number) {
    there.wake();
    here.sleep();
  }
  other.join();
}

}  // namespace

int main() {
  const double call = least(kCalls, empty_calls);
  const double sleep = least(2 * kSleeps, sleeps) - 3 * call;
  std::printf("{\"call_ns\": %.1f, \"sleep_ns\": %.1f}\n", call, std::max(sleep, 0.0));
}
