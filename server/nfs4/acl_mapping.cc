// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/acl_mapping.h"

#include <algorithm>

namespace nfsrdma::nfs4 {

namespace {

using Who = Ace::Who;
using xdr::nfsstat4;
using enum xdr::nfsstat4;

constexpr std::uint32_t kReadBits = xdr::ACE4_READ_DATA;
constexpr std::uint32_t kWriteBits = xdr::ACE4_WRITE_DATA | xdr::ACE4_APPEND_DATA;
constexpr std::uint32_t kExecuteBits = xdr::ACE4_EXECUTE;
// What POSIX gives everybody, and the owner, whatever the ACL.
constexpr std::uint32_t kAnyoneBits =
    xdr::ACE4_READ_ATTRIBUTES | xdr::ACE4_READ_ACL | xdr::ACE4_SYNCHRONIZE;
constexpr std::uint32_t kOwnerBits = xdr::ACE4_WRITE_ATTRIBUTES | xdr::ACE4_WRITE_ACL;

constexpr std::uint32_t kInheritFlags =
    xdr::ACE4_FILE_INHERIT_ACE | xdr::ACE4_DIRECTORY_INHERIT_ACE;

std::uint32_t write_bits(bool is_directory) {
  return is_directory ? kWriteBits | xdr::ACE4_DELETE_CHILD : kWriteBits;
}

std::uint32_t bits_of(unsigned rights, bool is_directory) {
  std::uint32_t bits = 0;
  if ((rights & kAclRead) != 0) bits |= kReadBits;
  if ((rights & kAclWrite) != 0) bits |= write_bits(is_directory);
  if ((rights & kAclExecute) != 0) bits |= kExecuteBits;
  return bits;
}

/// The rights of which all bits are there.
std::uint8_t rights_of(std::uint32_t bits, bool is_directory) {
  unsigned rights = 0;
  for (unsigned right : {kAclRead, kAclWrite, kAclExecute}) {
    const std::uint32_t needed = bits_of(right, is_directory);
    if ((bits & needed) == needed) rights |= right;
  }
  return static_cast<std::uint8_t>(rights);
}

// --- POSIX to NFSv4
// ------------------------------------------------------------------------------

/// One of the two ACLs as ACEs.
class AceWriter {
 public:
  AceWriter(std::vector<Ace>& out, bool is_directory, std::uint32_t flags)
      : out_(out), is_directory_(is_directory), flags_(flags) {}

  void write(const PosixAcl& acl) {
    const unsigned mask = acl.mask.value_or(7);
    const unsigned group = acl.group & mask;
    unsigned users = 0, groups = group;
    for (const PosixAcl::Named& user : acl.users)
      users |= user.rights & mask;
    for (const PosixAcl::Named& named : acl.groups)
      groups |= named.rights & mask;

    deny(Who::kOwner, 0, ~unsigned{acl.owner} & (users | groups | acl.other));
    allow(Who::kOwner, 0, acl.owner, kOwnerBits);
    for (const PosixAcl::Named& user : acl.users) {
      const unsigned rights = user.rights & mask;
      deny(Who::kUser, user.id, ~rights & (groups | acl.other));
      allow(Who::kUser, user.id, rights);
    }
    // Somebody may be in several groups: what any of them gives comes before what any denies.
    allow(Who::kOwningGroup, 0, group);
    for (const PosixAcl::Named& named : acl.groups)
      allow(Who::kGroup, named.id, named.rights & mask);
    deny(Who::kOwningGroup, 0, ~group & acl.other);
    for (const PosixAcl::Named& named : acl.groups)
      deny(Who::kGroup, named.id, ~(named.rights & mask) & acl.other);
    allow(Who::kEveryone, 0, acl.other);
  }

 private:
  void allow(Who who, std::uint32_t id, unsigned rights, std::uint32_t more_bits = 0) {
    const std::uint32_t bits = kAnyoneBits | more_bits | bits_of(rights, is_directory_);
    out_.push_back({xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE, flags_, bits, who, id});
  }
  void deny(Who who, std::uint32_t id, unsigned rights) {
    const std::uint32_t bits = bits_of(rights, is_directory_);
    if (bits != 0) out_.push_back({xdr::ACE4_ACCESS_DENIED_ACE_TYPE, flags_, bits, who, id});
  }

  std::vector<Ace>& out_;
  const bool is_directory_;
  const std::uint32_t flags_;
};

// --- NFSv4 to POSIX
// ------------------------------------------------------------------------------

/// What ACEs have said so far of a class of users. The first word on a bit counts.
struct Verdict {
  std::uint32_t allowed = 0;
  std::uint32_t denied = 0;

  void allow(std::uint32_t bits) { allowed |= bits & ~denied; }
  void deny(std::uint32_t bits) { denied |= bits & ~allowed; }
};

/// Takes the ACEs of one ACL in their order and makes the POSIX ACL of them.
class Collector {
 public:
  void take(const Ace& ace) {
    any_ = true;
    if (ace.type == xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE) {
      allow(ace);
    } else {
      deny(ace);
    }
  }
  bool empty() const { return !any_; }

  /// Of classes that no ACE spoke of. Whoever is named there and not here must not get more by
  /// that.
  void fill_in(const Collector& from) {
    if (spoke_of_everyone_) return;
    const std::uint32_t all_have =
        allowed_to_all(from.users_, users_) & allowed_to_all(from.groups_, groups_);
    if (!spoke_of_owner_) owner_.allow(from.owner_.allowed);
    if (!spoke_of_group_) group_.allow(from.group_.allowed & all_have);
    other_.allow(from.other_.allowed & all_have);
  }

