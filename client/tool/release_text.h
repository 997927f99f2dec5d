// SPDX-License-Identifier: Apache-2.0
// What `nfs-rdma release` says of the server's document.
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

std::string release_text(const JsonValue& document);

}  // namespace nfsrdma::tool
