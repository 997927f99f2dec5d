// SPDX-License-Identifier: Apache-2.0
// nfs-rdmad. Reads the command line, builds the object graph, runs the accepting loop until a
// signal ends it. The only file of the server that names fabrics.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "config/default_paths.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "rpcrdma/verbs/verbs_fabric.h"
#include "server/command_line.h"
#include "server/control.h"
#include "server/credentials.h"
#include "server/daemonize.h"
#include "server/mount/mount_program.h"
#include "server/nfs3/procedures.h"
#include "server/nfs4/program.h"
#include "server/nfs_server.h"

namespace nfsrdma {
namespace {

constexpr std::chrono::seconds kShutdownPatience{5};
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

void print_problems(const ConfigProblems& problems) {
  for (const ConfigProblem& problem : problems) {
    std::fprintf(stderr, "nfs-rdmad: %s\n", problem.text().c_str());
  }
}

void log_notices(const ConfigProblems& notices) {
  for (const ConfigProblem& notice : notices)
    log_notice("{}", notice.text());
}

/// Directories that cannot be exported; a start says so and serves the others.
ConfigProblems missing_directories(const ParsedExports& exports) {
  ConfigProblems problems;
  for (const ExportEntry& entry : exports.entries) {
    const UniqueFd directory(
        ::open(entry.path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
    if (directory) continue;
    problems.push_back(
        {entry.file, entry.line, 0, fmt::format("{}: {}", entry.path, std::strerror(errno))});
  }
  return problems;
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
  const ConfigProblems missing = missing_directories(exports);
  print_problems(missing);
  if (!settings.problems.empty() || !exports.ok() || !missing.empty()) return kExitFailure;
  std::printf(
      "configuration is good: rdma port %llu, tcp port %s, fabric %s, state in %s\n",
      static_cast<unsigned long long>(settings.config.port),
      settings.config.tcp_port == 0 ? "off" : std::to_string(settings.config.tcp_port).c_str(),
      settings.config.fabric.c_str(), settings.config.state_dir.c_str());
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
  if (!config.load || config.fabric == "none") return fabrics;
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

/// As many descriptors as this process may have: one per connection and per cached file.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// A write beyond the limit on file sizes is the client's EFBIG, not our end.
void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

/// The running server: signals, exports, control socket.
class Daemon final : private FdWatcher {
 public:
  explicit Daemon(Settings settings) : settings_(std::move(settings)) {}
  ~Daemon() override {
    if (reloader_.joinable()) reloader_.join();
    if (signals_) loop_->remove(signals_.get(), *this);
  }

  /// An exit status other than 0 when it could not start.
  int start();
  void announce(Daemonizer& daemonizer);
  int run();

 private:
  void on_fd_ready(std::uint32_t) override;
  bool catch_signals();
  bool open_control_socket();
  bool load_first_exports();
  void warn_about_reach() const;
  void reload();
  int fail(const std::string& why) const {
    log_error("{}", why);
    return kExitFailure;
  }

  Settings settings_;
  std::unique_ptr<EventLoop> loop_;
  UniqueFd signals_;
  std::unique_ptr<NfsServer> server_;
  std::unique_ptr<ControlSocket> control_;
  std::thread reloader_;
  bool reloading_ = false;
  bool reload_again_ = false;
};

bool Daemon::catch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, number);
  // Before any thread is made, so that all of them inherit it.
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return false;
  ::signal(SIGPIPE, SIG_IGN);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  return signals_ && loop_->add(signals_.get(), EPOLLIN, *this).ok();
}

int Daemon::start() {
  raise_descriptor_limit();
  ignore_file_size_signal();
  prepare_serving_process();
  auto loop = EventLoop::create();
  if (!loop.ok()) return fail(loop.error().message());
  loop_ = std::move(*loop);
  if (!catch_signals()) return fail("signals cannot be caught");
  NfsServer::Options options;
  options.config = settings_.config;
  options.listen = settings_.listen;
  options.fabrics = make_fabrics(settings_.config);
  options.programs = {nfs3::program_table(), mount3_program()};
  if (settings_.config.nfs4) options.programs.push_back(nfs4::program_table());
  std::string why;
  auto server = NfsServer::start(*loop_, std::move(options), &why);
  if (!server.ok()) return fail(why.empty() ? server.error().message() : why);
  server_ = std::move(*server);
  if (!load_first_exports() || !open_control_socket()) return kExitFailure;
  warn_about_reach();
  server_->register_with_rpcbind();
  return 0;
}

bool Daemon::load_first_exports() {
  ParsedExports exports = load_exports(settings_);
  for (const ConfigProblem& problem : exports.problems)
    log_error("{}", problem.text());
  if (!exports.ok()) return false;
  log_notices(exports.notices);
  ConfigProblems problems;
  server_->set_exports(exports.entries, &problems);
  for (const ConfigProblem& problem : problems)
    log_error("{}", problem.text());
  // A directory of the file may be mounted later and come with SIGHUP; one of the command line was
  // meant to be there.
  for (const ConfigProblem& problem : problems) {
    if (problem.file == kCommandLineExport) return false;
  }
  if (exports.entries.empty())
    log_warning("nothing is exported: {} is empty", settings_.exports_file);
  return true;
}

bool Daemon::open_control_socket() {
  const std::string& path = settings_.config.control_socket;
  const std::string directory = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  if (path.find('/') != std::string::npos && !make_directories(directory, 0755)) {
    log_error("{}: {}", directory, std::strerror(errno));
    return false;
  }
  auto control = ControlSocket::listen(*loop_, path, [this](std::function<void(std::string)> done) {
    server_->collect_status(std::move(done));
  });
  if (!control.ok()) {
    log_error("{}: {} (choose another with --control)", path, control.error().message());
    return false;
  }
  control_ = std::move(*control);
  return true;
}

void Daemon::warn_about_reach() const {
  for (const NfsServer::ListenerInfo& info : server_->listeners()) {
    if (info.address.is_loopback()) continue;
    log_warning(
        "exports can be reached from beyond this machine ({} {}); nothing is encrypted on "
        "the way, and callers are believed who they say they are",
        info.transport, info.address.text());
    return;
  }
}

void Daemon::announce(Daemonizer& daemonizer) {
  std::string line = "ready";
  const char* separator = " ";
  for (const NfsServer::ListenerInfo& info : server_->listeners()) {
    line += separator + info.transport + " " + info.address.text();
    separator = ", ";
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  log_info("{}", line);
  ::sd_notifyf(0, "READY=1\nSTATUS=%s", line.c_str());
  daemonizer.ready();
}

int Daemon::run() {
  loop_->run();
  ::sd_notify(0, "STOPPING=1");
  log_info("stopping");
  control_.reset();
  if (!server_->stop(kShutdownPatience)) {
    log_warning("calls are stuck in the file system; leaving without them");
    std::fflush(nullptr);
    ::_exit(0);
  }
  if (reloader_.joinable()) reloader_.join();
  server_.reset();
  log_info("stopped");
  return 0;
}

void Daemon::on_fd_ready(std::uint32_t) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGHUP) {
      reload();
    } else {
      loop_->stop();
    }
  }
}

/// Reads the exports again, on a thread of its own since name lookups may take long.
void Daemon::reload() {
  if (reloading_) {
    reload_again_ = true;
    return;
  }
  reloading_ = true;
  if (reloader_.joinable()) reloader_.join();
  reloader_ = std::thread([this] {
    ParsedExports exports = load_exports(settings_);
    for (const ConfigProblem& problem : exports.problems)
      log_error("{}", problem.text());
    if (exports.ok()) {
      log_notices(exports.notices);
      ConfigProblems problems;
      server_->context().exports.reload(exports.entries, &problems);
      for (const ConfigProblem& problem : problems)
        log_error("{}", problem.text());
      log_notice("exports were read again");
    } else {
      log_error("the exports stay as they were");
    }
    loop_->post([this, parsed = std::move(exports)] {
      if (server_ != nullptr && parsed.ok()) server_->note_exports(parsed.entries);
      reloading_ = false;
      if (std::exchange(reload_again_, false)) reload();
    });
  });
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
  if (!settings.problems.empty()) {
    print_problems(settings.problems);
    return kExitFailure;
  }
  LogLevel level = LogLevel::kInfo;
  if (parse_log_level(settings.config.log_level, &level)) set_log_level(level);
  log_notices(settings.notices);
  Daemonizer daemonizer(!line.foreground);
  if (daemonizer.is_parent()) return daemonizer.wait_for_child();
  Daemon daemon(std::move(settings));
  if (int status = daemon.start(); status != 0) return status;
  daemon.announce(daemonizer);
  return daemon.run();
}

}  // namespace
}  // namespace nfsrdma

int main(int argc, char** argv) {
  return nfsrdma::serve(argc, argv);
}
