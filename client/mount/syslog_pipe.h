// SPDX-License-Identifier: Apache-2.0
// SyslogPipe: a daemon has no terminal. What it writes to its standard error goes to syslog, line
// by line; standard output goes nowhere.
#pragma once

#include <thread>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class SyslogPipe {
 public:
  /// Replaces descriptors 0, 1 and 2.
  explicit SyslogPipe(const char* name);
  /// Everything written so far is passed on.
  ~SyslogPipe();

 private:
  void run();
  UniqueFd read_end_;
  std::thread thread_;
};

}  // namespace nfsrdma
