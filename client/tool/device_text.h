// SPDX-License-Identifier: Apache-2.0
// The answer of `nfs-rdma status --devices`, as a table and as a document.
#pragma once

#include <string>

#include "client/default_fabrics.h"

namespace nfsrdma::tool {

std::string devices_text(const RdmaHostReport& host);
std::string devices_json(const RdmaHostReport& host);
/// The exit code: kAllRdma when a connection can go over a device, kNoConnection when over none.
int devices_verdict(const RdmaHostReport& host);

}  // namespace nfsrdma::tool
