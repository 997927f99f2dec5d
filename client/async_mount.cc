// SPDX-License-Identifier: Apache-2.0
// Connecting, mounting, limits and status. The operations are in async_meta.cc, async_names.cc,
// async_io.cc and async_directory.cc.
#include "client/async_mount.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "client/nfs3/lock_manager_ways.h"
#include "client/nfs3/mount_service.h"
#include "client/nfs3/operations.h"
#include "client/nfs4/operations.h"
#include "client/put_off.h"
#include "client/trunk.h"
#include "client/version_choice.h"
#include "config/default_paths.h"

namespace nfsrdma {
namespace {

/// Per READ or WRITE unless told otherwise: several of these under way beat one larger.
constexpr std::uint32_t kUsualTransfer = 1 << 20;
constexpr std::uint32_t kPage = 4096;

std::uint32_t transfer_size(std::uint32_t wanted, std::uint32_t server_max) {
  if (server_max == 0) server_max = kPage;
  std::uint32_t size = std::min(wanted != 0 ? wanted : kUsualTransfer, server_max);
  if (size >= kPage) size -= size % kPage;
  return std::max<std::uint32_t>(size, 512);
}

}  // namespace

std::unique_ptr<RpcClient> make_rpc_client(EventLoop& loop, const Fabrics& fabrics,
                                           const MountSettings& settings) {
  TransportOrder order = transport_order(fabrics, settings);
  RpcClientOptions options;
  options.candidates = std::move(order.candidates);
  options.left_out = std::move(order.left_out);
  options.soft = settings.soft;
  options.timeo = settings.timeo;
  options.retrans = settings.retrans;
  options.connections = settings.connections;
  options.idle_timeout = settings.idle_timeout;
  options.connect_timeout = settings.connect_timeout;
  options.silence = settings.silence;
  options.put_off = settings.put_off;
  RdmaClientOptions rdma;
  rdma.inline_bytes = settings.inline_bytes;
  rdma.max_credits = settings.credits;
  TcpClientOptions tcp;
  tcp.max_calls = settings.credits;
  tcp.reserved_port = settings.reserved_port;
  // A reply that is longer would be refused with its connection, again and again.
  constexpr std::size_t kBesideData = std::size_t{64} << 10;
  tcp.max_record = std::max<std::size_t>(tcp.max_record, settings.rsize + kBesideData);
  return std::make_unique<RpcClient>(std::make_unique<LoopEnvironment>(loop, rdma, tcp),
                                     std::move(options));
}

std::string default_lock_records() {
  return default_state_dir() + "/client-locks";
}

Result<void> resolve_host(MountSettings& settings, std::string* detail) {
  std::string host = settings.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  Result<std::vector<SocketAddress>> addresses = SocketAddress::resolve(host, settings.rdma_port);
  if (!addresses.ok()) {
    if (detail != nullptr) {
      const bool later = addresses.error().sys == EAGAIN;
      *detail =
          fmt::format("cannot find the host '{}': {}", settings.host,
                      later ? "the name service cannot say now" : addresses.error().message());
    }
    return addresses.error();
  }
  settings.addresses = std::move(*addresses);
  return {};
}

namespace {

/// A name for this client that no other has, on this machine or another. What a process leaves
/// behind when it is killed ends with its lease.
std::string client_owner() {
  static std::atomic<std::uint32_t> next{0};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::random_device random;
  return fmt::format("nfs-rdma {} {} {:08x}{:08x}.{}", host.data(), ::getpid(), random(), random(),
                     ++next);
}

/// `settings` outlive it.
std::unique_ptr<nfs3::FileLocks> make_nfs3_locks(EventLoop& loop, RpcClient& rpc,
                                                 const MountSettings& settings) {
  if (!settings.locks) return nullptr;
  const nfs3::LockCaller caller = nfs3::LockCaller::make();
  std::unique_ptr<nfs3::LockRecords> records;
  std::vector<nfs3::DeadRecord> of_the_dead;
  if (!settings.lock_records.empty()) {
    const nfs3::RecordedServer server = nfs3::RecordedServer::of(settings);
    of_the_dead = nfs3::dead_records(settings.lock_records, server);
    records = std::make_unique<nfs3::LockRecords>(rpc.environment(), settings.lock_records, server,
                                                  caller);
  }
  auto ways = std::make_unique<nfs3::TcpLockManagerWays>(loop, settings);
  auto locks = std::make_unique<nfs3::FileLocks>(rpc, std::move(ways), caller, std::move(records));
  locks->free_of_the_dead(std::move(of_the_dead));
  return locks;
}

std::unique_ptr<NfsOperations> make_operations(EventLoop& loop, RpcClient& rpc,
                                               const MountSettings& settings) {
  if (settings.version.major == 3) {
    return std::make_unique<Nfs3Operations>(rpc, make_nfs3_locks(loop, rpc, settings),
                                            settings.posix_acls);
  }
  nfs4::SessionOptions options;
  options.minor = settings.version.minor;
  options.any_minor = settings.version.any_minor;
  options.max_transfer = std::max({settings.rsize, settings.wsize, kUsualTransfer});
  options.slots = std::max<std::uint32_t>(settings.credits, 1) * settings.connections;
  options.identity = settings.identity;
  options.owner = client_owner();
  options.source = settings.session_source;
  options.called_at = settings.called_at;
  return std::make_unique<Nfs4Operations>(rpc, std::move(options));
}

/// Ends one operation with another.
class Relay final : public Cancellable {
 public:
  explicit Relay(CancelToken& to) : to_(to) {}
  void on_cancel() override { to_.cancel(); }

