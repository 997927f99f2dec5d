// SPDX-License-Identifier: Apache-2.0
// Going into the background: the parent stays until the child serves (or has failed), so that
// `nfs-rdmad && mount ...` works and errors reach the terminal and the exit status.
#pragma once

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class Daemonizer {
 public:
  /// Forks when `background`; before any thread is made and any file is kept open. Streams that
  /// are closed become /dev/null, in the foreground too.
  explicit Daemonizer(bool background);

  bool is_parent() const { return parent_; }
  /// Parent: 0 once the child is ready, else the failure status.
  int wait_for_child();
  /// Child: it ends with that status, which becomes the parent's.
  void failed(int status);
  /// Child: serves; lets go of the parent and of the terminal.
  void ready();

 private:
  bool background_;
  bool parent_ = false;
  UniqueFd pipe_;
};

}  // namespace nfsrdma
