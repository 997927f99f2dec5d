// SPDX-License-Identifier: Apache-2.0
// The name of a transport in a request (`trace`, `capture`): whose calls are wanted.
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma {

/// The member "fabric"; empty: any. False with *problem for what is no transport.
bool parse_fabric(const JsonValue& request, std::string* fabric, std::string* problem);

}  // namespace nfsrdma
