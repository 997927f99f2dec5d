// SPDX-License-Identifier: Apache-2.0
#include "server/fabric_filter.h"

#include "rpcrdma/call.h"

namespace nfsrdma {

namespace {

bool is_known(const std::string& name) {
  for (const TransportKind kind : {TransportKind::kVerbs, TransportKind::kIwarp,
                                   TransportKind::kTcp, TransportKind::kSimulated}) {
    if (name == transport_name(kind)) return true;
  }
  return false;
}

}  // namespace

bool parse_fabric(const JsonValue& request, std::string* fabric, std::string* problem) {
  *fabric = request["fabric"].text();
  if (fabric->empty() || is_known(*fabric)) return true;
  *problem = "fabric: '" + *fabric + "' is none of verbs, iwarp, tcp";
  return false;
}

}  // namespace nfsrdma
