// SPDX-License-Identifier: Apache-2.0
// HostView: all that the checks see of this host. Files come from below `root` (tests put a made-up
// tree there), what is no file comes from the functions. real_host() is this host.
//
// Used by one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/default_fabrics.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma::doctor {

struct CommandOutput {
  bool found = false;      // the program is there and was started
  bool timed_out = false;  // and was ended
  int status = -1;         // exit status
  std::string out, err;    // at most kMostOutput bytes each

  bool good() const { return found && !timed_out && status == 0; }
};

/// One entry of rpcbind.
struct RpcbindEntry {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::string netid;
  std::uint16_t port = 0;  // 0: its address is not one with a port
};

/// An address of an interface that is up.
struct HostAddress {
  std::string interface;
  SocketAddress address;
};

/// What adjtimex(2) says.
struct ClockState {
  bool known = false;
  bool synchronised = false;
  double estimated_error = 0;  // seconds
};

struct HostView {
  std::string root;  // "": this host
  std::string kernel_release;
  std::string host_name;
  bool privileged = false;  // effective uid 0
  /// Runs a program from the usual directories, without a shell, for a few seconds at most.
  std::function<CommandOutput(const std::vector<std::string>& words)> command;
  std::function<RdmaHostReport()> rdma_host;
  std::function<ClockState()> clock;
  std::function<std::vector<HostAddress>()> addresses;
  /// What rpcbind on this host has; none: it does not answer.
  std::function<std::optional<std::vector<RpcbindEntry>>()> rpcbind;

  /// The file that stands for `absolute`.
  std::string path(std::string_view absolute) const { return root + std::string(absolute); }
  bool exists(std::string_view absolute) const;
  /// The same; none: its file system does not say so within `patience`.
  std::optional<bool> exists_within(std::string_view absolute,
                                    std::chrono::milliseconds patience) const;
  /// The whole file (at most 8 MiB of it), "" when it cannot be read.
  std::string text(std::string_view absolute) const;
  /// Its first line.
  std::string line(std::string_view absolute) const;
  /// Names in a directory, sorted.
  std::vector<std::string> names(std::string_view absolute) const;
  /// The last component of what a symbolic link says; "" when it is none.
  std::string link_name(std::string_view absolute) const;
  /// Where a program is, by the usual directories; "" when nowhere.
  std::string program(std::string_view name) const;
};

HostView real_host();

/// Runs `words` and collects what it says. Never longer than `patience`.
CommandOutput run_command(const std::vector<std::string>& words,
                          std::chrono::milliseconds patience);

// --- text ---
std::vector<std::string> lines_of(std::string_view text);
std::vector<std::string> words_of(std::string_view text);
std::string trimmed(std::string_view text);
std::string joined(const std::vector<std::string>& parts, std::string_view between = ", ");
/// As one word of a line to paste into a shell.
std::string shell_quoted(const std::string& word);
/// A decimal number and nothing else.
std::optional<std::uint64_t> number_of(std::string_view text);

// --- processes ---
struct Process {
  std::string pid;
  std::string name;
};
/// Those of that name (/proc/PID/comm).
std::vector<Process> processes_named(const HostView& host, std::string_view name);

/// The server on this host, running or to be started.
struct LocalServer {
  bool running = false;
  bool configured = false;  // somebody has exported something, or enabled the unit
  std::string pid;          // of one that runs
  std::uint16_t rdma_port = 20049;
  std::uint16_t tcp_port = 2049;        // 0: off
  std::string fabric = "auto";          // NFSoRDMA_FABRIC
  std::vector<SocketAddress> listen{};  // empty: all addresses
  bool wants_rpcbind = true;
  bool nlm = true;  // locks for NFSv3
  bool expected() const { return running || configured; }
  /// Serves this host alone.
  bool loopback_only() const;
};
LocalServer local_server(const HostView& host);
/// Is there an exports file, or one in the directory beside it?
bool has_exports(const HostView& host, const std::string& file);

}  // namespace nfsrdma::doctor
