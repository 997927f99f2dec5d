// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/status.h"

#include <cerrno>

#include "server/files/file_call.h"

namespace nfsrdma::nfs3 {

namespace {

struct Row {
  int error;
  xdr::nfsstat3 status;
};

using enum xdr::nfsstat3;

constexpr Row kTable[] = {
    {0, NFS3_OK},
    {EPERM, NFS3ERR_PERM},
    {ENOENT, NFS3ERR_NOENT},
    {EIO, NFS3ERR_IO},
    {ENXIO, NFS3ERR_NXIO},
    {EACCES, NFS3ERR_ACCES},
    {EEXIST, NFS3ERR_EXIST},
    {EXDEV, NFS3ERR_XDEV},
    {ENODEV, NFS3ERR_NODEV},
    {ENOTDIR, NFS3ERR_NOTDIR},
    {EISDIR, NFS3ERR_ISDIR},
    {EINVAL, NFS3ERR_INVAL},
    {EFBIG, NFS3ERR_FBIG},
    {EOVERFLOW, NFS3ERR_FBIG},
    {ENOSPC, NFS3ERR_NOSPC},
    {EROFS, NFS3ERR_ROFS},
    {EMLINK, NFS3ERR_MLINK},
    {ENAMETOOLONG, NFS3ERR_NAMETOOLONG},
    {ENOTEMPTY, NFS3ERR_NOTEMPTY},
    {EDQUOT, NFS3ERR_DQUOT},
    {ESTALE, NFS3ERR_STALE},
    {kBadHandle, NFS3ERR_BADHANDLE},
    {kWrongFlavor, NFS3ERR_ACCES},
    {kNoIdentity, NFS3ERR_SERVERFAULT},
    {EOPNOTSUPP, NFS3ERR_NOTSUPP},
    {kNoSuchAttribute, NFS3ERR_NOTSUPP},
    {ENOSYS, NFS3ERR_NOTSUPP},
    // O_NOFOLLOW met a symbolic link where a file or directory was meant.
    {ELOOP, NFS3ERR_INVAL},
    // Worth asking again: out of memory or descriptors, a lease being broken, a file being
    // executed.
    {EAGAIN, NFS3ERR_JUKEBOX},
    {ENOMEM, NFS3ERR_JUKEBOX},
    {EMFILE, NFS3ERR_JUKEBOX},
    {ENFILE, NFS3ERR_JUKEBOX},
    {EINTR, NFS3ERR_JUKEBOX},
    {ETXTBSY, NFS3ERR_ACCES},
    {EBUSY, NFS3ERR_ACCES},
};

}  // namespace

xdr::nfsstat3 status_of_errno(int error) {
  for (const Row& row : kTable) {
    if (row.error == error) return row.status;
  }
  return NFS3ERR_IO;
}

}  // namespace nfsrdma::nfs3