 private:
  CancelToken& to_;
};

}  // namespace

AsyncMount::AsyncMount(EventLoop& loop, MountSettings settings)
    : loop_(loop), settings_(std::move(settings)) {
  if (settings_.put_off == nullptr) settings_.put_off = std::make_shared<PutOff>(settings_.host);
}

AsyncMount::~AsyncMount() = default;

Task<Result<std::unique_ptr<AsyncMount>>> AsyncMount::open(EventLoop& loop, Fabrics fabrics,
                                                           MountSettings settings,
                                                           RootFinder& finder,
                                                           std::string* detail) {
  detail->clear();
  std::unique_ptr<AsyncMount> mount(new AsyncMount(loop, std::move(settings)));
  mount->rpc_ = make_rpc_client(loop, fabrics, mount->settings_);
  mount->fabrics_ = fabrics;
  CancelToken patience;
  Relay stop(patience);
  CancelToken* const stopped = mount->settings_.stop;
  if (stopped != nullptr) stopped->enlist(stop);
  if (stopped != nullptr && stopped->cancelled()) patience.cancel();
  Timer limit([&patience] { patience.cancel(); });
  Result<void> done = co_await mount->rpc_->connect(detail, &patience);
  if (done.ok()) mount->stay_at(mount->rpc_->address());
  limit.arm_after(loop, mount->settings_.first_answers);
  OpContext op;
  op.cancel = &patience;
  op.identity = mount->settings_.identity;
  if (done.ok()) done = co_await mount->begin_in_best(op, finder, patience, detail);
  if (done.ok()) {
    Result<FsInfo> info = co_await mount->fsinfo(op, mount->root_.handle);
    if (info.ok()) {
      mount->use_limits(*info);
    } else {
      done = info.error();
      *detail = "FSINFO: " + info.error().message();
    }
  }
  if (!done.ok()) {
    // Unless it was answered, if by another version or on another way.
    const bool told_to = stopped != nullptr && stopped->cancelled();
    if (patience.cancelled() && !told_to && done.error().sys == EINTR) {
      done = Error{Errc::kTimedOut, ETIMEDOUT, "mount"};
      *detail = fmt::format("the server takes connections, but answered nothing for {:.3g} s",
                            std::chrono::duration<double>(mount->settings_.first_answers).count());
    }
    co_await mount->rpc_->yield();
    co_return done.error();
  }
  co_return mount;
}

Task<Result<void>> AsyncMount::begin(const OpContext& op, RootFinder& finder, CancelToken& cancel,
                                     std::string* detail) {
  operations_ = make_operations(loop_, *rpc_, settings_);
  Result<void> done = co_await operations_->begin(op, detail);
  if (done.ok()) done = co_await finder.find_root(*this, cancel, detail);
  co_return done;
}

Task<Result<void>> AsyncMount::begin_in_best(const OpContext& op, RootFinder& finder,
                                             CancelToken& cancel, std::string* detail) {
  Result<void> done = co_await begin(op, finder, cancel, detail);
  if (settings_.version.major == 4 && done.ok()) settings_.version = operations_->number();
  const bool go_on = settings_.version.any && !done.ok() && leads_to_version_3(done.error());
  if (!go_on) co_return done;
  const std::string why = std::exchange(*detail, {});
  co_await operations_->end(op);
  operations_->abort();
  co_await rpc_->yield();
  operations_.reset();
  settings_.version = {};
  const auto usual = settings_.mount_connect_timeout;
  settings_.mount_connect_timeout = std::min(usual, kFallbackConnectTimeout);
  Result<void> third = co_await begin(op, finder, cancel, detail);
  settings_.mount_connect_timeout = usual;
  if (third.ok() || version_3_says_more(done.error(), third.error())) co_return third;
  *detail = why;
  co_return done;
}

std::unique_ptr<AsyncMount> AsyncMount::over(EventLoop& loop, MountSettings settings,
                                             std::unique_ptr<RpcClient> rpc, MountRoot root,
                                             const FsInfo& info) {
  std::unique_ptr<AsyncMount> mount(new AsyncMount(loop, std::move(settings)));
  mount->rpc_ = std::move(rpc);
  mount->operations_ = make_operations(loop, *mount->rpc_, mount->settings_);
  mount->root_ = std::move(root);
  mount->use_limits(info);
  return mount;
}

/// For all that connects later: other addresses of a name may lead to other servers, where the
/// handles, the locks and what is not committed yet mean nothing, or something else.
void AsyncMount::stay_at(const SocketAddress& address) {
  if (settings_.addresses_of_host.empty()) settings_.addresses_of_host = settings_.addresses;
  settings_.addresses = {address};
}

void AsyncMount::use_limits(const FsInfo& info) {
  info_ = info;
  read_size_ = transfer_size(settings_.rsize, info.rtmax);
  write_size_ = transfer_size(settings_.wsize, info.wtmax);
}

namespace {

/// The path of the settings, exactly.
class MntRoot final : public RootFinder {
 public:
  /// `met` as connect() has it.
  explicit MntRoot(ReferralMet* met) : met_(met) {}

