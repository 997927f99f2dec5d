// SPDX-License-Identifier: Apache-2.0
// NFS version 4: attributes by number, and their values (RFC 7531, 5662, 7863; 8275 has mode_umask,
// 8276 xattr_support, 9754 open_arguments).
//
// On the wire attributes are a mask and an opaque with the values in the order of their numbers. A
// value whose number is not known cannot even be skipped, so a request stays a fattr4 until
// decode_attributes() has said whether all of it can be read.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "xdr/nfs4_attribute_types.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

// clang-format off
#define FATTR4_NUMBERS(X) \
  X(FATTR4_SUPPORTED_ATTRS, 0) X(FATTR4_TYPE, 1) X(FATTR4_FH_EXPIRE_TYPE, 2) X(FATTR4_CHANGE, 3) \
  X(FATTR4_SIZE, 4) X(FATTR4_LINK_SUPPORT, 5) X(FATTR4_SYMLINK_SUPPORT, 6) \
  X(FATTR4_NAMED_ATTR, 7) X(FATTR4_FSID, 8) X(FATTR4_UNIQUE_HANDLES, 9) X(FATTR4_LEASE_TIME, 10) \
  X(FATTR4_RDATTR_ERROR, 11) X(FATTR4_ACL, 12) X(FATTR4_ACLSUPPORT, 13) X(FATTR4_ARCHIVE, 14) \
  X(FATTR4_CANSETTIME, 15) X(FATTR4_CASE_INSENSITIVE, 16) X(FATTR4_CASE_PRESERVING, 17) \
  X(FATTR4_CHOWN_RESTRICTED, 18) X(FATTR4_FILEHANDLE, 19) X(FATTR4_FILEID, 20) \
  X(FATTR4_FILES_AVAIL, 21) X(FATTR4_FILES_FREE, 22) X(FATTR4_FILES_TOTAL, 23) \
  X(FATTR4_FS_LOCATIONS, 24) X(FATTR4_HIDDEN, 25) X(FATTR4_HOMOGENEOUS, 26) \
  X(FATTR4_MAXFILESIZE, 27) X(FATTR4_MAXLINK, 28) X(FATTR4_MAXNAME, 29) X(FATTR4_MAXREAD, 30) \
  X(FATTR4_MAXWRITE, 31) X(FATTR4_MIMETYPE, 32) X(FATTR4_MODE, 33) X(FATTR4_NO_TRUNC, 34) \
  X(FATTR4_NUMLINKS, 35) X(FATTR4_OWNER, 36) X(FATTR4_OWNER_GROUP, 37) \
  X(FATTR4_QUOTA_AVAIL_HARD, 38) X(FATTR4_QUOTA_AVAIL_SOFT, 39) X(FATTR4_QUOTA_USED, 40) \
  X(FATTR4_RAWDEV, 41) X(FATTR4_SPACE_AVAIL, 42) X(FATTR4_SPACE_FREE, 43) \
  X(FATTR4_SPACE_TOTAL, 44) X(FATTR4_SPACE_USED, 45) X(FATTR4_SYSTEM, 46) \
  X(FATTR4_TIME_ACCESS, 47) X(FATTR4_TIME_ACCESS_SET, 48) X(FATTR4_TIME_BACKUP, 49) \
  X(FATTR4_TIME_CREATE, 50) X(FATTR4_TIME_DELTA, 51) X(FATTR4_TIME_METADATA, 52) \
  X(FATTR4_TIME_MODIFY, 53) X(FATTR4_TIME_MODIFY_SET, 54) X(FATTR4_MOUNTED_ON_FILEID, 55) \
  X(FATTR4_DIR_NOTIF_DELAY, 56) X(FATTR4_DIRENT_NOTIF_DELAY, 57) X(FATTR4_DACL, 58) \
  X(FATTR4_SACL, 59) X(FATTR4_CHANGE_POLICY, 60) X(FATTR4_FS_STATUS, 61) \
  X(FATTR4_FS_LAYOUT_TYPES, 62) X(FATTR4_LAYOUT_HINT, 63) X(FATTR4_LAYOUT_TYPES, 64) \
  X(FATTR4_LAYOUT_BLKSIZE, 65) X(FATTR4_LAYOUT_ALIGNMENT, 66) X(FATTR4_FS_LOCATIONS_INFO, 67) \
  X(FATTR4_MDSTHRESHOLD, 68) X(FATTR4_RETENTION_GET, 69) X(FATTR4_RETENTION_SET, 70) \
  X(FATTR4_RETENTEVT_GET, 71) X(FATTR4_RETENTEVT_SET, 72) X(FATTR4_RETENTION_HOLD, 73) \
  X(FATTR4_MODE_SET_MASKED, 74) X(FATTR4_SUPPATTR_EXCLCREAT, 75) X(FATTR4_FS_CHARSET_CAP, 76) \
  X(FATTR4_CLONE_BLKSIZE, 77) X(FATTR4_SPACE_FREED, 78) X(FATTR4_CHANGE_ATTR_TYPE, 79) \
  X(FATTR4_SEC_LABEL, 80) X(FATTR4_MODE_UMASK, 81) X(FATTR4_XATTR_SUPPORT, 82) \
  X(FATTR4_OPEN_ARGUMENTS, 86)
