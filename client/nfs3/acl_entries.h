// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs as the entries of NFSACL, and back, for the client. Pure functions.
//
// The protocol is Solaris': an ACL without named entries has a mask there, which is the owning
// group's rights, and the entries of the owner and the owning group say who these are. As Linux's
// client does, both are added to what is sent, and such a mask is left out of what is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rpcrdma/base/posix_acl.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma::nfs3 {

/// Who an object belongs to, for the entries that are about them.
struct AclOwners {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// In the order owner, users, owning group, groups, mask, others. `flag`: kept in each type,
/// NFS_ACL_DEFAULT or 0.
std::vector<xdr::aclent> to_aclents(const PosixAcl& acl, AclOwners owners, std::uint32_t flag);

/// In any order; what is said of the same kind is sorted by id. None: a server's nonsense.
std::optional<PosixAcl> from_aclents(const xdr::EncodedArray<xdr::aclent>& entries);

}  // namespace nfsrdma::nfs3
