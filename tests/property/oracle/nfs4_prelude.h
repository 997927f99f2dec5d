// SPDX-License-Identifier: Apache-2.0
// NFSv4 types whose names libtirpc's headers turn into macros, under names of ours. Must come
// before any of those headers.
#pragma once

#include "xdr/nfs4.h"

namespace nfsrdma::oracle {
using OurAuthSys = xdr::authsys_parms;
}  // namespace nfsrdma::oracle
