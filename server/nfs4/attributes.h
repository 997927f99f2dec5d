// SPDX-License-Identifier: Apache-2.0
// Attributes of NFSv4 (RFC 7530 5, RFC 8881 5, RFC 7862 12, RFC 8275, RFC 8276): which there are,
// filling them from what is known of an object, reading those that a client wants set, comparing.
//
// Nothing here allocates but for acl and fs_locations, and nothing but what a mask asks for is
// looked up: fill_attributes() runs once per GETATTR and per entry of READDIR.
//
// Functions that may have to ask a name service for an owner take `may_block`; where it is false
// and they would have to, nothing was done and the operation is run again where it may block. acl
// always is for where it may block: an ACL has many names, and is long to go through.
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/exports_file.h"
#include "rpcrdma/base/bytes.h"
#include "server/files/new_attributes.h"
#include "server/nfs4/owner_names.h"
#include "xdr/nfs4_attributes.h"

namespace nfsrdma::nfs4 {

/// supported_attrs: all that the minor version has and we do, on file systems that have all of it.
/// Bits of later versions are not known in an earlier one.
xdr::bitmap4 supported_attributes(std::uint32_t minor_version);
/// Those of them that GETATTR may not ask for (RFC 8881 5.5): time_access_set and its kind.
xdr::bitmap4 set_only_attributes(std::uint32_t minor_version);
/// suppattr_exclcreat (RFC 8881 5.8.1.14): what OPEN with EXCLUSIVE4_1 can set. Not the times,
/// which keep the verifier, and not the size, by which a file with a verifier is known as
/// untouched.
xdr::bitmap4 exclusive_create_attributes(std::uint32_t minor_version);

/// May GETATTR or READDIR ask for these? NFS4ERR_INVAL for set-only ones; what is not supported is
/// merely not returned (RFC 8881 18.7.3).
xdr::nfsstat4 check_requested(const xdr::bitmap4& requested, std::uint32_t minor_version);

/// What the attributes of one object are made from.
struct AttributeFacts {
  std::uint32_t minor_version = 0;
  struct stat attributes {};
  std::uint64_t change = 0;  // server/vfs/change_counter.h
  std::uint64_t fsid = 0;    // major; minor is 0
  ByteSpan handle{};         // at most 128 bytes, until the attributes are encoded
  /// Of the directory on which the object's file system is mounted, where the object is its root
  /// (RFC 8881 5.8.2.23). None: its own fileid.
  std::optional<std::uint64_t> mounted_on_fileid;
  std::uint32_t lease_seconds = 0;
  std::uint32_t rtmax = 0;
  std::uint32_t wtmax = 0;
  /// The object, O_PATH is enough; for what is asked of its file system. -1: there is none (pseudo
  /// file system). It has no room and no files, then, and was made at its ctime.
  int path_fd = -1;
  xdr::nfsstat4 rdattr_error = xdr::nfsstat4::NFS4_OK;
  /// Of an absent file system, which has but kAbsentAttributes: others are not returned.
  bool absent = false;
  /// fs_locations: the root of the object's file system as the client finds it, absolute; and where
  /// else it is. Only where that is asked for.
  std::string fs_root;
  std::vector<FsLocation> locations;
};

/// What there is to know of an object of an absent file system (RFC 8881 11.4.2, without
/// fs_locations_info and fs_status, which are not supported).
inline constexpr xdr::bitmap4 kAbsentAttributes = xdr::bitmap4::of(
    {xdr::fattr4_number::FATTR4_FSID, xdr::fattr4_number::FATTR4_RDATTR_ERROR,
     xdr::fattr4_number::FATTR4_FS_LOCATIONS, xdr::fattr4_number::FATTR4_MOUNTED_ON_FILEID});

/// Where strings of FileAttributes4 are kept: in place until the attributes are encoded.
struct AttributeScratch {
  std::array<char, OwnerNames::kTextBytes> owner;
  std::array<char, OwnerNames::kTextBytes> group;
  std::vector<std::byte> acl;
  std::vector<std::byte> locations;
};

/// Do they need AttributeFacts::path_fd? Without it, the answer is that of a pseudo directory.
bool need_descriptor(const xdr::bitmap4& requested);

/// Fills *out with what of `requested` is supported. What the object's file system does not have
/// (time_create, acl) is left out of the mask, and then of supported_attrs as well. 0; EAGAIN: it
/// would block; else an errno of asking the file system, and then no attribute may be returned.
/// *out refers to `facts.handle` and `scratch`.
int fill_attributes(const AttributeFacts& facts, const xdr::bitmap4& requested, OwnerNames& names,
                    bool may_block, AttributeScratch& scratch, xdr::FileAttributes4* out);

/// An entry of READDIR whose attributes cannot be had (RFC 8881 5.8.1.12): rdattr_error, and
/// mounted_on_fileid of the directory's own listing. False when the client did not ask for
/// rdattr_error, and then READDIR as a whole fails with `error`.
bool fill_entry_error(const xdr::bitmap4& requested, xdr::nfsstat4 error,
                      std::uint64_t entry_fileid, xdr::FileAttributes4* out);

/// Which operation wants attributes set.
enum class Setting : std::uint8_t {
  kSetattr,          // SETATTR
  kCreate,           // CREATE, OPEN with UNCHECKED4 or GUARDED4
  kExclusiveCreate,  // OPEN with EXCLUSIVE4_1
};

/// Attributes to be set, ready for server/files/.
struct WantedAttributes {
  xdr::bitmap4 requested{};
  NewAttributes values;
  /// mode_umask (RFC 8275): values.mode has mu_mode. Where the directory has no default ACL, these
  /// bits are taken off it: see mode_to_create().
  std::optional<std::uint32_t> umask;
  /// mode_set_masked (RFC 8881 6.2.5), SETATTR only: these bits of the mode become those of
  /// values.mode, the others stay. See resolve_mode().
  std::optional<std::uint32_t> mode_mask;