// clang-format on
NFSRDMA_XDR_ENUM(fattr4_number, FATTR4_NUMBERS)
#undef FATTR4_NUMBERS

// Those whose values we can read and write: number, type, field. Left out are what no client asks
// of us: layout_hint, fs_locations_info, mdsthreshold and retention.
// clang-format off
#define NFSRDMA_FILE_ATTRIBUTES4(X) \
  X(FATTR4_SUPPORTED_ATTRS, bitmap4, supported_attrs) \
  X(FATTR4_TYPE, nfs_ftype4, type) \
  X(FATTR4_FH_EXPIRE_TYPE, std::uint32_t, fh_expire_type) \
  X(FATTR4_CHANGE, std::uint64_t, change) \
  X(FATTR4_SIZE, std::uint64_t, size) \
  X(FATTR4_LINK_SUPPORT, bool, link_support) \
  X(FATTR4_SYMLINK_SUPPORT, bool, symlink_support) \
  X(FATTR4_NAMED_ATTR, bool, named_attr) \
  X(FATTR4_FSID, fsid4, fsid) \
  X(FATTR4_UNIQUE_HANDLES, bool, unique_handles) \
  X(FATTR4_LEASE_TIME, std::uint32_t, lease_time) \
  X(FATTR4_RDATTR_ERROR, nfsstat4, rdattr_error) \
  X(FATTR4_ACL, fattr4_acl, acl) \
  X(FATTR4_ACLSUPPORT, std::uint32_t, aclsupport) \
  X(FATTR4_ARCHIVE, bool, archive) \
  X(FATTR4_CANSETTIME, bool, cansettime) \
  X(FATTR4_CASE_INSENSITIVE, bool, case_insensitive) \
  X(FATTR4_CASE_PRESERVING, bool, case_preserving) \
  X(FATTR4_CHOWN_RESTRICTED, bool, chown_restricted) \
  X(FATTR4_FILEHANDLE, nfs_fh4, filehandle) \
  X(FATTR4_FILEID, std::uint64_t, fileid) \
  X(FATTR4_FILES_AVAIL, std::uint64_t, files_avail) \
  X(FATTR4_FILES_FREE, std::uint64_t, files_free) \
  X(FATTR4_FILES_TOTAL, std::uint64_t, files_total) \
  X(FATTR4_FS_LOCATIONS, fs_locations4, fs_locations) \
  X(FATTR4_HIDDEN, bool, hidden) \
  X(FATTR4_HOMOGENEOUS, bool, homogeneous) \
  X(FATTR4_MAXFILESIZE, std::uint64_t, maxfilesize) \
  X(FATTR4_MAXLINK, std::uint32_t, maxlink) \
  X(FATTR4_MAXNAME, std::uint32_t, maxname) \
  X(FATTR4_MAXREAD, std::uint64_t, maxread) \
  X(FATTR4_MAXWRITE, std::uint64_t, maxwrite) \
  X(FATTR4_MIMETYPE, std::string_view, mimetype) \
  X(FATTR4_MODE, std::uint32_t, mode) \
  X(FATTR4_NO_TRUNC, bool, no_trunc) \
  X(FATTR4_NUMLINKS, std::uint32_t, numlinks) \
  X(FATTR4_OWNER, std::string_view, owner) \
  X(FATTR4_OWNER_GROUP, std::string_view, owner_group) \
  X(FATTR4_QUOTA_AVAIL_HARD, std::uint64_t, quota_avail_hard) \
  X(FATTR4_QUOTA_AVAIL_SOFT, std::uint64_t, quota_avail_soft) \
  X(FATTR4_QUOTA_USED, std::uint64_t, quota_used) \
  X(FATTR4_RAWDEV, specdata4, rawdev) \
  X(FATTR4_SPACE_AVAIL, std::uint64_t, space_avail) \
  X(FATTR4_SPACE_FREE, std::uint64_t, space_free) \
  X(FATTR4_SPACE_TOTAL, std::uint64_t, space_total) \
  X(FATTR4_SPACE_USED, std::uint64_t, space_used) \
  X(FATTR4_SYSTEM, bool, system) \
  X(FATTR4_TIME_ACCESS, nfstime4, time_access) \
  X(FATTR4_TIME_ACCESS_SET, settime4, time_access_set) \
  X(FATTR4_TIME_BACKUP, nfstime4, time_backup) \
  X(FATTR4_TIME_CREATE, nfstime4, time_create) \
  X(FATTR4_TIME_DELTA, nfstime4, time_delta) \
  X(FATTR4_TIME_METADATA, nfstime4, time_metadata) \
  X(FATTR4_TIME_MODIFY, nfstime4, time_modify) \
  X(FATTR4_TIME_MODIFY_SET, settime4, time_modify_set) \
  X(FATTR4_MOUNTED_ON_FILEID, std::uint64_t, mounted_on_fileid) \
  X(FATTR4_DIR_NOTIF_DELAY, nfstime4, dir_notif_delay) \
  X(FATTR4_DIRENT_NOTIF_DELAY, nfstime4, dirent_notif_delay) \
  X(FATTR4_DACL, nfsacl41, dacl) \
  X(FATTR4_SACL, nfsacl41, sacl) \
  X(FATTR4_CHANGE_POLICY, change_policy4, change_policy) \
  X(FATTR4_FS_STATUS, fs4_status, fs_status) \
  X(FATTR4_FS_LAYOUT_TYPES, fattr4_layout_types, fs_layout_types) \
  X(FATTR4_LAYOUT_TYPES, fattr4_layout_types, layout_types) \
  X(FATTR4_LAYOUT_BLKSIZE, std::uint32_t, layout_blksize) \
  X(FATTR4_LAYOUT_ALIGNMENT, std::uint32_t, layout_alignment) \
  X(FATTR4_MODE_SET_MASKED, mode_masked4, mode_set_masked) \
  X(FATTR4_SUPPATTR_EXCLCREAT, bitmap4, suppattr_exclcreat) \
  X(FATTR4_FS_CHARSET_CAP, std::uint32_t, fs_charset_cap) \
  X(FATTR4_CLONE_BLKSIZE, std::uint32_t, clone_blksize) \
  X(FATTR4_SPACE_FREED, std::uint64_t, space_freed) \
  X(FATTR4_CHANGE_ATTR_TYPE, change_attr_type4, change_attr_type) \
  X(FATTR4_SEC_LABEL, sec_label4, sec_label) \
  X(FATTR4_MODE_UMASK, mode_umask4, mode_umask) \
  X(FATTR4_XATTR_SUPPORT, bool, xattr_support) \
  X(FATTR4_OPEN_ARGUMENTS, open_arguments4, open_arguments)
