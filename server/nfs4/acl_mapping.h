// SPDX-License-Identifier: Apache-2.0
// ACLs of NFSv4 (RFC 7530 6, RFC 8881 6) and POSIX ACLs, each from the other, as Linux's server
// maps them (after the draft nfsv4-acl-mapping). Pure functions.
//
// What is read says the same as the POSIX ACL: the first entry that fits decides there, allowed
// bits add up here, so ALLOW ACEs are preceded (those of users) or followed (those of groups) by
// DENY ACEs, where entries behind them would give more. The mask is applied to what it masks.
//
// What is set may come out narrower than it was meant, never wider (RFC 8881 6.2.1.3.1): the bits
// of reading, writing and executing count, of which writing takes all that belong to it, and an ACE
// that denies a group denies whoever might be in that group. Inheritable ACEs become the
// directory's default ACL, for files and directories alike: what new files alone are to have is
// refused; what new directories alone are to have is given to new files as well, as with Linux's
// server, the one case of more. Only DENY ACEs of what no mode has (READ_ACL and its kind) have no
// effect.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/files/posix_acl.h"
#include "xdr/nfs4_acl.h"
#include "xdr/nfs4_status.h"

namespace nfsrdma::nfs4 {

struct Ace {
  enum class Who : std::uint8_t {
    kOwner,        // OWNER@
    kOwningGroup,  // GROUP@
    kEveryone,     // EVERYONE@
    kUser,
    kGroup,
  };
  std::uint32_t type = xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE;
  std::uint32_t flags = 0;  // without ACE4_IDENTIFIER_GROUP, which `who` says
  std::uint32_t mask = 0;
  Who who = Who::kEveryone;
  std::uint32_t id = 0;  // of a user or group

  bool operator==(const Ace&) const = default;
};

/// `acls.initial` only of directories.
std::vector<Ace> to_aces(const PosixAcls& acls, bool is_directory);

/// NFS4_OK or NFS4ERR_ATTRNOTSUPP: AUDIT and ALARM, flags that have no counterpart, what a file is
/// to inherit to others. And what only files are to inherit: a default ACL would let it be in
/// effect on new directories as well (RFC 8881 6.4.3.1).
///
/// An ACL without ACEs denies everything to everybody. A default ACL has to say something of owner,
/// owning group and others: where no inheritable ACE speaks of one of them, it gets what the
/// directory's own ACL gives it, as with setfacl(1) and in later versions of Linux; but for what
/// the inheritable ACEs deny it, or what somebody named only in the directory's own ACL would gain.
xdr::nfsstat4 from_aces(std::span<const Ace> aces, bool is_directory, PosixAcls* acls);

}  // namespace nfsrdma::nfs4
