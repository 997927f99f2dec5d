// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "config/exports_file.h"

namespace nfsrdma {

/// How many hosts one refer= or replicas= may name: what clients are told stays below 1 MiB then
/// (xdr::kNfs4MaxAttrVals), whatever the paths are.
inline constexpr std::size_t kMostLocationHosts = 64;
/// Bytes of a path in them; longer ones no client could look up.
inline constexpr std::size_t kLongestLocationPath = 1023;

/// The value of refer= and replicas=: path@host[+host][:path@host[+host]], an IPv6 address in
/// brackets. Replaces *out. An empty answer means good, otherwise it is what was expected (static
/// text).
std::string_view parse_fs_locations(std::string_view value, std::vector<FsLocation>* out);

}  // namespace nfsrdma
