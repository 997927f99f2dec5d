// SPDX-License-Identifier: Apache-2.0
// Extended attributes of the "user." namespace, the only one that NFS shows (RFC 8276 5): clients
// know their names without the prefix. As the caller: the kernel decides who may, and user.*
// follows the permissions of the object's data. Functions return 0 or an errno: ENODATA when there
// is no such attribute, EOPNOTSUPP where the file system has none.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/vfs/file_entry.h"

namespace nfsrdma {

/// The kernel has no larger value, and no longer list of names.
inline constexpr std::size_t kMostXattrBytes = 65536;

/// Does the file system of that object take any (RFC 8276 8.2.1)?
bool has_user_xattrs(int path_fd);

/// May that be a name? 0, EINVAL or ENAMETOOLONG.
int check_xattr_name(std::string_view name);

// `name` has passed check_xattr_name().

/// `room` has kMostXattrBytes, or it may be too small: E2BIG.
int get_user_xattr(const FileEntry& object, std::string_view name, MutableByteSpan room,
                   std::size_t* size);
enum class XattrSetting : std::uint8_t {
  kEither,
  kCreate,   // EEXIST when it is there
  kReplace,  // ENODATA when it is not
};
int set_user_xattr(const FileEntry& object, std::string_view name, ByteSpan value,
                   XattrSetting setting);
int remove_user_xattr(const FileEntry& object, std::string_view name);
/// Hands out names in the kernel's order until `take` says false. `room` has kMostXattrBytes.
int list_user_xattrs(const FileEntry& object, MutableByteSpan room,
                     const std::function<bool(std::string_view name)>& take);

}  // namespace nfsrdma
