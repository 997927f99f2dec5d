// SPDX-License-Identifier: Apache-2.0
// CallbackPlace: where the server of minor version 0 calls this client, as SETCLIENTID names it
// (RFC 7530, 10.2.1 and 16.33): over TCP, on a connection that the server makes, whatever the
// client's own connections are. RFC 7530 knows no callbacks over RDMA that servers would make.
//
// Program and ident are what whoever calls has to know (callbacks.h); they stay the same.
//
// On the session's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/called_at.h"
#include "client/client_environment.h"
#include "client/rpc_client.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

class CallbackPlace {
 public:
  /// `at`: none: the server is to be told of no place. `rpc` outlives this.
  CallbackPlace(RpcClient& rpc, std::optional<CalledAt> at, CallAnswer answer);

  /// Listens, if it is to: at another address than before where the mount's connection begins at
  /// another one. Where that cannot be done, the log says so, once. True: the place is another one.
  bool listen();
  /// From now on nobody can call.
  void close();
  /// The server is told of a place.
  bool is_open() const { return endpoint_ != nullptr; }
  /// What it is told; a view of this.
  xdr::cb_client4 location() const;
  std::uint32_t program() const { return program_; }
  std::uint32_t ident() const { return ident_; }
  /// For people: "192.0.2.1:40123"; "" while it is not open.
  std::string text() const;

 private:
  /// Without a family: there is none that the server could use.
  SocketAddress wanted() const;

  RpcClient& rpc_;
  const std::optional<CalledAt> at_;
  const CallAnswer answer_;
  std::uint32_t program_ = 0;
  std::uint32_t ident_ = 0;
  SocketAddress told_{};   // with the port
  std::string universal_;  // the same
  std::unique_ptr<CallEndpoint> endpoint_;
  bool answering_ = false;
  bool complained_ = false;
};

}  // namespace nfsrdma::nfs4
