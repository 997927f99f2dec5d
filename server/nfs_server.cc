// SPDX-License-Identifier: Apache-2.0
#include "server/nfs_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "config/user_names.h"
#include "rpcrdma/base/log.h"
#include "server/nfs4/server_state.h"
#include "server/nlm/lock_service.h"
#include "server/nsm/status_monitor.h"
#include "server/other_servers.h"
#include "server/port_holder.h"
#include "server/release.h"
#include "server/status_report.h"
#include "xdr/mount3.h"
#include "xdr/nfs3_constants.h"
#include "xdr/nfsacl3.h"
#include "xdr/nlm4.h"
#include "xdr/nsm1.h"
#include "xdr/rquota.h"

namespace nfsrdma {

namespace {

/// What is registered with rpcbind, and for which transports.
struct Registered {
  std::uint32_t program;
  std::uint32_t version;
  bool rdma, tcp, udp;
};
constexpr Registered kRegistered[] = {
    {xdr::kNfsProgram, 3, true, true, false},
    {xdr::kMountProgram, xdr::kMountV3, false, true, true},
    {xdr::kNlmProgram, xdr::kNlmV4, true, true, true},
    {xdr::kNsmProgram, xdr::kNsmV1, false, true, true},
    {xdr::kNfsAclProgram, 3, false, true, false},
    {xdr::kRquotaProgram, 1, false, true, true},
    {xdr::kRquotaProgram, 2, false, true, true},
};

bool host_has_v6() {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress any = SocketAddress::any_v6(0);
  return fd && ::bind(fd.get(), any.data(), any.length()) == 0;
}

std::string listen_failure(const char* transport, const SocketAddress& address, const Error& error,
                           PortQuestion question) {
  std::string text =
      fmt::format("{} cannot listen on {}: {}", transport, address.text(), error.message());
  question.port = address.port();
  if (error.sys == EADDRINUSE) text += "; " + port_holder(question);
  if (error.sys == EACCES && address.has_reserved_port()) {
    text += "; ports below 1024 need root or CAP_NET_BIND_SERVICE";
  }
  if (error.sys == EADDRNOTAVAIL) text += "; this host does not have that address";
  return text;
}

constexpr std::uint64_t kNsOfMs = 1'000'000;

unsigned shard_count(const Config& config) {
  if (config.shards != 0) return static_cast<unsigned>(config.shards);
  return std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
}

}  // namespace

Result<std::unique_ptr<NfsServer>> NfsServer::start(EventLoop& acceptor, Options options,
                                                    std::string* why) {
  std::unique_ptr<NfsServer> server(new NfsServer(acceptor, std::move(options)));
  NFSRDMA_CHECK_OK(server->make_parts(why));
  NFSRDMA_CHECK_OK(server->listen_all(why));
  server->options_.waits_for = nullptr;
  return server;
}

NfsServer::NfsServer(EventLoop& acceptor, Options options)
    : acceptor_(acceptor), options_(std::move(options)), survey_(acceptor) {}

NfsServer::~NfsServer() {
  *alive_ = false;
  registrar_.reset();
  trace_.reset();
  capture_.reset();
  rdma_listeners_.clear();
  tcp_listeners_.clear();
  for (NfsServer::FabricUse& use : options_.fabrics)
    use.fabric->forget(acceptor_);
  // Work that is under way elsewhere is handed back to the shards before they end; the thread that
  // did it may still be about to wake the shard's loop. So the loops go after those threads.
  for (const auto& shard : shards_)
    shard->shutdown(std::chrono::milliseconds::zero());
  for (const auto& shard : shards_)
    shard->join();
  releasing_.reset();
  workers_.reset();
  replies_.reset();
  context_.reset();
  shards_.clear();
}

void NfsServer::tell_wait(std::string what) const {
  if (options_.waits_for) options_.waits_for(std::move(what));
}

Result<void> NfsServer::make_parts(std::string* why) {
  const Config& config = options_.config;
  tell_wait("the state directory " + config.state_dir);
  ServerOptions context_options;
  context_options.state_dir = config.state_dir;
  context_options.rtmax = static_cast<std::uint32_t>(config.rtmax);
  context_options.wtmax = static_cast<std::uint32_t>(config.wtmax);
  context_options.manage_gids = config.manage_gids;
  context_options.sync_names = config.fsync != "never";
  context_options.read_pages = config.read_pages;
  context_options.host_names = std::move(options_.host_names);
  auto context = ServerContext::create(std::move(context_options));
  if (!context.ok()) {
    *why = fmt::format("state directory {}: {}; choose another with --state-dir", config.state_dir,
                       context.error().message());
    return context.error();
  }
  context_ = std::move(*context);
  if (config.nfs4 || config.nlm) {
    nfs4::ServerState::Options state;
    state.state_dir = config.state_dir;
    state.rtmax = context_->rtmax();
    state.wtmax = context_->wtmax();
    state.limits = nfs4::Limits::of(config, nfs4::descriptor_limit());
    state.domain = system_idmap_domain();
    state.send_owner_names = config.nfs4_owner_names;
    state.mirror_locks = config.nfs4_local_locks;
    context_->serve_nfs4(nfs4::ServerState::create(state, why));
    if (context_->nfs4 == nullptr) return Error{Errc::kInvalid, 0, "NFSv4 client records"};
  }
  if (config.nlm) {
    if (const auto served = context_->serve_nlm(); !served.ok()) {
      *why = "locks of NFSv3 (NFSoRDMA_NLM): " + served.error().message();
      return served.error();
    }
  }
  replies_ = std::make_unique<ReplyCache>(config.drc_bytes, clock_);
  workers_ = std::make_unique<WorkerPool>(static_cast<unsigned>(config.workers),
                                          &MeasuredPlacement::hand_over_ns(), &ExportTable::let_go);
  // Not with the first release(): a server that serves does not end because there may be no thread.
  releasing_ = std::make_unique<WorkerPool>(1);
  // The other half serves those whose names are known, however long a name server takes.
  context_->exports.limit_questions(std::max<std::size_t>(1, config.workers / 2));

  const unsigned count = shard_count(config);
  Shard::Options shard;
  shard.shared.server = context_.get();
  shard.shared.workers = workers_.get();
  shard.shared.committer = &context_->committer;
  shard.shared.replies = replies_.get();
  shard.shared.programs = options_.programs;
  shard.shared.slow_ns = config.slow_request_ms * kNsOfMs;
  shard.memory_budget = std::max(config.memory_budget / count, BufferPool::kLeastBudget);
  shard.rdma.inline_bytes = static_cast<std::uint32_t>(config.inline_threshold);
  shard.rdma.credits.maximum = static_cast<std::uint32_t>(config.credits);
  shard.rdma.credits.initial = std::min(shard.rdma.credits.initial, shard.rdma.credits.maximum);
  shard.rdma.max_connections = config.max_connections;
  shard.tcp.max_connections = config.max_connections;
  // Of all shards together, which their threads ask when somebody connects.
  shard.rdma.places.full =
      shard.tcp.places.full = [this] { return connections() >= options_.config.max_connections; };
  shard.spin = std::chrono::microseconds(config.spin_us);
  for (FabricUse& use : options_.fabrics)
    shard.fabrics.push_back(use.fabric.get());
  for (unsigned i = 0; i < count; ++i) {
    auto started = Shard::start(i, shard);
    if (!started.ok()) {
      *why = "starting a thread: " + started.error().message();
      return started.error();
    }
    shards_.push_back(std::move(*started));
  }
  last_shard_ = shards_.size() - 1;
  trace_ = std::make_unique<Trace>(acceptor_, shards_, options_.programs);
  capture_ = std::make_unique<Capture>(acceptor_, shards_);
  return {};
}

std::vector<SocketAddress> NfsServer::addresses_to_listen() const {
  if (!options_.listen.empty()) return options_.listen;
  std::vector<SocketAddress> all{SocketAddress::any_v4(0)};
  if (host_has_v6()) all.push_back(SocketAddress::any_v6(0));
  return all;
}

Result<void> NfsServer::listen_all(std::string* why) {
  tell_wait("adapters and ports to listen on");
  const std::vector<SocketAddress> addresses = addresses_to_listen();
  for (FabricUse& use : options_.fabrics) {
    NFSRDMA_CHECK_OK(listen_fabric(use, addresses, why));
  }
  if (options_.config.tcp_port != 0) NFSRDMA_CHECK_OK(listen_tcp(addresses, why));
  if (!listener_infos_.empty()) return {};
  *why = "nothing to listen on: no RDMA fabric and no TCP port";
  return Error{Errc::kInvalid, 0, "listen"};
}

bool NfsServer::listens(const std::string& transport) const {
  return std::any_of(listener_infos_.begin(), listener_infos_.end(),
                     [&](const ListenerInfo& info) { return info.transport == transport; });
}

Result<void> NfsServer::listen_fabric(FabricUse& use, const std::vector<SocketAddress>& addresses,
                                      std::string* why) {
  const char* name = fabric_name(use.fabric->kind());
  if (auto available = use.fabric->available(); !available.ok()) {
    *why = fmt::format("{} is not available: {}", name, available.error().message());
    if (use.required) return available.error();
    log_info("{}", *why);
    return {};
  }
  for (SocketAddress address : addresses) {
    address.set_port(static_cast<std::uint16_t>(options_.config.port));
    auto listener = use.fabric->listen(acceptor_, address, *this);
    if (!listener.ok()) {
      PortQuestion question;
      question.tcp_socket = use.fabric->kind() == FabricKind::kIwarp;
      question.our_iwarp_engine = listens(fabric_name(FabricKind::kIwarp));
      *why = listen_failure(name, address, listener.error(), question);
      if (use.required) return listener.error();
      log_warning("{}", *why);
      continue;
    }
    listener_infos_.push_back({name, (*listener)->address(), true});
    rdma_listeners_.push_back(std::move(*listener));
  }
  return {};
}

Result<void> NfsServer::listen_tcp(const std::vector<SocketAddress>& addresses, std::string* why) {
  for (SocketAddress address : addresses) {
    address.set_port(static_cast<std::uint16_t>(options_.config.tcp_port));
    auto listener = TcpListener::listen(
        acceptor_, address, [this](UniqueFd socket) { take_socket(std::move(socket)); });
    if (!listener.ok()) {
      PortQuestion question;
      question.option = "--tcp-port";
      question.key = "NFSoRDMA_TCP_PORT";
      *why = listen_failure("tcp", address, listener.error(), question);
      return listener.error();
    }
    listener_infos_.push_back({"tcp", (*listener)->address(), false});
    tcp_listeners_.push_back(std::move(*listener));
    listen_udp(listener_infos_.back().address);
  }
  return {};
}

/// The programs beside NFS, at the port that they have over TCP. Served by note_exports(): until
/// the first exports are in force, which may take long, whoever mounts or reclaims a lock would
/// hear that there are none. (Connections wait for the acceptor's loop.)
void NfsServer::listen_udp(const SocketAddress& address) {
  auto socket = bind_udp(address);
  if (!socket.ok()) {
    log_warning(
        "udp cannot listen on {}: {}; what asks there beside NFS gets no answer (status monitors "
        "of "
        "clients that restart, quota)",
        address.text(), socket.error().message());
    return;
  }
  datagrams_.push_back(std::move(*socket));
  listener_infos_.push_back({"udp", address, false});
}

std::size_t NfsServer::connections() const {
  std::size_t total = 0;
  for (const auto& shard : shards_)
    total += shard->connections();
  return total;
}

/// When all places are taken, a shard takes a connection in place of one that is silent. Not each
/// may have such a one: who is refused and comes again comes to another shard.
Shard& NfsServer::shard_for_connection() {
  const std::size_t total = connections();
  if (total < options_.config.max_connections) return least_loaded(shards_, &last_shard_);
  if (full_.allow()) {
    log_warning(
        "{} connections: others are taken in place of silent ones alone "
        "(NFSoRDMA_MAX_CONNECTIONS)",
        total);
  }
  last_shard_ = (last_shard_ + 1) % shards_.size();
  return *shards_[last_shard_];
}

void NfsServer::on_incoming(std::unique_ptr<Incoming> incoming) {
  shard_for_connection().accept(std::move(incoming));
}

void NfsServer::take_socket(UniqueFd socket) {
  shard_for_connection().adopt(std::move(socket));
}

void NfsServer::set_exports(const std::vector<ExportEntry>& entries, ConfigProblems* problems) {
  context_->exports.reload(entries, problems);
  note_exports(entries);
}

void NfsServer::note_exports(std::vector<ExportEntry> entries) {
  exports_ = std::move(entries);
  // This thread looks at them when somebody asks for them.
  ExportTable::let_go();
  for (const auto& shard : shards_)
    shard->look_at_exports({});
  for (UniqueFd& socket : std::exchange(datagrams_, {}))
    shards_.front()->serve_datagrams(std::move(socket));
}

void NfsServer::register_with_rpcbind() {
  if (!options_.config.rpcbind) return;
  std::vector<RpcbEntry> entries;
  for (const ListenerInfo& info : listener_infos_) {
    // Loopback listeners are of no use to those who would ask rpcbind.
    if (info.address.is_loopback()) continue;
    const bool udp = info.transport == "udp";
    for (const Registered& one : kRegistered) {
      if (!(info.rdma ? one.rdma : udp ? one.udp : one.tcp) || !serves(one.program)) continue;
      const std::string netid = info.rdma ? "rdma" : udp ? "udp" : "tcp";
      for (RpcbEntry& entry : rpcb_entries(one.program, one.version, netid, info.address)) {
        const bool known = std::ranges::any_of(entries, [&](const RpcbEntry& e) {
          return e.program == entry.program && e.version == entry.version && e.netid == entry.netid;
        });
        if (!known) entries.push_back(std::move(entry));
      }
    }
  }
  if (entries.empty()) return;
  registrar_ = std::make_unique<RpcbindRegistrar>();
  judge_registration(registrar_->register_all(entries));
}

void NfsServer::judge_registration(const RpcbindRegistrar::Outcome& outcome) {
  if (outcome.there && !outcome.left_out.empty()) {
    log_warning(
        "rpcbind runs and does not answer: clients that ask it do not find {}; when it does, "
        "restart "
        "this server",
        rpcb_entries_text(outcome.left_out));
  } else if (!outcome.reachable) {
    log_info(
        "rpcbind does not run here; clients need the port numbers, and those of NFSv3 cannot "
        "lock by it");
  }
  bool other_monitor = false, other_manager = false;
  for (const RpcbEntry& entry : outcome.refused) {
    other_monitor |= entry.program == xdr::kNsmProgram;
    other_manager |= entry.program == xdr::kNlmProgram && entry.netid != "rdma";
  }
  if (!outcome.refused.empty()) {
    log_notice("rpcbind keeps its entries for {} (another server's, or not allowed)",
               rpcb_entries_text(outcome.refused));
  }
  if (other_manager) {
    log_warning("locks of clients of NFSv3 go to another lock manager: {}",
                other_lock_manager(other_servers("/proc"), kernel_mounts_of_v3("/proc")));
  }
  if (other_monitor && context_->nsm != nullptr) context_->nsm->use_other();
}

bool NfsServer::serves(std::uint32_t program) const {
  return std::ranges::any_of(
      options_.programs, [program](const ProgramTable& table) { return table.program == program; });
}

void NfsServer::collect_status(std::size_t clients, std::function<void(std::string json)> done) {
  collect(clients, [done = std::move(done)](const StatusInputs& inputs) {
    done(make_status_document(inputs));
  });
}

void NfsServer::log_slow(std::uint64_t milliseconds) {
  for (const auto& shard : shards_)
    shard->log_slow(milliseconds * kNsOfMs);
}

void NfsServer::evict(const std::string& who, std::function<void(const Evicted&)> done) {
  auto evicted = std::make_shared<Evicted>();
  std::string host = who;
  if (context_->nfs4 != nullptr) {
    nfs4::ServerState& state = *context_->nfs4;
    {
      std::lock_guard lock(state.mutex);
      for (const nfs4::ClientId id : state.clients.ids()) {
        const nfs4::Client* client = state.clients.find(id);
        if (client == nullptr) continue;
        std::string text = fmt::format("{:016x}", id);
        if (text == who) {
          host = client->address;
        } else if (client->address != who) {
          continue;
        }
        if (state.evict(id)) evicted->nfs4_clients.push_back(std::move(text));
      }
    }
    if (!evicted->nfs4_clients.empty()) state.delegations.finish_soon();
  }
  survey_.ask<std::size_t>(
      shards_.size(),
      [&](std::size_t i, std::function<void(std::size_t)> answer) {
        shards_[i]->evict(host, std::move(answer));
      },
      [evicted, done = std::move(done)](const ShardSurvey::Answers<std::size_t>& connections) {
        for (const std::optional<std::size_t>& count : connections) {
          evicted->connections += count.value_or(0);
          evicted->silent_shards += count ? 0 : 1;
        }
        done(*evicted);
      });
}

/// One, on the thread for that.
class NfsServer::Release final : public WorkItem {
 public:
  Release(NfsServer& server, std::string path, std::size_t silent,
          std::function<void(std::string json)> done)
      : server_(server), path_(std::move(path)), silent_(silent), done_(std::move(done)) {}

