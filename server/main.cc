// SPDX-License-Identifier: Apache-2.0
// nfs-rdmad. Reads the command line, answers what needs no server, makes the fabrics and hands over
// to Daemon. The only file of the server that names fabrics.
#include <fmt/format.h>

#include <cstdio>

#include "rpcrdma/base/log.h"
#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "rpcrdma/verbs/verbs_fabric.h"
#include "server/command_line.h"
#include "server/daemon.h"
#include "server/daemonize.h"
#include "server/export_mounts.h"
#include "server/journal.h"

namespace nfsrdma {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitConfiguration = 3;  // nfs-rdma.service does not try again then

void print_problems(const ConfigProblems& problems) {
  for (const ConfigProblem& problem : problems) {
    std::fprintf(stderr, "nfs-rdmad: %s\n", problem.text().c_str());
  }
}

void log_notices(const ConfigProblems& notices) {
  for (const ConfigProblem& notice : notices)
    log_notice("{}", notice.text());
}

/// Directories that cannot be exported now: a start warns, too, and serves the others.
void warn_of_missing_directories(const ParsedExports& exports) {
  for (const ExportEntry& entry : exports.entries) {
    auto place = open_export_place(entry);
    if (place.ok()) {
      for (const std::string& where : place->unmounted)
        std::fprintf(stderr,
                     "nfs-rdmad: warning: %s: nothing is mounted at %s: clients with that option "
                     "mountpoint are refused until it is\n",
                     entry.path.c_str(), where.c_str());
      continue;
    }
    const ConfigProblem missing{
        entry.file, entry.line, 0,
        fmt::format("{}: {}; left out until it is there", entry.path, place.error().message())};
    std::fprintf(stderr, "nfs-rdmad: warning: %s\n", missing.text().c_str());
  }
}

/// --check-config: everything that a start would read, without starting anything.
int check_config(const Settings& settings) {
  const ParsedExports exports = load_exports(settings);
  print_problems(settings.problems);
  print_problems(exports.problems);
  for (const ConfigProblems* notices : {&settings.notices, &exports.notices}) {
    for (const ConfigProblem& notice : *notices)
      std::printf("note: %s\n", notice.text().c_str());
  }
  if (!settings.problems.empty() || !exports.ok()) return kExitFailure;
  warn_of_missing_directories(exports);
  std::printf(
      "configuration is good: rdma port %llu, tcp port %s, fabric %s, state in %s\n",
      static_cast<unsigned long long>(settings.config.port),
      settings.config.tcp_port == 0 ? "off" : std::to_string(settings.config.tcp_port).c_str(),
      settings.config.fabric.c_str(), settings.config.state_dir.c_str());
  if (const std::string why = load_refusal(settings); !why.empty())
    std::printf("note: %s\n", why.c_str());
  if (exports.entries.empty()) {
    std::printf("note: nothing is exported: %s is empty\n", settings.exports_file.c_str());
  }
  for (const ExportEntry& entry : exports.entries) {
    for (const ExportClient& client : entry.clients) {
      const ExportOptions& o = client.options;
      std::printf("%s %s(%s,%s,%s,%s)\n", entry.path.c_str(), client.text.c_str(),
                  o.read_only ? "ro" : "rw", o.sync ? "sync" : "async",
                  o.all_squash    ? "all_squash"
                  : o.root_squash ? "root_squash"
                                  : "no_root_squash",
                  o.secure ? "secure" : "insecure");
    }
  }
  return 0;
}

std::vector<NfsServer::FabricUse> make_fabrics(const Config& config) {
  std::vector<NfsServer::FabricUse> fabrics;
  if (config.fabric == "none") return fabrics;
  if (config.fabric == "iwarp" || config.fabric == "auto") {
    iwarp::IwarpOptions options;
    options.require_crc = config.crc == "require";
    fabrics.push_back({iwarp::make_fabric(options), true});
  }
  if (config.fabric == "verbs" || config.fabric == "auto") {
    fabrics.push_back({verbs::make_fabric({}), config.fabric == "verbs"});
  }
  return fabrics;
}

int serve(int argc, char** argv) {
  CommandLine line;
  std::string problem;
  if (!parse_command_line(argc, argv, &line, &problem)) {
    std::fprintf(stderr, "nfs-rdmad: %s\n", problem.c_str());
    return kExitUsage;
  }
  if (line.help) return std::fputs(help_text().c_str(), stdout), 0;
  if (line.version) return std::printf("nfs-rdmad %s\n", NFSRDMA_VERSION), 0;
  Settings settings = make_settings(line);
  if (!settings.usage_problems.empty()) {
    print_problems(settings.usage_problems);
    return kExitUsage;
  }
  if (line.check_config) return check_config(settings);
  if (line.load_condition) {
    // What is wrong is for the start itself to tell.
    const std::string why = load_refusal(settings);
    if (!why.empty()) std::printf("%s\n", why.c_str());
    return why.empty() ? 0 : kExitFailure;
  }
  if (!settings.problems.empty()) {
    print_problems(settings.problems);
    return kExitConfiguration;
  }
  if (line.print_config) return std::fputs(effective_config(settings).c_str(), stdout), 0;
  if (const std::string why = load_refusal(settings); !why.empty()) {
    std::fprintf(stderr, "nfs-rdmad: %s\n", why.c_str());
    return kExitFailure;
  }
  log_to_journal();
  LogLevel level = LogLevel::kInfo;
  if (parse_log_level(settings.config.log_level, &level)) set_log_level(level);
  log_notices(settings.notices);
  Daemonizer daemonizer(!line.foreground);
  if (daemonizer.is_parent()) return daemonizer.wait_for_child();
  std::vector<NfsServer::FabricUse> fabrics = make_fabrics(settings.config);
  Daemon daemon(line, std::move(settings), std::move(fabrics));
  if (!daemon.start()) {
    const int status = daemon.configuration_is_wrong() ? kExitConfiguration : kExitFailure;
    daemonizer.failed(status);
    return status;
  }
  daemon.announce(daemonizer);
  daemon.run();
  return 0;
}

}  // namespace
}  // namespace nfsrdma

int main(int argc, char** argv) {
  return nfsrdma::serve(argc, argv);
}
