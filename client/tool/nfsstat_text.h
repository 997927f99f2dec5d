// SPDX-License-Identifier: Apache-2.0
// nfs-rdma status --nfsstat: a server's counts in the layout of `nfsstat -s`, which scripts read.
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// Of a server's status document. A version that nobody has used has no table, as there.
std::string nfsstat_text(const JsonValue& document);

}  // namespace nfsrdma::tool
