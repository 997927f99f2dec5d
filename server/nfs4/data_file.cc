// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/data_file.h"

#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

nfsstat4 check_regular(const Compound& compound, const CurrentHandle& handle) {
  if (handle.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  if (handle.object.file->is_regular()) return NFS4_OK;
  if (handle.object.file->is_directory()) return NFS4ERR_ISDIR;
  if (compound.minor_version() == 0) return NFS4ERR_INVAL;
  return S_ISLNK(handle.object.attributes.st_mode) ? NFS4ERR_SYMLINK : NFS4ERR_WRONG_TYPE;
}

xdr::verifier4 verifier_of(Compound& compound) {
  xdr::verifier4 bytes;
  store_be64(bytes.data(), compound.server().verifier.value());
  return bytes;
}

nfsstat4 enter_data(Compound& compound, FileCall& call, CurrentHandle& handle,
                    const xdr::stateid4& stateid, std::uint8_t access, int* fd) {
  if (handle.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  const bool writes = access == kShareWrite;
  nfsstat4 status = compound.enter(call, handle, writes ? Use::kChange : Use::kLook);
  if (status == NFS4_OK) status = check_regular(compound, handle);
  if (status == NFS4_OK) status = compound.may_access(stateid, access, handle);
  if (status != NFS4_OK) return status;
  if (const int error = call.may_use(*handle.object.file)) return status_of_errno(error);
  return status_of_errno(call.server().files.data_fd(*handle.object.file, call.caller(),
                                                     writes ? kRightWrite : kRightRead,
                                                     handle.object.attributes, fd));
}

nfsstat4 enter_regular(Compound& compound, FileCall& call, CurrentHandle& handle,
                       const xdr::stateid4& stateid, std::uint8_t access, int* fd) {
  const nfsstat4 status = enter_data(compound, call, handle, stateid, access, fd);
  return status == NFS4ERR_ISDIR || status == NFS4ERR_SYMLINK ? NFS4ERR_WRONG_TYPE : status;
}

}  // namespace nfsrdma::nfs4
