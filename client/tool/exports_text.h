// SPDX-License-Identifier: Apache-2.0
// Texts of nfs-rdma exports, and its operands.
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// "192.0.2.0/24:/srv", "[2001:db8::1]:/srv". False when it is none of these.
bool split_client_path(const std::string& text, std::string* client, std::string* path);

/// A client of an export as a line of an exports file.
std::string export_line(const JsonValue& entry, const JsonValue& client);

/// What one export is to one address: several lines.
std::string explanation_text(const JsonValue& exported);

}  // namespace nfsrdma::tool
