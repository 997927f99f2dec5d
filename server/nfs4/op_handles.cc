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
                    &compound.current, Use::kPass);
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
  nfsstat4 status = NFS4_OK;
  handle.object.file = compound.server().files.find(handle.handle);
  if (handle.object.file) {
    // Whether it still has a name, and its attributes, is for those to find out who ask.
    const int error = call.admit(handle.parts, Use::kPass);
    if (call.would_block()) return compound.retry(Outcome::kWouldBlock);
    status = status_of_errno(error);
  } else {
    status = compound.enter(call, handle, Use::kPass);
    if (compound.is_retry()) return status;
  }
  if (call.wrong_flavor()) {
    if (const nfsstat4 refused = compound.put_by_wrong_flavor(); refused != NFS4_OK) return refused;
  }
  handle.absent = call.access().referral;
  // What went elsewhere need not have left anything here.
  if (handle.absent && status == NFS4ERR_STALE) status = NFS4_OK;
  if (status == NFS4_OK) compound.current = std::move(handle);
  return status;
}

nfsstat4 putrootfh(Compound& compound, const xdr::Void&, xdr::PUTROOTFH4res&) {
  compound.current_stateid = Stateid();
  View view(compound);
  return view.go_to(view.fs().root(view.allow()), NFS4ERR_ACCESS, &compound.current, Use::kPass);
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
  if (compound.saved.kind == CurrentHandle::Kind::kObject) {
    // Other refusals are for those to find out who use it.
    FileCall call(compound.server(), compound.request());
    call.admit(compound.saved.parts, Use::kPass);
    if (call.would_block()) return compound.retry(Outcome::kWouldBlock);
    if (call.wrong_flavor()) {
      if (const nfsstat4 no = compound.put_by_wrong_flavor(); no != NFS4_OK) return no;
    }
  }
  compound.current = compound.saved.copy();
  compound.current_stateid = compound.saved_stateid;
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
