// SPDX-License-Identifier: Apache-2.0
#include "client/mount/mount_daemon.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "client/fuse/device_io.h"
#include "client/fuse/session_errand.h"
#include "client/mount/settings_of.h"
#include "client/trunk_discovery.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"
#include "rpcrdma/connection_json.h"

namespace nfsrdma {
namespace {

constexpr std::uint32_t kReadAhead = 4u << 20;
// After a signal while files are open: how long their users may still finish.
constexpr std::chrono::seconds kDetachPatience{5};
// How often EndPatience is asked.
constexpr std::chrono::milliseconds kLookAtEnd{250};
// The server has just answered the main thread: a data shard that hears nothing is not waited for
// longer.
constexpr std::chrono::milliseconds kShardPatience{5'000};
// Nor for RDMA where the main thread had to do without.
constexpr std::chrono::milliseconds kShardSilence{1'000};
// Exit code of mount(8): the mount failed.
constexpr int kMountFailed = 32;
// Files named in a message about lost data.
constexpr std::size_t kMostNamed = 10;

/// A comma or backslash in a name would end libfuse's option.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string session_options(const MountCommandLine& line) {
  const MountOptions& o = line.options;
  std::string list = fmt::format("fsname={},subtype=nfs-rdma", escaped(line.source_text));
  const bool root = ::geteuid() == 0;
  // Everybody may come in, and is judged by the server (no default_permissions: decisions.md 20).
  if (root || o.allow_other) list += ",allow_other";
  // libfuse starts from nosuid,nodev.
  if (root && o.suid) list += ",suid";
  if (root && o.dev) list += ",dev";
  if (!o.exec) list += ",noexec";
  if (o.read_only) list += ",ro";
  for (const std::string& flag : o.vfs_flags) {
    // Debian 12's libfuse does not know it. No FUSE mount has the kernel set access times.
    if (flag != "nodiratime") list += "," + flag;
  }
  for (const std::string& label : o.label_words())
    list += "," + escaped(label);
  return list;
}

bool may_pass(const Error& error) {
  switch (error.code) {
    case Errc::kTimedOut:
    case Errc::kClosed:
      return true;
    default:
      return error.sys == ECONNREFUSED || error.sys == EHOSTUNREACH || error.sys == ENETUNREACH ||
             error.sys == ETIMEDOUT || error.sys == ECONNRESET || error.sys == EAGAIN ||
             error.sys == EADDRINUSE || error.sys == EADDRNOTAVAIL;
  }
}

FileSystemOptions file_system_options(const MountOptions& o) {
  FileSystemOptions options;
  options.attributes = {o.acregmin, o.acregmax, o.acdirmin, o.acdirmax, o.attribute_cache};
  options.close_to_open = o.close_to_open;
  options.cache_names = o.lookup_cache != LookupCache::kNone && o.attribute_cache;
  options.cache_absent_names = o.lookup_cache == LookupCache::kAll && o.attribute_cache;
  options.read_names_ahead = o.readdirplus;
  options.synchronous = o.synchronous;
  // As long as a soft mount's calls may take.
  if (o.soft_revalidation) options.revalidation_patience = o.timeout * (o.retransmissions + 1);
  options.one_user = ::geteuid() != 0 && !o.allow_other;
  return options;
}

std::uint32_t threads_of(const MountCommandLine& line) {
  if (line.options.shards != 0) return line.options.shards;
  return default_mount_threads(std::thread::hardware_concurrency());
}

/// For every thread's AsyncMount: an outage is one for the mount.
MountObserver observer_of(const std::string& host, const std::shared_ptr<OutageWatch>& outage) {
  MountObserver observer;
  observer.not_responding = [host, outage] {
    if (outage->silent()) log_warning("server {} not responding, still trying", host);
  };
  observer.responding = [host, outage] {
    if (outage->heard()) log_notice("server {} OK", host);
  };
  observer.connected = [host](const ConnectionInfo& info) {
    if (info.fallback_reason.empty()) {
      log_info("server {} connected by {}", host, transport_name(info.transport));
    } else {
      log_notice("server {} connected by {}: {}", host, transport_name(info.transport),
                 info.fallback_reason);
    }
  };
  return observer;
}

/// A data shard's way to the same server and the same tree.
class Attacher final : public ShardAttacher {
 public:
  Attacher(Fabrics fabrics, MountSettings settings, MountRoot root, MountObserver observer)
      : fabrics_(std::move(fabrics)),
        settings_(std::move(settings)),
        root_(std::move(root)),
        observer_(std::move(observer)) {}

  /// The same client to the server as the main thread's mount.
  void share_sessions(EventLoop& main, nfs4::SessionSource& source) {
    sessions_ = std::make_unique<SessionErrands>(main, source);
    settings_.session_source = sessions_.get();
  }
  Task<Result<std::unique_ptr<AsyncMount>>> attach(EventLoop& loop, std::string* detail) override {
    if (sessions_ != nullptr) sessions_->set_asker(loop);
    Result<std::unique_ptr<AsyncMount>> made =
        co_await AsyncMount::attach(loop, fabrics_, settings_, root_, detail);
    if (made.ok()) (*made)->set_observer(std::move(observer_));
    co_return made;
  }

 private:
  Fabrics fabrics_;
  MountSettings settings_;
  MountRoot root_;
  MountObserver observer_;
  std::unique_ptr<SessionErrands> sessions_;
};

}  // namespace

/// SIGTERM, SIGINT and SIGHUP, which are blocked in every thread.
class MountDaemon::Signals final : public FdWatcher {
 public:
  explicit Signals(MountDaemon& daemon) : daemon_(daemon) {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGTERM, SIGINT, SIGHUP})
      sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_.reset(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    if (fd_) (void)daemon_.loop_.add(fd_.get(), EPOLLIN, *this).ok();
  }
  ~Signals() override {
    if (fd_) daemon_.loop_.remove(fd_.get(), *this);
  }
  void on_fd_ready(std::uint32_t) override {
    signalfd_siginfo info;
    while (::read(fd_.get(), &info, sizeof info) == sizeof info)
      daemon_.stop();
  }

