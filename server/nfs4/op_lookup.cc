// SPDX-License-Identifier: Apache-2.0
// LOOKUP, LOOKUPP (RFC 8881 18.13, 18.14), and SECINFO, SECINFO_NO_NAME, which look a name up to
// say how it may be reached (18.29, 18.45).
#include <array>

#include "server/nfs4/operations.h"
#include "server/nfs4/places.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

nfsstat4 find_name(Compound& compound, std::string_view name, CurrentHandle* out) {
  if (const nfsstat4 bad = check_component(name); bad != NFS4_OK) return bad;
  View view(compound);
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) {
    return view.go_to(view.fs().lookup(compound.current.node, name, view.allow()), NFS4ERR_NOENT,
                      out);
  }
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kLook);
      status != NFS4_OK) {
    return status;
  }
  return view.find(call, compound.current, name, out);
}

nfsstat4 find_parent(Compound& compound, CurrentHandle* out) {
  View view(compound);
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) {
    return view.go_to(view.fs().parent(compound.current.node), NFS4ERR_NOENT, out);
  }
  FileCall call(compound.server(), compound.request());
  const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kLook);
  if (status == NFS4ERR_SYMLINK && compound.minor_version() == 0) return NFS4ERR_NOTDIR;
  if (status != NFS4_OK) return status;
  const FileEntry& here = *compound.current.object.file;
  const MountPoint& top = *call.exported().top;
  if (here.inode() == top.root_inode && here.device() == top.device) {
    return view.go_to(view.fs().above_export(call.exported().id, view.allow()), NFS4ERR_NOENT, out);
  }
  Resolved found;
  if (const int error = call.server().resolver.lookup(
          call.exported(), *compound.current.object.file, "..", &found)) {
    return status_of_errno(error);
  }
  *out = CurrentHandle::of(std::move(found));
  return view.cross(call.exported(), out);
}

/// AUTH_SYS first, as all clients prefer it; what an export admits does not depend on it yet.
void list_flavors(xdr::SECINFO4resok* out) {
  static const auto kEncoded = [] {
    std::array<std::byte, 8> bytes{};
    xdr::Encoder encoder(bytes);
    encoder.u32(static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_SYS));
    encoder.u32(static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_NONE));
    return bytes;
  }();
  out->flavors.encoded = kEncoded;
  out->flavors.count = 2;
}

/// From minor version 1 on SECINFO uses the current file handle up (RFC 8881 2.6.3.1.1.8).
void use_up(Compound& compound) {
  if (compound.minor_version() != 0) compound.current = CurrentHandle();
}

}  // namespace

nfsstat4 lookup(Compound& compound, const xdr::LOOKUP4args& args, xdr::LOOKUP4res&) {
  CurrentHandle found;
  const nfsstat4 status = find_name(compound, args.objname, &found);
  if (status != NFS4_OK) return status;
  compound.current = std::move(found);
  compound.current_stateid = Stateid();
  return NFS4_OK;
}

nfsstat4 lookupp(Compound& compound, const xdr::Void&, xdr::LOOKUPP4res&) {
  CurrentHandle found;
  const nfsstat4 status = find_parent(compound, &found);
  if (status != NFS4_OK) return status;
  compound.current = std::move(found);
  compound.current_stateid = Stateid();
  return NFS4_OK;
}

nfsstat4 secinfo(Compound& compound, const xdr::SECINFO4args& args, xdr::SECINFO4res& res) {
  CurrentHandle found;
  if (const nfsstat4 status = find_name(compound, args.name, &found); status != NFS4_OK) {
    return status == NFS4ERR_SYMLINK ? NFS4ERR_NOTDIR : status;
  }
  list_flavors(&res.resok4);
  use_up(compound);
  return NFS4_OK;
}

nfsstat4 secinfo_no_name(Compound& compound, const xdr::SECINFO_NO_NAME4args& args,
                         xdr::SECINFO_NO_NAME4res& res) {
  if (args.style == xdr::secinfo_style4::SECINFO_STYLE4_PARENT) {
    CurrentHandle found;
    if (const nfsstat4 status = find_parent(compound, &found); status != NFS4_OK) {
      return status == NFS4ERR_SYMLINK ? NFS4ERR_NOTDIR : status;
    }
  } else if (args.style != xdr::secinfo_style4::SECINFO_STYLE4_CURRENT_FH) {
    return NFS4ERR_INVAL;
  }
  list_flavors(&res.resok4);
  use_up(compound);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
