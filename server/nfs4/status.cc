// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/status.h"

#include <cerrno>

#include "server/files/file_call.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

struct Row {
  int error;
  nfsstat4 status;
};

constexpr Row kTable[] = {
    {0, NFS4_OK},
    {EPERM, NFS4ERR_PERM},
    {ENOENT, NFS4ERR_NOENT},
    {EIO, NFS4ERR_IO},
    {ENXIO, NFS4ERR_NXIO},
    {EACCES, NFS4ERR_ACCESS},
    {EEXIST, NFS4ERR_EXIST},
    {EXDEV, NFS4ERR_XDEV},
    {ENOTDIR, NFS4ERR_NOTDIR},
    {EISDIR, NFS4ERR_ISDIR},
    {EINVAL, NFS4ERR_INVAL},
    {EFBIG, NFS4ERR_FBIG},
    {EOVERFLOW, NFS4ERR_FBIG},
    {ENOSPC, NFS4ERR_NOSPC},
    {EROFS, NFS4ERR_ROFS},
    {EMLINK, NFS4ERR_MLINK},
    {ENAMETOOLONG, NFS4ERR_NAMETOOLONG},
    {ENOTEMPTY, NFS4ERR_NOTEMPTY},
    {EDQUOT, NFS4ERR_DQUOT},
    {ESTALE, NFS4ERR_STALE},
    {kBadHandle, NFS4ERR_BADHANDLE},
    {kWrongFlavor, NFS4ERR_WRONGSEC},
    {kNoIdentity, NFS4ERR_SERVERFAULT},
    {kMovedAway, NFS4ERR_MOVED},
    {kNoSuchAttribute, NFS4ERR_ATTRNOTSUPP},
    {EOPNOTSUPP, NFS4ERR_NOTSUPP},
    {ENOSYS, NFS4ERR_NOTSUPP},
    {ENOTTY, NFS4ERR_NOTSUPP},
    // O_NOFOLLOW met a symbolic link where a file or directory was meant.
    {ELOOP, NFS4ERR_SYMLINK},
    // Worth asking again: out of memory or descriptors, a lease being broken, a file being
    // executed.
    {EAGAIN, NFS4ERR_DELAY},
    {ENOMEM, NFS4ERR_DELAY},
    {EMFILE, NFS4ERR_DELAY},
    {ENFILE, NFS4ERR_DELAY},
    {EINTR, NFS4ERR_DELAY},
    {ETXTBSY, NFS4ERR_ACCESS},
    {EBUSY, NFS4ERR_FILE_OPEN},
    {ENODATA, NFS4ERR_NOXATTR},
    {E2BIG, NFS4ERR_XATTR2BIG},
    {ERANGE, NFS4ERR_XATTR2BIG},
};

}  // namespace

nfsstat4 status_of_errno(int error) {
  for (const Row& row : kTable) {
    if (row.error == error) return row.status;
  }
  return NFS4ERR_IO;
}

nfsstat4 status_of(OpenStates::Status status, std::uint32_t minor_version) {
  const bool old = minor_version == 0;
  switch (status) {
    case OpenStates::Status::kOk:
      return NFS4_OK;
    case OpenStates::Status::kBadStateid:
      return NFS4ERR_BAD_STATEID;
    case OpenStates::Status::kOldStateid:
      return NFS4ERR_OLD_STATEID;
    case OpenStates::Status::kStaleStateid:
      return old ? NFS4ERR_STALE_STATEID : NFS4ERR_BAD_STATEID;
    case OpenStates::Status::kShareDenied:
      return NFS4ERR_SHARE_DENIED;
    case OpenStates::Status::kDenied:
      return NFS4ERR_DENIED;
    case OpenStates::Status::kLocked:
      return NFS4ERR_LOCKED;
    case OpenStates::Status::kOpenMode:
      return NFS4ERR_OPENMODE;
    case OpenStates::Status::kInvalid:
      return NFS4ERR_INVAL;
    case OpenStates::Status::kLocksHeld:
      return NFS4ERR_LOCKS_HELD;
    case OpenStates::Status::kResource:
      return old ? NFS4ERR_RESOURCE : NFS4ERR_DELAY;
    case OpenStates::Status::kRevoked:
      return old ? NFS4ERR_BAD_STATEID : NFS4ERR_DELEG_REVOKED;
    case OpenStates::Status::kAdminRevoked:
      return NFS4ERR_ADMIN_REVOKED;
  }
  return NFS4ERR_SERVERFAULT;
}

nfsstat4 status_of(ClientTable::Status status) {
  switch (status) {
    case ClientTable::Status::kOk:
      return NFS4_OK;
    case ClientTable::Status::kInUse:
      return NFS4ERR_CLID_INUSE;
    case ClientTable::Status::kNoEnt:
      return NFS4ERR_NOENT;
    case ClientTable::Status::kNotSame:
      return NFS4ERR_NOT_SAME;
    case ClientTable::Status::kPerm:
      return NFS4ERR_PERM;
    case ClientTable::Status::kStale:
      return NFS4ERR_STALE_CLIENTID;
    case ClientTable::Status::kBusy:
      return NFS4ERR_CLIENTID_BUSY;
    case ClientTable::Status::kInvalid:
      return NFS4ERR_INVAL;
    case ClientTable::Status::kFull:
      return NFS4ERR_DELAY;
    case ClientTable::Status::kRetry:
      break;  // its verdict says
  }
  return NFS4ERR_SERVERFAULT;
}

nfsstat4 status_of(SessionTable::Status status) {
  switch (status) {
    case SessionTable::Status::kOk:
      return NFS4_OK;
    case SessionTable::Status::kBadSession:
      return NFS4ERR_BADSESSION;
    case SessionTable::Status::kDelay:
      return NFS4ERR_DELAY;
    case SessionTable::Status::kFull:
      return NFS4ERR_NOSPC;
    case SessionTable::Status::kNotBound:
      return NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
  }
  return NFS4ERR_SERVERFAULT;
}

nfsstat4 status_of(GracePeriod::Verdict verdict) {
  switch (verdict) {
    case GracePeriod::Verdict::kGo:
      return NFS4_OK;
    case GracePeriod::Verdict::kGrace:
      return NFS4ERR_GRACE;
    case GracePeriod::Verdict::kNoGrace:
      return NFS4ERR_NO_GRACE;
    case GracePeriod::Verdict::kReclaimBad:
      return NFS4ERR_RECLAIM_BAD;
  }
  return NFS4ERR_SERVERFAULT;
}

nfsstat4 status_of(SlotTable::Verdict verdict) {
  switch (verdict) {
    case SlotTable::Verdict::kNew:
    case SlotTable::Verdict::kReplay:
    case SlotTable::Verdict::kUncached:
      return NFS4_OK;
    case SlotTable::Verdict::kInProgress:
      return NFS4ERR_DELAY;
    case SlotTable::Verdict::kFalseRetry:
      return NFS4ERR_SEQ_FALSE_RETRY;
    case SlotTable::Verdict::kMisordered:
      return NFS4ERR_SEQ_MISORDERED;
    case SlotTable::Verdict::kBadSlot:
      return NFS4ERR_BADSLOT;
  }
  return NFS4ERR_SERVERFAULT;
}

}  // namespace nfsrdma::nfs4
