// SPDX-License-Identifier: Apache-2.0
// CREATE, REMOVE, RENAME and LINK (RFC 8881 18.4, 18.25, 18.26, 18.9). Regular files are made by
// OPEN.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <optional>

#include "server/files/change_scope.h"
#include "server/files/default_acl.h"
#include "server/files/entry_names.h"
#include "server/files/set_attributes.h"
#include "server/nfs4/attributes.h"
#include "server/nfs4/change_info.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/places.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// 0 when CREATE does not make such objects.
mode_t format_of(xdr::nfs_ftype4 type) {
  switch (type) {
    case xdr::nfs_ftype4::NF4DIR:
      return S_IFDIR;
    case xdr::nfs_ftype4::NF4LNK:
      return S_IFLNK;
    case xdr::nfs_ftype4::NF4BLK:
      return S_IFBLK;
    case xdr::nfs_ftype4::NF4CHR:
      return S_IFCHR;
    case xdr::nfs_ftype4::NF4SOCK:
      return S_IFSOCK;
    case xdr::nfs_ftype4::NF4FIFO:
      return S_IFIFO;
    default:
      return 0;
  }
}

/// The system call alone. 0 or an errno.
int make(const Resolved& directory, const xdr::CREATE4args& args, mode_t format,
         std::uint32_t mode) {
  const EntryName name(args.objname);
  const int fd = directory.file->path_fd();
  if (format == S_IFDIR) return ::mkdirat(fd, name.c_str(), mode) == 0 ? 0 : errno;
  if (format == S_IFLNK) return make_symlink(directory, args.objname, args.objtype.linkdata.bytes);
  const bool device = format == S_IFBLK || format == S_IFCHR;
  const xdr::specdata4& spec = args.objtype.devdata;
  const dev_t number = device ? makedev(spec.specdata1, spec.specdata2) : 0;
  return ::mknodat(fd, name.c_str(), format | mode, number) == 0 ? 0 : errno;
}

/// Both handles are of one export and file system.
bool same_file_system(const CurrentHandle& a, const CurrentHandle& b) {
  return a.kind == CurrentHandle::Kind::kObject && b.kind == CurrentHandle::Kind::kObject &&
         a.parts.export_id == b.parts.export_id && a.parts.mount_key == b.parts.mount_key;
}

/// Two names of one object: RENAME has nothing to do (RFC 8881 18.26.3).
bool is_same_object(const Resolved& from, std::string_view old_name, const Resolved& to,
                    std::string_view new_name) {
  struct stat a, b;
  return ::fstatat(from.file->path_fd(), EntryName(old_name).c_str(), &a, AT_SYMLINK_NOFOLLOW) ==
             0 &&
         ::fstatat(to.file->path_fd(), EntryName(new_name).c_str(), &b, AT_SYMLINK_NOFOLLOW) == 0 &&
         a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/// What loses its last name now could not be reclaimed any more (RFC 8881 8.4.2.1).
bool is_in_grace(Compound& compound) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  return !state.grace.over(state.now());
}

xdr::change_info4 unchanged(Compound& compound, Resolved& directory) {
  ChangeCounter& changes = compound.server().change_counter;
  const FileEntry& file = *directory.file;
  std::uint64_t change = 0;
  (void)changes.look(file.path_fd(), file.device(), file.inode(), &directory.attributes, &change);
  return {true, change, change};
}

}  // namespace

nfsstat4 create(Compound& compound, const xdr::CREATE4args& args, xdr::CREATE4res& res) {
  const mode_t format = format_of(args.objtype.type);
  if (format == 0) return NFS4ERR_BADTYPE;
  if (const nfsstat4 bad = check_component(args.objname); bad != NFS4_OK) return bad;
  WantedAttributes wanted;
  if (const nfsstat4 bad =
          decode_wanted(args.createattrs, Setting::kCreate, compound.minor_version(),
                        compound.state().owner_names(), compound.may_block(), &wanted);
      bad != NFS4_OK) {
    return bad == NFS4ERR_DELAY && !compound.may_block() ? compound.retry(Outcome::kWouldBlock)
                                                         : bad;
  }
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kChange);
      status != NFS4_OK) {
    return status == NFS4ERR_SYMLINK ? NFS4ERR_NOTDIR : status;
  }
  Resolved& directory = compound.current.object;
  if (const int bad = check_acls(wanted.values, directory.file->path_fd(), format)) {
    return status_of_errno(bad);
  }
  if (wanted.umask) wanted.apply_umask(has_default_acl(*directory.file));
  const std::uint32_t mode = initial_mode(wanted.values);
  Resolved object;
  ChangeScope scope(compound.server(), directory);
  int error = make(directory, args, format, mode);
  const bool changed = may_have_changed(error);
  if (error == 0) {
    error = finish_object(call, directory, args.objname, wanted.values, format | mode, &object);
  }
  scope.finish(changed);
  if (error != 0) return status_of_errno(error);
  res.resok4.cinfo = change_info(scope);
  res.resok4.attrset = wanted.requested;
  compound.wait_for_metadata(call, directory);
  compound.wait_for_metadata(call, object);
  compound.current = CurrentHandle::of(std::move(object));
  compound.current_stateid = Stateid();
  return NFS4_OK;
}

