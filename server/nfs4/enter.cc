// SPDX-License-Identifier: Apache-2.0
// How the operations of a COMPOUND get at the object of a handle: the caller is let in, the object
// opened, its attributes read where those at hand may be out of date. PUTFH leaves the last to
// whoever asks for them: CLOSE, DELEGRETURN and others do not.
#include "server/nfs4/compound.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

nfsstat4 Compound::enter(FileCall& call, CurrentHandle& handle, Use use) {
  const int error = call.admit(handle.parts, use);
  if (call.would_block()) return retry(Outcome::kWouldBlock);
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
