// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/nfsacl_entries.h"

#include <algorithm>

namespace nfsrdma {

namespace {

constexpr std::uint32_t kRights = kAclRead | kAclWrite | kAclExecute;
constexpr std::uint32_t kNobody = ~0u;

void sort_by_id(std::vector<PosixAcl::Named>& named) {
  std::ranges::stable_sort(named, {}, &PosixAcl::Named::id);
}

}  // namespace

std::vector<xdr::aclent> to_aclents(const PosixAcl& acl, AclOwners owners, std::uint32_t flag) {
  std::vector<xdr::aclent> out;
  out.reserve(4 + acl.users.size() + acl.groups.size());
  auto add = [&](std::uint32_t type, std::uint32_t id, std::uint32_t rights) {
    out.push_back({type | flag, id, rights});
  };
  add(xdr::NFS_ACL_USER_OBJ, owners.uid, acl.owner);
  for (const PosixAcl::Named& user : acl.users)
    add(xdr::NFS_ACL_USER, user.id, user.rights);
  add(xdr::NFS_ACL_GROUP_OBJ, owners.gid, acl.group);
  for (const PosixAcl::Named& group : acl.groups)
    add(xdr::NFS_ACL_GROUP, group.id, group.rights);
  add(xdr::NFS_ACL_CLASS_OBJ, 0, acl.mask.value_or(acl.group));
  add(xdr::NFS_ACL_OTHER_OBJ, 0, acl.other);
  return out;
}

AclVerdict from_aclents(const xdr::EncodedArray<xdr::aclent>& entries, PosixAcl* acl) {
  *acl = {};
  std::uint32_t seen = 0;
  bool twice = false, nobody = false;
  for (const xdr::aclent& entry : entries) {
    const std::uint32_t type = entry.type & ~xdr::NFS_ACL_DEFAULT;
    const auto rights = static_cast<std::uint8_t>(entry.perm & kRights);
    // Solaris has more bits in masks at times.
    if (entry.perm != rights && type != xdr::NFS_ACL_CLASS_OBJ) return AclVerdict::kGarbage;
    switch (type) {
      case xdr::NFS_ACL_USER:
        nobody |= entry.id == kNobody;
        acl->users.push_back({entry.id, rights});
        continue;
      case xdr::NFS_ACL_GROUP:
        nobody |= entry.id == kNobody;
        acl->groups.push_back({entry.id, rights});
        continue;
      case xdr::NFS_ACL_USER_OBJ:
        acl->owner = rights;
        break;
      case xdr::NFS_ACL_GROUP_OBJ:
        acl->group = rights;
        break;
      case xdr::NFS_ACL_CLASS_OBJ:
        acl->mask = rights;
        break;
      case xdr::NFS_ACL_OTHER_OBJ:
        acl->other = rights;
        break;
      default:
        return AclVerdict::kGarbage;
    }
    twice |= (seen & type) != 0;
    seen |= type;
  }
  constexpr std::uint32_t kAlways =
      xdr::NFS_ACL_USER_OBJ | xdr::NFS_ACL_GROUP_OBJ | xdr::NFS_ACL_OTHER_OBJ;
  const bool named = !acl->users.empty() || !acl->groups.empty();
  if (twice || nobody || (seen & kAlways) != kAlways || (named && !acl->mask) ||
      names_anybody_twice(*acl)) {
    return AclVerdict::kInvalid;
  }
  if (!named && acl->mask == acl->group) acl->mask.reset();
  sort_by_id(acl->users);
  sort_by_id(acl->groups);
  return AclVerdict::kGood;
}

}  // namespace nfsrdma
