// SPDX-License-Identifier: Apache-2.0
// nfs-rdma evict and nfs-rdma reload: what an administrator does to a running server.
#include <signal.h>

#include <cstdio>

#include "client/counted.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/format.h"

namespace nfsrdma::tool {

namespace {

/// Does somebody listen there?
bool is_answered(const std::string& path) {
  std::string why;
  ControlLines probe;
  return probe.open(path, "", &why).ok();
}

}  // namespace

int run_evict(const Words& words) {
  Arguments arguments(
      "evict", "[--server SOCKET] CLIENT",
      "Ends the connections of a client (its address) and all that it holds by NFSv4: sessions,\n"
      "opens, locks, delegations; the id of an NFSv4 client as `nfs-rdma clients --json` shows it\n"
      "will do as well. What it holds is lost to it, also after a restart of the server. It may\n"
      "come back at once: to keep it away, change the exports first.");
  add_server_option(arguments);
  arguments.add()("json", "the answer as a document");
  if (auto code = arguments.parse(words, 1, 1)) return *code;
  const auto answer = ask_server("evict", server_socket(arguments),
                                 request_text("evict", "client", arguments.operands().front()));
  if (!answer) return kExitFailure;
  if (arguments.has("json")) {
    std::fputs(answer->text.c_str(), stdout);
    return kExitOk;
  }
  say("{}: {} ended, state of {} dropped\n", arguments.operands().front(),
      counted(answer->value["connections"].count(), "connection"),
      counted(answer->value["nfs4_clients"].items().size(), "NFSv4 client"));
  if (const auto silent = answer->value["silent_shards"].count(); silent > 0) {
    say("{} of the server's threads {} not answer, a file system hangs: what they have of that "
        "client ends when they come round\n",
        silent, silent == 1 ? "does" : "do");
  }
  return kExitOk;
}

int run_reload(const Words& words) {
  Arguments arguments(
      "reload", "[--server SOCKET] [--or-signal PID]",
      "Lets the server read its configuration and exports again and says what "
      "changed. No connection\nis dropped. With anything wrong in them all stays "
      "as it was: exit code 1, as where an\nexport that was served is left out now.");
  namespace po = boost::program_options;
  add_server_option(arguments);
  arguments.add()(
      "or-signal", po::value<std::uint32_t>()->value_name("PID"),
      "where nobody answers, send SIGHUP to that process instead (for units: then the log "
      "alone says what came of it)");
  if (auto code = arguments.parse(words, 0, 0)) return *code;
  if (arguments.has("or-signal") && !is_answered(server_socket(arguments))) {
    const auto pid = static_cast<pid_t>(arguments.get<std::uint32_t>("or-signal"));
    if (pid > 0 && ::kill(pid, SIGHUP) == 0) {
      say("nobody answers at {}: SIGHUP was sent to {}\n", server_socket(arguments), pid);
      return kExitOk;
    }
  }
  const auto answer = ask_server("reload", server_socket(arguments), "reload", kWorkPatience);
  if (!answer) return kExitFailure;
  const bool done = answer->value["done"].truth();
  for (const JsonValue& line : answer->value["changes"].items())
    say("{}\n", line.text());
  // Of exports that are left out there are some, too, when it was done.
  for (const JsonValue& line : answer->value["problems"].items())
    complain("reload", line.text());
  if (done && answer->value["changes"].items().empty()) std::puts("nothing changed");
  if (!done) complain("reload", "nothing was changed");
  return exit_code_of(answer->value);
}

}  // namespace nfsrdma::tool
