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

/// *wrong_flavor: the directory does not serve the caller's, who looked there as nobody.
nfsstat4 find_name(Compound& compound, std::string_view name, CurrentHandle* out,
                   bool* wrong_flavor) {
  if (const nfsstat4 bad = check_component(name); bad != NFS4_OK) return bad;
  View view(compound);
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) {
    return view.go_to(view.fs().lookup(compound.current.node, name, view.allow()), NFS4ERR_NOENT,
                      out);
  }
  FileCall call(compound.server(), compound.request());
  const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kPass);
  *wrong_flavor = call.wrong_flavor();
  if (status != NFS4_OK) return status;
  return view.find(call, compound.current, name, out);
}

nfsstat4 find_parent(Compound& compound, CurrentHandle* out, bool* wrong_flavor) {
  View view(compound);
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) {
    return view.go_to(view.fs().parent(compound.current.node), NFS4ERR_NOENT, out);
  }
  FileCall call(compound.server(), compound.request());
  const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kPass);
  *wrong_flavor = call.wrong_flavor();
  if (status == NFS4ERR_SYMLINK && compound.minor_version() == 0) return NFS4ERR_NOTDIR;
  if (status != NFS4_OK) return status;
  const FileEntry& here = *compound.current.object.file;
  const MountPoint& top = *call.exported().top;
  if (here.inode() == top.root_inode && here.device() == top.device) {
    return view.go_to(view.fs().above_export(call.exported().id, view.allow()), NFS4ERR_NOENT, out);
  }
  Resolved found;
  if (const int error = call.server().resolver.lookup(
          call.exported(), call.access(), *compound.current.object.file, "..", &found)) {
    return status_of_errno(error);
  }
  *out = CurrentHandle::of(std::move(found));
  return view.cross(call.exported(), out);
}

/// Makes what LOOKUP or LOOKUPP found the current handle. From a directory that does not serve the
/// caller's flavour they lead into other exports and nowhere else, and nothing is told of it
/// (RFC 8881 2.6.3.1.1.3, approach (c)).
nfsstat4 go_on(Compound& compound, nfsstat4 status, CurrentHandle&& found, bool wrong_flavor) {
  if (compound.is_retry()) return status;
  if (wrong_flavor &&
      (status != NFS4_OK || (found.kind == CurrentHandle::Kind::kObject &&
                             found.parts.export_id == compound.current.parts.export_id))) {
    return NFS4ERR_WRONGSEC;
  }
  if (status != NFS4_OK) return status;
  compound.current = std::move(found);
  compound.current_stateid = Stateid();
  return NFS4_OK;
}

/// What sec= of the export lists, AUTH_SYS first, as all clients prefer it.
void list_flavors(bool sys, bool none, xdr::SECINFO4resok* out) {
  static const auto kEncoded = [] {
    std::array<std::byte, 8> bytes{};
    xdr::Encoder encoder(bytes);
    encoder.u32(static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_SYS));
    encoder.u32(static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_NONE));
    return bytes;
  }();
  constexpr std::size_t kEach = 4;
  const ByteSpan all(kEncoded);
  out->flavors.encoded = all.subspan(sys ? 0 : kEach, (sys && none ? 2 : 1) * kEach);
  out->flavors.count = sys && none ? 2 : 1;
}

/// Of what `found` is in. `status` is how it was found: with NFS4ERR_WRONGSEC it was not, and the
/// flavour that the caller does not use is the one that leads there.
nfsstat4 tell_flavors(Compound& compound, nfsstat4 status, const CurrentHandle& found,
                      xdr::SECINFO4resok* out) {
  if (status == NFS4ERR_WRONGSEC) {
    const bool used_sys = compound.request().credentials.flavor == RpcCredentials::Flavor::kSys;
    list_flavors(!used_sys, used_sys, out);
    return NFS4_OK;
  }
  if (status != NFS4_OK) return status == NFS4ERR_SYMLINK ? NFS4ERR_NOTDIR : status;
  ExportAccess access;  // of the directories above the exports: both
  const Export* entry = found.kind == CurrentHandle::Kind::kPseudo
                            ? nullptr
                            : compound.server().exports.current().find(found.parts.export_id);
  if (entry != nullptr &&
      compound.server().exports.access(*entry, compound.request().call->connection(),
                                       compound.request().may_block,
                                       &access) == ExportTable::Verdict::kWouldBlock) {
    return compound.retry(Outcome::kWouldBlock);
  }
  list_flavors(access.serves_sys, access.serves_none, out);
  return NFS4_OK;
}

/// From minor version 1 on SECINFO uses the current file handle up (RFC 8881 2.6.3.1.1.8).
void use_up(Compound& compound) {
  if (compound.minor_version() != 0) compound.current = CurrentHandle();
}

}  // namespace

nfsstat4 lookup(Compound& compound, const xdr::LOOKUP4args& args, xdr::LOOKUP4res&) {
  CurrentHandle found;
  bool wrong_flavor = false;
  const nfsstat4 status = find_name(compound, args.objname, &found, &wrong_flavor);
  return go_on(compound, status, std::move(found), wrong_flavor);
}

nfsstat4 lookupp(Compound& compound, const xdr::Void&, xdr::LOOKUPP4res&) {
  CurrentHandle found;
  bool wrong_flavor = false;
  const nfsstat4 status = find_parent(compound, &found, &wrong_flavor);
  return go_on(compound, status, std::move(found), wrong_flavor);
}

nfsstat4 secinfo(Compound& compound, const xdr::SECINFO4args& args, xdr::SECINFO4res& res) {
  CurrentHandle found;
  bool any_flavor = false;
  const nfsstat4 how = find_name(compound, args.name, &found, &any_flavor);
  const nfsstat4 status = tell_flavors(compound, how, found, &res.resok4);
  if (status != NFS4_OK) return status;
  use_up(compound);
  return NFS4_OK;
}

nfsstat4 secinfo_no_name(Compound& compound, const xdr::SECINFO_NO_NAME4args& args,
                         xdr::SECINFO_NO_NAME4res& res) {
  CurrentHandle parent;
  const bool wants_parent = args.style == xdr::secinfo_style4::SECINFO_STYLE4_PARENT;
  if (!wants_parent && args.style != xdr::secinfo_style4::SECINFO_STYLE4_CURRENT_FH) {
    return NFS4ERR_INVAL;
  }
  bool any_flavor = false;
  const nfsstat4 found = wants_parent ? find_parent(compound, &parent, &any_flavor) : NFS4_OK;
  const nfsstat4 status =
      tell_flavors(compound, found, wants_parent ? parent : compound.current, &res.resok4);
  if (status != NFS4_OK) return status;
  use_up(compound);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
