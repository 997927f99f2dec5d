// SPDX-License-Identifier: Apache-2.0
#include "client/nfs3/rpcbind.h"

#include <netinet/in.h>

#include "xdr/rpcb.h"
#include "xdr/universal_address.h"

namespace nfsrdma::nfs3 {
namespace {

constexpr Error kUndecodable{Errc::kProtocol, EIO, "undecodable rpcbind reply"};

/// By version 2, which every rpcbind has, and which knows of IPv4 alone.
Task<Result<std::uint16_t>> get_port(RpcClient& rpc, const OpContext& op, std::uint32_t program,
                                     std::uint32_t version) {
  RpcCallLease call = rpc.prepare(xdr::kRpcbProgram, xdr::kPmapVersion,
                                  static_cast<std::uint32_t>(xdr::pmapproc::PMAPPROC_GETPORT), op);
  call->arguments(xdr::mapping{program, version, IPPROTO_TCP, 0});
  NFSRDMA_CO_CHECK_OK(co_await call->run());
  xdr::PmapPort port;
  const bool good = xdr::decode(call->results(), port) && port.port <= UINT16_MAX;
  if (!good) co_return kUndecodable;
  co_return static_cast<std::uint16_t>(port.port);
}

/// By version 4. The address that it gives has the port; where the server is, is known.
Task<Result<std::uint16_t>> get_addr(RpcClient& rpc, const OpContext& op, std::uint32_t program,
                                     std::uint32_t version) {
  RpcCallLease call = rpc.prepare(xdr::kRpcbProgram, xdr::kRpcbVersion4,
                                  static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_GETADDR), op);
  call->arguments(xdr::rpcb{program, version, "tcp6", "", ""});
  NFSRDMA_CO_CHECK_OK(co_await call->run());
  xdr::RpcbAddress found;
  if (!xdr::decode(call->results(), found)) co_return kUndecodable;
  if (found.uaddr.empty()) co_return std::uint16_t{0};
  const std::optional<xdr::UniversalAddress> address = xdr::parse_universal_address(found.uaddr);
  if (!address) co_return kUndecodable;
  co_return address->port;
}

}  // namespace

Task<Result<std::optional<SocketAddress>>> ask_rpcbind(RpcClient& rpcbind, std::uint32_t program,
                                                       std::uint32_t version, CancelToken* cancel,
                                                       std::string* detail) {
  Result<void> connected = co_await rpcbind.connect(detail, cancel);
  if (!connected.ok()) co_return connected.error();
  SocketAddress address = rpcbind.connections().front().peer;
  OpContext op;
  op.cancel = cancel;
  Result<std::uint16_t> port = Error{Errc::kUnsupported, EPROTONOSUPPORT, "rpcbind"};
  if (address.is_v6()) port = co_await get_addr(rpcbind, op, program, version);
  const bool of_version_2 = !port.ok() && port.error().code == Errc::kUnsupported;
  if (of_version_2) port = co_await get_port(rpcbind, op, program, version);
  if (!port.ok()) {
    *detail = port.error().message();
    co_return port.error();
  }
  if (*port == 0) co_return std::optional<SocketAddress>();
  address.set_port(*port);
  co_return std::optional<SocketAddress>(address);
}

}  // namespace nfsrdma::nfs3
