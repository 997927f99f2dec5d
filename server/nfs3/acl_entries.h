// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs as the entries of NFSACL, and back. Pure functions.
//
// The protocol is Solaris' and differs a little: an ACL without named entries has a mask there,
// which is the owning group's rights, and the entries of the owner and the owning group say who
// these are. Both are added to what is sent; in what is set the ids are not looked at, and such a
// mask is dropped, as Linux's server and client do.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/files/posix_acl.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma::nfs3 {

/// In the order owner, users, owning group, groups, mask, others. `flag`: kept in each type,
/// NFS_ACL_DEFAULT or 0. The owner's and the owning group's ids are those of `of`.
std::vector<xdr::aclent> to_aclents(const PosixAcl& acl, const struct stat& of, std::uint32_t flag);

/// How a client's entries read.
enum class AclVerdict : std::uint8_t {
  kGood,
  kGarbage,  // no such type, or rights that there are not
  kInvalid,  // an entry that has to be there is not, or is there twice
};

/// In any order. Only of kGood *acl means anything.
AclVerdict from_aclents(const xdr::EncodedArray<xdr::aclent>& entries, PosixAcl* acl);

}  // namespace nfsrdma::nfs3
