// SPDX-License-Identifier: Apache-2.0
// nfs-rdma top: a server's clients and operations, live.
#include <cstdio>

#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/server_view.h"
#include "client/tool/terminal.h"

namespace nfsrdma::tool {

int run_top(const Words& words) {
  Arguments arguments(
      "top", "[--interval SECONDS] [--count N] [--server SOCKET]",
      "Shows live what a server does: clients and operations with calls per second, latency (50 %\n"
      "and 99 % are not above), bytes by RDMA Write, RDMA Read and inline, credits in use, and "
      "how\n"
      "many calls wait for memory. q ends it. The latency is the server's: from the arrival of a\n"
      "call to its reply. When the output is no terminal, tables one below the other.");
  namespace po = boost::program_options;
  add_server_option(arguments);
  arguments.add()("interval", po::value<double>()->value_name("SECONDS")->default_value(2, "2"),
                  "between two looks (0.1 to 3600)")(
      "count", po::value<std::uint32_t>()->value_name("N")->default_value(0),
      "end after so many; 0: never");
  if (auto code = arguments.parse(words, 0, 0)) return *code;
  const double interval = arguments.get<double>("interval");
  if (!(interval >= 0.1 && interval <= 3600)) {
    return arguments.usage_error("--interval: expected 0.1 to 3600 seconds");
  }
  const std::string socket = server_socket(arguments);
  ServerSample before;
  // Asked before the screen is taken over, so that what is wrong can be read.
  auto answer = ask_server("top", socket, "status");
  if (!answer) return kExitFailure;
  {
    Terminal terminal;
    const std::uint32_t count = arguments.get<std::uint32_t>("count");
    for (std::uint32_t shown = 1; answer; ++shown) {
      ServerSample now = ServerSample::of(answer->value);
      const bool read = terminal.draw(top_text(now, ServerRates::between(before, now),
                                               terminal.columns(), terminal.rows() - 1));
      if (!read) return kExitFailure;
      if (shown == count) return kExitOk;
      before = std::move(now);
      if (terminal.wait(std::chrono::milliseconds(static_cast<int>(interval * 1000)))) {
        return kExitOk;
      }
      if (!terminal.is_one()) std::puts("");
      answer = ask_server("top", socket, "status");
    }
  }
  complain("top", "the server is gone");
  return kExitFailure;
}

}  // namespace nfsrdma::tool
