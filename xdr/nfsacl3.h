// SPDX-License-Identifier: Apache-2.0
// NFSACL version 3: POSIX ACLs beside NFSv3. No RFC has it; the facts are those of Solaris'
// nfs_acl.x as Linux's client and server speak it (include/linux/nfsacl.h, fs/nfs_common/nfsacl.c).
#pragma once

#include <cstdint>
#include <tuple>

#include "xdr/archive.h"
#include "xdr/nfs3_results.h"
#include "xdr/nfs3_types.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kNfsAclProgram = 100227;
inline constexpr std::uint32_t kNfsAclV3 = 3;
inline constexpr std::size_t kNfsAclMaxEntries = 1024;  // NFS_ACL_MAX_ENTRIES, of each ACL

// clang-format off
#define ACLPROC3_VALUES(X) X(ACLPROC3_NULL, 0) X(ACLPROC3_GETACL, 1) X(ACLPROC3_SETACL, 2)
// clang-format on
NFSRDMA_XDR_ENUM(aclproc3, ACLPROC3_VALUES)
#undef ACLPROC3_VALUES
inline constexpr std::uint32_t kNfsAcl3ProcedureCount = 3;

// secattr.mask: what is asked for, or said.
inline constexpr std::uint32_t NFS_ACL = 1;         // entries of the access ACL
inline constexpr std::uint32_t NFS_ACLCNT = 2;      // their number
inline constexpr std::uint32_t NFS_DFACL = 4;       // entries of the default ACL
inline constexpr std::uint32_t NFS_DFACLCNT = 8;    // their number
inline constexpr std::uint32_t NFS_ACL_MASK = 0xf;  // all of them

// aclent.type; those of a default ACL have NFS_ACL_DEFAULT added.
inline constexpr std::uint32_t NFS_ACL_USER_OBJ = 0x01;
inline constexpr std::uint32_t NFS_ACL_USER = 0x02;
inline constexpr std::uint32_t NFS_ACL_GROUP_OBJ = 0x04;
inline constexpr std::uint32_t NFS_ACL_GROUP = 0x08;
inline constexpr std::uint32_t NFS_ACL_CLASS_OBJ = 0x10;  // the mask
inline constexpr std::uint32_t NFS_ACL_OTHER_OBJ = 0x20;
inline constexpr std::uint32_t NFS_ACL_DEFAULT = 0x1000;

/// Of the owner and the owning group, `id` is who they are; of the mask and the others, 0.
struct aclent {
  std::uint32_t type = 0;
  std::uint32_t id = 0;
  std::uint32_t perm = 0;  // as in a mode
  bool operator==(const aclent&) const = default;
};
template <typename A, Is<aclent> V>
void visit(A& ar, V& v) {
  ar("type", v.type);
  ar("id", v.id);
  ar("perm", v.perm);
}

/// The counts are how many entries an ACL has, also where the entries were not asked for.
struct secattr {
  std::uint32_t mask = 0;
  std::uint32_t aclcnt = 0;
  EncodedArray<aclent> aclents{};
  std::uint32_t dfaclcnt = 0;
  EncodedArray<aclent> dfaclents{};
};
template <typename A, Is<secattr> V>
void visit(A& ar, V& v) {
  ar("mask", v.mask);
  ar("aclcnt", v.aclcnt);
  ar.counted("aclents", v.aclents, kNfsAclMaxEntries);
  ar("dfaclcnt", v.dfaclcnt);
  ar.counted("dfaclents", v.dfaclents, kNfsAclMaxEntries);
}

struct GETACL3args {
  nfs_fh3 fh{};
  std::uint32_t mask = 0;
};
template <typename A, Is<GETACL3args> V>
void visit(A& ar, V& v) {
  ar("fh", v.fh);
  ar("mask", v.mask);
}

struct GETACL3resok {
  post_op_attr attr{};
  secattr acl{};
};
template <typename A, Is<GETACL3resok> V>
void visit(A& ar, V& v) {
  ar("attr", v.attr);
  ar("acl", v.acl);
}

struct GETACL3resfail {
  post_op_attr attr{};
};
template <typename A, Is<GETACL3resfail> V>
void visit(A& ar, V& v) {
  ar("attr", v.attr);
}

using GETACL3res = Nfs3Result<GETACL3resok, GETACL3resfail>;

struct SETACL3args {
  nfs_fh3 fh{};
  secattr acl{};
};
template <typename A, Is<SETACL3args> V>
void visit(A& ar, V& v) {
  ar("fh", v.fh);
  ar("acl", v.acl);
}

struct SETACL3resok {
  post_op_attr attr{};
};
template <typename A, Is<SETACL3resok> V>
void visit(A& ar, V& v) {
  ar("attr", v.attr);
}

struct SETACL3resfail {
  post_op_attr attr{};
};
template <typename A, Is<SETACL3resfail> V>
void visit(A& ar, V& v) {
  ar("attr", v.attr);
}

using SETACL3res = Nfs3Result<SETACL3resok, SETACL3resfail>;

template <aclproc3 kNumber, typename ArgsType, typename ResType>
struct NfsAcl3Procedure {
  static constexpr aclproc3 number = kNumber;
  using Args = ArgsType;
  using Res = ResType;
};

/// In the order of their numbers.
using NfsAcl3Procedures =
    std::tuple<NfsAcl3Procedure<aclproc3::ACLPROC3_NULL, Void, Void>,
               NfsAcl3Procedure<aclproc3::ACLPROC3_GETACL, GETACL3args, GETACL3res>,
               NfsAcl3Procedure<aclproc3::ACLPROC3_SETACL, SETACL3args, SETACL3res>>;
static_assert(std::tuple_size_v<NfsAcl3Procedures> == kNfsAcl3ProcedureCount);

}  // namespace nfsrdma::xdr
