// SPDX-License-Identifier: Apache-2.0
// Exports that are added and removed while the server runs, as exportfs -o and -u do: changes of a
// list of exports that live until the files are read again. Pure; server/export_service.h puts
// them in force.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/exports_file.h"

namespace nfsrdma {

/// ExportEntry::file and ExportClient::file of what was added.
inline constexpr std::string_view kTemporaryExport = "nfs-rdma exports add";

/// Exports `path` to `client` ("192.0.2.0/24", "@group"), with `options` ("rw,async"; may be
/// empty). A client that the path is exported to already gets these options instead of its own.
/// False with *problem, and nothing is changed; also where an export would get another fsid=, which
/// the file handles that clients have begin with. *notices: worth telling whoever asked.
bool add_export(std::vector<ExportEntry>& exports, const std::string& client,
                const std::string& path, const std::string& options, std::string* problem,
                ConfigProblems* notices);

/// Takes `client` off `path`, and the export away with its last client. False with *problem, which
/// names what there is instead, or what clients of others would lose.
bool remove_export(std::vector<ExportEntry>& exports, const std::string& client,
                   const std::string& path, std::string* problem);

}  // namespace nfsrdma