  Task<Result<void>> find_root(AsyncMount& mount, CancelToken& cancel,
                               std::string* detail) override {
    OpContext op;
    op.cancel = &cancel;
    op.identity = mount.settings().identity;
    if (mount.settings().version.major == 4) {
      co_return co_await walk(mount, op, detail);
    }
    nfs3::MountService service(mount.loop(), mount.settings(), mount.rpc());
    service.set_cancel(&cancel);
    Result<void> found = co_await service.find(detail);
    if (!found.ok()) co_return found.error();
    Result<FileHandle> handle = co_await service.mnt(op, mount.settings().path);
    co_await mount.rpc().yield();
    if (!handle.ok()) {
      *detail = mount.settings().path + ": " + handle.error().message();
      co_return handle.error();
    }
    mount.set_root({*handle, mount.settings().path, service.port()});
    co_return Result<void>();
  }

 private:
  /// NFSv4 has no MOUNT: down from the server's root, name by name.
  Task<Result<void>> walk(AsyncMount& mount, const OpContext& op, std::string* detail) {
    const std::string& path = mount.settings().path;
    Result<FileHandle> handle = co_await mount.server_root(op);
    for (std::size_t at = 0; handle.ok() && at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      const std::string name = path.substr(at, end - at);
      at = end + 1;
      if (name.empty() || name == ".") continue;
      const FileHandle directory = *handle;
      Result<LookupResult> found = co_await mount.lookup(op, directory, name);
      if (!found.ok()) {
        handle = found.error();
        if (is_referral_met(found.error()) && met_ != nullptr) {
          NFSRDMA_CO_TRY(met_->referral, co_await mount.referral(op, directory, name));
          met_->path = path.substr(0, end);
          met_->rest = path.substr(std::min(at, path.size()));
        }
      } else if (found->attributes && found->attributes->type == FileType::kSymlink) {
        // MOUNT follows them, on the server; where version 3 may be asked as well it is.
        handle = Error{Errc::kSystem, mount.settings().version.any ? ENOENT : ENOTDIR,
                       "a symbolic link is on the way"};
      } else {
        handle = found->handle;
      }
    }
    if (!handle.ok()) {
      *detail = path + ": " + handle.error().message();
      co_return handle.error();
    }
    mount.set_root({*handle, path, std::nullopt});
    co_return Result<void>();
  }

  ReferralMet* met_;
};

class GivenRoot final : public RootFinder {
 public:
  explicit GivenRoot(MountRoot root) : root_(std::move(root)) {}
  Task<Result<void>> find_root(AsyncMount& mount, CancelToken&, std::string*) override {
    mount.set_root(root_);
    co_return Result<void>();
  }