// clang-format on

/// Attributes and their values; encodes and decodes as a fattr4 does. A field counts when its bit
/// is in `attrmask`, which may have no other bits than those of kFileAttributes4.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of their numbers
struct FileAttributes4 {
  bitmap4 attrmask{};
#define X(number, type, field) type field{};
  NFSRDMA_FILE_ATTRIBUTES4(X)
#undef X
};

#define X(number, type, field) fattr4_number::number,
inline constexpr bitmap4 kFileAttributes4 = bitmap4::of({NFSRDMA_FILE_ATTRIBUTES4(X)});
#undef X

namespace detail {

template <typename A, typename V>
void visit_attribute(A& ar, const char* name, V& v) {
  if constexpr (Is<V, std::string_view>) {
    ar.string(name, v, kNfs4MaxOwner);
  } else {
    ar(name, v);
  }
}

}  // namespace detail

/// The values alone, those of the mask, in their order.
template <typename A, Is<FileAttributes4> V>
void visit_attribute_values(A& ar, V& v) {
  v.attrmask.for_each([&](std::uint32_t number) {
    switch (static_cast<fattr4_number>(number)) {
#define X(number, type, field)                    \
  case fattr4_number::number:                     \
    detail::visit_attribute(ar, #field, v.field); \
    break;
      NFSRDMA_FILE_ATTRIBUTES4(X)
#undef X
      default:
        break;
    }
  });
}

template <typename A, Is<FileAttributes4> V>
void visit(A& ar, V& v) {
  ar("attrmask", v.attrmask);
  ar.only_bits(v.attrmask, kFileAttributes4);
  ar.enclosed("attr_vals", kNfs4MaxAttrVals,
              [&v](auto& inside) { visit_attribute_values(inside, v); });
}
#undef NFSRDMA_FILE_ATTRIBUTES4

enum class AttributeDecoding {
  kOk,
  kUnknownNumber,  // NFS4ERR_ATTRNOTSUPP
  kBadValues,      // NFS4ERR_BADXDR: too short, too long or no such value
};
struct AttributesDecoded {
  AttributeDecoding outcome = AttributeDecoding::kOk;
  std::uint32_t number = 0;  // with kUnknownNumber: the lowest one
};

/// Reads the values of `from`, which `to` then refers to.
inline AttributesDecoded decode_attributes(const fattr4& from, FileAttributes4& to) {
  to = {};
  bitmap4 unknown = from.attrmask.without(kFileAttributes4);
  if (!unknown.empty()) return {AttributeDecoding::kUnknownNumber, unknown.lowest()};
  to.attrmask = from.attrmask;
  Decoder decoder(from.attr_vals);
  detail::DecodeArchive archive(decoder);
  visit_attribute_values(archive, to);
  if (decoder.at_end()) return {};
  return {AttributeDecoding::kBadValues, 0};
}

}  // namespace nfsrdma::xdr
