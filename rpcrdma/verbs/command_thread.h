// SPDX-License-Identifier: Apache-2.0
// CommandThread: makes the kernel calls of libibverbs and librdmacm that are write(2)s on their
// device files. The kernel refuses those (EACCES) unless the calling thread's credentials are the
// very object with which the file was opened, and setfsuid, setgroups and capset give a thread a
// new one for ever. The server's shards change theirs for every caller, so the calls go to a thread
// that never does. Polling and the doorbells of hardware are not system calls and stay where they
// are.
//
// librdmacm opens a device once per process, at its first use, and keeps it open. So there is
// one such thread per process (of_process()), which never ends either: a second one, started later,
// would inherit credentials that may be other ones by then.
//
// The first call starts the thread. run() waits for the result and brings errno back. Callers are
// served one at a time; a call must not run() another one.
#pragma once

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace nfsrdma::verbs {

class CommandThread {
 public:
  CommandThread() = default;
  ~CommandThread();
  CommandThread(const CommandThread&) = delete;
  CommandThread& operator=(const CommandThread&) = delete;

  static CommandThread& of_process();

  /// Runs `call` there and gives what it returns. Any thread.
  template <typename Call>
  auto run(Call&& call) -> std::invoke_result_t<Call&> {
    using Value = std::invoke_result_t<Call&>;
    if constexpr (std::is_void_v<Value>) {
      hand_over([](void* self) { (*static_cast<std::remove_reference_t<Call>*>(self))(); }, &call);
    } else {
      struct Job {
        std::remove_reference_t<Call>* call;
        Value value;
      } job{&call, {}};
      hand_over(
          [](void* self) {
            Job* mine = static_cast<Job*>(self);
            mine->value = (*mine->call)();
          },
          &job);
      return std::move(job.value);
    }
  }

 private:
  void hand_over(void (*function)(void*), void* argument);
  void start();
  void serve();

  std::mutex turn_;  // held by the caller that is being served
  std::mutex mutex_;
  std::condition_variable changed_;
  void (*function_)(void*) = nullptr;  // guarded by mutex_, as are the following
  void* argument_ = nullptr;
  int errno_ = 0;
  bool stop_ = false;
  std::thread thread_;  // guarded by turn_
};

}  // namespace nfsrdma::verbs