  void run_on_worker() override {
    const std::unique_ptr<Release> self(this);
    server_.acceptor_.post([server = &server_, alive = server_.alive_, document = carry_out(),
                            done = std::move(done_)] {
      if (!*alive) return;
      --server->releases_;
      done(document);
    });
  }

 private:
  std::string carry_out() const {
    std::string why;
    const auto target = find_release_target(path_, &why);
    if (!target) return control_error(why);
    const Released released =
        nfsrdma::release(*server_.context_, *target, server_.options_.config.state_dir);
    const LogField fields[] = {{"NFS_RDMA_PATH", target->path}};
    log_event(LogLevel::kNotice, fields,
              "{} was released by the administrator: {} file{}, {} client{} lost something",
              target->path, released.files, released.files == 1 ? "" : "s", released.clients.size(),
              released.clients.size() == 1 ? "" : "s");
    return release_document(*target, released, silent_);
  }

  NfsServer& server_;
  const std::string path_;
  const std::size_t silent_;
  std::function<void(std::string json)> done_;
};

void NfsServer::release(const std::string& path, std::function<void(std::string json)> done) {
  ++releases_;
  // Each shard lets go of the exports that were in force when it last looked.
  survey_.ask<bool>(
      shards_.size(),
      [&](std::size_t i, std::function<void(bool)> answer) {
        shards_[i]->look_at_exports([answer = std::move(answer)] { answer(true); });
      },
      [this, path, done = std::move(done)](const ShardSurvey::Answers<bool>& answers) {
        const auto silent = static_cast<std::size_t>(std::ranges::count_if(
            answers, [](const std::optional<bool>& answer) { return !answer; }));
        releasing_->submit(*new Release(*this, path, silent, done));
      });
}

void NfsServer::collect(std::size_t clients, std::function<void(const StatusInputs&)> done) {
  survey_.ask<ShardReport>(
      shards_.size(),
      [&](std::size_t i, std::function<void(ShardReport)> answer) {
        shards_[i]->report(std::move(answer));
      },
      [this, clients, done = std::move(done)](ShardSurvey::Answers<ShardReport> told) {
        reports_.resize(told.size());
        for (std::size_t i = 0; i < told.size(); ++i) {
          if (told[i]) reports_[i] = std::move(*told[i]);
          reports_[i].silent = !told[i];
        }
        tell(clients, done);
      });
}

void NfsServer::tell(std::size_t clients,
                     const std::function<void(const StatusInputs&)>& done) const {
  StatusInputs inputs;
  inputs.uptime = std::chrono::steady_clock::now() - started_;
  inputs.exports = &exports_;
  inputs.shards = &reports_;
  inputs.replies = replies_->stats();
  inputs.commits = context_->committer.stats();
  inputs.cached_files = context_->files.size();
  inputs.read_page_bytes = context_->read_costs.bytes_shown();
  nfs4::StateReport state;
  if (context_->nfs4 != nullptr) {
    state = nfs4::report_state(*context_->nfs4, clients);
    inputs.state = &state;
  }
  for (const ListenerInfo& info : listener_infos_) {
    inputs.listeners.emplace_back(info.transport, info.address.text());
  }
  done(inputs);
}

void NfsServer::ask_for_signs_of_life() {
  for (const auto& shard : shards_)
    shard->ask_for_sign_of_life();
}

std::vector<NfsServer::SignOfLife> NfsServer::signs_of_life() const {
  std::vector<SignOfLife> signs;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    signs.push_back(
        {"shard-" + std::to_string(i), shards_[i]->thread(), shards_[i]->has_answered()});
  }
  return signs;
}

bool NfsServer::stop(std::chrono::milliseconds patience) {
  registrar_.reset();
  rdma_listeners_.clear();
  tcp_listeners_.clear();
  for (const auto& shard : shards_)
    shard->shutdown(patience);
  const auto deadline = std::chrono::steady_clock::now() + patience + std::chrono::seconds(1);
  for (const auto& shard : shards_) {
    while (!shard->ended()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      acceptor_.turn(std::chrono::milliseconds(5));
    }
    shard->join();
  }
  while (releases_ != 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    acceptor_.turn(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace nfsrdma