  /// Makes values.mode the whole mode, before set_attributes() on an object with that mode.
  void resolve_mode(mode_t current) {
    if (!mode_mask) return;
    values.mode = (current & 07777 & ~*mode_mask) | (*values.mode & *mode_mask);
    mode_mask.reset();
  }
  /// Takes the umask off values.mode, before an object is made in a directory.
  void apply_umask(bool directory_has_default_acl) {
    if (umask && !directory_has_default_acl) *values.mode &= ~*umask;
    umask.reset();
  }
  /// attrsset: those of `requested` that `done` has. After success with everything that was wanted,
  /// that is `requested` itself.
  xdr::bitmap4 attributes_set(const NewAttributes& done) const;
};

/// Reads what a client wants set. NFS4_OK, or
///   NFS4ERR_ATTRNOTSUPP  not supported in the minor version, or not known at all
///   NFS4ERR_INVAL        get-only; not for this operation; undefined bits of a mode; mode together
///                        with mode_set_masked or mode_umask; a time with 10^9 nanoseconds or more;
///                        no name where an owner's should be
///   NFS4ERR_BADXDR       values that cannot be read
///   NFS4ERR_BADOWNER     no such user or group
///   NFS4ERR_ATTRNOTSUPP  an ACL that nothing can have (nfs4/acl_mapping.h)
/// NFS4ERR_DELAY only when !may_block: to be run again where it may block.
xdr::nfsstat4 decode_wanted(const xdr::fattr4& from, Setting setting, std::uint32_t minor_version,
                            OwnerNames& names, bool may_block, WantedAttributes* out);

/// VERIFY and NVERIFY: compares a client's attributes with those of an object. NFS4ERR_SAME or
/// NFS4ERR_NOT_SAME (VERIFY goes on with the first, NVERIFY with the second), or
///   NFS4ERR_ATTRNOTSUPP  not supported, also by this file system
///   NFS4ERR_INVAL        rdattr_error and set-only ones; undefined bits of a mode
///   NFS4ERR_BADXDR       values that cannot be read
///   NFS4ERR_SERVERFAULT  the file system did not answer
/// NFS4ERR_DELAY only when !may_block: to be run again where it may block. Owners, also those in an
/// ACL, are compared by what they mean; a name that nobody has is not the same as any.
xdr::nfsstat4 compare_attributes(const xdr::fattr4& theirs, const AttributeFacts& facts,
                                 OwnerNames& names, bool may_block);

}  // namespace nfsrdma::nfs4
