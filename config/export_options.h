// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/exports_file.h"

namespace nfsrdma {

/// Applies one word of an option list ("rw", "anonuid=99") to `options`; later words win over
/// earlier ones. False with *problem: what is wrong and what was expected. *notice is set for what
/// is accepted but has no effect here.
bool apply_export_option(std::string_view word, ExportOptions& options, std::string* problem,
                         std::string* notice);

}  // namespace nfsrdma
