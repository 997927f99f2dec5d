// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/fabric.h"

namespace nfsrdma {

const char* fabric_name(FabricKind kind) {
  switch (kind) {
    case FabricKind::kVerbs:
      return "verbs";
    case FabricKind::kIwarp:
      return "iwarp";
    case FabricKind::kSimulated:
      return "sim";
  }
  return "?";
}

}  // namespace nfsrdma
