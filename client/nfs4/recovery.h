// SPDX-License-Identifier: Apache-2.0
// What the client does about each error of NFSv4 (RFC 8881, section 15; RFC 7530, section 13), in
// one place. Everything that is not named here is the answer to the operation.
#pragma once

#include <cerrno>

#include "client/nfs_types.h"
#include "xdr/nfs4_status.h"

namespace nfsrdma::nfs4 {

enum class Remedy : std::uint8_t {
  kNone,         // the operation's answer
  kLater,        // the same once more after a while
  kAgain,        // the same once more, at once: it left no trace
  kBind,         // bind the connection to the session, and once more
  kNewSession,   // the session is gone, the client id perhaps not
  kNewClientId,  // the server has forgotten the client: all of its state is to be reclaimed
  // Minor version 0, whose errors do not say how much is gone:
  kCheckClientId,  // ask whether the client id stands. If so, it is the operation's answer
  kNewer,          // a few times more, with the newest stateid: its answer is on its way
  kFindMoved,      // find out which file system has moved, and the same once more after a while
};

/// Of a COMPOUND that ended with `status`; `in_sequence`: it was SEQUENCE that did.
Remedy remedy_of(xdr::nfsstat4 status, bool in_sequence);
/// The same in minor version 0.
Remedy remedy_of_minor_0(xdr::nfsstat4 status);

/// The errno that stands for `status` towards applications.
int errno_of(xdr::nfsstat4 status);
/// The Error for a status other than NFS4_OK; `where` names the operation. NFS4ERR_MOVED is
/// kMovedAway (client/referral.h).
Error status_error(xdr::nfsstat4 status, const char* where);
/// NFS4ERR_BADOWNER, which for applications is one of many EINVAL.
inline bool is_bad_owner(const Error& error) {
  return error.code == Errc::kRefused && error.sys == EINVAL;
}

}  // namespace nfsrdma::nfs4
