// SPDX-License-Identifier: Apache-2.0
// The delegation in the result of an OPEN (RFC 8881 10.4, 18.16.3).
#pragma once

#include "server/nfs4/compound.h"
#include "xdr/nfs4_open.h"

namespace nfsrdma::nfs4 {

/// After the open stands: gives the client a delegation of `file` where that can be, and fills
/// res.delegation, with the reason for none where the client asked. True: the attributes of `file`
/// are from before the promise.
bool offer_delegation(Compound& compound, const xdr::OPEN4args& args, CurrentHandle& file,
                      xdr::OPEN4resok& res);

}  // namespace nfsrdma::nfs4
