// SPDX-License-Identifier: Apache-2.0
// MOUNT version 3 (RFC 1813, appendix I). Its lists stay encoded (encoded_list.h): the peer's list
// is walked one element at a time, ours is written with ListWriter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "xdr/archive.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kMountProgram = 100005;
inline constexpr std::uint32_t kMountV3 = 3;

// The RFC's own limits.
inline constexpr std::size_t kMountMaxPath = 1024;  // MNTPATHLEN
inline constexpr std::size_t kMountMaxName = 255;   // MNTNAMLEN
inline constexpr std::size_t kMountMaxHandle = 64;  // FHSIZE3
// Ours, where the RFC has none.
inline constexpr std::size_t kMountMaxAuthFlavors = 32;
inline constexpr std::size_t kMountMaxMounts = 1u << 16;
inline constexpr std::size_t kMountMaxExports = 1u << 16;
inline constexpr std::size_t kMountMaxGroups = 1u << 16;  // of one export

// clang-format off
#define MOUNTPROC3_VALUES(X) \
  X(MOUNTPROC3_NULL, 0) X(MOUNTPROC3_MNT, 1) X(MOUNTPROC3_DUMP, 2) X(MOUNTPROC3_UMNT, 3) \
  X(MOUNTPROC3_UMNTALL, 4) X(MOUNTPROC3_EXPORT, 5)
// clang-format on
NFSRDMA_XDR_ENUM(mountproc3, MOUNTPROC3_VALUES)
#undef MOUNTPROC3_VALUES
inline constexpr std::uint32_t kMount3ProcedureCount = 6;

// clang-format off
#define MOUNTSTAT3_VALUES(X) \
  X(MNT3_OK, 0) X(MNT3ERR_PERM, 1) X(MNT3ERR_NOENT, 2) X(MNT3ERR_IO, 5) X(MNT3ERR_ACCES, 13) \
  X(MNT3ERR_NOTDIR, 20) X(MNT3ERR_INVAL, 22) X(MNT3ERR_NAMETOOLONG, 63) \
  X(MNT3ERR_NOTSUPP, 10004) X(MNT3ERR_SERVERFAULT, 10006)
// clang-format on
NFSRDMA_XDR_ENUM(mountstat3, MOUNTSTAT3_VALUES)
#undef MOUNTSTAT3_VALUES

/// The argument of MNT and UMNT.
struct dirpath {
  std::string_view path{};
};
template <typename A, Is<dirpath> V>
void visit(A& ar, V& v) {
  ar.string("path", v.path, kMountMaxPath);
}

struct mountres3_ok {
  std::span<const std::byte> fhandle{};
  BoundedArray<std::uint32_t, kMountMaxAuthFlavors> auth_flavors{};
};
template <typename A, Is<mountres3_ok> V>
void visit(A& ar, V& v) {
  ar.opaque("fhandle", v.fhandle, kMountMaxHandle);
  ar.array("auth_flavors", v.auth_flavors);
}

struct mountres3 {
  mountstat3 fhs_status = mountstat3::MNT3_OK;
  mountres3_ok mountinfo{};  // MNT3_OK
};
template <typename A, Is<mountres3> V>
void visit(A& ar, V& v) {
  ar("fhs_status", v.fhs_status);
  if (v.fhs_status == mountstat3::MNT3_OK) ar("mountinfo", v.mountinfo);
}

struct mountbody {
  std::string_view ml_hostname{};
  std::string_view ml_directory{};
};
template <typename A, Is<mountbody> V>
void visit(A& ar, V& v) {
  ar.string("ml_hostname", v.ml_hostname, kMountMaxName);
  ar.string("ml_directory", v.ml_directory, kMountMaxPath);
}

/// The result of DUMP.
struct mountlist {
  EncodedList<mountbody> mounts{};
};
template <typename A, Is<mountlist> V>
void visit(A& ar, V& v) {
  ar.list("mounts", v.mounts, kMountMaxMounts);
}

struct groupnode {
  std::string_view gr_name{};
};
template <typename A, Is<groupnode> V>
void visit(A& ar, V& v) {
  ar.string("gr_name", v.gr_name, kMountMaxName);
}

struct exportnode {
  std::string_view ex_dir{};
  EncodedList<groupnode> ex_groups{};
};
template <typename A, Is<exportnode> V>
void visit(A& ar, V& v) {
  ar.string("ex_dir", v.ex_dir, kMountMaxPath);
  ar.list("ex_groups", v.ex_groups, kMountMaxGroups);
}

/// The result of EXPORT.
struct exports {
  EncodedList<exportnode> nodes{};
};
template <typename A, Is<exports> V>
void visit(A& ar, V& v) {
  ar.list("nodes", v.nodes, kMountMaxExports);
}

template <mountproc3 kNumber, typename ArgsType, typename ResType>
struct Mount3Procedure {
  static constexpr mountproc3 number = kNumber;
  using Args = ArgsType;
  using Res = ResType;
};

/// In the order of their numbers.
using Mount3Procedures = std::tuple<Mount3Procedure<mountproc3::MOUNTPROC3_NULL, Void, Void>,
                                    Mount3Procedure<mountproc3::MOUNTPROC3_MNT, dirpath, mountres3>,
                                    Mount3Procedure<mountproc3::MOUNTPROC3_DUMP, Void, mountlist>,
                                    Mount3Procedure<mountproc3::MOUNTPROC3_UMNT, dirpath, Void>,
                                    Mount3Procedure<mountproc3::MOUNTPROC3_UMNTALL, Void, Void>,
                                    Mount3Procedure<mountproc3::MOUNTPROC3_EXPORT, Void, exports>>;
static_assert(std::tuple_size_v<Mount3Procedures> == kMount3ProcedureCount);

}  // namespace nfsrdma::xdr
