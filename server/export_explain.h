// SPDX-License-Identifier: Apache-2.0
// Which exports there are and why a client gets what it gets, as JSON documents for `nfs-rdma
// exports`.
#pragma once

#include <string>
#include <vector>

#include "config/exports_file.h"
#include "server/export_table.h"

namespace nfsrdma {

/// What the files, the command line and temporary changes say, and what came of it.
struct ExportsInForce {
  std::vector<ExportEntry> entries;
  std::vector<std::string> open;  // paths of those that are served
  ConfigProblems problems;        // of the others
};

/// What is exported, in the order of the files: {"version":1,"exports":[{"path":..,"in_force":..,
/// "clients":[{"client":..,"options":..,"file":..,"line":..,"temporary":..}]}],"problems":[..]}.
/// `problems`: of those that are not in force. Any thread.
std::string exports_document(const ExportsInForce& exports);

/// What a client would get: {"version":1,"client":..,"addresses":[{"address":..,"exports":[{"path":
/// ..,"rules":[{"client":..,"matches":..,"why":..,"decides":..,..}],"allowed":..,"options":..,
/// "squash":..}]}]}, or {"error":..}. `client` is an address or a name, `path` an absolute path, or
/// empty for all exports. Asks the name service: may block.
/// "not_in_force":[{"path":..,"why":..}] has exports that are asked about and not served now.
std::string explain_document(const ExportTable& table, const ExportsInForce& exports,
                             const std::string& client, const std::string& path);

/// Is that export served? The path need not be in normal form, here and below.
bool is_in_force(const ExportsInForce& exports, const std::string& path);
/// "PATH: why it is not".
std::string why_not_in_force(const ExportsInForce& exports, const std::string& path);

}  // namespace nfsrdma
