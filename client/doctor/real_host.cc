// SPDX-License-Identifier: Apache-2.0
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/doctor/host_view.h"
#include "client/library/loop_driver.h"
#include "client/nfs3/mount_service.h"
#include "xdr/rpcb.h"
#include "xdr/universal_address.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::chrono::milliseconds kCommandPatience{5000};
constexpr std::chrono::milliseconds kRpcbindPatience{2000};
constexpr std::size_t kMostEntries = 64 << 10;  // bytes of rpcbind's answer

using Entries = std::vector<RpcbindEntry>;

Task<Result<Entries>> dump(RpcClient& rpc, OpContext& op, std::string* detail) {
  NFSRDMA_CO_CHECK_OK(co_await rpc.connect(detail));
  Entries entries;
  {
    RpcCallLease call = rpc.prepare(xdr::kRpcbProgram, xdr::kRpcbVersion4,
                                    static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_DUMP), op);
    call->arguments(xdr::Void{});
    call->set_max_results(kMostEntries);
    NFSRDMA_CO_CHECK_OK(co_await call->run());
    xdr::rpcblist list;
    if (!xdr::decode(call->results(), list)) {
      co_return Error{Errc::kProtocol, EIO, "undecodable answer of rpcbind"};
    }
    for (const xdr::rpcb& entry : list.entries) {
      const auto address = xdr::parse_universal_address(entry.r_addr);
      entries.push_back({entry.r_prog, entry.r_vers, std::string(entry.r_netid),
                         address ? address->port : std::uint16_t{0}});
    }
  }
  co_await rpc.yield();
  co_return std::move(entries);
}

std::optional<Entries> ask_rpcbind() {
  auto address = SocketAddress::parse("127.0.0.1", xdr::kRpcbPort);
  auto driver = LoopDriver::create();
  if (!address.ok() || !driver.ok()) return std::nullopt;
  RpcClientOptions options;
  options.candidates.push_back({TransportKind::kTcp, *address, nullptr});
  options.soft = true;
  options.timeo = kRpcbindPatience;
  options.retrans = 0;
  options.connect_timeout = kRpcbindPatience;
  auto rpc = std::make_unique<RpcClient>(
      std::make_unique<LoopEnvironment>((*driver)->loop(), RdmaClientOptions{}, TcpClientOptions{}),
      std::move(options));
  OpContext op;
  op.identity = AuthSys::of_process();
  std::string detail;
  auto entries = (*driver)->run(dump(*rpc, op, &detail));
  rpc.reset();
  if (!entries.ok()) return std::nullopt;
  return std::move(*entries);
}

std::vector<HostAddress> ask_addresses() {
  std::vector<HostAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const bool v6 = one->ifa_addr->sa_family == AF_INET6;
    if (!v6 && one->ifa_addr->sa_family != AF_INET) continue;
    found.push_back({one->ifa_name, SocketAddress(one->ifa_addr, v6 ? sizeof(sockaddr_in6)
                                                                    : sizeof(sockaddr_in))});
  }
  ::freeifaddrs(list);
  return found;
}

ClockState ask_clock() {
  timex now{};
  const int state = ::adjtimex(&now);
  ClockState clock;
  clock.known = state >= 0;
  clock.synchronised = state >= 0 && state != TIME_ERROR && (now.status & STA_UNSYNC) == 0;
  clock.estimated_error = static_cast<double>(now.esterror) / 1e6;
  return clock;
}

}  // namespace

HostView real_host() {
  HostView host;
  utsname name{};
  if (::uname(&name) == 0) {
    host.kernel_release = name.release;
    host.host_name = name.nodename;
  }
  host.privileged = ::geteuid() == 0;
  host.command = [](const std::vector<std::string>& words) {
    return run_command(words, kCommandPatience);
  };
  host.rdma_host = [] { return report_rdma_host(); };
  host.clock = ask_clock;
  host.addresses = ask_addresses;
  host.rpcbind = ask_rpcbind;
  return host;
}

}  // namespace nfsrdma::doctor
