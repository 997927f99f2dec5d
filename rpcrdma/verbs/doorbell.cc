// SPDX-License-Identifier: Apache-2.0
// See doorbell.h. This file takes the kernel's headers only: libibverbs has copies of them.
#include "rpcrdma/verbs/doorbell.h"

#include <dlfcn.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "rpcrdma/verbs/command_thread.h"

namespace nfsrdma::verbs {

namespace {

// In the program itself, so that write() pays no call for it.
thread_local Doorbell* t_doorbell = nullptr;
WriteFunction g_write = nullptr;
// The kernel has no such ioctl: found out once, at the first doorbell.
std::atomic<bool> g_refused{false};

/// A call of UVERBS_METHOD_INVOKE_WRITE, being put together.
class Invocation {
 public:
  explicit Invocation(std::uint32_t driver) {
    header().object_id = UVERBS_OBJECT_DEVICE;
    header().method_id = UVERBS_METHOD_INVOKE_WRITE;
    header().driver_id = driver;
  }
  void input(std::uint16_t id, const void* data, std::size_t size) {
    ib_uverbs_attr& attribute = add(id, data, size);
    // The kernel takes what is this small from the attribute itself.
    if (size <= sizeof attribute.data) std::memcpy(&attribute.data, data, size);
  }
  void output(std::uint16_t id, void* data, std::size_t size) { add(id, data, size); }
  int run(int fd) {
    header().length = static_cast<std::uint16_t>(sizeof(ib_uverbs_ioctl_hdr) +
                                                 header().num_attrs * sizeof(ib_uverbs_attr));
    return ::ioctl(fd, RDMA_VERBS_IOCTL, bytes_.data()) == 0 ? 0 : errno;
  }

 private:
  static constexpr std::size_t kAttributes = 3;

  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(bytes_.data()); }
  ib_uverbs_attr& add(std::uint16_t id, const void* data, std::size_t size) {
    auto* attributes =
        reinterpret_cast<ib_uverbs_attr*>(bytes_.data() + sizeof(ib_uverbs_ioctl_hdr));
    ib_uverbs_attr& attribute = attributes[header().num_attrs++];
    attribute.attr_id = id;
    attribute.len = static_cast<std::uint16_t>(size);
    attribute.flags = UVERBS_ATTR_F_MANDATORY;
    attribute.data = reinterpret_cast<std::uintptr_t>(data);
    return attribute;
  }

  // The header has its attributes behind it.
  alignas(ib_uverbs_ioctl_hdr) std::array<
      std::byte, sizeof(ib_uverbs_ioctl_hdr) + kAttributes * sizeof(ib_uverbs_attr)> bytes_{};
};

}  // namespace

Doorbell::Doorbell(int command_fd, std::uint32_t driver, CommandThread& commands)
    : fd_(command_fd), driver_(driver), commands_(commands), outer_(t_doorbell) {
  t_doorbell = this;
}

Doorbell::~Doorbell() {
  t_doorbell = outer_;
}

void set_interposed_write(WriteFunction function) {
  g_write = function;
}

bool Doorbell::available() {
  // The libraries look a name up in the program first. A preloaded library would come before.
  static const bool ours =
      g_write != nullptr && ::dlsym(RTLD_DEFAULT, "write") == reinterpret_cast<void*>(g_write);
  return ours;
}

bool Doorbell::refused() {
  return g_refused.load(std::memory_order_relaxed);
}

bool Doorbell::says_that_there_is_none(int err) {
  // No such ioctl; no such method of it, or none for this command. EINVAL would be rxe's word for a
  // queue pair that is broken.
  return err == ENOTTY || err == ENOSYS || err == EPROTONOSUPPORT || err == EOPNOTSUPP;
}

int Doorbell::invoke(const void* bytes, std::size_t count) const {
  ib_uverbs_cmd_hdr head;
  std::memcpy(&head, bytes, sizeof head);
  const auto* body = static_cast<const std::byte*>(bytes) + sizeof head;
  const std::size_t size = count - sizeof head;
  if (head.in_words * 4U != count) return EINVAL;
  if (head.command != IB_USER_VERBS_CMD_POST_SEND &&
      head.command != IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) {
    return EINVAL;
  }
  Invocation call(driver_);
  const std::uint64_t command = head.command;
  call.input(UVERBS_ATTR_WRITE_CMD, &command, sizeof command);
  call.input(UVERBS_ATTR_CORE_IN, body, size);
  ib_uverbs_post_send_resp response{};
  if (head.command == IB_USER_VERBS_CMD_POST_SEND) {
    call.output(UVERBS_ATTR_CORE_OUT, &response, sizeof response);
  }
  return call.run(fd_);
}

bool Doorbell::rings(int fd, const void* bytes, std::size_t count, ssize_t* result) {
  const Doorbell* bell = t_doorbell;
  if (bell == nullptr || bell->fd_ != fd || count <= sizeof(ib_uverbs_cmd_hdr)) return false;
  const bool tries = !refused();
  const int err = tries ? bell->invoke(bytes, count) : 0;
  if (tries && err == 0) {
    *result = static_cast<ssize_t>(count);
    return true;
  }
  *result = bell->commands_.run(
      [&] { return static_cast<ssize_t>(::syscall(SYS_write, fd, bytes, count)); });
  if (*result == static_cast<ssize_t>(count) && says_that_there_is_none(err)) {
    g_refused.store(true, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace nfsrdma::verbs
