// SPDX-License-Identifier: Apache-2.0
// What clients of NFSv4 have open, locked and delegated, file by file, for `nfs-rdma locks`.
#pragma once

#include <cstddef>
#include <string>

namespace nfsrdma::nfs4 {

class ServerState;

/// A document with the member "files", of up to `most` files; "more" says that there are others, or
/// in a file that there is more of it than is told.
/// Takes the state's mutex for a few files at a time: what changes in between is seen before or
/// after. Names are those that the server knows the files by now. Any thread that may wait.
std::string report_holdings(ServerState& state, std::size_t most);

}  // namespace nfsrdma::nfs4
