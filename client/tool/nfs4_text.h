// SPDX-License-Identifier: Apache-2.0
// nfs-rdma status: what clients of NFSv4 hold on a server.
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// Lines for people of the member "nfs4" of a server's status document; empty for a null value, as
/// in the document of a mount or of a server without NFSv4.
/// How a client of "client_list" speaks of opens and locks: "4.2", or "NLM".
std::string protocol_of(const JsonValue& client);
std::string nfs4_text(const JsonValue& nfs4);

}  // namespace nfsrdma::tool
