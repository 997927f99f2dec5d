// SPDX-License-Identifier: Apache-2.0
// What the retry of a request is known by, and what its kept reply is made of (RFC 8881 2.10.6). It
// may come by another transport than the request did: neither depends on what travelled in chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "server/procedure.h"
#include "xdr/decoder.h"

namespace nfsrdma::nfs4 {

/// Of what is asked and by whom: equal for a retry, hardly ever for anything else. `args` is at the
/// beginning of COMPOUND4args.
std::uint64_t fingerprint_of(const Request& request, const xdr::Decoder& args);

/// The items of a kept reply (COMPOUND4res in one piece) that may go into Write chunks, in their
/// order: the data of READ and the texts of READLINK (RFC 8267 6.1).
std::vector<ByteSpan> reducible_items(ByteSpan kept);

}  // namespace nfsrdma::nfs4
