// SPDX-License-Identifier: Apache-2.0
// What operations on a file's data begin with: is it a file, may the stateid and the caller, and
// the descriptor.
#pragma once

#include "server/nfs4/compound.h"

namespace nfsrdma::nfs4 {

/// What operations on data say of what is no regular file. `handle` names something.
xdr::nfsstat4 check_regular(const Compound& compound, const CurrentHandle& handle);

/// The write verifier in force, as it goes into results.
xdr::verifier4 verifier_of(Compound& compound);

/// Enters `handle` (current or saved) for `access` (kShareRead or kShareWrite; the latter is a
/// change) by that stateid, and finds a descriptor for it. The thread acts as the caller.
xdr::nfsstat4 enter_data(Compound& compound, FileCall& call, CurrentHandle& handle,
                         const xdr::stateid4& stateid, std::uint8_t access, int* fd);
/// The same for operations that have one error, NFS4ERR_WRONG_TYPE, for all that is no regular file
/// (RFC 7862 15.1.3, 15.2.3, 15.4.3, 15.13.3).
xdr::nfsstat4 enter_regular(Compound& compound, FileCall& call, CurrentHandle& handle,
                            const xdr::stateid4& stateid, std::uint8_t access, int* fd);

}  // namespace nfsrdma::nfs4
