// SPDX-License-Identifier: Apache-2.0
// nfs-rdma status. The exit code answers the question people have: is it RDMA?
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <string>

#include "client/counted.h"
#include "client/default_fabrics.h"
#include "client/status_source.h"
#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/device_text.h"
#include "client/tool/format.h"
#include "client/tool/nfs4_text.h"
#include "client/tool/nfsstat_text.h"
#include "client/tool/status_verdict.h"
#include "client/tool/terminal.h"
#include "rpcrdma/base/json_value.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::tool {

int status_verdict(const JsonValue& document) {
  std::size_t rdma = 0, all = 0;
  const auto count = [&](const JsonValue& connections) {
    for (const JsonValue& connection : connections.items()) {
      ++all;
      if (connection["fabric"].text() != "tcp") ++rdma;
    }
  };
  count(document["connections"]);
  for (const JsonValue& tree : document["referrals"].items())
    count(tree["connections"]);
  if (all == 0) return kNoConnection;
  if (rdma == all) return kAllRdma;
  return rdma == 0 ? kOnlyTcp : kSomeRdma;
}

namespace {

std::string moved(const JsonValue& connection, const char* key) {
  return bytes_text(static_cast<double>(connection[key].count()));
}

/// `threads`: of the mount; 0: of a server, which does not say.
void print_connection(const JsonValue& c, std::uint64_t threads) {
  const std::string& device = c["device"].text();
  say("{:<7} {}{}{}\n", c["fabric"].text(), c["peer"].text(),
      device.empty() || device == c["fabric"].text() ? "" : "  on " + device,
      threads < 2 ? "" : fmt::format("  shard {}", c["shard"].count()));
  say("        inline {} / {} bytes, credits {}, ORD {} / IRD {}, invalidation {}{}\n",
      c["inline_send"].count(), c["inline_recv"].count(), c["credits"].count(), c["ord"].count(),
      c["ird"].count(), c["remote_invalidation"].truth() ? "remote" : "local",
      c["crc"].truth() ? ", CRC" : "");
  say("        RDMA Write {}, RDMA Read {}, inline {}; {} calls, up {}\n",
      moved(c, "rdma_write_bytes"), moved(c, "rdma_read_bytes"), moved(c, "inline_bytes"),
      c["calls"].count(), duration_text(c["age_seconds"].number()));
  if (!c["detail"].text().empty()) say("        {}\n", c["detail"].text());
  if (!c["fallback_reason"].text().empty()) {
    say("        not faster because: {}\n", c["fallback_reason"].text());
  }
}

/// The trees that referrals of a mount lead to.
void print_referrals(const JsonValue& document) {
  for (const JsonValue& tree : document["referrals"].items()) {
    say("referral {}: {}, NFS version {}, {} open, {} held\n", terminal_text(tree["name"].text()),
        terminal_text(tree["source"].text()), tree["nfs_version"].text(),
        counted(tree["files_open"].count(), "file"),
        counted(tree["delegations_held"].count(), "delegation"));
    for (const JsonValue& connection : tree["connections"].items())
      print_connection(connection, 0);
  }
}

/// "2 connections", and to how many addresses where that is not one.
std::string trunk_text(const JsonValue& document) {
  std::set<std::string> addresses;
  std::uint64_t connections = 0;
  for (const JsonValue& connection : document["connections"].items()) {
    const std::string& peer = connection["peer"].text();
    addresses.insert(peer.substr(0, peer.rfind(':')));
    ++connections;
  }
  std::string text = counted(connections, "connection");
  if (addresses.size() > 1) text += fmt::format(" to {} addresses", addresses.size());
  return text;
}

void print_document(const JsonValue& document, int verdict) {
  // Of a mount.
  if (const std::string& version = document["nfs_version"].text(); !version.empty()) {
    say("NFS version {}, {}", version, trunk_text(document));
    const auto slots = document["session_slots"].count();
    if (slots != 0) say(", session with {}", counted(slots, "slot"));
    if (version.starts_with('4')) {
      say(", {} open, {} and {} held", counted(document["files_open"].count(), "file"),
          counted(document["locks_held"].count(), "lock"),
          counted(document["delegations_held"].count(), "delegation"));
    }
    const std::string& called_at = document["called_at"].text();
    if (document["back_channel"].truth()) {
      say(", called back {}", counted(document["callbacks_done"].count(), "time"));
      if (!called_at.empty()) say(" at {}", called_at);
    } else if (!called_at.empty()) {
      say(", not called at {} so far", called_at);
    } else if (slots != 0) {
      say(", no back channel");
    }
    if (const std::string& manager = document["lock_manager"].text(); !manager.empty()) {
      say(", {} held by NLM ({})", counted(document["locks_held"].count(), "lock"), manager);
    }
    std::puts("");
  }
  for (const JsonValue& connection : document["connections"].items())
    print_connection(connection, document["shards"].items().size());
  print_referrals(document);
  if (const auto silent = document["silent_shards"].count(); silent > 0) {
    say("{} of the server's threads {} not answer: a file system that is exported hangs\n", silent,
        silent == 1 ? "does" : "do");
  }
  std::fputs(nfs4_text(document["nfs4"]).c_str(), stdout);
  switch (verdict) {
    case kAllRdma:
      std::puts("Every connection uses RDMA.");
      break;
    case kSomeRdma:
      std::puts("Some connections use RDMA, others TCP.");
      break;
    case kOnlyTcp:
      std::puts("No connection uses RDMA: TCP only.");
      break;
    default:
      std::puts("No connections.");
      break;
  }
}

Result<std::string> fetch(const Arguments& arguments, std::string* why) {
  if (!arguments.has("mount")) return fetch_status(server_socket(arguments), why);
  return fetch_mount_status(arguments.get<std::string>("mount"), why);
}

int show_devices(bool as_json) {
  const RdmaHostReport host = report_rdma_host();
  std::fputs((as_json ? devices_json(host) + "\n" : devices_text(host)).c_str(), stdout);
  std::fflush(stdout);
  return devices_verdict(host);
}

/// Says it all; the verdict, or kExitFailure with *why.
int show(const Arguments& arguments, std::string* why) {
  Result<std::string> document = fetch(arguments, why);
  if (!document.ok()) return kExitFailure;
  const std::optional<JsonValue> value = parse_answer(*document, why);
  if (!value) return kExitFailure;
  const int verdict = status_verdict(*value);
  if (arguments.has("json")) {
    std::fputs(document->c_str(), stdout);
    if (document->empty() || document->back() != '\n') std::puts("");
  } else if (arguments.has("nfsstat")) {
    std::fputs(nfsstat_text(*value).c_str(), stdout);
    std::fflush(stdout);
  } else {
    print_document(*value, verdict);
    std::fflush(stdout);
  }
  return verdict;
}

int show_once(const Arguments& arguments) {
  std::string why;
  const int verdict = show(arguments, &why);
  if (verdict == kExitFailure) complain("status", why);
  return verdict;
}

/// Again and again until somebody leaves; the last verdict.
int watch(const Arguments& arguments, std::chrono::milliseconds interval) {
  int verdict = show_once(arguments);  // what is wrong is to be read on the ordinary screen
  if (verdict == kExitFailure) return verdict;
  std::string why;
  {
    Terminal terminal;
    for (;;) {
      if (terminal.is_one()) terminal.draw("");
      verdict = show(arguments, &why);
      std::fflush(stdout);
      if (std::ferror(stdout) != 0) return kExitFailure;  // nobody reads it any more
      if (verdict == kExitFailure || terminal.wait(interval)) break;
    }
  }
  // Behind the terminal's other screen, which goes with what is on it.
  if (verdict == kExitFailure) complain("status", why);
  return verdict;
}

}  // namespace

