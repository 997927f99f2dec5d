// SPDX-License-Identifier: Apache-2.0
// nfs://host[:port]/export/path?option=value&... into MountSettings. Text only, no look-ups.
#pragma once

#include <string>
#include <string_view>

#include "client/mount_settings.h"

namespace nfsrdma {

/// Is this meant to be a URL (and not a local path)?
bool looks_like_url(std::string_view text);

/// Fills *settings from `url`; what the URL does not mention stays as it is. settings->path is the
/// URL's path, without percent signs, "/" at least. On failure *error is one line that names what
/// is wrong and what would be right.
bool parse_mount_url(std::string_view url, MountSettings* settings, std::string* error);

}  // namespace nfsrdma
