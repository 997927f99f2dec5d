// SPDX-License-Identifier: Apache-2.0
// The attribute acl on the wire: ACEs with the names of users and groups in them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "server/nfs4/acl_mapping.h"
#include "server/nfs4/owner_names.h"
#include "xdr/nfs4_attribute_types.h"

namespace nfsrdma::nfs4 {

/// NFS4_OK, NFS4ERR_BADOWNER (no such user or group, or a special identifier that POSIX does not
/// have), NFS4ERR_INVAL (no name at all). NFS4ERR_DELAY only when !may_block.
xdr::nfsstat4 decode_aces(const xdr::fattr4_acl& from, OwnerNames& names, bool may_block,
                          std::vector<Ace>* aces);

/// kKnown, or kWouldBlock when !may_block. *out refers to `memory`.
OwnerNames::Answer encode_aces(std::span<const Ace> aces, OwnerNames& names, bool may_block,
                               std::vector<std::byte>& memory, xdr::fattr4_acl* out);

}  // namespace nfsrdma::nfs4
