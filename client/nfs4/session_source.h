// SPDX-License-Identifier: Apache-2.0
// SessionSource: who makes further sessions of a client id (client id trunking, RFC 8881, section
// 2.10.5.2). A mount has one client id, which its main thread keeps; each of its other threads has
// a session of its own with it. So what the main thread holds (opens, locks) is theirs to use, and
// to the server they are one client.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/nfs4/known_server.h"
#include "client/op_context.h"
#include "rpcrdma/base/error.h"
#include "rpcrdma/base/task.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::nfs4 {

/// What CREATE_SESSION gave.
struct MadeSession {
  xdr::sessionid4 id{};
  std::uint64_t client_id = 0;
  std::uint32_t minor = 0;
  std::uint32_t requests = 0;        // at once
  std::uint32_t request_bytes = 0;   // of a COMPOUND
  std::uint32_t response_bytes = 0;  // of its results
  bool back_channel = false;
  std::uint32_t callbacks = 0;                // at once
  std::uint32_t operations = 0;               // of a COMPOUND
  std::shared_ptr<const KnownServer> server;  // null: minor version 0
};

class SessionSource {
 public:
  virtual ~SessionSource() = default;
  /// `before`: the one that this replaces, by which nothing is under way; none: zeros. If it is not
  /// gone it is destroyed. An error comes with *detail for people. Over within op.cancel->cancel().
  virtual Task<Result<MadeSession>> make_session(const OpContext& op, xdr::sessionid4 before,
                                                 std::string* detail) = 0;
  /// A server that holds state of the client id has given some of it to another one, and does not
  /// say which (NFS4ERR_LEASE_MOVED, RFC 7530 9.14; SEQ4_STATUS_LEASE_MOVED, RFC 8881 18.46.3).
  /// Perhaps not for the first time.
  virtual void lease_moved() = 0;
};

}  // namespace nfsrdma::nfs4
