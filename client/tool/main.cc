// SPDX-License-Identifier: Apache-2.0
// nfs-rdma: the tool beside the server and the mount. See nfs-rdma(1).
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/hand_over.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/standard_streams.h"

namespace nfsrdma::tool {
namespace {

struct Command {
  std::string_view name;
  int (*run)(const Words& words);
  const char* summary;
};

constexpr Command kCommands[] = {
    {"ls", run_ls, "list directories and files"},
    {"cat", run_cat, "write files to standard output"},
    {"cp", run_cp, "copy files and trees, either way"},
    {"stat", run_stat, "show what is known of files"},
    {"ping", run_ping, "measure the latency of empty calls"},
    {"status", run_status,
     "show the connections of a server or a mount, and whether they use RDMA"},
    {"top", run_top, "watch a server: operations, latencies, clients, what moves by RDMA"},
    {"clients", run_clients, "list who uses a server"},
    {"locks", run_locks, "list the locks and delegations that clients of a server hold"},
    {"trace", run_trace, "watch the calls that a server answers, with the times of their stages"},
    {"capture", run_capture, "write what crosses connections of a server, for Wireshark"},
    {"evict", run_evict, "end the connections of a client, and what it holds"},
    {"release", run_release, "take what clients hold of a file or a file system"},
    {"exports", run_exports, "list and change what a server exports, and explain it"},
    {"reload", run_reload, "let a server read its configuration and exports again"},
    {"bench", run_bench, "measure a server"},
    {"doctor", run_doctor, "look for what is wrong, here and on the way to a server"},
};

void print_help(std::FILE* out) {
  std::fputs("Usage: nfs-rdma COMMAND [OPTIONS] ...\n\nCommands:\n", out);
  for (const Command& command : kCommands) {
    std::fprintf(out, "  %-8s %s\n", std::string(command.name).c_str(), command.summary);
  }
  std::fputs(
      "\nURLs: nfs://host[:port]/export/path?fabric=iwarp&vers=4.2&tcpport=N&mountport=N\n"
      "nfs-rdma COMMAND --help, or nfs-rdma help COMMAND, tells more; nfs-rdma --version the "
      "version.\n",
      out);
}

int run(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--version" || name == "-V") {
    std::printf("nfs-rdma %s\n", NFSRDMA_VERSION);
    return kExitOk;
  }
  if (name == "help" && argc > 2) {
    // As "COMMAND --help".
    const std::string_view which = argv[2];
    for (const Command& command : kCommands) {
      if (command.name == which) return command.run({"--help"});
    }
    std::fprintf(stderr, "nfs-rdma: '%s' is no command; nfs-rdma --help lists them\n", argv[2]);
    return kExitUsage;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return kExitOk;
  }
  if (name.empty()) {
    print_help(stderr);
    return kExitUsage;
  }
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(Words(argv + 2, argv + argc));
  }
  std::fprintf(stderr, "nfs-rdma: '%s' is no command; nfs-rdma --help lists them\n",
               std::string(name).c_str());
  return kExitUsage;
}

}  // namespace
}  // namespace nfsrdma::tool

int main(int argc, char** argv) {
  nfsrdma::hold_standard_streams(nfsrdma::ClosedStream::kFails);
  std::signal(SIGPIPE, SIG_IGN);
  nfsrdma::set_log_level(nfsrdma::LogLevel::kWarning);
  const int code = nfsrdma::tool::run(argc, argv);
  std::fflush(stdout);
  if (std::ferror(stdout) == 0 && nfsrdma::tool::hand_over(STDOUT_FILENO).ok()) return code;
  // A reader that has seen enough (| head) is no news.
  pollfd reader{STDOUT_FILENO, 0, 0};
  if (::poll(&reader, 1, 0) == 0) {
    std::fputs("nfs-rdma: standard output: not all of it could be written\n", stderr);
  }
  return code == nfsrdma::tool::kExitOk ? nfsrdma::tool::kExitFailure : code;
}
