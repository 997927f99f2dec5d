// SPDX-License-Identifier: Apache-2.0
// Exports as text, for people and for files: what config/exports_file.h reads, written again.
#pragma once

#include <string>
#include <utility>

#include "config/exports_file.h"

namespace nfsrdma {

/// Every option that counts, as exportfs -v lists them: "rw,sync,no_root_squash,...".
/// parse_exports() makes the same options of it.
std::string options_text(const ExportOptions& options);

/// The options that differ, in both: {"ro,secure", "rw,insecure"}.
std::pair<std::string, std::string> changed_options(const ExportOptions& before,
                                                    const ExportOptions& after);

/// A path as a line of an exports file has it: blanks, quotes and the like as \ooo.
std::string escaped_path(const std::string& path);

}  // namespace nfsrdma
