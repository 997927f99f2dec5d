// SPDX-License-Identifier: Apache-2.0
#include "client/nfs3/mount_service.h"

#include <algorithm>

#include "client/nfs3/rpcbind.h"
#include "xdr/mount3.h"
#include "xdr/rpc_auth.h"

namespace nfsrdma::nfs3 {
namespace {

constexpr std::size_t kMaxExportList = 256 << 10;

Error mount_error(xdr::mountstat3 status) {
  switch (status) {
    case xdr::mountstat3::MNT3ERR_PERM:
    case xdr::mountstat3::MNT3ERR_ACCES:
      return {Errc::kRefused, EACCES, "MOUNT: not exported to this host"};
    case xdr::mountstat3::MNT3ERR_NOENT:
      return {Errc::kNotFound, ENOENT, "MOUNT: no such directory on the server"};
    case xdr::mountstat3::MNT3ERR_NOTDIR:
      return {Errc::kSystem, ENOTDIR, "MOUNT"};
    case xdr::mountstat3::MNT3ERR_INVAL:
      return {Errc::kSystem, EINVAL, "MOUNT"};
    case xdr::mountstat3::MNT3ERR_NAMETOOLONG:
      return {Errc::kSystem, ENAMETOOLONG, "MOUNT"};
    case xdr::mountstat3::MNT3ERR_NOTSUPP:
      return {Errc::kUnsupported, EOPNOTSUPP, "MOUNT"};
    default:
      return {Errc::kSystem, EIO, "MOUNT"};
  }
}

/// May the handle be used with what this client sends? A server that lets AUTH_SYS at the root of
/// the export, but at nothing below it (Linux does), would seem to be mounted. AUTH_NONE: whatever
/// is sent is not looked at. An empty list says nothing (as Linux's client has it).
bool takes_auth_sys(std::span<const std::uint32_t> flavors) {
  return flavors.empty() || std::any_of(flavors.begin(), flavors.end(), [](std::uint32_t flavor) {
           return flavor == static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_SYS) ||
                  flavor == static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_NONE);
         });
}

void note(std::string* detail, const std::string& text) {
  if (!detail->empty()) *detail += "; ";
  *detail += text;
}

}  // namespace

std::unique_ptr<RpcClient> make_tcp_rpc(EventLoop& loop, const MountSettings& settings,
                                        std::uint16_t port) {
  RpcClientOptions options;
  for (SocketAddress address : settings.addresses) {
    address.set_port(port);
    options.candidates.push_back({TransportKind::kTcp, address, nullptr});
  }
  // A MOUNT service that does not answer shall not hold up a mount for ever.
  options.soft = true;
  options.timeo = std::chrono::seconds(10);
  options.retrans = 1;
  options.connect_timeout = std::min(settings.connect_timeout, settings.mount_connect_timeout);
  TcpClientOptions tcp;
  tcp.reserved_port = settings.reserved_port;
  return std::make_unique<RpcClient>(
      std::make_unique<LoopEnvironment>(loop, RdmaClientOptions{}, tcp), std::move(options));
}

Task<Result<std::uint16_t>> rpcbind_port(EventLoop& loop, const MountSettings& settings,
                                         std::uint32_t program, std::uint32_t version,
                                         CancelToken* cancel, std::string* detail) {
  std::unique_ptr<RpcClient> rpc = make_tcp_rpc(loop, settings, settings.rpcbind_port);
  Result<std::optional<SocketAddress>> found =
      co_await ask_rpcbind(*rpc, program, version, cancel, detail);
  co_await rpc->yield();
  if (!found.ok()) co_return found.error();
  co_return *found ? (*found)->port() : std::uint16_t{0};
}

Task<bool> MountService::answers(RpcClient& rpc, std::string* detail) {
  OpContext op;
  op.cancel = cancel_;
  RpcCallLease call = rpc.prepare(xdr::kMountProgram, xdr::kMountV3,
                                  static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_NULL), op);
  Result<void> outcome = co_await call->run();
  if (!outcome.ok()) *detail = outcome.error().message();
  co_return outcome.ok();
}

