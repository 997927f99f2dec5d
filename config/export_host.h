// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/exports_file.h"

namespace nfsrdma {

/// Reads the host part of a client ("*", "192.0.2.0/24", "*.example.org"). False with *problem.
bool parse_export_host(std::string_view word, ExportClient& client, std::string* problem);

}  // namespace nfsrdma
