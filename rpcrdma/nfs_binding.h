// SPDX-License-Identifier: Apache-2.0
// Which result of an NFS procedure is DDP-eligible and where it stands in the reply (RFC 8267,
// sections 5 and 6). Over TCP nothing tells a client where the data of a READ begins before it has
// looked into the reply; this does.
#pragma once

#include <cstddef>
#include <optional>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

struct ResultPlace {
  std::size_t position = 0;  // of the first data byte in the RPC reply
  std::size_t length = 0;    // without pad
};

/// `call_head` is the RPC call, `reply_prefix` the beginning of its reply. nullopt when there is no
/// such result (another procedure, an error) or the prefix is too short to tell; kResultPrefix
/// bytes are always enough for NFSv3, and for a COMPOUND of NFSv4 unless its owners' names are
/// long.
std::optional<ResultPlace> find_result(ByteSpan call_head, ByteSpan reply_prefix);

/// RPC reply header with the longest verifier (24 + 400); NFSv3: status, attributes (88), count,
/// eof and length; NFSv4: head (12), SEQUENCE (44), PUTFH (8), GETATTR (24 and values), READ (16).
inline constexpr std::size_t kResultPrefix = 1024;

}  // namespace nfsrdma
