// SPDX-License-Identifier: Apache-2.0
// PUTFH, PUTROOTFH (PUTPUBFH is the same here), GETFH, SAVEFH, RESTOREFH (RFC 8881 18.19 to 18.21,
// 18.8, 18.27, 18.28).
#include <cstring>

#include "server/nfs4/operations.h"
#include "server/nfs4/places.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

nfsstat4 put_pseudo(Compound& compound, const HandleParts& parts) {
  View view(compound);
  return view.go_to(view.fs().find(parts.pseudo_node(), view.allow()), NFS4ERR_STALE,
                    &compound.current);
}

/// A file whose last name is gone stays usable for as long as somebody has it open, and by that
/// very entry: a write delegation's lease stands against any other, the holder's own use too.
/// `otherwise`: when nobody has.
nfsstat4 put_held(Compound& compound, const xdr::PUTFH4args& args, CurrentHandle& handle,
                  nfsstat4 otherwise) {
  FilePin held;
  {
    std::lock_guard lock(compound.state().mutex);
    held = compound.state().held_file(args.object.data);
  }
  if (!held) return otherwise;
  Resolved object;
  object.file = std::move(held);
  if (::fstat(object.file->path_fd(), &object.attributes) != 0) return status_of_errno(errno);
  handle.object = std::move(object);
  return NFS4_OK;
}

}  // namespace

nfsstat4 putfh(Compound& compound, const xdr::PUTFH4args& args, xdr::PUTFH4res&) {
  CurrentHandle handle;
  if (!compound.server().handles.open(args.object.data, &handle.parts)) return NFS4ERR_BADHANDLE;
  compound.current_stateid = Stateid();
  if (handle.parts.scheme == HandleScheme::kPseudo) return put_pseudo(compound, handle.parts);
  handle.kind = CurrentHandle::Kind::kObject;
  handle.handle.size = static_cast<std::uint8_t>(args.object.data.size());
  std::memcpy(handle.handle.data.data(), args.object.data.data(), args.object.data.size());
  FileCall call(compound.server(), compound.request());
  nfsstat4 status = compound.enter(call, handle, Use::kLook);
  if (compound.is_retry()) return status;
  handle.absent = call.access().referral;
  // What went elsewhere need not have left anything here.
  if (handle.absent && status == NFS4ERR_STALE) status = NFS4_OK;
  const bool nameless = handle.object.file && handle.object.attributes.st_nlink == 0;
  if (status == NFS4ERR_STALE || (status == NFS4_OK && nameless)) {
    status = put_held(compound, args, handle, status);
  }
  if (status == NFS4_OK) compound.current = std::move(handle);
  return status;
}

nfsstat4 putrootfh(Compound& compound, const xdr::Void&, xdr::PUTROOTFH4res&) {
  compound.current_stateid = Stateid();
  View view(compound);
  return view.go_to(view.fs().root(view.allow()), NFS4ERR_ACCESS, &compound.current);
}

nfsstat4 getfh(Compound& compound, const xdr::Void&, xdr::GETFH4res& res) {
  res.resok4.object.data = compound.current.handle.bytes();
  return NFS4_OK;
}

nfsstat4 savefh(Compound& compound, const xdr::Void&, xdr::SAVEFH4res&) {
  compound.saved = compound.current.copy();
  compound.saved_stateid = compound.current_stateid;
  return NFS4_OK;
}

nfsstat4 restorefh(Compound& compound, const xdr::Void&, xdr::RESTOREFH4res&) {
  if (!compound.saved.is_set()) {
    return compound.minor_version() == 0 ? NFS4ERR_RESTOREFH : NFS4ERR_NOFILEHANDLE;
  }
  compound.current = compound.saved.copy();
  compound.current_stateid = compound.saved_stateid;
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
