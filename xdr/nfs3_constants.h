// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813): numbers, limits and enumerations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "xdr/enum_names.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kNfsProgram = 100003;
inline constexpr std::uint32_t kNfsV3 = 3;

// The RFC's own limits.
inline constexpr std::size_t kNfs3MaxHandle = 64;
inline constexpr std::size_t kNfs3CookieVerfBytes = 8;
inline constexpr std::size_t kNfs3CreateVerfBytes = 8;
inline constexpr std::size_t kNfs3WriteVerfBytes = 8;
// Ours, where the RFC has none. Longer than any name or path that a file system takes, so that the
// server gets to answer NFS3ERR_NAMETOOLONG instead of GARBAGE_ARGS.
inline constexpr std::size_t kNfs3MaxName = 1024;
inline constexpr std::size_t kNfs3MaxPath = 8192;
inline constexpr std::size_t kNfs3MaxData = 16u << 20;
inline constexpr std::size_t kNfs3MaxDirectoryEntries = 1u << 20;  // of one reply

// clang-format off
#define NFSPROC3_VALUES(X) \
  X(NFSPROC3_NULL, 0) X(NFSPROC3_GETATTR, 1) X(NFSPROC3_SETATTR, 2) X(NFSPROC3_LOOKUP, 3) \
  X(NFSPROC3_ACCESS, 4) X(NFSPROC3_READLINK, 5) X(NFSPROC3_READ, 6) X(NFSPROC3_WRITE, 7) \
  X(NFSPROC3_CREATE, 8) X(NFSPROC3_MKDIR, 9) X(NFSPROC3_SYMLINK, 10) X(NFSPROC3_MKNOD, 11) \
  X(NFSPROC3_REMOVE, 12) X(NFSPROC3_RMDIR, 13) X(NFSPROC3_RENAME, 14) X(NFSPROC3_LINK, 15) \
  X(NFSPROC3_READDIR, 16) X(NFSPROC3_READDIRPLUS, 17) X(NFSPROC3_FSSTAT, 18) \
  X(NFSPROC3_FSINFO, 19) X(NFSPROC3_PATHCONF, 20) X(NFSPROC3_COMMIT, 21)
// clang-format on
NFSRDMA_XDR_ENUM(nfsproc3, NFSPROC3_VALUES)
#undef NFSPROC3_VALUES
inline constexpr std::uint32_t kNfs3ProcedureCount = 22;

// clang-format off
#define NFSSTAT3_VALUES(X) \
  X(NFS3_OK, 0) X(NFS3ERR_PERM, 1) X(NFS3ERR_NOENT, 2) X(NFS3ERR_IO, 5) X(NFS3ERR_NXIO, 6) \
  X(NFS3ERR_ACCES, 13) X(NFS3ERR_EXIST, 17) X(NFS3ERR_XDEV, 18) X(NFS3ERR_NODEV, 19) \
  X(NFS3ERR_NOTDIR, 20) X(NFS3ERR_ISDIR, 21) X(NFS3ERR_INVAL, 22) X(NFS3ERR_FBIG, 27) \
  X(NFS3ERR_NOSPC, 28) X(NFS3ERR_ROFS, 30) X(NFS3ERR_MLINK, 31) X(NFS3ERR_NAMETOOLONG, 63) \
  X(NFS3ERR_NOTEMPTY, 66) X(NFS3ERR_DQUOT, 69) X(NFS3ERR_STALE, 70) X(NFS3ERR_REMOTE, 71) \
  X(NFS3ERR_BADHANDLE, 10001) X(NFS3ERR_NOT_SYNC, 10002) X(NFS3ERR_BAD_COOKIE, 10003) \
  X(NFS3ERR_NOTSUPP, 10004) X(NFS3ERR_TOOSMALL, 10005) X(NFS3ERR_SERVERFAULT, 10006) \
  X(NFS3ERR_BADTYPE, 10007) X(NFS3ERR_JUKEBOX, 10008)
// clang-format on
NFSRDMA_XDR_ENUM(nfsstat3, NFSSTAT3_VALUES)
#undef NFSSTAT3_VALUES

// clang-format off
#define FTYPE3_VALUES(X) \
  X(NF3REG, 1) X(NF3DIR, 2) X(NF3BLK, 3) X(NF3CHR, 4) X(NF3LNK, 5) X(NF3SOCK, 6) X(NF3FIFO, 7)
// clang-format on
NFSRDMA_XDR_ENUM(ftype3, FTYPE3_VALUES)
#undef FTYPE3_VALUES

#define TIME_HOW_VALUES(X) X(DONT_CHANGE, 0) X(SET_TO_SERVER_TIME, 1) X(SET_TO_CLIENT_TIME, 2)
NFSRDMA_XDR_ENUM(time_how, TIME_HOW_VALUES)
#undef TIME_HOW_VALUES

#define STABLE_HOW_VALUES(X) X(UNSTABLE, 0) X(DATA_SYNC, 1) X(FILE_SYNC, 2)
NFSRDMA_XDR_ENUM(stable_how, STABLE_HOW_VALUES)
#undef STABLE_HOW_VALUES

#define CREATEMODE3_VALUES(X) X(UNCHECKED, 0) X(GUARDED, 1) X(EXCLUSIVE, 2)
NFSRDMA_XDR_ENUM(createmode3, CREATEMODE3_VALUES)
#undef CREATEMODE3_VALUES

// ACCESS
inline constexpr std::uint32_t ACCESS3_READ = 0x0001;
inline constexpr std::uint32_t ACCESS3_LOOKUP = 0x0002;
inline constexpr std::uint32_t ACCESS3_MODIFY = 0x0004;
inline constexpr std::uint32_t ACCESS3_EXTEND = 0x0008;
inline constexpr std::uint32_t ACCESS3_DELETE = 0x0010;
inline constexpr std::uint32_t ACCESS3_EXECUTE = 0x0020;

// FSINFO properties
inline constexpr std::uint32_t FSF3_LINK = 0x0001;
inline constexpr std::uint32_t FSF3_SYMLINK = 0x0002;
inline constexpr std::uint32_t FSF3_HOMOGENEOUS = 0x0008;
inline constexpr std::uint32_t FSF3_CANSETTIME = 0x0010;

}  // namespace nfsrdma::xdr
