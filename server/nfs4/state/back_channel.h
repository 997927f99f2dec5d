// SPDX-License-Identifier: Apache-2.0
// BackChannel: how a client wants to be called back in a session (RFC 8881 2.10.3.1), and where its
// slots stand.
#pragma once

#include <cstdint>
#include <vector>

#include "server/nfs4/state/callback_slots.h"
#include "server/nfs4/state/slot_table.h"
#include "xdr/nfs4_types.h"
#include "xdr/rpc.h"

namespace nfsrdma::nfs4 {

/// What the RPC headers of callbacks say.
struct CallbackTarget {
  std::uint32_t program = 0;
  std::uint32_t minor_version = 0;
  std::uint32_t ident = 0;  // SETCLIENTID's callback_ident; 0 from minor version 1 on
  xdr::auth_flavor flavor = xdr::auth_flavor::AUTH_NONE;
  std::vector<std::byte> credential;  // body of the opaque_auth
};

/// A request of the client's whose reply may still be under way when it is called back about what
/// that reply gave it (RFC 8881 2.10.6.3).
struct ReferringCall {
  xdr::sessionid4 session{};
  SlotId slot = 0;
  SequenceId sequence = 0;
};

struct BackChannel {
  CallbackTarget target;
  CallbackSlots slots;
  /// A callback did not get through. Nothing is given out that would have to be recalled over it,
  /// until the client binds a connection to it anew.
  bool failed = false;
};

}  // namespace nfsrdma::nfs4
