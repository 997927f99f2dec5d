// SPDX-License-Identifier: Apache-2.0
// This machine's name, as gethostname(2) has it.
#pragma once

#include <limits.h>
#include <unistd.h>

#include <array>
#include <string>

namespace nfsrdma {

/// Empty when the kernel does not say.
inline std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

}  // namespace nfsrdma