 private:
  MountDaemon& daemon_;
  UniqueFd fd_;
};

MountDaemon::MountDaemon(EventLoop& loop, Fabrics fabrics, const MountCommandLine& line,
                         std::string mount_point)
    : loop_(loop),
      fabrics_(std::move(fabrics)),
      line_(line),
      mount_point_(std::move(mount_point)),
      detach_timer_([this] {
        log_warning("{}: files are still open; giving up", mount_point_);
        loop_.stop();
      }),
      patience_timer_([this] { on_patience(); }) {
  signals_ = std::make_unique<Signals>(*this);
}

MountDaemon::~MountDaemon() {
  channel_.reset();
  notifier_.reset();
  if (session_ != nullptr) {
    // Also when the kernel let go of it already: libfuse sees that, and frees what is left. Where
    // somebody else is mounted by now, the end of the session has to do, which closes /dev/fuse.
    if (!kernel_has_it_ || is_on_top()) ::fuse_session_unmount(session_);
    ::fuse_session_destroy(session_);
  }
  // With the session's descriptor the kernel's hope is gone that somebody answers: it waits no
  // more.
  if (unmounter_.joinable()) unmounter_.join();
}

void MountDaemon::pause(Duration duration) {
  bool over = false;
  Timer timer([&over] { over = true; });
  timer.arm_after(loop_, duration);
  while (!over)
    loop_.turn(Duration(-1));
}

std::string MountDaemon::connect(bool* again) {
  MountSettings settings = settings_of(line_.source, line_.options);
  settings.connections = connections_of_thread(line_.options.connections, threads_of(line_), 0);
  std::string detail;
  *again = false;
  if (Result<void> found = resolve_host(settings, &detail); !found.ok()) {
    // While a machine starts, a name may be unknown as well: what completes it comes by DHCP.
    *again = line_.options.background || may_pass(found.error());
    return detail.empty() ? found.error().message() : detail;
  }
  if (!keep_family(line_.options.family, &settings.addresses)) {
    return fmt::format("{} has no IPv6 address", settings.host);
  }
  ReferralMet met;
  auto made =
      run_to_completion(loop_, AsyncMount::connect(loop_, fabrics_, settings, &detail, &met));
  std::unique_ptr<AsyncMount> server;
  if (made.ok()) {
    server = std::move(made).value();
  } else if (is_referral_met(made.error())) {
    if (std::string why = follow(settings, met, &server, again); !why.empty()) return why;
  } else {
    *again = may_pass(made.error());
    return detail.empty() ? made.error().message() : detail;
  }
  // Servers let regular files be mounted, for network swap; nothing could be found below one.
  const std::optional<Attributes>& root = server->info().attributes;
  if (root && root->type != FileType::kDirectory)
    return settings.path + " is not a directory there";
  server_ = std::move(server);
  // Its version was agreed on, and a referral leads to another host and path.
  const MountSettings asked = std::exchange(settings, server_->settings());
  settings.connect_timeout = asked.connect_timeout;
  settings.first_answers = asked.first_answers;
  line_.options.version = settings.version;
  if (const std::string notice = line_.options.leave_out_of(settings.version.major);
      !notice.empty()) {
    log_notice("{}", notice);
  }
  // To who waits for the command; the daemon's log says it again.
  if (fell_back()) tell_way();
  server_->set_observer(observer_of(settings.host, outage_));
  start_shards(settings);
  if (line_.options.discover_trunks) discover();
  return {};
}

void MountDaemon::discover() {
  const NfsVersion& version = server_->settings().version;
  if (version.major == 3 || version.minor == 0) {
    log_notice("trunkdiscovery: version {} has no sessions, and one address is used",
               server_->version());
    return;
  }
  const MountFamily family = line_.options.family;
  const unsigned most = line_.options.max_connect;
  const DiscoveredTrunks found =
      run_to_completion(loop_, discover_trunks(*server_,
                                               family == MountFamily::kV4   ? AF_INET
                                               : family == MountFamily::kV6 ? AF_INET6
                                                                            : AF_UNSPEC,
                                               most != 0 ? most : kMostAddresses));
  for (const SocketAddress& address : found.joined)
    shards_->join_address(address);
  while (!shards_->settled())
    loop_.turn(Duration(-1));
  for (const std::string& note : found.notes)
    log_notice("trunkdiscovery: {}", note);
}

std::string MountDaemon::follow(const MountSettings& from, const ReferralMet& met,
                                std::unique_ptr<AsyncMount>* server, bool* again) {
  const std::string where =
      terminal_text(fmt::format("{} is a referral to {}", met.path, met.referral.text()));
  if (!line_.options.referrals) return where + "; the options say noreferrals";
  ConnectOpener opener(loop_, fabrics_, line_.options.family);
  ReferralTrail trail(from);
  std::string detail;
  Result<void> done =
      run_to_completion(loop_, follow_referral(loop_, from, met, opener, &trail, &detail));
  if (!done.ok()) {
    *again = may_pass(done.error());
    return fmt::format("{}, which cannot be followed: {}", where, detail);
  }
  *server = opener.take();
  log_notice("{}", where);
  return {};
}

std::uint64_t MountDaemon::replies() const {
  std::uint64_t all = sum_of(shards_->report()).totals.replies;
  if (referring_ == nullptr) return all;
  for (const ReferringRemote::Shown& shown : referring_->open_trees())
    all += shown.tree->replies();
  return all;
}

void MountDaemon::abort_all() {
  shards_->abort_all();
  stop_referrals();
  if (referring_ != nullptr) referring_->abort();
}

/// Whoever waits for a server that is not known yet waits in vain.
void MountDaemon::stop_referrals() {
  if (referring_ == nullptr) return;
  referring_->stop();
  stop_referrals_.cancel();
}

void MountDaemon::start_shards(const MountSettings& settings) {
  const std::uint32_t threads = threads_of(line_);
  shards_ = std::make_unique<MountShards>(*server_, std::thread::hardware_concurrency() > threads);
  const bool hurry = fell_back();
  for (std::uint32_t i = 1; i < threads; ++i) {
    MountSettings its = settings;
    if (hurry) its.silence = std::min(its.silence, kShardSilence);
    its.connections = connections_of_thread(line_.options.connections, threads, i);
    its.first_answers = std::min(its.first_answers, kShardPatience);
    its.locks = false;  // the main thread's
    auto attacher = std::make_unique<Attacher>(fabrics_, std::move(its), server_->root(),
                                               observer_of(line_.source.host, outage_));
    if (nfs4::SessionSource* sessions = server_->session_source()) {
      attacher->share_sessions(loop_, *sessions);
    }
    // Woken by the word from the shard, the loop below looks again.
    Result<std::unique_ptr<DataShard>> shard = DataShard::start(loop_, std::move(attacher));
    if (shard.ok()) {
      shards_->add(std::move(shard).value());
    } else {
      log_notice("a data shard could not be started: {}", shard.error().message());
    }
  }
  while (!shards_->settled())
    loop_.turn(Duration(-1));
  // The mount works without: what it would have carried the others do.
  for (const std::string& why : shards_->drop_failed())
    log_notice("{}: a data shard could not connect and is left out: {}", line_.source_text, why);
}

std::string MountDaemon::mount() {
  const int give_up = line_.options.recovery == MountRecovery::kSoft ? EIO : ETIMEDOUT;
  remote_ = std::make_unique<MountedRemote>(*shards_, give_up);
  Remote* remote = remote_.get();
  if (server_->settings().version.major == 4) {
    trees_ = std::make_unique<MountTrees>(
        loop_, fabrics_, line_.options.family, give_up,
        [](const std::string& host) { return observer_of(host, std::make_shared<OutageWatch>()); });
    MountSettings settings = server_->settings();
    settings.connections = line_.options.connections;
    settings.stop = &stop_referrals_;
    referring_ = std::make_unique<ReferringRemote>(loop_, *remote_, *trees_, settings,
                                                   line_.options.referrals);
    remote = referring_.get();
  }
  KernelCache kernel;
  kernel.drop_data = [this](std::uint64_t node, std::function<void()> done) {
    if (notifier_ == nullptr) return loop_.post(std::move(done));
    notifier_->invalidate(node, [this, done] { loop_.post(done); });
  };
  kernel.drop_attributes = [this](std::uint64_t node) {
    if (notifier_ != nullptr) notifier_->invalidate_attributes(node);
  };
  kernel.drop_attributes_soon = [this](std::uint64_t node) {
    if (notifier_ != nullptr) notifier_->invalidate_attributes_soon(node);
  };
  kernel.expire_name = [this](std::uint64_t directory, const std::string& name) {
    if (notifier_ != nullptr) notifier_->expire_name(directory, name);
  };
  files_ = std::make_unique<FileSystem>(loop_, *remote, file_system_options(line_.options),
                                        std::move(kernel));
  const RequestContext context{std::make_shared<const Caller>(Caller{::geteuid(), ::getegid(), {}}),
                               nullptr};
  if (int error = run_to_completion(loop_, files_->start(context))) {
    return fmt::format("{}: {}", line_.source_text, std::strerror(error));
  }
  operations_ = std::make_unique<FuseOperations>(
      *files_,
      FuseOperationsOptions{line_.options.readdirplus, line_.options.attribute_cache,
                            line_.options.local_posix_locks, line_.options.local_flock,
                            line_.options.credits * line_.options.connections},
      [this] { on_ready(); });
  std::string name = "mount.nfs-rdma", flag = "-o", list = session_options(line_);
  char* words[] = {name.data(), flag.data(), list.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  const fuse_lowlevel_ops& table = FuseOperations::table();
  session_ = ::fuse_session_new(&arguments, &table, sizeof table, operations_.get());
  ::fuse_opt_free_args(&arguments);
  if (session_ == nullptr) return "libfuse refused the session's options";
  if (::fuse_session_mount(session_, mount_point_.c_str()) != 0) {
    std::string why = fmt::format("could not mount on {}", mount_point_);
    if (const std::vector<std::string> labels = line_.options.label_words(); !labels.empty()) {
      // A kernel without SELinux knows none, and fusermount3 passes none on.
      why += fmt::format(" with {}: they are for root, and a kernel with SELinux",
                         fmt::join(labels, ","));
    }
    return why;
  }
  kernel_has_it_ = true;
  device_ = device_of_mount(mount_point_);
  if (Result<void> taken = take_over_device_io(session_); !taken.ok())
    return taken.error().message();
  notifier_ = std::make_unique<Notifier>(session_);
  channel_ =
      std::make_unique<Channel>(loop_, session_, operations_->blocks, [this] { on_ended(); });
  operations_->channel = channel_.get();
  if (Result<void> started = channel_->start(); !started.ok()) return started.error().message();
  return {};
}

void MountDaemon::on_ready() {
  if (device_) {
    raise_read_ahead(*device_, kReadAhead);
    auto socket = StatusSocket::listen(loop_, mount_socket_path(*device_, ::geteuid()),
                                       [this] { return status_document(); });
    if (socket.ok()) {
      status_ = std::move(socket).value();
    } else {
      log_notice("no status socket: {}", socket.error().message());
    }
  }
  was_usable_ = true;
  if (usable_) usable_();
}

void MountDaemon::on_ended() {
  kernel_has_it_ = false;
  loop_.stop();
}

void MountDaemon::give_up(const char* why) {
  if (std::exchange(gave_up_, true)) return;
  const std::uint64_t held = files_->budget.held;
  if (held > 0) {
    const std::vector<std::string> paths = files_->unwritten_files(kMostNamed + 1);
    const std::size_t named = std::min(paths.size(), kMostNamed);
    log_error("{}: {}; giving up {} bytes that are not safe on the server, of {}{}", mount_point_,
              why, held, fmt::join(paths.begin(), paths.begin() + static_cast<long>(named), ", "),
              paths.size() > named ? " and others" : "");
  } else {
    log_warning("{}: {}; giving up", mount_point_, why);
  }
  abort_all();
}

void MountDaemon::on_patience() {
  if (!patience_.over(loop_.now(), files_->budget.held, replies())) {
    patience_timer_.arm_after(loop_, kLookAtEnd);
    return;
  }
  if (ending_) {
    give_up("the server does not answer");
  } else {
    // The kernel waits for the server, too, before it lets go.
    loop_.stop();
  }
}

void MountDaemon::log_to_syslog() {
  if (syslog_ == nullptr) syslog_ = std::make_unique<SyslogPipe>("mount.nfs-rdma");
}

void MountDaemon::stop() {
  if (session_ == nullptr) {
    // Nothing is mounted, nothing can be lost.
    log_notice("{}: told to stop before it was mounted", mount_point_);
    syslog_.reset();
    std::_Exit(kMountFailed);
  }
  patience_.told(loop_.now());
  if (++signals_seen_ > 1) {
    give_up("told to stop again");
    loop_.stop();
    return;
  }
  if (!patience_timer_.armed()) patience_timer_.arm_after(loop_, kLookAtEnd);
  if (!kernel_has_it_) {
    loop_.stop();
    return;
  }
  unmounter_ = std::thread([this] { unmount(); });
}

bool MountDaemon::is_on_top() const {
  return !device_ || is_mounted_at(mount_point_, *device_);
}

void MountDaemon::unmount() {
  if (is_on_top() && unmount_now(mount_point_, false).ok()) return;
  // Looked at again: it may have been unmounted, and something else mounted, while we waited.
  const bool detaches = is_on_top();
  if (detaches) (void)unmount_now(mount_point_, true).ok();
  loop_.post([this, detaches] {
    log_notice("{}: in use; {}", mount_point_,
               detaches ? "detached" : "detached before, or below another mount");
    detach_timer_.arm_after(loop_, kDetachPatience);
  });
}

void MountDaemon::stop_notifier() {
  if (!kernel_has_it_) {
    notifier_->stop();
    return;
  }
  // The kernel may hold the notifier up until requests are answered that only we can answer.
  abort_all();
  (void)channel_->start().ok();
  bool stopped = false;
  std::thread stopper([this, &stopped] {
    notifier_->stop();
    loop_.post([&stopped] { stopped = true; });
  });
  while (!stopped)
    loop_.turn(Duration(-1));
  stopper.join();
  channel_->stop();
}

bool MountDaemon::run(std::function<void()> usable) {
  usable_ = std::move(usable);
  loop_.run();
  ending_ = true;
  patience_.ending(loop_.now());
  if (!patience_timer_.armed()) patience_timer_.arm_after(loop_, kLookAtEnd);
  status_.reset();
  detach_timer_.cancel();
  if (channel_ != nullptr) channel_->stop();
  if (files_->budget.held == 0) {
    stop_referrals();
    // Nothing to save. Who waits for a lock ends, so that others' can be let go of; whoever still
    // waits for the server then waits in vain.
    server_->stop_waiting();
    if (referring_ != nullptr) referring_->stop_waiting();
    const TimePoint until = loop_.refresh_now() + AsyncMount::kGoodbye;
    while (!operations_->idle().await_ready() && loop_.now() < until)
      loop_.turn(until - loop_.now());
    if (!operations_->idle().await_ready()) abort_all();
  } else {
    log_notice("{}: writing back {} bytes{}", mount_point_, files_->budget.held,
               signals_seen_ == 0 ? "; SIGTERM limits the time for it" : "");
  }
  struct End {
    static Task<void> run(FuseOperations& operations, FileSystem& files) {
      co_await files.finish();
      co_await operations.idle();
    }
  };
  // What is to be saved may be on a server that nobody has asked yet (migration).
  run_to_completion(loop_, files_->finish());
  stop_referrals();
  run_to_completion(loop_, End::run(*operations_, *files_));
  patience_timer_.cancel();
  if (referring_ != nullptr) run_to_completion(loop_, referring_->end(!gave_up_));
  if (!gave_up_) run_to_completion(loop_, server_->unmount());
  if (notifier_ != nullptr) stop_notifier();
  run_to_completion(loop_, End::run(*operations_, *files_));
  return was_usable_;
}

/// RDMA was wanted, and is not there.
bool MountDaemon::fell_back() const {
  const std::vector<ConnectionInfo> connections = server_->connections();
  return !connections.empty() && !is_rdma(connections.front().transport) &&
         !connections.front().fallback_reason.empty();
}

void MountDaemon::tell_way() {
  const std::vector<ConnectionInfo> connections = server_->connections();
  if (!connections.empty()) observer_of(line_.source.host, outage_).connected(connections.front());
}

std::string MountDaemon::description() {
  std::string out = fmt::format("{} on {} type fuse.nfs-rdma ({})", line_.source_text, mount_point_,
                                line_.options.text());
  if (server_ == nullptr) return out;
  out += fmt::format("\nNFS version {} rsize={} wsize={} shards={}", server_->version(),
                     server_->read_size(), server_->write_size(), shards_->count());
  if (const std::uint32_t slots = server_->session_slots(); slots != 0) {
    out +=
        fmt::format(" slots={} back_channel={}", slots, server_->has_back_channel() ? "yes" : "no");
  }
  if (const std::string place = server_->called_at(); !place.empty())
    out += fmt::format(" called_at={}", place);
  if (server_->version().starts_with('4'))
    out += fmt::format(" delegations={}", server_->delegations_held());
  const std::vector<ShardReport> shards = shards_->report();
  std::size_t connections = 0;
  for (const ShardReport& shard : shards)
    connections += shard.connections.size();
  out += fmt::format(" connections={}", connections);
  for (const ShardReport& shard : shards) {
    for (const ConnectionInfo& info : shard.connections) {
      out +=
          fmt::format("\nconnected to {} by {}", info.peer.text(), transport_name(info.transport));
      if (!info.fallback_reason.empty()) out += fmt::format(" ({})", info.fallback_reason);
    }
  }
  return out;
}

std::string MountDaemon::status_document() {
  const std::vector<ShardReport> shards = shards_->report();
  const ShardReport all = sum_of(shards);
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("client", NFSRDMA_VERSION);
  json.field("pid", ::getpid());
  json.field("source", line_.source_text);
  json.field("mount_point", mount_point_);
  json.field("options", line_.options.text());
  json.field("nfs_version", server_->version());
  if (const std::uint32_t slots = server_->session_slots(); slots != 0) {
    json.field("session_slots", slots);
    json.field("back_channel", server_->has_back_channel());
    json.field("callbacks_done", server_->callbacks_done());
  }
  if (const std::string place = server_->called_at(); !place.empty()) {
    json.field("called_at", place);
    json.field("back_channel", server_->has_back_channel());
    json.field("callbacks_done", server_->callbacks_done());
  }
  if (server_->version().starts_with('4')) {
    json.field("files_open", server_->files_open());
    json.field("locks_held", server_->locks_held());
    json.field("delegations_held", server_->delegations_held());
  }
  if (const std::string manager = server_->lock_manager(); !manager.empty()) {
    json.field("lock_manager", manager);
    json.field("locks_held", server_->locks_held());
  }
  json.field("rsize", server_->read_size());
  json.field("wsize", server_->write_size());
  json.field("calls_outstanding", all.calls_outstanding);
  json.field("exposed_regions", all.exposed_regions);
  json.key("connections");
  json.begin_array();
  for (std::uint32_t i = 0; i < shards.size(); ++i) {
    for (const ConnectionInfo& info : shards[i].connections)
      write_connection(json, info, i);
  }
  json.end_array();
  json.key("shards");
  json.begin_array();
  for (const ShardReport& shard : shards) {
    json.begin_object();
    json.field("connections", shard.connections.size());
    json.field("calls", shard.totals.calls);
    json.field("calls_outstanding", shard.calls_outstanding);
    json.field("exposed_regions", shard.exposed_regions);
    json.end_object();
  }
  json.end_array();
  if (referring_ != nullptr) {
    json.key("referrals");
    json.begin_array();
    for (const ReferringRemote::Shown& shown : referring_->open_trees()) {
      json.begin_object();
      json.field("name", shown.name);
      shown.tree->describe(json);
      json.end_object();
    }
    json.end_array();
  }
  json.key("totals");
  json.begin_object();
  json.field("calls", all.totals.calls);
  json.field("rdma_write_bytes", all.totals.rdma_write_bytes);
  json.field("rdma_read_bytes", all.totals.rdma_read_bytes);
  json.field("inline_bytes", all.totals.inline_bytes);
  json.end_object();
  json.key("files");
  json.begin_object();
  json.field("known", files_->nodes.alive());
  json.field("unwritten_bytes", files_->budget.held);
  json.end_object();
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma
