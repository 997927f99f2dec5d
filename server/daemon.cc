// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "config/default_paths.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"
#include "server/control_requests.h"
#include "server/credentials.h"
#include "server/metrics_listener.h"
#include "server/mount/mount_program.h"
#include "server/nfs3/acl_program.h"
#include "server/nfs3/procedures.h"
#include "server/nfs4/program.h"
#include "server/nlm/nlm_program.h"
#include "server/nsm/nsm_program.h"
#include "server/quota/rquota_program.h"
#include "server/start_watch.h"

namespace nfsrdma {
namespace {

constexpr std::chrono::seconds kShutdownPatience{5};
constexpr std::chrono::seconds kGoodbyePatience{3};  // when all calls are answered
constexpr std::chrono::seconds kLastWords{3};        // for the reader of a capture

/// Ends the process if it is still there after `patience`: a thread that hangs in a file system, to
/// give up a lock or to close a file, cannot be waited for. Without a thread to be had it does
/// nothing.
class TimeToLeave {
 public:
  explicit TimeToLeave(std::chrono::seconds patience) {
    try {
      thread_ = std::thread([this, patience] { watch(patience); });
    } catch (const std::system_error& error) {
      log_warning("the end is not watched: {}", error.what());
    }
  }
  ~TimeToLeave() {
    {
      std::lock_guard lock(mutex_);
      left_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  TimeToLeave(const TimeToLeave&) = delete;
  TimeToLeave& operator=(const TimeToLeave&) = delete;

 private:
  void watch(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience, [this] { return left_; })) return;
    log_warning("locks or files are stuck in the file system; leaving without them");
    std::fflush(nullptr);
    ::_exit(0);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool left_ = false;
  std::thread thread_;
};

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

bool same_place(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

/// Who is anonymous, when nobody can be that.
void warn_about_anonymous(const std::vector<ExportEntry>& entries) {
  if (!can_switch_identity()) return;
  std::set<std::uint32_t> told;
  for (const ExportEntry& entry : entries) {
    for (const ExportClient& client : entry.clients) {
      const ExportOptions& options = client.options;
      const bool user = has_user(options.anon_uid);
      if (user && has_group(options.anon_gid)) continue;
      const std::uint32_t id = user ? options.anon_gid : options.anon_uid;
      if (!told.insert(id).second) continue;
      log_warning(
          "export {}: calls of anonymous callers fail, with root_squash those of root, too: {} {} "
          "is not in /proc/self/{}; choose another with anonuid= and anongid=",
          entry.path, user ? "gid" : "uid", id, user ? "gid_map" : "uid_map");
    }
  }
}

}  // namespace

Daemon::Daemon(CommandLine line, Settings settings, std::vector<NfsServer::FabricUse> fabrics)
    : line_(std::move(line)), settings_(std::move(settings)), fabrics_(std::move(fabrics)) {}

Daemon::~Daemon() {
  control_.reset();
  exports_.reset();
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
  options.programs = {nfs3::program_table(), nfs3::acl_program_table(), mount3_program(),
                      rquota1_program(), rquota2_program()};
  if (settings_.config.nfs4) options.programs.push_back(nfs4::program_table());
  if (settings_.config.nlm) {
    options.programs.push_back(nlm4_program());
    options.programs.push_back(nsm1_program());
  }
  std::optional<StartWatch> watch(std::in_place);
  options.waits_for = [&watch](std::string what) { watch->waits_for(std::move(what)); };
  std::string why;
  auto server = NfsServer::start(*loop_, std::move(options), &why);
  if (!server.ok()) {
    log_error("{}", why.empty() ? server.error().message() : why);
    return false;
  }
  server_ = std::move(*server);
  watch->waits_for("the exports in " + settings_.exports_file + " or one of their directories");
  if (!load_first_exports()) return false;
  // From here on there is something to take away again.
  watch.reset();
  if (!open_control_socket()) return false;
  open_metrics();
  tell_limits();
  warn_about_reach();
  server_->register_with_rpcbind();
  return true;
}

bool Daemon::load_first_exports() {
  exports_ = std::make_unique<ExportService>(
      *loop_, server_->context().exports, line_, settings_,
      ExportService::Hooks{[this](const std::vector<ExportEntry>& entries) {
                             warn_about_anonymous(entries);
                             server_->note_exports(entries);
                           },
                           [this](const ReloadPlan& plan) {
                             LogLevel level = LogLevel::kInfo;
                             if (plan.applies("NFSoRDMA_LOG_LEVEL") &&
                                 parse_log_level(plan.settings.config.log_level, &level)) {
                               set_log_level(level);
                             }
                             if (plan.applies("NFSoRDMA_SLOW_REQUEST")) {
                               server_->log_slow(plan.settings.config.slow_request_ms);
                             }
                           },
                           [this](const std::set<std::uint64_t>& devices) {
                             // Clients that go on with handles from before would find the files
                             // open.
                             FileScope files;
                             files.devices.insert(devices.begin(), devices.end());
                             // Once more what had to be written before.
                             for (int i = 0; i < 2; ++i)
                               server_->context().files.close(files);
                           }});
  const ExportService::Report report = exports_->load();
  // Those that are left out come later, as soon as their directory is there.
  const LogLevel level = report.ok ? LogLevel::kWarning : LogLevel::kError;
  for (const ConfigProblem& problem : report.problems)
    log_at(level, "{}", problem.text());
  configuration_is_wrong_ = !report.ok;
  if (!report.ok) return false;
  log_notices(report.notices);
  if (exports_->entries().empty())
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

/// Files are served without them, too.
void Daemon::open_metrics() {
  const std::string& where = settings_.config.metrics;
  if (where.empty()) return;
  std::string why;
  metrics_ = listen_for_metrics(*loop_, *server_, where, &why);
  if (metrics_ == nullptr) {
    log_warning("no metrics are served: {}", why);
  } else {
    log_info("metrics for Prometheus at {}", where);
  }
}

void Daemon::answer_requests() {
  register_requests(*control_, *server_);
  control_->on("exports", [this](const JsonValue& request, ControlSocket::Done done) {
    exports_->answer(request, std::move(done));
  });
  control_->on("reload", [this](const JsonValue&, ControlSocket::Done done) {
    reload([done = std::move(done)](const ExportService::Report& report) {
      done(report_document(report));
    });
  });
}

/// Of an ordinary user: what cannot be.
void Daemon::tell_limits() const {
  if (can_switch_identity()) return;
  if (!switching().why_not.empty())
    log_warning("root cannot act as other users here: {}", switching().why_not);
  log_notice(
      "everything is done as uid {}: files that clients make are his, owners and devices cannot be "
      "changed, and only what he may open is served",
      ::geteuid());
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
  // Once is enough where both go to one place, as in the journal.
  if (!same_place(STDOUT_FILENO, STDERR_FILENO)) log_info("{}", line);
  ::sd_notifyf(0, "READY=1\nSTATUS=%s", line.c_str());
  daemonizer.ready();
  watchdog_ = Watchdog::start(*loop_, *server_);
}

void Daemon::run() {
  loop_->run();
  ::sd_notify(0, "STOPPING=1");
  log_info("stopping");
  const auto deadline = std::chrono::steady_clock::now() + kShutdownPatience;
  // Both end at the same time: the second is not to be found stuck because the first took long.
  exports_->begin_end();
  watchdog_.reset();
  metrics_.reset();
  control_->close_to_askers();
  const bool all_answered = server_->stop(kShutdownPatience);
  server_->capture().end(std::chrono::steady_clock::now() + kLastWords);
  control_.reset();
  if (!all_answered) {
    log_warning("calls are stuck in the file system; leaving without them");
    std::fflush(nullptr);
    ::_exit(0);
  }
  if (!exports_->stop(deadline)) {
    log_warning("exports are stuck in the file system or the name service; leaving without them");
    std::fflush(nullptr);
    ::_exit(0);
  }
  {
    TimeToLeave limit(kGoodbyePatience);
    exports_.reset();
    server_.reset();
  }
  log_info("stopped");
}

void Daemon::on_fd_ready(std::uint32_t) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGHUP) {
      reload(nullptr);
    } else {
      loop_->stop();
    }
  }
}

/// The exports say themselves in the log what changed.
void Daemon::reload(ReloadDone done) {
  ::sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
               static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count()));
  exports_->reload([done = std::move(done)](const ExportService::Report& report) {
    ::sd_notify(0, "READY=1");
    if (done) done(report);
  });
}

}  // namespace nfsrdma
