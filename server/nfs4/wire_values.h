// SPDX-License-Identifier: Apache-2.0
// Between the types of the wire and those of state/, which knows no wire.
#pragma once

#include <string>

#include "rpcrdma/base/bytes.h"
#include "server/nfs4/state/stateid_rules.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::nfs4 {

inline Stateid from_wire(const xdr::stateid4& stateid) {
  return {stateid.seqid, stateid.other};
}
inline xdr::stateid4 to_wire(const Stateid& stateid) {
  return {stateid.seqid, stateid.other};
}

/// Owners, names and the like, which are bytes on the wire and keys of tables here.
inline std::string text_of(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace nfsrdma::nfs4
