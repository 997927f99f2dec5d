// SPDX-License-Identifier: Apache-2.0
#include "server/files/posix_acl.h"
#include "server/vfs/proc_path.h"

#include <sys/xattr.h>

#include <array>
#include <cerrno>

namespace nfsrdma {

namespace {

constexpr const char* kAccess = "system.posix_acl_access";
constexpr const char* kDefault = "system.posix_acl_default";

// linux/posix_acl_xattr.h: a version, then entries of tag, rights and id; all little-endian.
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeader = 4;
constexpr std::size_t kEntry = 8;
constexpr std::uint32_t kNoId = ~0u;
constexpr std::size_t kMostBytes = 65536;  // of any extended attribute

enum Tag : std::uint16_t {
  kOwner = 0x01,
  kUser = 0x02,
  kOwningGroup = 0x04,
  kGroup = 0x08,
  kMask = 0x10,
  kOther = 0x20,
};

void put(std::vector<std::byte>& to, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put_entry(std::vector<std::byte>& to, Tag tag, std::uint8_t rights, std::uint32_t id = kNoId) {
  put(to, tag, 2);
  put(to, rights, 2);
  put(to, id, 4);
}

std::uint32_t take(ByteSpan from, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<std::uint32_t>(from[at + static_cast<std::size_t>(i)]);
  return value;
}

/// 0, or an errno: ENODATA where there is none.
int read_one(int path_fd, const char* name, PosixAcl* acl) {
  constexpr std::size_t kUsual = 512;
  const ProcPath path(path_fd);
  std::array<std::byte, kUsual> room;
  ssize_t size = ::getxattr(path.c_str(), name, room.data(), room.size());
  ByteSpan bytes = room;
  std::vector<std::byte> larger;
  if (size < 0 && errno == ERANGE) {
    larger.resize(kMostBytes);
    size = ::getxattr(path.c_str(), name, larger.data(), larger.size());
    bytes = larger;
  }
  if (size < 0) return errno;
  return decode_posix_acl(bytes.first(static_cast<std::size_t>(size)), acl) ? 0 : EIO;
}

int write_one(int path_fd, const char* name, const PosixAcl& acl) {
  const std::vector<std::byte> bytes = encode_posix_acl(acl);
  if (bytes.size() > kMostBytes) return ENOSPC;
  return ::setxattr(ProcPath(path_fd).c_str(), name, bytes.data(), bytes.size(), 0) == 0 ? 0
                                                                                         : errno;
}

int remove_default(int path_fd) {
  if (::removexattr(ProcPath(path_fd).c_str(), kDefault) == 0 || errno == ENODATA) return 0;
  return errno;
}

}  // namespace

PosixAcl PosixAcl::of_mode(mode_t mode) {
  PosixAcl acl;
  acl.owner = mode >> 6 & 7;
  acl.group = mode >> 3 & 7;
  acl.other = mode & 7;
  return acl;
}

std::vector<std::byte> encode_posix_acl(const PosixAcl& acl) {
  std::vector<std::byte> out;
  out.reserve(kHeader + kEntry * (4 + acl.users.size() + acl.groups.size()));
  put(out, kVersion, kHeader);
  put_entry(out, kOwner, acl.owner);
  for (const PosixAcl::Named& user : acl.users)
    put_entry(out, kUser, user.rights, user.id);
  put_entry(out, kOwningGroup, acl.group);
  for (const PosixAcl::Named& group : acl.groups)
    put_entry(out, kGroup, group.rights, group.id);
  if (acl.mask) put_entry(out, kMask, *acl.mask);
  put_entry(out, kOther, acl.other);
  return out;
}

bool decode_posix_acl(ByteSpan bytes, PosixAcl* acl) {
  *acl = {};
  if (bytes.size() < kHeader || (bytes.size() - kHeader) % kEntry != 0) return false;
  if (take(bytes, 0, kHeader) != kVersion) return false;
  unsigned seen = 0;
  for (std::size_t at = kHeader; at < bytes.size(); at += kEntry) {
    const std::uint32_t tag = take(bytes, at, 2);
    const auto rights = static_cast<std::uint8_t>(take(bytes, at + 2, 2) & 7);
    const std::uint32_t id = take(bytes, at + 4, 4);
    switch (tag) {
      case kOwner:
        acl->owner = rights;
        break;
      case kUser:
        acl->users.push_back({id, rights});
        break;
      case kOwningGroup:
        acl->group = rights;
        break;
      case kGroup:
        acl->groups.push_back({id, rights});
        break;
      case kMask:
        acl->mask = rights;
        break;
      case kOther:
        acl->other = rights;
        break;
      default:
        return false;
    }
    seen |= tag;
  }
  constexpr unsigned kAlways = kOwner | kOwningGroup | kOther;
  const bool named = (seen & (kUser | kGroup)) != 0;
  return (seen & kAlways) == kAlways && (acl->mask || !named);
}

bool has_posix_acls(int path_fd, mode_t mode) {
  if (path_fd < 0) return false;
  if (S_ISLNK(mode)) return true;
  return ::getxattr(ProcPath(path_fd).c_str(), kAccess, nullptr, 0) >= 0 || errno != EOPNOTSUPP;
}

int read_posix_acls(int path_fd, mode_t mode, PosixAcls* acls) {
  *acls = {};
  acls->access = PosixAcl::of_mode(mode);
  if (S_ISLNK(mode)) return 0;
  int error = read_one(path_fd, kAccess, &acls->access);
  if (error == ENODATA) {
    acls->access = PosixAcl::of_mode(mode);
    error = 0;
  }
  if (error != 0 || !S_ISDIR(mode)) return error;
  PosixAcl initial;
  error = read_one(path_fd, kDefault, &initial);
  if (error == ENODATA) return 0;
  if (error == 0) acls->initial = std::move(initial);
  return error;
}

int write_posix_acls(int path_fd, mode_t mode, const PosixAcls& acls) {
  if (S_ISLNK(mode)) return EOPNOTSUPP;
  if (const int error = write_one(path_fd, kAccess, acls.access)) return error;
  if (!S_ISDIR(mode)) return 0;
  return acls.initial ? write_one(path_fd, kDefault, *acls.initial) : remove_default(path_fd);
}

}  // namespace nfsrdma
