// SPDX-License-Identifier: Apache-2.0
// What the name service and the user database say when /etc is another one.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>

#include "tests/support/exported_directory.h"

namespace nfsrdma::test {

inline constexpr int kNoNamespace = 77;

/// Runs `work` in a process of its own, whose /etc is empty but for `files`: as root
/// (NFSRDMA_NEEDS_ROOT). What it returned, or kNoNamespace.
inline int with_files_in_etc(const std::map<std::string, std::string>& files,
                             const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", "/etc", "tmpfs", 0, nullptr) != 0) {
    ::_exit(kNoNamespace);
  }
  for (const auto& file : files)
    put_file("/etc/" + file.first, file.second);
  ::_exit(work());
}

}  // namespace nfsrdma::test
