// SPDX-License-Identifier: Apache-2.0
// Registration with rpcbind (RFC 1833, version 4 SET and UNSET) over our own codec, since
// libtirpc's rpcb_set needs the netid in /etc/netconfig, where Debian lacks rdma and rdma6
// (decisions.md 14).
//
// Entries of another server are never touched: SET fails for a (program, version, netid) that is
// taken, and on exit only what SET accepted is unset, and of that what still has our address: the
// kernel's lock manager takes entries without asking, and UNSET by root takes away whose it may be.
// The local socket comes first, since rpcbind lets only local root set entries; then 127.0.0.1:111.
//
// Blocking, with short time-outs: for main's thread, not for loops.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rpcrdma/base/result.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

struct RpcbEntry {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::string netid;    // "rdma", "tcp", "udp", or one of them with a 6
  std::string address;  // universal address

  bool operator==(const RpcbEntry&) const = default;
};

/// What to register for a listener: `netid` is "rdma", "tcp" or "udp", and gets a 6 for IPv6. A
/// wildcard IPv6 listener takes IPv4 too and so gives both.
std::vector<RpcbEntry> rpcb_entries(std::uint32_t program, std::uint32_t version,
                                    const std::string& netid, const SocketAddress& listener);

/// "program 100003 version 3 (tcp, tcp6), 100005 version 3 (udp)": in their order.
std::string rpcb_entries_text(const std::vector<RpcbEntry>& entries);

class RpcbindRegistrar {
 public:
  struct Where {
    std::string socket_path = "/run/rpcbind.sock";
    std::uint16_t port = 111;  // on 127.0.0.1; 0: do not try
    std::chrono::milliseconds patience{1000};
  };
  RpcbindRegistrar() = default;
  explicit RpcbindRegistrar(Where where) : where_(std::move(where)) {}
  /// As unregister_all().
  ~RpcbindRegistrar();
  RpcbindRegistrar(const RpcbindRegistrar&) = delete;
  RpcbindRegistrar& operator=(const RpcbindRegistrar&) = delete;

  struct Outcome {
    bool there = false;      // somebody took the connection
    bool reachable = false;  // rpcbind answered
    std::vector<RpcbEntry> registered;
    std::vector<RpcbEntry> refused;   // taken by another server, or not allowed
    std::vector<RpcbEntry> left_out;  // it did not answer any more
  };
  Outcome register_all(const std::vector<RpcbEntry>& entries);
  /// Unsets what was set and is still ours. Nothing, where rpcbind does not tell what it has:
  /// SET finds our own entries of before in order.
  void unregister_all();

 private:
  Result<bool> ask(std::uint32_t procedure, const RpcbEntry& entry);
  Result<std::vector<RpcbEntry>> list();
  Result<bool> call(std::uint32_t procedure, const RpcbEntry* entry, std::vector<std::byte>* reply,
                    std::size_t* results);
  Result<void> connect();
  Result<void> exchange(std::vector<std::byte>& message, std::vector<std::byte>* reply);

  Where where_;
  UniqueFd socket_;
  std::uint32_t xid_ = 0;
  std::vector<RpcbEntry> registered_;
};

}  // namespace nfsrdma
