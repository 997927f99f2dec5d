// SPDX-License-Identifier: Apache-2.0
// NFS version 4: access control lists (RFC 8881, section 6).
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

// nfsace4.type
inline constexpr std::uint32_t ACE4_ACCESS_ALLOWED_ACE_TYPE = 0;
inline constexpr std::uint32_t ACE4_ACCESS_DENIED_ACE_TYPE = 1;
inline constexpr std::uint32_t ACE4_SYSTEM_AUDIT_ACE_TYPE = 2;
inline constexpr std::uint32_t ACE4_SYSTEM_ALARM_ACE_TYPE = 3;

// nfsace4.flag
inline constexpr std::uint32_t ACE4_FILE_INHERIT_ACE = 0x01;
inline constexpr std::uint32_t ACE4_DIRECTORY_INHERIT_ACE = 0x02;
inline constexpr std::uint32_t ACE4_NO_PROPAGATE_INHERIT_ACE = 0x04;
inline constexpr std::uint32_t ACE4_INHERIT_ONLY_ACE = 0x08;
inline constexpr std::uint32_t ACE4_SUCCESSFUL_ACCESS_ACE_FLAG = 0x10;
inline constexpr std::uint32_t ACE4_FAILED_ACCESS_ACE_FLAG = 0x20;
inline constexpr std::uint32_t ACE4_IDENTIFIER_GROUP = 0x40;
inline constexpr std::uint32_t ACE4_INHERITED_ACE = 0x80;

// nfsace4.access_mask; the second name of a bit is for directories
inline constexpr std::uint32_t ACE4_READ_DATA = 0x00000001;
inline constexpr std::uint32_t ACE4_LIST_DIRECTORY = 0x00000001;
inline constexpr std::uint32_t ACE4_WRITE_DATA = 0x00000002;
inline constexpr std::uint32_t ACE4_ADD_FILE = 0x00000002;
inline constexpr std::uint32_t ACE4_APPEND_DATA = 0x00000004;
inline constexpr std::uint32_t ACE4_ADD_SUBDIRECTORY = 0x00000004;
inline constexpr std::uint32_t ACE4_READ_NAMED_ATTRS = 0x00000008;
inline constexpr std::uint32_t ACE4_WRITE_NAMED_ATTRS = 0x00000010;
inline constexpr std::uint32_t ACE4_EXECUTE = 0x00000020;
inline constexpr std::uint32_t ACE4_DELETE_CHILD = 0x00000040;
inline constexpr std::uint32_t ACE4_READ_ATTRIBUTES = 0x00000080;
inline constexpr std::uint32_t ACE4_WRITE_ATTRIBUTES = 0x00000100;
inline constexpr std::uint32_t ACE4_WRITE_RETENTION = 0x00000200;
inline constexpr std::uint32_t ACE4_WRITE_RETENTION_HOLD = 0x00000400;
inline constexpr std::uint32_t ACE4_DELETE = 0x00010000;
inline constexpr std::uint32_t ACE4_READ_ACL = 0x00020000;
inline constexpr std::uint32_t ACE4_WRITE_ACL = 0x00040000;
inline constexpr std::uint32_t ACE4_WRITE_OWNER = 0x00080000;
inline constexpr std::uint32_t ACE4_SYNCHRONIZE = 0x00100000;
inline constexpr std::uint32_t ACE4_GENERIC_READ = 0x00120081;
inline constexpr std::uint32_t ACE4_GENERIC_WRITE = 0x00160106;
inline constexpr std::uint32_t ACE4_GENERIC_EXECUTE = 0x001200a0;

// nfsacl41.na41_flag
inline constexpr std::uint32_t ACL4_AUTO_INHERIT = 0x1;
inline constexpr std::uint32_t ACL4_PROTECTED = 0x2;
inline constexpr std::uint32_t ACL4_DEFAULTED = 0x4;

// attribute aclsupport
inline constexpr std::uint32_t ACL4_SUPPORT_ALLOW_ACL = 0x1;
inline constexpr std::uint32_t ACL4_SUPPORT_DENY_ACL = 0x2;
inline constexpr std::uint32_t ACL4_SUPPORT_AUDIT_ACL = 0x4;
inline constexpr std::uint32_t ACL4_SUPPORT_ALARM_ACL = 0x8;

struct nfsace4 {
  std::uint32_t type = 0;
  std::uint32_t flag = 0;
  std::uint32_t access_mask = 0;
  std::string_view who{};
};
template <typename A, Is<nfsace4> V>
void visit(A& ar, V& v) {
  ar("type", v.type);
  ar("flag", v.flag);
  ar("access_mask", v.access_mask);
  ar.string("who", v.who, kNfs4MaxOwner);
}

struct nfsacl41 {
  std::uint32_t na41_flag = 0;
  EncodedArray<nfsace4> na41_aces{};
};
template <typename A, Is<nfsacl41> V>
void visit(A& ar, V& v) {
  ar("na41_flag", v.na41_flag);
  ar.counted("na41_aces", v.na41_aces, kNfs4MaxAces);
}

}  // namespace nfsrdma::xdr