nfsstat4 remove(Compound& compound, const xdr::REMOVE4args& args, xdr::REMOVE4res& res) {
  if (const nfsstat4 bad = check_component(args.target); bad != NFS4_OK) return bad;
  if (is_in_grace(compound)) return NFS4ERR_GRACE;
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kChange);
      status != NFS4_OK) {
    return status == NFS4ERR_SYMLINK ? NFS4ERR_NOTDIR : status;
  }
  Resolved& directory = compound.current.object;
  const EntryName name(args.target);
  ChangeScope scope(compound.server(), directory);
  // One operation for files and directories; most are files.
  int error = remove_entry(call, directory, name.c_str(), 0);
  if (error == EISDIR) error = remove_entry(call, directory, name.c_str(), AT_REMOVEDIR);
  scope.finish(may_have_changed(error));
  if (error != 0) return status_of_errno(error);
  res.resok4.cinfo = change_info(scope);
  compound.wait_for_metadata(call, directory);
  return NFS4_OK;
}

nfsstat4 rename(Compound& compound, const xdr::RENAME4args& args, xdr::RENAME4res& res) {
  if (const nfsstat4 bad = check_component(args.oldname); bad != NFS4_OK) return bad;
  if (const nfsstat4 bad = check_component(args.newname); bad != NFS4_OK) return bad;
  if (is_in_grace(compound)) return NFS4ERR_GRACE;
  FileCall source_call(compound.server(), compound.request());
  FileCall call(compound.server(), compound.request());
  nfsstat4 status = compound.enter_directory(source_call, compound.saved, Use::kChange);
  if (status == NFS4_OK) status = compound.enter_directory(call, compound.current, Use::kChange);
  if (status == NFS4ERR_SYMLINK) return NFS4ERR_NOTDIR;
  if (status != NFS4_OK) return status;
  if (!same_file_system(compound.saved, compound.current)) return NFS4ERR_XDEV;
  Resolved& from = compound.saved.object;
  Resolved& to = compound.current.object;
  if (is_same_object(from, args.oldname, to, args.newname)) {
    res.resok4.source_cinfo = unchanged(compound, from);
    res.resok4.target_cinfo = unchanged(compound, to);
    return NFS4_OK;
  }
  const bool same =
      from.file->inode() == to.file->inode() && from.file->device() == to.file->device();
  ChangeScope from_scope(compound.server(), from);
  std::optional<ChangeScope> to_scope;  // one per inode: two would disturb each other
  if (!same) to_scope.emplace(compound.server(), to);
  const int error = rename_entry(call, from, args.oldname, to, args.newname);
  from_scope.finish(may_have_changed(error));
  if (to_scope) to_scope->finish(may_have_changed(error));
  if (same) to.attributes = from.attributes;
  if (error != 0) return status_of_errno(error);
  res.resok4.source_cinfo = change_info(from_scope);
  res.resok4.target_cinfo = to_scope ? change_info(*to_scope) : res.resok4.source_cinfo;
  compound.wait_for_metadata(call, from);
  if (!same) compound.wait_for_metadata(call, to);
  return NFS4_OK;
}

nfsstat4 link(Compound& compound, const xdr::LINK4args& args, xdr::LINK4res& res) {
  if (const nfsstat4 bad = check_component(args.newname); bad != NFS4_OK) return bad;
  if (compound.saved.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  FileCall source_call(compound.server(), compound.request());
  FileCall call(compound.server(), compound.request());
  nfsstat4 status = compound.enter(source_call, compound.saved, Use::kChange);
  if (status != NFS4_OK) return status;
  if (compound.saved.object.file->is_directory()) return NFS4ERR_ISDIR;
  status = compound.enter_directory(call, compound.current, Use::kChange);
  if (status == NFS4ERR_SYMLINK) return NFS4ERR_NOTDIR;
  if (status != NFS4_OK) return status;
  if (!same_file_system(compound.saved, compound.current)) return NFS4ERR_XDEV;
  Resolved& file = compound.saved.object;
  Resolved& directory = compound.current.object;
  ChangeScope file_scope(compound.server(), file);
  ChangeScope scope(compound.server(), directory);
  const int error = link_entry(call, file, directory, args.newname);
  file_scope.finish(may_have_changed(error));
  scope.finish(may_have_changed(error));
  if (error != 0) return status_of_errno(error);
  res.resok4.cinfo = change_info(scope);
  file.covered_by_directory = true;
  compound.wait_for_metadata(call, directory);
  compound.wait_for_metadata(call, file);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
