// SPDX-License-Identifier: Apache-2.0
// How the operations of a COMPOUND get at the object of a handle: the caller is let in, the object
// opened, its attributes read where those at hand may be out of date. PUTFH leaves the last to
// whoever asks for them: CLOSE, DELEGRETURN and others do not. And where a caller whose flavour is
// not served hears of that.
#include "server/nfs4/compound.h"
#include "server/nfs4/status.h"
#include "xdr/nfs4_open.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// Only these answer NFS4ERR_WRONGSEC (RFC 8881 2.6.3.1.1.7, 2.6.3.1.2). To the others it can
/// happen when the exports are read again while the COMPOUND runs, or with the saved handle.
bool says_wrong_flavor(std::uint32_t number) {
  switch (static_cast<xdr::nfs_opnum4>(number)) {
    case xdr::nfs_opnum4::OP_PUTFH:
    case xdr::nfs_opnum4::OP_LOOKUP:
    case xdr::nfs_opnum4::OP_LOOKUPP:
    case xdr::nfs_opnum4::OP_OPEN:
    case xdr::nfs_opnum4::OP_LINK:
    case xdr::nfs_opnum4::OP_RENAME:
      return true;
    default:
      return false;
  }
}

/// OPEN's arguments, of an operation that has not been run.
bool opens_by_name(xdr::Decoder& decoder) {
  using enum xdr::open_claim_type4;
  xdr::OPEN4args args;
  if (!xdr::decode(decoder, args)) return true;  // for OPEN to say
  return args.claim.claim == CLAIM_NULL || args.claim.claim == CLAIM_DELEGATE_CUR ||
         args.claim.claim == CLAIM_DELEGATE_PREV;
}

}  // namespace

nfsstat4 Compound::put_by_wrong_flavor() const {
  if (minor_version_ == 0) return NFS4ERR_WRONGSEC;  // always (RFC 7530 16.20.4)
  xdr::Decoder ahead = decoder_;
  for (std::uint32_t next = index_ + 1; next < count_; ++next) {
    switch (static_cast<xdr::nfs_opnum4>(ahead.u32())) {
      case xdr::nfs_opnum4::OP_SAVEFH:  // as if it were not there
        continue;
      case xdr::nfs_opnum4::OP_PUTFH:
      case xdr::nfs_opnum4::OP_PUTPUBFH:
      case xdr::nfs_opnum4::OP_PUTROOTFH:
      case xdr::nfs_opnum4::OP_RESTOREFH:
      case xdr::nfs_opnum4::OP_LOOKUP:
      case xdr::nfs_opnum4::OP_LOOKUPP:
      case xdr::nfs_opnum4::OP_SECINFO:
      case xdr::nfs_opnum4::OP_SECINFO_NO_NAME:
        return NFS4_OK;
      case xdr::nfs_opnum4::OP_OPEN:
        return opens_by_name(ahead) ? NFS4_OK : NFS4ERR_WRONGSEC;
      default:
        return NFS4ERR_WRONGSEC;
    }
  }
  return NFS4_OK;
}

nfsstat4 Compound::enter(FileCall& call, CurrentHandle& handle, Use use) {
  const int error = call.admit(handle.parts, use);
  if (call.would_block()) return retry(Outcome::kWouldBlock);
  if (error == kWrongFlavor && !says_wrong_flavor(number_)) return NFS4ERR_ACCESS;
  if (error != 0) return status_of_errno(error);
  if (handle.fresh) return NFS4_OK;
  const int gone =
      server_->resolver.open(call.exported(), handle.handle, handle.parts, &handle.object);
  nfsstat4 status = status_of_errno(gone);
  if (gone == ESTALE || (gone == 0 && handle.object.attributes.st_nlink == 0)) {
    status = enter_held(handle, status);
  }
  handle.fresh = status == NFS4_OK;
  return status;
}

nfsstat4 Compound::enter_held(CurrentHandle& handle, nfsstat4 otherwise) {
  FilePin held;
  {
    std::lock_guard lock(state().mutex);
    held = state().held_file(handle.handle.bytes());
  }
  if (!held) return otherwise;
  Resolved object;
  object.file = std::move(held);
  if (::fstat(object.file->path_fd(), &object.attributes) != 0) return status_of_errno(errno);
  handle.object = std::move(object);
  return NFS4_OK;
}

nfsstat4 Compound::enter_directory(FileCall& call, CurrentHandle& handle, Use use) {
  if (handle.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ROFS;
  const nfsstat4 status = enter(call, handle, use);
  if (status != NFS4_OK) return status;
  if (S_ISLNK(handle.object.attributes.st_mode)) return NFS4ERR_SYMLINK;
  return handle.object.file->is_directory() ? NFS4_OK : NFS4ERR_NOTDIR;
}

}  // namespace nfsrdma::nfs4
