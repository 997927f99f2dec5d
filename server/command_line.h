// SPDX-License-Identifier: Apache-2.0
// nfs-rdmad's command line, and how it and rdma.conf become one Config.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/exports_file.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

struct CommandLine {
  bool help = false;
  bool version = false;
  bool foreground = false;
  bool check_config = false;
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
  ConfigProblems usage_problems;  // wrong values on the command line; not empty: do not start
  ConfigProblems problems;        // anything else; not empty: do not start
  ConfigProblems notices;
};
Settings make_settings(const CommandLine& line);

/// Reads the exports file, if there is one, and adds those of the command line.
ParsedExports load_exports(const Settings& settings);

}  // namespace nfsrdma
