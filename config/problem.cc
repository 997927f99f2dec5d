// SPDX-License-Identifier: Apache-2.0
#include "config/problem.h"

namespace nfsrdma {

std::string ConfigProblem::text() const {
  std::string out = file;
  if (line != 0) out += ":" + std::to_string(line);
  if (line != 0 && column != 0) out += ":" + std::to_string(column);
  if (!out.empty()) out += ": ";
  return out + message;
}

}  // namespace nfsrdma
