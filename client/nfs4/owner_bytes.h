// SPDX-License-Identifier: Apache-2.0
// Owners, stateids and rights of NFSv4 as this client sends them.
#pragma once

#include <array>
#include <optional>

#include "client/nfs4/session.h"
#include "client/nfs_types.h"
#include "rpcrdma/base/bytes.h"

namespace nfsrdma::nfs4 {

/// A lock-owner or open-owner on the wire, for as long as this lives.
class OwnerBytes {
 public:
  explicit OwnerBytes(std::uint64_t owner) { store_be64(bytes_.data(), owner); }
  xdr::state_owner4 of(const Session& session) const { return {session.client_id(), bytes_}; }

 private:
  std::array<std::byte, 8> bytes_;
};

/// Whichever is the newest (RFC 8881, 8.2.2): answers that come in another order than the server
/// gave them do no harm then. Minor version 0 has no such thing, and the very newest is wanted.
inline xdr::stateid4 newest(const Session& session, const std::optional<xdr::stateid4>& stateid) {
  xdr::stateid4 out = stateid.value_or(xdr::stateid4{});
  if (session.minor() > 0) out.seqid = 0;
  return out;
}

/// OPEN4_SHARE_ACCESS_ bits for `open_for`, access_bits::kRead and kModify.
inline std::uint32_t share_access(std::uint32_t open_for) {
  std::uint32_t access = 0;
  if ((open_for & access_bits::kRead) != 0) access |= xdr::OPEN4_SHARE_ACCESS_READ;
  if ((open_for & access_bits::kModify) != 0) access |= xdr::OPEN4_SHARE_ACCESS_WRITE;
  return access;
}

/// OPEN4_SHARE_DENY_ bits, which have the same values.
inline std::uint32_t share_deny(const ShareDenial& deny) {
  return share_access(deny.access);
}

/// What was given up has made it newer than we know, in minor version 0: by one for each request.
inline void grow_up(xdr::nfsstat4 status, std::optional<xdr::stateid4>& stateid) {
  if (status == xdr::nfsstat4::NFS4ERR_OLD_STATEID && stateid) ++stateid->seqid;
}

}  // namespace nfsrdma::nfs4
