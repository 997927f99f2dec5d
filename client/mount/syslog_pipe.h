// SPDX-License-Identifier: Apache-2.0
// SyslogPipe: a daemon has no terminal. Its log goes to syslog, with the priority of each line, and
// so does, line by line, what libraries write to standard error; standard output goes nowhere.
//
// By a pipe and a thread of its own: syslog(3) waits for whoever takes the log, and that one may
// wait for this mount. While it does, what does not fit into the pipe is missing from the log,
// which says so.
#pragma once

#include <functional>
#include <memory>
#include <semaphore>
#include <thread>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class SyslogPipe {
 public:
  /// As syslog(3): on a thread of the pipe's.
  using Log = std::function<void(int priority, const char* line)>;

  /// Replaces descriptors 0, 1 and 2, and is where log lines go (set_log_sink()). One at a time.
  explicit SyslogPipe(const char* name, Log log = {});
  /// Everything written so far is passed on, unless nobody takes it for a while.
  ~SyslogPipe();

 private:
  std::thread thread_;
  std::shared_ptr<std::binary_semaphore> all_read_;
};

}  // namespace nfsrdma