 private:
  MountRoot root_;
};

}  // namespace

Task<Result<std::unique_ptr<AsyncMount>>> AsyncMount::connect(EventLoop& loop, Fabrics fabrics,
                                                              MountSettings settings,
                                                              std::string* detail,
                                                              ReferralMet* met) {
  MntRoot finder(met);
  co_return co_await open(loop, std::move(fabrics), std::move(settings), finder, detail);
}

Task<Result<std::unique_ptr<AsyncMount>>> AsyncMount::attach(EventLoop& loop, Fabrics fabrics,
                                                             MountSettings settings, MountRoot root,
                                                             std::string* detail) {
  GivenRoot finder(std::move(root));
  co_return co_await open(loop, std::move(fabrics), std::move(settings), finder, detail);
}

void AsyncMount::set_observer(MountObserver observer) {
  rpc_->set_observer({std::move(observer.connected), std::move(observer.disconnected),
                      std::move(observer.not_responding), std::move(observer.responding)});
}

std::vector<ConnectionInfo> AsyncMount::connections() const {
  return rpc_->connections();
}
std::size_t AsyncMount::exposed_regions() const {
  std::size_t count = 0;
  for (Fabric* fabric : {fabrics_.verbs, fabrics_.iwarp})
    if (fabric != nullptr) count += fabric->exposed_regions(loop_);
  return count;
}

TransferStats AsyncMount::totals() const {
  return rpc_->totals();
}
std::size_t AsyncMount::calls_outstanding() const {
  return rpc_->outstanding();
}
std::uint64_t AsyncMount::connections_made() const {
  return rpc_->connections_made();
}

Task<Result<void>> AsyncMount::join_address(SocketAddress address, std::string* detail) {
  MountSettings there = settings_;
  there.addresses = {address};
  if (address.port() != 0) there.rdma_port = there.tcp_port = address.port();
  std::vector<TransportCandidate> ways = transport_order(fabrics_, there).candidates;
  std::erase_if(ways, [this](const auto& way) { return way.kind != rpc_->kind(); });
  if (ways.empty()) {
    *detail = fmt::format("no {} to it", transport_name(rpc_->kind()));
    co_return Error{Errc::kUnsupported, EPROTONOSUPPORT, "no usable transport"};
  }
  if (trunk_ == nullptr) {
    const bool main = settings_.session_source == nullptr;
    trunk_ = std::make_unique<Trunk>(
        *rpc_,
        [this](const OpContext& op, RpcConnection& way) {
          return operations_->leads_here(op, way);
        },
        main ? Trunk::Log::kYes : Trunk::Log::kNo);
  }
  co_return co_await trunk_->join(std::move(ways), detail);
}

void AsyncMount::abort_all() {
  if (trunk_ != nullptr) trunk_->stop();
  operations_->abort();
  rpc_->abort_all();
}

Task<void> AsyncMount::end_session() {
  if (trunk_ != nullptr) trunk_->stop();
  CancelToken deadline;
  OpContext op;
  op.identity = settings_.identity;
  op.cancel = &deadline;
  std::unique_ptr<Alarm> alarm = rpc_->environment().make_alarm([&deadline] { deadline.cancel(); });
  alarm->set(rpc_->environment().now() + kGoodbye);
  co_await operations_->end(op);
  // An alarm that brought us here is not destroyed underneath itself.
  if (deadline.cancelled()) co_await rpc_->yield();
}

Task<void> AsyncMount::unmount() {
  co_await end_session();
  if (!root_.mount_port) co_return;
  CancelToken deadline;
  OpContext op;
  op.identity = settings_.identity;
  op.cancel = &deadline;
  MountSettings hasty = settings_;
  hasty.mount_connect_timeout = std::chrono::seconds(1);
  std::unique_ptr<Alarm> alarm = rpc_->environment().make_alarm([&deadline] { deadline.cancel(); });
  alarm->set(rpc_->environment().now() + kGoodbye);
  {
    std::string ignored;
    nfs3::MountService service(loop_, hasty, *rpc_);
    service.set_cancel(&deadline);
    Result<void> done = co_await service.reach(*root_.mount_port, &ignored);
    if (done.ok()) done = co_await service.umnt(op, root_.path);
    static_cast<void>(done);
    // The alarm may be what brought us here, and the service's connection, too: neither is
    // destroyed underneath itself.
    co_await rpc_->yield();
  }
}

}  // namespace nfsrdma
