// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each gets the words behind its name and returns the exit code.
#pragma once

#include <string>
#include <vector>

namespace nfsrdma::tool {

using Words = std::vector<std::string>;

int run_ls(const Words& words);
int run_cat(const Words& words);
int run_cp(const Words& words);
int run_stat(const Words& words);
int run_ping(const Words& words);
int run_status(const Words& words);
int run_bench(const Words& words);
int run_doctor(const Words& words);
int run_top(const Words& words);
int run_clients(const Words& words);
int run_locks(const Words& words);
int run_evict(const Words& words);
int run_release(const Words& words);
int run_exports(const Words& words);
int run_reload(const Words& words);
int run_trace(const Words& words);
int run_capture(const Words& words);

}  // namespace nfsrdma::tool
