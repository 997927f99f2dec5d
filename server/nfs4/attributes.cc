// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/attributes.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "server/files/posix_acl.h"
#include "server/files/user_xattrs.h"
#include "server/nfs4/acl_attribute.h"
#include "server/nfs4/locations_attribute.h"
#include "server/nfs4/open_arguments.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::bitmap4;
using xdr::FileAttributes4;
using xdr::nfsstat4;
using enum xdr::fattr4_number;
using enum xdr::nfsstat4;

constexpr std::uint32_t kModeBits = 07777;  // RFC 8881 6.2.4
constexpr std::uint32_t kNanosecondsPerSecond = 1'000'000'000;

constexpr bitmap4 kSupported0 = bitmap4::of({
    FATTR4_SUPPORTED_ATTRS,
    FATTR4_TYPE,
    FATTR4_FH_EXPIRE_TYPE,
    FATTR4_CHANGE,
    FATTR4_SIZE,
    FATTR4_LINK_SUPPORT,
    FATTR4_SYMLINK_SUPPORT,
    FATTR4_NAMED_ATTR,
    FATTR4_FSID,
    FATTR4_UNIQUE_HANDLES,
    FATTR4_LEASE_TIME,
    FATTR4_RDATTR_ERROR,
    FATTR4_FILEHANDLE,  // those up to here are REQUIRED
    FATTR4_ACL,
    FATTR4_ACLSUPPORT,
    FATTR4_CANSETTIME,
    FATTR4_CASE_INSENSITIVE,
    FATTR4_CASE_PRESERVING,
    FATTR4_CHOWN_RESTRICTED,
    FATTR4_FILEID,
    FATTR4_FILES_AVAIL,
    FATTR4_FILES_FREE,
    FATTR4_FILES_TOTAL,
    FATTR4_FS_LOCATIONS,
    FATTR4_HOMOGENEOUS,
    FATTR4_MAXFILESIZE,
    FATTR4_MAXLINK,
    FATTR4_MAXNAME,
    FATTR4_MAXREAD,
    FATTR4_MAXWRITE,
    FATTR4_MODE,
    FATTR4_NO_TRUNC,
    FATTR4_NUMLINKS,
    FATTR4_OWNER,
    FATTR4_OWNER_GROUP,
    FATTR4_RAWDEV,
    FATTR4_SPACE_AVAIL,
    FATTR4_SPACE_FREE,
    FATTR4_SPACE_TOTAL,
    FATTR4_SPACE_USED,
    FATTR4_TIME_ACCESS,
    FATTR4_TIME_ACCESS_SET,
    FATTR4_TIME_CREATE,
    FATTR4_TIME_DELTA,
    FATTR4_TIME_METADATA,
    FATTR4_TIME_MODIFY,
    FATTR4_TIME_MODIFY_SET,
    FATTR4_MOUNTED_ON_FILEID,
});
constexpr bitmap4 kSupported1 =
    kSupported0 |
    bitmap4::of({FATTR4_MODE_SET_MASKED, FATTR4_SUPPATTR_EXCLCREAT, FATTR4_FS_CHARSET_CAP});
constexpr bitmap4 kSupported2 =
    kSupported1 | bitmap4::of({FATTR4_CLONE_BLKSIZE, FATTR4_CHANGE_ATTR_TYPE, FATTR4_MODE_UMASK,
                               FATTR4_XATTR_SUPPORT, FATTR4_OPEN_ARGUMENTS});
static_assert(kSupported2.without(xdr::kFileAttributes4).empty());

constexpr bitmap4 kSetOnly = bitmap4::of(
    {FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET, FATTR4_MODE_SET_MASKED, FATTR4_MODE_UMASK});

constexpr bitmap4 kExclusive =
    bitmap4::of({FATTR4_ACL, FATTR4_MODE, FATTR4_OWNER, FATTR4_OWNER_GROUP, FATTR4_MODE_UMASK});
constexpr bitmap4 kCreate =
    kExclusive | bitmap4::of({FATTR4_SIZE, FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET});
// mode_umask is for making objects (RFC 8275 6), mode_set_masked for SETATTR (RFC 8881 6.2.5).
constexpr bitmap4 kSetattr =
    bitmap4::of({FATTR4_SIZE, FATTR4_ACL, FATTR4_MODE, FATTR4_OWNER, FATTR4_OWNER_GROUP,
                 FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET, FATTR4_MODE_SET_MASKED});

