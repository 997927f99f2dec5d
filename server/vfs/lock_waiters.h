// SPDX-License-Identifier: Apache-2.0
// Who waits for record locks on this machine, as far as /proc tells (proc(5), /proc/locks). Those
// who only ask now and then are not seen.
//
// Threads: any.
#pragma once

#include <set>
#include <string>

namespace nfsrdma {

/// By what name /proc/locks knows the file that this process has locked by that descriptor; empty
/// when it has no lock there.
std::string locked_file_name(int fd);

/// The names of files on which a process waits for a lock.
std::set<std::string> awaited_files();

}  // namespace nfsrdma