Task<bool> MountService::try_tcp(std::uint16_t port, std::string* detail) {
  std::unique_ptr<RpcClient> rpc = make_tcp_rpc(loop_, settings_, port);
  std::string why;
  Result<void> connected = co_await rpc->connect(&why, cancel_);
  if (connected.ok()) {
    bool yes = co_await answers(*rpc, &why);
    if (yes) {
      own_ = std::move(rpc);
      rpc_ = own_.get();
      port_ = port;
      co_return true;
    }
  }
  co_await rpc->yield();
  note(detail, "TCP port " + std::to_string(port) + ": " + why);
  co_return false;
}

Task<Result<void>> MountService::reach(std::uint16_t port, std::string* detail) {
  if (port == 0) {
    rpc_ = &nfs_;
    co_return Result<void>();
  }
  bool found = co_await try_tcp(port, detail);
  if (found) co_return Result<void>();
  co_return Error{Errc::kUnsupported, ECONNREFUSED, "no MOUNT service"};
}

Task<Result<void>> MountService::find(std::string* detail) {
  constexpr Error kNone{Errc::kUnsupported, ECONNREFUSED, "no MOUNT service"};
  detail->clear();
  if (settings_.mount_port != 0) {
    bool found = co_await try_tcp(settings_.mount_port, detail);
    if (found) co_return Result<void>();
    co_return kNone;
  }
  std::string why;
  bool found = false;
  if (!settings_.mount_by_tcp) {
    found = co_await answers(nfs_, &why);
    if (found) {
      rpc_ = &nfs_;
      co_return Result<void>();
    }
    note(detail, "NFS connection: " + why);
  }
  found = co_await try_tcp(settings_.tcp_port, detail);
  if (found) co_return Result<void>();
  if (cancel_ != nullptr && cancel_->cancelled()) co_return kNone;
  Result<std::uint16_t> port =
      co_await rpcbind_port(loop_, settings_, xdr::kMountProgram, xdr::kMountV3, cancel_, &why);
  if (!port.ok() || *port == 0) {
    note(detail, "rpcbind: " + (port.ok() ? std::string("MOUNT is not registered") : why));
    co_return kNone;
  }
  found = co_await try_tcp(*port, detail);
  if (found) co_return Result<void>();
  co_return kNone;
}

Task<Result<FileHandle>> MountService::mnt(const OpContext& op, std::string_view path) {
  RpcCallLease call =
      rpc_->prepare(xdr::kMountProgram, xdr::kMountV3,
                    static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_MNT), op);
  call->arguments(xdr::dirpath{path});
  NFSRDMA_CO_CHECK_OK(co_await call->run());
  xdr::mountres3 result;
  if (!xdr::decode(call->results(), result)) {
    co_return Error{Errc::kProtocol, EIO, "undecodable MOUNT result"};
  }
  if (result.fhs_status != xdr::mountstat3::MNT3_OK) co_return mount_error(result.fhs_status);
  FileHandle handle(result.mountinfo.fhandle);
  if (handle.empty()) co_return Error{Errc::kProtocol, EIO, "MOUNT: empty file handle"};
  if (!takes_auth_sys(result.mountinfo.auth_flavors.view())) {
    co_return Error{
        Errc::kRefused, EACCES,
        "MOUNT: exported without sec=sys (Kerberos?), the only flavor that this client has"};
  }
  co_return handle;
}

Task<Result<void>> MountService::umnt(const OpContext& op, std::string_view path) {
  RpcCallLease call =
      rpc_->prepare(xdr::kMountProgram, xdr::kMountV3,
                    static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_UMNT), op);
  call->arguments(xdr::dirpath{path});
  co_return co_await call->run();
}

Task<Result<std::vector<std::string>>> MountService::exports(const OpContext& op) {
  RpcCallLease call =
      rpc_->prepare(xdr::kMountProgram, xdr::kMountV3,
                    static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_EXPORT), op);
  call->set_max_results(kMaxExportList);
  NFSRDMA_CO_CHECK_OK(co_await call->run());
  xdr::exports list;
  if (!xdr::decode(call->results(), list)) {
    co_return Error{Errc::kProtocol, EIO, "undecodable export list"};
  }
  std::vector<std::string> paths;
  for (const xdr::exportnode& node : list.nodes)
    paths.emplace_back(node.ex_dir);
  co_return paths;
}

}  // namespace nfsrdma::nfs3