constexpr bitmap4 kFromStatvfs =
    bitmap4::of({FATTR4_FILES_AVAIL, FATTR4_FILES_FREE, FATTR4_FILES_TOTAL, FATTR4_MAXNAME,
                 FATTR4_SPACE_AVAIL, FATTR4_SPACE_FREE, FATTR4_SPACE_TOTAL, FATTR4_CLONE_BLKSIZE});
// supported_attrs says whether there is a time of birth.
constexpr bitmap4 kFromStatx = bitmap4::of({FATTR4_TIME_CREATE, FATTR4_SUPPORTED_ATTRS});
// Those that say whether there are ACLs.
constexpr bitmap4 kAclSupport =
    bitmap4::of({FATTR4_SUPPORTED_ATTRS, FATTR4_ACLSUPPORT, FATTR4_SUPPATTR_EXCLCREAT});
constexpr bitmap4 kNeedDescriptor =
    kFromStatvfs | kFromStatx | kAclSupport | bitmap4::of({FATTR4_ACL, FATTR4_XATTR_SUPPORT});

xdr::nfs_ftype4 type_of(mode_t mode) {
  using enum xdr::nfs_ftype4;
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return NF4DIR;
    case S_IFBLK:
      return NF4BLK;
    case S_IFCHR:
      return NF4CHR;
    case S_IFLNK:
      return NF4LNK;
    case S_IFSOCK:
      return NF4SOCK;
    case S_IFIFO:
      return NF4FIFO;
    default:
      return NF4REG;
  }
}

