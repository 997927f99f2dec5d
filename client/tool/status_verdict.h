// SPDX-License-Identifier: Apache-2.0
// The exit codes of `nfs-rdma status`.
#pragma once

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

inline constexpr int kAllRdma = 0;
inline constexpr int kSomeRdma = 2;
inline constexpr int kOnlyTcp = 3;
inline constexpr int kNoConnection = 4;

int status_verdict(const JsonValue& document);

}  // namespace nfsrdma::tool
