// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs as the entries of NFSACL, and back, for both ends. Pure functions.
//
// The protocol is Solaris' and differs a little: an ACL without named entries has a mask there,
// which is the owning group's rights, and the entries of the owner and the owning group say who
// these are. Both are added to what is sent; in what comes those two ids are not looked at, and
// such a mask is dropped, as Linux's server and client do.
#pragma once

#include <cstdint>
#include <vector>

#include "rpcrdma/base/posix_acl.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma {

/// Who an object belongs to, for the entries that are about them.
struct AclOwners {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// In the order owner, users, owning group, groups, mask, others. `flag`: kept in each type,
/// NFS_ACL_DEFAULT or 0.
std::vector<xdr::aclent> to_aclents(const PosixAcl& acl, AclOwners owners, std::uint32_t flag);

/// How a peer's entries read.
enum class AclVerdict : std::uint8_t {
  kGood,
  kGarbage,  // no such type, or rights that there are not
  kInvalid,  // an entry that has to be there is not, or is there twice; or is about nobody
};

/// In any order; what is said of the same kind is sorted by id. Only of kGood *acl means anything.
AclVerdict from_aclents(const xdr::EncodedArray<xdr::aclent>& entries, PosixAcl* acl);

}  // namespace nfsrdma