xdr::nfstime4 time_of(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

/// What is constant, or comes from the server's configuration.
void fill_constants(const AttributeFacts& facts, FileAttributes4* out) {
  constexpr std::uint32_t kPersistentHandles = 0;  // FH4_PERSISTENT
  constexpr std::uint32_t kLinkMax = 32000;        // as pathconf(3) where it does not know
  constexpr std::uint32_t kContainsNonUtf8 = 1;    // FSCHARSET_CAP4_CONTAINS_NON_UTF8
  out->fh_expire_type = kPersistentHandles;
  out->link_support = out->symlink_support = true;
  out->unique_handles = true;
  out->cansettime = true;
  out->case_preserving = true;
  out->chown_restricted = true;
  out->homogeneous = true;
  out->no_trunc = true;
  out->lease_time = facts.lease_seconds;
  out->rdattr_error = facts.rdattr_error;
  out->maxfilesize = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  out->maxlink = kLinkMax;
  out->maxread = facts.rtmax;
  out->maxwrite = facts.wtmax;
  out->time_delta = {0, 1};
  out->suppattr_exclcreat = exclusive_create_attributes(facts.minor_version);
  out->fs_charset_cap = kContainsNonUtf8;
  out->change_attr_type = xdr::change_attr_type4::NFS4_CHANGE_TYPE_IS_TIME_METADATA;
}

void fill_from_stat(const AttributeFacts& facts, FileAttributes4* out) {
  constexpr std::uint64_t kBlock = 512;
  const struct stat& st = facts.attributes;
  out->type = type_of(st.st_mode);
  out->change = facts.change;
  out->size = static_cast<std::uint64_t>(st.st_size);
  out->fsid = {facts.fsid, 0};
  out->filehandle.data = facts.handle;
  out->fileid = st.st_ino;
  out->mounted_on_fileid = facts.mounted_on_fileid.value_or(st.st_ino);
  out->mode = st.st_mode & kModeBits;
  out->numlinks = static_cast<std::uint32_t>(st.st_nlink);
  out->rawdev = {major(st.st_rdev), minor(st.st_rdev)};
  out->space_used = static_cast<std::uint64_t>(st.st_blocks) * kBlock;
  out->time_access = time_of(st.st_atim);
  out->time_metadata = time_of(st.st_ctim);
  out->time_modify = time_of(st.st_mtim);
}

int fill_from_statvfs(const AttributeFacts& facts, FileAttributes4* out) {
  constexpr std::uint32_t kNameMax = 255;
  constexpr std::uint32_t kCloneBlock = 4096;
  out->maxname = kNameMax;
  out->clone_blksize = kCloneBlock;
  if (facts.path_fd < 0) return 0;
  struct statvfs fs;
  if (::fstatvfs(facts.path_fd, &fs) != 0) return errno;
  out->files_avail = fs.f_favail;
  out->files_free = fs.f_ffree;
  out->files_total = fs.f_files;
  out->space_avail = fs.f_bavail * fs.f_frsize;
  out->space_free = fs.f_bfree * fs.f_frsize;
  out->space_total = fs.f_blocks * fs.f_frsize;
  if (fs.f_namemax != 0) out->maxname = static_cast<std::uint32_t>(fs.f_namemax);
  if (fs.f_bsize != 0) out->clone_blksize = static_cast<std::uint32_t>(fs.f_bsize);
  return 0;
}

int fill_from_statx(const AttributeFacts& facts, FileAttributes4* out) {
  out->supported_attrs = supported_attributes(facts.minor_version);
  out->time_create = time_of(facts.attributes.st_ctim);
  if (facts.path_fd < 0) return 0;
  struct statx stx;
  if (::statx(facts.path_fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx) != 0) {
    return errno;
  }
  if ((stx.stx_mask & STATX_BTIME) != 0) {
    out->time_create = {stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
  } else {
    out->supported_attrs.clear(FATTR4_TIME_CREATE);
    out->attrmask.clear(FATTR4_TIME_CREATE);
  }
  return 0;
}

void fill_acl_support(const AttributeFacts& facts, FileAttributes4* out) {
  if (has_posix_acls(facts.path_fd, facts.attributes.st_mode)) {
    out->aclsupport = xdr::ACL4_SUPPORT_ALLOW_ACL | xdr::ACL4_SUPPORT_DENY_ACL;
    return;
  }
  out->supported_attrs.clear(FATTR4_ACL);
  out->suppattr_exclcreat.clear(FATTR4_ACL);
}

/// The object's ACL. EOPNOTSUPP where there are none.
int read_aces(const AttributeFacts& facts, std::vector<Ace>* aces) {
  const mode_t mode = facts.attributes.st_mode;
  PosixAcls acls;
  if (facts.path_fd < 0) return EOPNOTSUPP;
  if (const int error = read_posix_acls(facts.path_fd, mode, &acls)) return error;
  *aces = to_aces(acls, S_ISDIR(mode));
  return 0;
}

int fill_acl(const AttributeFacts& facts, OwnerNames& names, bool may_block,
             AttributeScratch& scratch, FileAttributes4* out) {
  if (!may_block) return EAGAIN;
  std::vector<Ace> aces;
  const int error = read_aces(facts, &aces);
  if (error == EOPNOTSUPP) {
    out->attrmask.clear(FATTR4_ACL);
    return 0;
  }
  if (error != 0) return error;
  encode_aces(aces, names, may_block, scratch.acl, &out->acl);
  return 0;
}

bool intersect(const bitmap4& a, const bitmap4& b) {
  return !(a & b).empty();
}

/// NFS4ERR_INVAL for a time that is none.
nfsstat4 to_new_time(const xdr::settime4& from, NewTime* to) {
  switch (from.set_it) {
    case xdr::time_how4::SET_TO_SERVER_TIME4:
      to->value = {0, UTIME_NOW};
      return NFS4_OK;
    case xdr::time_how4::SET_TO_CLIENT_TIME4:
      if (from.time.nseconds >= kNanosecondsPerSecond) return NFS4ERR_INVAL;
      to->value = {from.time.seconds, static_cast<long>(from.time.nseconds)};
      return NFS4_OK;
  }
  return NFS4ERR_BADXDR;
}

nfsstat4 to_status(OwnerNames::Answer answer) {
  switch (answer) {
    case OwnerNames::Answer::kKnown:
      return NFS4_OK;
    case OwnerNames::Answer::kWouldBlock:
      return NFS4ERR_DELAY;
    case OwnerNames::Answer::kUnknown:
      break;
  }
  return NFS4ERR_BADOWNER;
}

/// mode, mode_set_masked and mode_umask, of which there may be one (RFC 8881 6.2.5, RFC 8275 6).
nfsstat4 take_mode(const FileAttributes4& from, WantedAttributes* out) {
  const bitmap4& mask = from.attrmask;
  if (mask.has(FATTR4_MODE) + mask.has(FATTR4_MODE_SET_MASKED) + mask.has(FATTR4_MODE_UMASK) > 1) {
    return NFS4ERR_INVAL;
  }
  // Fields that are not in the mask are 0.
  const std::uint32_t all = from.mode | from.mode_set_masked.mm_value_to_set |
                            from.mode_set_masked.mm_mask_bits | from.mode_umask.mu_mode |
                            from.mode_umask.mu_umask;
  if ((all & ~kModeBits) != 0) return NFS4ERR_INVAL;
  if (mask.has(FATTR4_MODE)) out->values.mode = from.mode;
  if (mask.has(FATTR4_MODE_SET_MASKED)) {
    out->values.mode = from.mode_set_masked.mm_value_to_set & from.mode_set_masked.mm_mask_bits;
    out->mode_mask = from.mode_set_masked.mm_mask_bits;
  }
  if (mask.has(FATTR4_MODE_UMASK)) {
    out->values.mode = from.mode_umask.mu_mode;
    out->umask = from.mode_umask.mu_umask;
  }
  return NFS4_OK;
}

nfsstat4 take_times(const FileAttributes4& from, WantedAttributes* out) {
  nfsstat4 status = NFS4_OK;
  if (from.attrmask.has(FATTR4_TIME_ACCESS_SET)) {
    status = to_new_time(from.time_access_set, &out->values.atime);
  }
  if (status == NFS4_OK && from.attrmask.has(FATTR4_TIME_MODIFY_SET)) {
    status = to_new_time(from.time_modify_set, &out->values.mtime);
  }
  return status;
}

nfsstat4 take_owners(const FileAttributes4& from, OwnerNames& names, bool may_block,
                     WantedAttributes* out) {
  std::uint32_t id;
  if ((from.attrmask.has(FATTR4_OWNER) && from.owner.empty()) ||
      (from.attrmask.has(FATTR4_OWNER_GROUP) && from.owner_group.empty())) {
    return NFS4ERR_INVAL;
  }
  if (from.attrmask.has(FATTR4_OWNER)) {
    const nfsstat4 status = to_status(names.uid_of(from.owner, may_block, &id));
    if (status != NFS4_OK) return status;
    out->values.uid = id;
  }
  if (from.attrmask.has(FATTR4_OWNER_GROUP)) {
    const nfsstat4 status = to_status(names.gid_of(from.owner_group, may_block, &id));
    if (status != NFS4_OK) return status;
    out->values.gid = id;
  }
  return NFS4_OK;
}

nfsstat4 take_acl(const FileAttributes4& from, OwnerNames& names, bool may_block,
                  WantedAttributes* out) {
  if (!from.attrmask.has(FATTR4_ACL)) return NFS4_OK;
  if (!may_block) return NFS4ERR_DELAY;
  std::vector<Ace> aces;
  const nfsstat4 bad = decode_aces(from.acl, names, may_block, &aces);
  if (bad != NFS4_OK) return bad;
  auto acls = std::make_shared<NewAcls>();
  const auto map = [&](bool is_directory, std::optional<PosixAcls>& to) {
    const nfsstat4 status = from_aces(aces, is_directory, &to.emplace());
    if (status != NFS4_OK) to.reset();
    return status;
  };
  // What files can have, directories can.
  (void)map(false, acls->other);
  const nfsstat4 status = map(true, acls->directory);
  out->values.acls = std::move(acls);
  return status;
}

/// Is that the object's ACL? NFS4ERR_SAME, NFS4ERR_NOT_SAME, NFS4ERR_DELAY when !may_block, or what
/// kept it from comparing.
nfsstat4 compare_acl(const xdr::fattr4_acl& theirs, const AttributeFacts& facts, OwnerNames& names,
                     bool may_block) {
  if (!may_block) return NFS4ERR_DELAY;
  std::vector<Ace> ours, given;
  const int error = read_aces(facts, &ours);
  if (error == EOPNOTSUPP) return NFS4ERR_ATTRNOTSUPP;
  if (error != 0) return NFS4ERR_SERVERFAULT;
  const nfsstat4 status = decode_aces(theirs, names, may_block, &given);
  return status == NFS4_OK && ours == given ? NFS4ERR_SAME : NFS4ERR_NOT_SAME;
}

/// Puts our string in place of theirs where it means the same. kWouldBlock, or kKnown.
OwnerNames::Answer unify(OwnerNames::Answer answer, bool same, std::string_view ours,
                         std::string_view* theirs) {
  if (answer == OwnerNames::Answer::kWouldBlock) return answer;
  if (answer == OwnerNames::Answer::kKnown && same) *theirs = ours;
  return OwnerNames::Answer::kKnown;
}

// All that are supported, at their longest; but for acl and fs_locations, compared by themselves.
constexpr std::size_t kEncodedRoom = 4096;
static_assert(kEncodedRoom > 2 * xdr::kNfs4MaxOwner + xdr::kNfs4MaxHandle + 1024);

/// The values alone, for comparison.
ByteSpan encode_values(const FileAttributes4& attributes,
                       std::array<std::byte, kEncodedRoom>& room) {
  xdr::Encoder encoder(room);
  xdr::detail::EncodeArchive archive(encoder);
  xdr::visit_attribute_values(archive, attributes);
  return encoder.bytes();
}

}  // namespace

xdr::bitmap4 supported_attributes(std::uint32_t minor_version) {
  switch (minor_version) {
    case 0:
      return kSupported0;
    case 1:
      return kSupported1;
    default:
      return kSupported2;
  }
}

xdr::bitmap4 set_only_attributes(std::uint32_t minor_version) {
  return kSetOnly & supported_attributes(minor_version);
}

xdr::bitmap4 exclusive_create_attributes(std::uint32_t minor_version) {
  return kExclusive & supported_attributes(minor_version);
}

xdr::nfsstat4 check_requested(const xdr::bitmap4& requested, std::uint32_t minor_version) {
  return intersect(requested, set_only_attributes(minor_version)) ? NFS4ERR_INVAL : NFS4_OK;
}

bool need_descriptor(const xdr::bitmap4& requested) {
  return intersect(requested, kNeedDescriptor);
}

int fill_attributes(const AttributeFacts& facts, const xdr::bitmap4& requested, OwnerNames& names,
                    bool may_block, AttributeScratch& scratch, xdr::FileAttributes4* out) {
  *out = {};
  out->attrmask = (requested & supported_attributes(facts.minor_version)).without(kSetOnly);
  if (facts.absent) out->attrmask = out->attrmask & kAbsentAttributes;
  const bitmap4 mask = out->attrmask;
  fill_constants(facts, out);
  fill_from_stat(facts, out);
  using Answer = OwnerNames::Answer;
  if (mask.has(FATTR4_OWNER) && names.user_text(facts.attributes.st_uid, may_block, scratch.owner,
                                                &out->owner) == Answer::kWouldBlock) {
    return EAGAIN;
  }
  if (mask.has(FATTR4_OWNER_GROUP) &&
      names.group_text(facts.attributes.st_gid, may_block, scratch.group, &out->owner_group) ==
          Answer::kWouldBlock) {
    return EAGAIN;
  }
  if (intersect(mask, kFromStatvfs)) {
    if (const int error = fill_from_statvfs(facts, out)) return error;
  }
  if (intersect(mask, kFromStatx)) {
    if (const int error = fill_from_statx(facts, out)) return error;
  }
  if (intersect(mask, kAclSupport)) fill_acl_support(facts, out);
  if (mask.has(FATTR4_XATTR_SUPPORT)) {
    out->xattr_support = facts.path_fd >= 0 && has_user_xattrs(facts.path_fd);
  }
  if (mask.has(FATTR4_OPEN_ARGUMENTS)) out->open_arguments = open_arguments();
  if (mask.has(FATTR4_FS_LOCATIONS)) {
    out->fs_locations = encode_locations(facts.fs_root, facts.locations, scratch.locations);
  }
  return mask.has(FATTR4_ACL) ? fill_acl(facts, names, may_block, scratch, out) : 0;
}

bool fill_entry_error(const xdr::bitmap4& requested, xdr::nfsstat4 error,
                      std::uint64_t entry_fileid, xdr::FileAttributes4* out) {
  *out = {};
  if (!requested.has(FATTR4_RDATTR_ERROR)) return false;
  out->attrmask = requested & bitmap4::of({FATTR4_RDATTR_ERROR, FATTR4_MOUNTED_ON_FILEID});
  out->rdattr_error = error;
  out->mounted_on_fileid = entry_fileid;
  return true;
}

xdr::bitmap4 WantedAttributes::attributes_set(const NewAttributes& done) const {
  bitmap4 set;
  if (done.size) set.set(FATTR4_SIZE);
  if (done.uid) set.set(FATTR4_OWNER);
  if (done.gid) set.set(FATTR4_OWNER_GROUP);
  if (done.mode) {
    set = set | bitmap4::of({FATTR4_MODE, FATTR4_MODE_SET_MASKED, FATTR4_MODE_UMASK});
  }
  if (done.acls) set.set(FATTR4_ACL);
  if (done.atime.is_set()) set.set(FATTR4_TIME_ACCESS_SET);
  if (done.mtime.is_set()) set.set(FATTR4_TIME_MODIFY_SET);
  return set & requested;
}

xdr::nfsstat4 decode_wanted(const xdr::fattr4& from, Setting setting, std::uint32_t minor_version,
                            OwnerNames& names, bool may_block, WantedAttributes* out) {
  *out = {};
  if (!from.attrmask.without(supported_attributes(minor_version)).empty()) {
    return NFS4ERR_ATTRNOTSUPP;
  }
  const bitmap4& writable = setting == Setting::kSetattr           ? kSetattr
                            : setting == Setting::kExclusiveCreate ? kExclusive
                                                                   : kCreate;
  if (!from.attrmask.without(writable).empty()) return NFS4ERR_INVAL;
  FileAttributes4 values;
  if (xdr::decode_attributes(from, values).outcome != xdr::AttributeDecoding::kOk) {
    return NFS4ERR_BADXDR;
  }
  out->requested = from.attrmask;
  if (from.attrmask.has(FATTR4_SIZE)) out->values.size = values.size;
  nfsstat4 status = take_mode(values, out);
  if (status == NFS4_OK) status = take_times(values, out);
  if (status == NFS4_OK) status = take_owners(values, names, may_block, out);
  if (status == NFS4_OK) status = take_acl(values, names, may_block, out);
  return status;
}

xdr::nfsstat4 compare_attributes(const xdr::fattr4& theirs, const AttributeFacts& facts,
                                 OwnerNames& names, bool may_block) {
  const bitmap4& mask = theirs.attrmask;
  if (!mask.without(supported_attributes(facts.minor_version)).empty()) return NFS4ERR_ATTRNOTSUPP;
  if (intersect(mask, kSetOnly) || mask.has(FATTR4_RDATTR_ERROR)) return NFS4ERR_INVAL;
  FileAttributes4 given;
  if (xdr::decode_attributes(theirs, given).outcome != xdr::AttributeDecoding::kOk) {
    return NFS4ERR_BADXDR;
  }
  if ((given.mode & ~kModeBits) != 0) return NFS4ERR_INVAL;
  bool same_acl = true;
  if (mask.has(FATTR4_ACL)) {
    const nfsstat4 verdict = compare_acl(given.acl, facts, names, may_block);
    if (verdict != NFS4ERR_SAME && verdict != NFS4ERR_NOT_SAME) return verdict;
    same_acl = verdict == NFS4ERR_SAME;
    given.attrmask.clear(FATTR4_ACL);
  }
  AttributeScratch scratch;
  FileAttributes4 actual;
  if (const int error =
          fill_attributes(facts, given.attrmask, names, may_block, scratch, &actual)) {
    return error == EAGAIN ? NFS4ERR_DELAY : NFS4ERR_SERVERFAULT;
  }
  if (actual.attrmask != given.attrmask) return NFS4ERR_ATTRNOTSUPP;
  using Answer = OwnerNames::Answer;
  std::uint32_t id = 0;
  if (mask.has(FATTR4_OWNER)) {
    const Answer answer = names.uid_of(given.owner, may_block, &id);
    if (unify(answer, id == facts.attributes.st_uid, actual.owner, &given.owner) ==
        Answer::kWouldBlock) {
      return NFS4ERR_DELAY;
    }
  }
  if (mask.has(FATTR4_OWNER_GROUP)) {
    const Answer answer = names.gid_of(given.owner_group, may_block, &id);
    if (unify(answer, id == facts.attributes.st_gid, actual.owner_group, &given.owner_group) ==
        Answer::kWouldBlock) {
      return NFS4ERR_DELAY;
    }
  }
  bool same_locations = true;
  if (mask.has(FATTR4_FS_LOCATIONS)) {
    same_locations = equal_locations(actual.fs_locations, given.fs_locations);
    actual.attrmask.clear(FATTR4_FS_LOCATIONS);
    given.attrmask.clear(FATTR4_FS_LOCATIONS);
  }
  std::array<std::byte, kEncodedRoom> our_room, their_room;
  const ByteSpan our_bytes = encode_values(actual, our_room);
  const ByteSpan their_bytes = encode_values(given, their_room);
  return same_acl && same_locations && std::ranges::equal(our_bytes, their_bytes)
             ? NFS4ERR_SAME
             : NFS4ERR_NOT_SAME;
}

}  // namespace nfsrdma::nfs4
