// SPDX-License-Identifier: Apache-2.0
// Paths as texts: nothing is looked up.
#pragma once

#include <string_view>

namespace nfsrdma {

/// Is `path` the directory `above`, or in it? Both absolute, without "//", "." and "..".
inline bool lies_in(std::string_view path, std::string_view above) {
  if (!path.starts_with(above)) return false;
  return path.size() == above.size() || above.ends_with('/') || path[above.size()] == '/';
}

}  // namespace nfsrdma
