// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "config/default_paths.h"
#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "server/mount/mount_program.h"
#include "server/nfs3/procedures.h"
#include "server/nfs4/program.h"

namespace nfsrdma {
namespace {

constexpr std::chrono::seconds kShutdownPatience{5};

void log_notices(const ConfigProblems& notices) {
  for (const ConfigProblem& notice : notices)
    log_notice("{}", notice.text());
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

}  // namespace

Daemon::Daemon(Settings settings, std::vector<NfsServer::FabricUse> fabrics)
    : settings_(std::move(settings)), fabrics_(std::move(fabrics)) {}

Daemon::~Daemon() {
  if (reloader_.joinable()) reloader_.join();
  if (signals_) loop_->remove(signals_.get(), *this);
}

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

bool Daemon::start() {
  raise_descriptor_limit();
  ignore_file_size_signal();
  prepare_serving_process();
  auto loop = EventLoop::create();
  if (!loop.ok()) {
    log_error("{}", loop.error().message());
    return false;
  }
  loop_ = std::move(*loop);
  if (!catch_signals()) {
    log_error("signals cannot be caught");
    return false;
  }
  NfsServer::Options options;
  options.config = settings_.config;
  options.listen = settings_.listen;
  options.fabrics = std::move(fabrics_);
  options.programs = {nfs3::program_table(), mount3_program()};
  if (settings_.config.nfs4) options.programs.push_back(nfs4::program_table());
  std::string why;
  auto server = NfsServer::start(*loop_, std::move(options), &why);
  if (!server.ok()) {
    log_error("{}", why.empty() ? server.error().message() : why);
    return false;
  }
  server_ = std::move(*server);
  if (!load_first_exports() || !open_control_socket()) return false;
  warn_about_reach();
  server_->register_with_rpcbind();
  return true;
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
  auto control = ControlSocket::listen(*loop_, path);
  if (!control.ok()) {
    log_error("{}: {} (choose another with --control)", path, control.error().message());
    return false;
  }
  control_ = std::move(*control);
  answer_requests();
  return true;
}

void Daemon::answer_requests() {
  control_->on("status", [this](const JsonValue&, ControlSocket::Done done) {
    server_->collect_status(std::move(done));
  });
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
  watchdog_ = Watchdog::start(*loop_, *server_);
}

void Daemon::run() {
  loop_->run();
  ::sd_notify(0, "STOPPING=1");
  log_info("stopping");
  watchdog_.reset();
  control_.reset();
  if (!server_->stop(kShutdownPatience)) {
    log_warning("calls are stuck in the file system; leaving without them");
    std::fflush(nullptr);
    ::_exit(0);
  }
  if (reloader_.joinable()) reloader_.join();
  server_.reset();
  log_info("stopped");
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

}  // namespace nfsrdma
