// SPDX-License-Identifier: Apache-2.0
// GETXATTR, SETXATTR, LISTXATTRS and REMOVEXATTR (RFC 8276 8.4): NFS4ERR_NOTSUPP from file systems
// that have no extended attributes, as the pseudo file system.
#include <algorithm>
#include <cerrno>

#include "server/files/change_scope.h"
#include "server/files/user_xattrs.h"
#include "server/nfs4/change_info.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

bool is_pseudo(const Compound& compound) {
  return compound.current.kind == CurrentHandle::Kind::kPseudo;
}

/// Changes the current object's attribute by `change` (0 or an errno).
template <typename Change>
nfsstat4 change_xattr(Compound& compound, std::string_view name, Change change,
                      xdr::change_info4* info) {
  if (is_pseudo(compound)) return NFS4ERR_NOTSUPP;
  if (const int bad = check_xattr_name(name)) return status_of_errno(bad);
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kChange); status != NFS4_OK) return status;
  Resolved& object = compound.current.object;
  if (const int busy = call.may_change(*object.file)) return status_of_errno(busy);
  const struct stat before = object.attributes;
  ChangeScope scope(compound.server(), object);
  const int error = change(*object.file);
  scope.finish();
  (void)call.may_change(*object.file);  // as in set_attributes()
  call.server().files.note_own_change(*object.file, before, object.attributes);
  if (error != 0) return status_of_errno(error);
  *info = change_info(scope);
  compound.wait_for_metadata(call, object);
  return NFS4_OK;
}

// Of LISTXATTRS4resok: cookie, number of names and eof.
constexpr std::size_t kListFrame = 8 + 4 + 4;
constexpr std::size_t kResultHead = 4 + 4;  // number and status
/// The names of a list of kMostXattrBytes, encoded: "user.x" with its NUL becomes 8 bytes at most.
constexpr std::size_t kMostEncodedNames = kMostXattrBytes + kMostXattrBytes / 4;

/// Fills res from the list of the current object; at most `limit` bytes of names. A cookie behind
/// them all is no error: some may have been removed since it was given.
nfsstat4 list(Compound& compound, std::uint64_t cookie, std::size_t limit,
              xdr::LISTXATTRS4resok& res) {
  const MutableByteSpan memory = compound.scratch(kMostXattrBytes + kMostEncodedNames);
  const MutableByteSpan encoded = memory.subspan(kMostXattrBytes);
  xdr::Encoder names(encoded.first(std::min(encoded.size(), limit)));
  std::uint64_t place = 0;  // of the name at hand; a cookie says how many came before
  bool full = false;
  const int error = list_user_xattrs(*compound.current.object.file, memory.first(kMostXattrBytes),
                                     [&](std::string_view name) {
                                       if (place++ < cookie) return true;
                                       const std::size_t mark = names.mark();
                                       xdr::encode(names, xdr::xattrkey4{name});
                                       full = names.overflowed();
                                       if (full) names.rewind(mark);
                                       res.lxr_names.count += full ? 0 : 1;
                                       return !full;
                                     });
  if (error == E2BIG) return NFS4ERR_REP_TOO_BIG;
  if (error != 0) return status_of_errno(error);
  if (full && res.lxr_names.count == 0) return NFS4ERR_TOOSMALL;
  res.lxr_names.encoded = names.bytes();
  res.lxr_cookie = cookie + res.lxr_names.count;
  res.lxr_eof = !full;
  return NFS4_OK;
}

}  // namespace

nfsstat4 getxattr(Compound& compound, const xdr::GETXATTR4args& args, xdr::GETXATTR4res& res) {
  if (is_pseudo(compound)) return NFS4ERR_NOTSUPP;
  if (const int bad = check_xattr_name(args.gxa_name)) return status_of_errno(bad);
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kLook); status != NFS4_OK) return status;
  const MutableByteSpan room = compound.scratch(kMostXattrBytes);
  std::size_t size = 0;
  if (const int error = get_user_xattr(*compound.current.object.file, args.gxa_name,
                                       room.first(kMostXattrBytes), &size)) {
    return status_of_errno(error);
  }
  if (!compound.have_room(round_up4(size) + kResultHead)) {
    return compound.retry(Outcome::kNeedRoom);
  }
  res.resok4.gxr_value = room.first(size);
  return NFS4_OK;
}

nfsstat4 setxattr(Compound& compound, const xdr::SETXATTR4args& args, xdr::SETXATTR4res& res) {
  XattrSetting setting = XattrSetting::kEither;
  switch (args.sxa_option) {
    case xdr::setxattr_option4::SETXATTR4_EITHER:
      break;
    case xdr::setxattr_option4::SETXATTR4_CREATE:
      setting = XattrSetting::kCreate;
      break;
    case xdr::setxattr_option4::SETXATTR4_REPLACE:
      setting = XattrSetting::kReplace;
      break;
    default:
      return NFS4ERR_INVAL;
  }
  return change_xattr(
      compound, args.sxa_key,
      [&](const FileEntry& object) {
        return set_user_xattr(object, args.sxa_key, args.sxa_value, setting);
      },
      &res.resok4);
}

nfsstat4 listxattrs(Compound& compound, const xdr::LISTXATTRS4args& args,
                    xdr::LISTXATTRS4res& res) {
  if (is_pseudo(compound)) return NFS4ERR_NOTSUPP;
  if (args.lxa_maxcount < kListFrame) return NFS4ERR_TOOSMALL;
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kLook); status != NFS4_OK) return status;
  // The kernel lists names to everybody; as in Linux's server it takes the right to read.
  const Resolved& object = compound.current.object;
  if (call.server().files.rights(*object.file, call.caller(), object.attributes, kRightRead) == 0) {
    return NFS4ERR_ACCESS;
  }
  const std::size_t left = compound.room_left();
  if (left < kResultHead + kListFrame) return NFS4ERR_REP_TOO_BIG;
  const std::size_t limit =
      std::min<std::size_t>(args.lxa_maxcount, left - kResultHead) - kListFrame;
  const nfsstat4 status = list(compound, args.lxa_cookie, limit, res.resok4);
  if (status != NFS4_OK) return status;
  if (!compound.have_room(res.resok4.lxr_names.encoded.size() + kListFrame + kResultHead)) {
    return compound.retry(Outcome::kNeedRoom);
  }
  return NFS4_OK;
}

nfsstat4 removexattr(Compound& compound, const xdr::REMOVEXATTR4args& args,
                     xdr::REMOVEXATTR4res& res) {
  return change_xattr(
      compound, args.rxa_name,
      [&](const FileEntry& object) { return remove_user_xattr(object, args.rxa_name); },
      &res.resok4);
}

}  // namespace nfsrdma::nfs4
