// SPDX-License-Identifier: Apache-2.0
// The one place where errnos and the answers of the state tables become an nfsstat4.
#pragma once

#include "server/nfs4/state/grace_period.h"
#include "server/nfs4/state/open_states.h"
#include "server/nfs4/state/session_table.h"
#include "xdr/nfs4_status.h"

namespace nfsrdma::nfs4 {

/// 0 is NFS4_OK; also the additional errors of server/files/file_call.h. What has no counterpart is
/// NFS4ERR_IO.
xdr::nfsstat4 status_of_errno(int error);

/// `minor_version`: some errors are of 4.0 alone.
xdr::nfsstat4 status_of(OpenStates::Status status, std::uint32_t minor_version);
xdr::nfsstat4 status_of(ClientTable::Status status);
xdr::nfsstat4 status_of(SessionTable::Status status);
xdr::nfsstat4 status_of(GracePeriod::Verdict verdict);
/// Of a request that is not to be run; kNew, kReplay and kUncached have no status of their own.
xdr::nfsstat4 status_of(SlotTable::Verdict verdict);

}  // namespace nfsrdma::nfs4
