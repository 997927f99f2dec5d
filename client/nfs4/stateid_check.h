// SPDX-License-Identifier: Apache-2.0
// What has become of stateids that the server does not honour any more.
#pragma once

#include "client/nfs4/session.h"

namespace nfsrdma::nfs4 {

/// The server does not know this stateid, or not any more; or not this owner as we know it.
bool stateid_is_gone(xdr::nfsstat4 status);
/// The former alone: what it stood for is gone from the server, too.
bool state_is_gone(xdr::nfsstat4 status);
/// It is revoked. The server keeps that, and says so with each SEQUENCE, until FREE_STATEID tells
/// it that this is known (RFC 8881, 8.2.4 and 10.2.1).
bool is_revoked(xdr::nfsstat4 status);

/// TEST_STATEID, and FREE_STATEID of what is revoked: the server keeps that until it is told. True
/// also when the server did not answer that.
Task<bool> still_valid(Session& session, const OpContext& op, xdr::stateid4 stateid);
/// FREE_STATEID alone.
Task<void> free_stateid(Session& session, const OpContext& op, xdr::stateid4 stateid);

}  // namespace nfsrdma::nfs4