int run_status(const Words& words) {
  Arguments arguments(
      "status",
      "[--server SOCKET | --mount DIR | --devices] [--json | --nfsstat] [--watch [SECONDS]]",
      "Shows the connections of a server (the one of this machine unless told otherwise), and "
      "what\n"
      "clients of NFSv4 hold there, or the connections of a mount. Exit code: 0 every connection "
      "uses RDMA, 2 some do, 3 only TCP, 4 none, 1 error.\n"
      "With --devices the RDMA devices of this machine instead, and what each of them can do.\n"
      "Exit code: 0 a connection can go over one of them, 4 over none.");
  namespace po = boost::program_options;
  // 2 says something else here.
  arguments.set_usage_exit(kExitFailure);
  arguments.add()("server", po::value<std::string>()->value_name("SOCKET"),
                  "control socket of an nfs-rdmad")(
      "mount", po::value<std::string>()->value_name("DIR"), "mount point of a FUSE mount")(
      "devices", "the RDMA devices of this machine; asks no server and needs no privilege")(
      "json", "the whole document")(
      "nfsstat", "a server's calls and operations so far, laid out as by nfsstat -s")(
      "watch", po::value<double>()->value_name("SECONDS")->implicit_value(2, "2"),
      "again every so many seconds (0.1 to 3600) until q or Ctrl-C; give it as --watch=SECONDS");
  if (auto code = arguments.parse(words, 0, 0)) return *code;
  if (arguments.has("server") && arguments.has("mount")) {
    return arguments.usage_error("--server and --mount exclude each other");
  }
  if (arguments.has("nfsstat") &&
      (arguments.has("mount") || arguments.has("devices") || arguments.has("json"))) {
    return arguments.usage_error(
        "--nfsstat is about a server: no --mount, no --devices, no --json");
  }
  if (arguments.has("devices")) {
    if (arguments.has("server") || arguments.has("mount")) {
      return arguments.usage_error("--devices is about this machine: no --server, no --mount");
    }
    return show_devices(arguments.has("json"));
  }
  if (!arguments.has("watch")) return show_once(arguments);
  const double seconds = arguments.get<double>("watch");
  if (!(seconds >= 0.1 && seconds <= 3600)) {
    return arguments.usage_error("--watch: expected 0.1 to 3600 seconds");
  }
  return watch(arguments, std::chrono::milliseconds(static_cast<int>(seconds * 1000)));
}

}  // namespace nfsrdma::tool
