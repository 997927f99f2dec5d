// SPDX-License-Identifier: Apache-2.0
// System calls in front of which something else happens, as if another thread had been quicker.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <thread>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::test {

/// Each system call `number` (SYS_pwrite64) of the thread that makes this waits until `meanwhile`
/// has run, on a thread of its own (what it leaves behind for the test is to be atomic: only the
/// kernel knows that one waits for the other). Only one for a thread; behind its end such calls
/// fail with ENOSYS.
class HeldCalls {
 public:
  HeldCalls(long number, std::function<void()> meanwhile)
      : meanwhile_(std::move(meanwhile)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    // Before the filter, which it would inherit.
    thread_ = std::thread([this] { serve(); });
    listener_.set_value(listen(number));
  }
  ~HeldCalls() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  HeldCalls(const HeldCalls&) = delete;
  HeldCalls& operator=(const HeldCalls&) = delete;

 private:
  static int listen(long number) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(program), program};
    EXPECT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    const long fd =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    EXPECT_GE(fd, 0) << errno;
    return static_cast<int>(fd);
  }
  void serve() {
    const UniqueFd listener(listener_.get_future().get());
    for (;;) {
      pollfd fds[] = {{listener.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents != 0 || (fds[0].revents & POLLIN) == 0) return;
      seccomp_notif call{};
      if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
      meanwhile_();
      seccomp_notif_resp answer{};
      answer.id = call.id;
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      EXPECT_EQ(::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
    }
  }

  const std::function<void()> meanwhile_;
  const UniqueFd stop_;
  std::promise<int> listener_;
  std::thread thread_;
};

}  // namespace nfsrdma::test
