// SPDX-License-Identifier: Apache-2.0
// Doorbell: lets a thread that has changed its credentials ring the doorbells of rxe and siw
// itself.
//
// Their providers post work and arm completion queues by write(2) on the device's file, which the
// kernel refuses such a thread (command_thread.h). It has a second way to the very same commands,
// an ioctl (UVERBS_METHOD_INVOKE_WRITE, Linux 5.0), which asks for nothing but the open file. The
// provider's write() is inside its library: doorbell_write.cc, linked into the programs that want
// this, defines write() for the whole process and asks here whether this one is a doorbell.
//
// Measured (tests/bench/README.md): handing each doorbell to the command thread costs two
// wake-ups, which is more than a whole small operation.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NFSRDMA_SANITIZED  // g++
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define NFSRDMA_SANITIZED  // clang
#endif
#endif

namespace nfsrdma::verbs {

class CommandThread;

class Doorbell {
 public:
  /// While it lives, doorbells of this thread on `command_fd` go by ioctl; should the kernel not
  /// have that, by `commands`. `driver` is the kernel's number of the driver (rdma_driver_id).
  Doorbell(int command_fd, std::uint32_t driver, CommandThread& commands);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Do the providers' writes come to us in this process?
  static bool available();
  /// Has the kernel turned out not to have the ioctl?
  static bool refused();
  /// Does `err`, of the ioctl, say so? A broken queue pair is no reason to do without for good.
  static bool says_that_there_is_none(int err);

  /// What a write() is to give when it is a doorbell of this thread's; false when it is none.
  static bool rings(int fd, const void* bytes, std::size_t count, ssize_t* result);

 private:
  /// 0, or why not, as errno.
  int invoke(const void* bytes, std::size_t count) const;

  int fd_;
  std::uint32_t driver_;
  CommandThread& commands_;
  Doorbell* outer_;
};

/// Of doorbell_write.cc: where it is linked in, its address is there to be compared.
using WriteFunction = ssize_t (*)(int, const void*, std::size_t);
void set_interposed_write(WriteFunction function);

}  // namespace nfsrdma::verbs