  PosixAcl acl(bool is_directory) const {
    PosixAcl out;
    out.owner = rights_of(owner_.allowed, is_directory);
    out.group = rights_of(group_.allowed, is_directory);
    out.other = rights_of(other_.allowed, is_directory);
    std::uint8_t mask = out.group;
    const auto name = [&](const std::vector<Named>& from, std::vector<PosixAcl::Named>& to) {
      for (const Named& named : from) {
        to.push_back({named.id, rights_of(named.verdict.allowed, is_directory)});
        mask |= to.back().rights;
      }
      std::ranges::sort(to, {}, &PosixAcl::Named::id);
    };
    name(users_, out.users);
    name(groups_, out.groups);
    if (!out.users.empty() || !out.groups.empty()) out.mask = mask;
    return out;
  }

 private:
  struct Named {
    std::uint32_t id;
    Verdict verdict;
  };

  /// What all of these have that are not among the others.
  static std::uint32_t allowed_to_all(const std::vector<Named>& these,
                                      const std::vector<Named>& others) {
    std::uint32_t allowed = ~0u;
    for (const Named& each : these) {
      if (std::ranges::find(others, each.id, &Named::id) == others.end()) {
        allowed &= each.verdict.allowed;
      }
    }
    return allowed;
  }

  /// One that was not named so far has met the ACEs for everyone, and those that deny groups.
  Verdict& named(std::vector<Named>& list, std::uint32_t id) {
    const auto found = std::ranges::find(list, id, &Named::id);
    if (found != list.end()) return found->verdict;
    return list.emplace_back(Named{id, everyone_}).verdict;
  }

  void allow(const Ace& ace) {
    const std::uint32_t bits = ace.mask;
    switch (ace.who) {
      case Who::kOwner:
        spoke_of_owner_ = true;
        owner_.allow(bits);
        break;
      case Who::kOwningGroup:
        spoke_of_group_ = true;
        group_.allow(bits);
        break;
      case Who::kUser:
        named(users_, ace.id).allow(bits);
        break;
      case Who::kGroup:
        named(groups_, ace.id).allow(bits);
        break;
      case Who::kEveryone:
        spoke_of_everyone_ = true;
        for (Verdict* verdict : {&owner_, &group_, &other_, &everyone_})
          verdict->allow(bits);
        for (std::vector<Named>* list : {&users_, &groups_}) {
          for (Named& each : *list)
            each.verdict.allow(bits);
        }
        break;
    }
  }

  void deny(const Ace& ace) {
    std::uint32_t bits = ace.mask;
    switch (ace.who) {
      case Who::kOwner:
        spoke_of_owner_ = true;
        owner_.deny(bits);
        return;
      case Who::kUser: {
        // It may be the owner.
        Verdict& user = named(users_, ace.id);
        user.deny(bits);
        owner_.deny(user.denied);
        return;
      }
      case Who::kOwningGroup:
        spoke_of_group_ = true;
        group_.deny(bits);
        bits = group_.denied;
        break;
      case Who::kGroup: {
        Verdict& group = named(groups_, ace.id);
        group.deny(bits);
        bits = group.denied;
        group_.deny(bits);
        break;
      }
      case Who::kEveryone:
        spoke_of_everyone_ = true;
        group_.deny(bits);
        other_.deny(bits);
        break;
    }
    // Of a group: everybody but those in no group at all may be in it.
    owner_.deny(bits);
    everyone_.deny(bits);
    for (std::vector<Named>* list : {&users_, &groups_}) {
      for (Named& each : *list)
        each.verdict.deny(bits);
    }
  }

  Verdict owner_, group_, other_;
  Verdict everyone_;  // of users and groups that are not named yet
  std::vector<Named> users_, groups_;
  bool any_ = false;
  bool spoke_of_owner_ = false, spoke_of_group_ = false, spoke_of_everyone_ = false;
};

}  // namespace

std::vector<Ace> to_aces(const PosixAcls& acls, bool is_directory) {
  std::vector<Ace> out;
  const auto most = [](const PosixAcl& acl) {
    return 2 * (3 + acl.users.size() + acl.groups.size());
  };
  out.reserve(most(acls.access) + (acls.initial ? most(*acls.initial) : 0));
  AceWriter(out, is_directory, 0).write(acls.access);
  if (acls.initial) {
    AceWriter(out, is_directory, kInheritFlags | xdr::ACE4_INHERIT_ONLY_ACE).write(*acls.initial);
  }
  return out;
}

nfsstat4 from_aces(std::span<const Ace> aces, bool is_directory, PosixAcls* acls) {
  Collector access, initial;
  for (const Ace& ace : aces) {
    if (ace.type != xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE &&
        ace.type != xdr::ACE4_ACCESS_DENIED_ACE_TYPE) {
      return NFS4ERR_ATTRNOTSUPP;
    }
    const bool inherits = (ace.flags & kInheritFlags) != 0;
    const bool only_to_files = (ace.flags & kInheritFlags) == xdr::ACE4_FILE_INHERIT_ACE;
    const bool only_inherits = (ace.flags & xdr::ACE4_INHERIT_ONLY_ACE) != 0;
    if ((ace.flags & ~(kInheritFlags | xdr::ACE4_INHERIT_ONLY_ACE)) != 0 ||
        (inherits && !is_directory) || (only_inherits && !inherits) || only_to_files) {
      return NFS4ERR_ATTRNOTSUPP;
    }
    if (inherits) initial.take(ace);
    if (!only_inherits) access.take(ace);
  }
  *acls = {};
  acls->access = access.acl(is_directory);
  if (!initial.empty()) {
    initial.fill_in(access);
    acls->initial = initial.acl(is_directory);
  }
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
