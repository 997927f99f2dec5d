// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/places.h"

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

nfsstat4 View::go_to(const PseudoFs::Place& place, nfsstat4 nothing, CurrentHandle* out) {
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
      return go_to_export(place.export_id, place.path, out);
  }
  return NFS4ERR_SERVERFAULT;
}

nfsstat4 View::go_to_export(std::uint64_t export_id, std::string_view path, CurrentHandle* out) {
  FileCall call(compound_.server(), compound_.request());
  HandleParts parts;
  parts.export_id = export_id;
  const int error = call.admit(parts, Use::kLook);
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
    if (const int failed =
            call.server().resolver.lookup(call.exported(), *object.file, name, &next)) {
      return status_of_errno(failed);
    }
    object = std::move(next);
  }
  *out = CurrentHandle::of(std::move(object));
  return NFS4_OK;
}

nfsstat4 View::cross(const Export& outer, CurrentHandle* found) {
  if (!found->object.file->is_directory()) return NFS4_OK;
  for (const PseudoFs::Inner& inner : fs_->inner_exports(outer.id)) {
    const Export* entry = compound_.server().exports.current().find(inner.export_id);
    if (entry == nullptr || entry->top->root_inode != found->object.file->inode() ||
        entry->top->device != found->object.file->device()) {
      continue;
    }
    const Allowed allowed = allow_(inner.export_id);
    if (allowed == Allowed::kWouldBlock) return compound_.retry(Outcome::kWouldBlock);
    if (allowed == Allowed::kYes) return go_to_export(inner.export_id, {}, found);
  }
  return NFS4_OK;
}

nfsstat4 check_component(std::string_view name) {
  if (name.empty()) return NFS4ERR_INVAL;
  if (name.size() > NAME_MAX) return NFS4ERR_NAMETOOLONG;
  if (name == "." || name == "..") return NFS4ERR_BADNAME;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return NFS4ERR_BADNAME;
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
