// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// Who uses the server that wrote that status document.
std::string clients_text(const JsonValue& document);
std::string clients_json(const JsonValue& document);

}  // namespace nfsrdma::tool
