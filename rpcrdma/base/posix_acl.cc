// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/posix_acl.h"

#include <algorithm>

namespace nfsrdma {

namespace {

// linux/posix_acl_xattr.h: a version, then entries of tag, rights and id; all little-endian.
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeader = 4;
constexpr std::size_t kEntry = 8;
constexpr std::uint32_t kNoId = ~0u;

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

bool names_anybody_twice(const PosixAcl& acl) {
  auto twice = [](const std::vector<PosixAcl::Named>& named) {
    std::vector<std::uint32_t> ids;
    ids.reserve(named.size());
    for (const PosixAcl::Named& one : named)
      ids.push_back(one.id);
    std::ranges::sort(ids);
    return std::ranges::adjacent_find(ids) != ids.end();
  };
  return twice(acl.users) || twice(acl.groups);
}

bool decode_given_posix_acl(ByteSpan bytes, PosixAcl* acl) {
  if (!decode_posix_acl(bytes, acl)) return false;
  std::uint32_t last = 0;
  for (std::size_t at = kHeader; at < bytes.size(); at += kEntry) {
    const std::uint32_t tag = take(bytes, at, 2);
    const bool named = tag == kUser || tag == kGroup;
    if (tag < last || (tag == last && !named)) return false;
    if (take(bytes, at + 2, 2) > (kAclRead | kAclWrite | kAclExecute)) return false;
    if (named && take(bytes, at + 4, 4) == kNoId) return false;
    last = tag;
  }
  return !names_anybody_twice(*acl);
}

}  // namespace nfsrdma
