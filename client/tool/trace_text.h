// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// One line of the server's trace for people.
std::string trace_text(const JsonValue& call);
std::string trace_head();

}  // namespace nfsrdma::tool
