// SPDX-License-Identifier: Apache-2.0
// MountReport: what the daemon tells the command that has started it and waits: 'K' usable (with
// the text for -v), 'E' failed, 'B' goes on in the background; then the text, then the end of the
// pipe.
//
// The command may be killed at any moment, by a time limit or a service manager, and whoever did
// that takes the mount for failed.
#pragma once

#include <string>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class MountReport {
 public:
  /// The pipe's end to write to; none: nobody waits. SIGPIPE has to be ignored.
  explicit MountReport(UniqueFd pipe) : pipe_(std::move(pipe)) {}

  /// Once. False: nobody has heard it.
  bool send(char kind, const std::string& text);
  /// Nothing has been sent yet to somebody who waits, or waited.
  bool open() const { return static_cast<bool>(pipe_); }
  /// Who waited is gone before anything was sent.
  bool abandoned() const;

 private:
  UniqueFd pipe_;
};

}  // namespace nfsrdma
