// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/recovery.h"

#include <cerrno>

#include "client/referral.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;

Remedy remedy_of(nfsstat4 status, bool in_sequence) {
  switch (status) {
    case nfsstat4::NFS4ERR_DELAY:
    case nfsstat4::NFS4ERR_GRACE:
    case nfsstat4::NFS4ERR_LAYOUTTRYLATER:
    case nfsstat4::NFS4ERR_FILE_OPEN:
      return Remedy::kLater;
    case nfsstat4::NFS4ERR_RETRY_UNCACHED_REP:
      // Only what may run twice is sent without sa_cachethis.
      return Remedy::kAgain;
    case nfsstat4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION:
      return Remedy::kBind;
    case nfsstat4::NFS4ERR_BADSESSION:
    case nfsstat4::NFS4ERR_DEADSESSION:
      return Remedy::kNewSession;
    // The two sides disagree about the slots: start with new ones.
    case nfsstat4::NFS4ERR_SEQ_MISORDERED:
    case nfsstat4::NFS4ERR_SEQ_FALSE_RETRY:
    case nfsstat4::NFS4ERR_BADSLOT:
    case nfsstat4::NFS4ERR_BAD_HIGH_SLOT:
      return in_sequence ? Remedy::kNewSession : Remedy::kNone;
    case nfsstat4::NFS4ERR_STALE_CLIENTID:
      return Remedy::kNewClientId;
    default:
      return Remedy::kNone;
  }
}

Remedy remedy_of_minor_0(nfsstat4 status) {
  switch (status) {
    case nfsstat4::NFS4ERR_DELAY:
    case nfsstat4::NFS4ERR_GRACE:
    case nfsstat4::NFS4ERR_FILE_OPEN:
      return Remedy::kLater;
    case nfsstat4::NFS4ERR_STALE_CLIENTID:
      return Remedy::kNewClientId;
    // The server has restarted, or the lease is over; or one stateid alone is gone.
    case nfsstat4::NFS4ERR_STALE_STATEID:
    case nfsstat4::NFS4ERR_EXPIRED:
      return Remedy::kCheckClientId;
    // No stateid stands for "the newest" here: a LOCK has overtaken a READ.
    case nfsstat4::NFS4ERR_OLD_STATEID:
      return Remedy::kNewer;
    // Of any that has moved, and until its client knows: not the answer to this operation.
    case nfsstat4::NFS4ERR_LEASE_MOVED:
      return Remedy::kFindMoved;
    default:
      return Remedy::kNone;
  }
}

int errno_of(nfsstat4 status) {
  switch (status) {
    case nfsstat4::NFS4ERR_PERM:
      return EPERM;
    case nfsstat4::NFS4ERR_NOENT:
      return ENOENT;
    case nfsstat4::NFS4ERR_NXIO:
      return ENXIO;
    case nfsstat4::NFS4ERR_ACCESS:
      return EACCES;
    case nfsstat4::NFS4ERR_EXIST:
      return EEXIST;
    case nfsstat4::NFS4ERR_XDEV:
      return EXDEV;
    case nfsstat4::NFS4ERR_NOTDIR:
      return ENOTDIR;
    case nfsstat4::NFS4ERR_ISDIR:
      return EISDIR;
    case nfsstat4::NFS4ERR_INVAL:
    case nfsstat4::NFS4ERR_BADCHAR:
    case nfsstat4::NFS4ERR_BADNAME:
    case nfsstat4::NFS4ERR_BADOWNER:
    case nfsstat4::NFS4ERR_BAD_COOKIE:
    case nfsstat4::NFS4ERR_BADTYPE:
      return EINVAL;
    case nfsstat4::NFS4ERR_FBIG:
      return EFBIG;
    case nfsstat4::NFS4ERR_NOSPC:
      return ENOSPC;
    case nfsstat4::NFS4ERR_ROFS:
      return EROFS;
    case nfsstat4::NFS4ERR_MLINK:
      return EMLINK;
    case nfsstat4::NFS4ERR_NAMETOOLONG:
      return ENAMETOOLONG;
    case nfsstat4::NFS4ERR_NOTEMPTY:
      return ENOTEMPTY;
    case nfsstat4::NFS4ERR_DQUOT:
      return EDQUOT;
    case nfsstat4::NFS4ERR_STALE:
    case nfsstat4::NFS4ERR_BADHANDLE:
    case nfsstat4::NFS4ERR_FHEXPIRED:
      return ESTALE;
    case nfsstat4::NFS4ERR_NOTSUPP:
    case nfsstat4::NFS4ERR_ATTRNOTSUPP:
    case nfsstat4::NFS4ERR_OP_ILLEGAL:
    case nfsstat4::NFS4ERR_OFFLOAD_NO_REQS:  // not at once or not in order
    case nfsstat4::NFS4ERR_OFFLOAD_DENIED:
      return EOPNOTSUPP;
    case nfsstat4::NFS4ERR_MINOR_VERS_MISMATCH:
      return EPROTONOSUPPORT;
    case nfsstat4::NFS4ERR_WRONGSEC:
      return EPERM;
    case nfsstat4::NFS4ERR_SYMLINK:
      return ELOOP;
    case nfsstat4::NFS4ERR_FILE_OPEN:
      return EBUSY;
    // An object of the wrong kind: OPEN and READ of what is no file.
    case nfsstat4::NFS4ERR_WRONG_TYPE:
      return EINVAL;
    case nfsstat4::NFS4ERR_NOT_SAME:
      return EAGAIN;
    // Somebody has it open, and denies others that.
    case nfsstat4::NFS4ERR_SHARE_DENIED:
      return EACCES;
    case nfsstat4::NFS4ERR_LOCKED:
    case nfsstat4::NFS4ERR_DENIED:
      return EAGAIN;
    case nfsstat4::NFS4ERR_LOCK_RANGE:
    case nfsstat4::NFS4ERR_BAD_RANGE:
      return ENOLCK;
    case nfsstat4::NFS4ERR_DEADLOCK:
      return EDEADLK;
    case nfsstat4::NFS4ERR_OPENMODE:
      return EBADF;
    case nfsstat4::NFS4ERR_MOVED:
      return EREMOTE;
    case nfsstat4::NFS4ERR_NOXATTR:
      return ENODATA;
    case nfsstat4::NFS4ERR_XATTR2BIG:
      return E2BIG;
    case nfsstat4::NFS4ERR_REQ_TOO_BIG:
    case nfsstat4::NFS4ERR_REP_TOO_BIG:
    case nfsstat4::NFS4ERR_REP_TOO_BIG_TO_CACHE:
      return EMSGSIZE;
    default:
      return EIO;
  }
}

Error status_error(nfsstat4 status, const char* where) {
  if (status == nfsstat4::NFS4ERR_MOVED) return kMovedAway;
  // See async_mount.h: Errc::kInvalid says to start the directory again.
  Errc code = status == nfsstat4::NFS4ERR_BAD_COOKIE ? Errc::kInvalid : Errc::kSystem;
  if (status == nfsstat4::NFS4ERR_BADOWNER) code = Errc::kRefused;  // see is_bad_owner()
  return {code, errno_of(status), where};
}

}  // namespace nfsrdma::nfs4
