// SPDX-License-Identifier: Apache-2.0
// NFS version 4 for the dispatcher: NULL and COMPOUND.
#pragma once

#include "server/procedure.h"

namespace nfsrdma::nfs4 {

/// ServerContext::nfs4 has to be there.
const ProgramTable& program_table();

}  // namespace nfsrdma::nfs4
