// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs of objects (acl(5)), as the kernel keeps them: the access ACL, of which an object has
// at least what its mode says, and a directory's default ACL, which shapes what is made in it.
//
// Functions take an O_PATH descriptor and act with the rights of the thread: as the caller, where
// FileCall::admit() came before. They return 0 or an errno.
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
};

struct PosixAcls {
  PosixAcl access;
  std::optional<PosixAcl> initial;  // default ACL
  bool operator==(const PosixAcls&) const = default;
};

/// The form in which the kernel takes and gives them (linux/posix_acl_xattr.h).
std::vector<std::byte> encode_posix_acl(const PosixAcl& acl);
/// False: that is none.
bool decode_posix_acl(ByteSpan bytes, PosixAcl* acl);

/// Has the object's file system ACLs? A symbolic link has none anywhere, and is taken for one of a
/// file system that has.
bool has_posix_acls(int path_fd, mode_t mode);
/// EOPNOTSUPP where the file system has none. A symbolic link's says what its mode says.
int read_posix_acls(int path_fd, mode_t mode, PosixAcls* acls);
/// Replaces both; a default ACL that is not in `acls` is removed. Access rights in the mode become
/// those of the ACL, the other bits of it stay, but for a set-group-id bit that the caller could
/// not set. EOPNOTSUPP where there can be none.
int write_posix_acls(int path_fd, mode_t mode, const PosixAcls& acls);

}  // namespace nfsrdma
