// SPDX-License-Identifier: Apache-2.0
// nfs-rdmad's command line, and how it and rdma.conf become one Config.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/exports_file.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

struct CommandLine {
  /// What relative paths mean, at any time: where the process started, which it leaves when it goes
  /// into the background. Empty: where it is.
  std::string directory;
  bool help = false;
  bool version = false;
  bool foreground = false;
  bool check_config = false;
  bool print_config = false;
  bool load_condition = false;       // only ask whether NFSoRDMA_LOAD lets the server start
  std::string config_file;           // empty: the default one, if it is there
  std::string exports_file;          // empty: as configured
  std::vector<std::string> exports;  // -e
  std::vector<std::string> listen;
  /// Options that override keys of rdma.conf: key and value.
  std::vector<std::pair<std::string, std::string>> overrides;
};

/// False with *problem set: a usage error, one line.
bool parse_command_line(int argc, const char* const* argv, CommandLine* out, std::string* problem);
std::string help_text();

/// What the server shall run with.
struct Settings {
  Config config;
  std::vector<SocketAddress> listen;
  /// From the command line, with absolute paths; parsed.
  std::vector<ExportEntry> command_line_exports;
  /// Read at start and at SIGHUP; empty when only -e counts.
  std::string exports_file;
  /// Where keys of `config` have their values from, when not from the defaults: "FILE:LINE" or the
  /// option of the command line.
  std::map<std::string, std::string, std::less<>> origins;
  ConfigProblems usage_problems;  // wrong values on the command line; not empty: do not start
  ConfigProblems problems;        // anything else; not empty: do not start
  ConfigProblems notices;
};
/// All paths in it are absolute, or relative to where the process is when line.directory is empty.
Settings make_settings(const CommandLine& line);

/// --print-config: a line KEY=VALUE for each key, in the order of rdma.conf(5), with where it has
/// the value from. Reading it as rdma.conf gives the same Config.
std::string effective_config(const Settings& settings);

/// Empty when the server may start; with NFSoRDMA_LOAD=no, what to tell instead of starting.
std::string load_refusal(const Settings& settings);

/// Reads the exports file and its directory, if there are any, and adds those of the command line.
ParsedExports load_exports(const Settings& settings);

}  // namespace nfsrdma
