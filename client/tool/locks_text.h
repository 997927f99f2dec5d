// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// The server's answer to `locks` as a table; empty when there is nothing to show.
std::string locks_text(const JsonValue& document, bool with_opens);

}  // namespace nfsrdma::tool
