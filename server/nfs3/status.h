// SPDX-License-Identifier: Apache-2.0
// The one place where an errno becomes an nfsstat3.
#pragma once

#include "xdr/nfs3_constants.h"

namespace nfsrdma::nfs3 {

/// 0 is NFS3_OK; what has no counterpart is NFS3ERR_IO, as in Linux's own server.
xdr::nfsstat3 status_of_errno(int error);

}  // namespace nfsrdma::nfs3
