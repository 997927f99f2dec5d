// SPDX-License-Identifier: Apache-2.0
// fs_locations on the wire (RFC 7530 8.8, RFC 8881 11.16).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "config/exports_file.h"
#include "xdr/nfs4_attribute_types.h"

namespace nfsrdma::nfs4 {

/// `root`: absolute, of the file system on this server, "/" or "" for the server's root. The result
/// refers to `scratch`.
xdr::fs_locations4 encode_locations(std::string_view root, const std::vector<FsLocation>& locations,
                                    std::vector<std::byte>& scratch);

/// Same root, same locations in the same order?
bool equal_locations(const xdr::fs_locations4& a, const xdr::fs_locations4& b);

}  // namespace nfsrdma::nfs4
