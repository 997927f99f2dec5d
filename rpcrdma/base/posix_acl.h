// SPDX-License-Identifier: Apache-2.0
// PosixAcl: a POSIX ACL (acl(5)) as a value, and the form in which Linux's extended attributes have
// it (linux/posix_acl_xattr.h). Server and client speak of ACLs in these words.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

/// Rights of an entry, as in a mode.
inline constexpr std::uint8_t kAclRead = 4;
inline constexpr std::uint8_t kAclWrite = 2;
inline constexpr std::uint8_t kAclExecute = 1;

struct PosixAcl {
  struct Named {
    std::uint32_t id = 0;
    std::uint8_t rights = 0;
    bool operator==(const Named&) const = default;
  };
  std::uint8_t owner = 0;
  std::uint8_t group = 0;
  std::uint8_t other = 0;
  /// What named users and all groups have at most. Has to be there with named entries.
  std::optional<std::uint8_t> mask;
  std::vector<Named> users;
  std::vector<Named> groups;

  bool operator==(const PosixAcl&) const = default;
  /// Of an object that has its mode and nothing else.
  static PosixAcl of_mode(mode_t mode);
  /// It says no more than a mode can.
  bool is_of_mode() const { return !mask && users.empty() && groups.empty(); }
  /// The permission bits of a mode beside it. Of a default ACL: the most that a new object has.
  mode_t mode() const {
    return static_cast<mode_t>(owner << 6 | mask.value_or(group) << 3 | other);
  }
  std::size_t entries() const { return 3 + (mask ? 1 : 0) + users.size() + groups.size(); }
};

struct PosixAcls {
  PosixAcl access;
  std::optional<PosixAcl> initial;  // default ACL
  bool operator==(const PosixAcls&) const = default;
};

/// The form in which the kernel takes and gives them.
std::vector<std::byte> encode_posix_acl(const PosixAcl& acl);
/// False: that is none.
bool decode_posix_acl(ByteSpan bytes, PosixAcl* acl);
/// For what nobody has looked at: entries have to be in the order of their kinds, as setfacl(1)
/// gives them, nobody is named twice, and there are no other rights than three.
bool decode_given_posix_acl(ByteSpan bytes, PosixAcl* acl);
/// Is a user or a group named twice?
bool names_anybody_twice(const PosixAcl& acl);

}  // namespace nfsrdma
