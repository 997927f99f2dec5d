// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/places.h"

#include <fcntl.h>

#include <cerrno>
#include <climits>

#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

View::View(Compound& compound) : compound_(compound) {
  fs_ = compound.state().pseudo_fs(compound.server().exports.current());
  allow_ = [&compound](std::uint64_t id) {
    const Export* entry = compound.server().exports.current().find(id);
    if (entry == nullptr) return Allowed::kNo;
    ExportAccess access;
    const Request& request = compound.request();
    if (compound.server().exports.access(*entry, request.call->connection(), request.may_block,
                                         &access) == ExportTable::Verdict::kWouldBlock) {
      return Allowed::kWouldBlock;
    }
    return access.allowed ? Allowed::kYes : Allowed::kNo;
  };
}

nfsstat4 View::go_to(const PseudoFs::Place& place, nfsstat4 nothing, CurrentHandle* out, Use use) {
  switch (place.kind) {
    case PseudoFs::Place::Kind::kNothing:
      return nothing;
    case PseudoFs::Place::Kind::kWouldBlock:
      return compound_.retry(Outcome::kWouldBlock);
    case PseudoFs::Place::Kind::kNode: {
      CurrentHandle handle;
      handle.kind = CurrentHandle::Kind::kPseudo;
      handle.parts = HandleParts::of_pseudo_node(place.node);
      handle.handle = compound_.server().handles.seal(handle.parts);
      handle.node = place.node;
      *out = std::move(handle);
      return NFS4_OK;
    }
    case PseudoFs::Place::Kind::kExport:
      return go_to_export(place.export_id, place.path, out, use);
  }
  return NFS4ERR_SERVERFAULT;
}

nfsstat4 View::go_to_export(std::uint64_t export_id, std::string_view path, CurrentHandle* out,
                            Use use) {
  FileCall call(compound_.server(), compound_.request());
  HandleParts parts;
  parts.export_id = export_id;
  const int error = call.admit(parts, use);
  if (call.would_block()) return compound_.retry(Outcome::kWouldBlock);
  if (error != 0) return status_of_errno(error);
  Resolved object;
  if (const int failed = call.server().resolver.open_root(call.exported(), &object)) {
    return status_of_errno(failed);
  }
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    Resolved next;
    if (const int failed = call.server().resolver.lookup(call.exported(), call.access(),
                                                         *object.file, name, &next)) {
      return failed == EXDEV ? NFS4ERR_ACCESS : status_of_errno(failed);
    }
    object = std::move(next);
  }
  *out = CurrentHandle::of(std::move(object));
  out->absent = call.access().referral;
  return call.wrong_flavor() ? compound_.put_by_wrong_flavor() : NFS4_OK;
}

nfsstat4 View::find(FileCall& call, const CurrentHandle& directory, std::string_view name,
                    CurrentHandle* out) {
  const FileEntry& above = *directory.object.file;
  const std::uint64_t outer = call.exported().id;
  Resolved found;
  const int error = call.server().resolver.lookup(call.exported(), call.access(),
                                                  *directory.object.file, name, &found);
  if (error == 0) {
    *out = CurrentHandle::of(std::move(found));
    return cross(call.exported(), out);
  }
  if (error != EXDEV) return status_of_errno(error);
  // A mount point that is no part of the export may be an export itself. Otherwise it is out of
  // reach, and so is what lies under it.
  struct stat st;
  const std::string text(name);
  std::uint64_t inner = 0;
  if (::fstatat(above.path_fd(), text.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return status_of_errno(errno);
  }
  const nfsstat4 status = find_inner(outer, st.st_dev, st.st_ino, &inner);
  if (status != NFS4_OK) return status;
  return inner != 0 ? go_to_export(inner, {}, out) : NFS4ERR_ACCESS;
}

nfsstat4 View::cross(const Export& outer, CurrentHandle* found) {
  if (!found->object.file->is_directory()) return NFS4_OK;
  std::uint64_t inner = 0;
  const nfsstat4 status =
      find_inner(outer.id, found->object.file->device(), found->object.file->inode(), &inner);
  return status == NFS4_OK && inner != 0 ? go_to_export(inner, {}, found) : status;
}

nfsstat4 View::find_inner(std::uint64_t outer, dev_t device, ino_t inode, std::uint64_t* inner) {
  *inner = 0;
  // allow_ may be where this thread gets to know of newer exports: no reference outlives it.
  for (std::size_t nth = 0;; ++nth) {
    const Export* entry = compound_.server().exports.current().find_at(device, inode, nth);
    if (entry == nullptr) return NFS4_OK;
    const std::uint64_t id = entry->id;
    if (!fs_->is_inside(id, outer)) continue;
    const Allowed allowed = allow_(id);
    if (allowed == Allowed::kWouldBlock) return compound_.retry(Outcome::kWouldBlock);
    if (allowed == Allowed::kYes) {
      *inner = id;
      return NFS4_OK;
    }
  }
}

nfsstat4 check_component(std::string_view name) {
  if (name.empty()) return NFS4ERR_INVAL;
  if (name.size() > NAME_MAX) return NFS4ERR_NAMETOOLONG;
  if (name == "." || name == "..") return NFS4ERR_BADNAME;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return NFS4ERR_BADNAME;
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
