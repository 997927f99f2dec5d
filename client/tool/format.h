// SPDX-License-Identifier: Apache-2.0
// Numbers and attributes as people read them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace nfsrdma::tool {

/// "drwxr-xr-x".
std::string mode_text(mode_t mode);
/// "2026-11-21 05:04".
std::string minute_text(const timespec& time);
/// "2026-11-21 05:04:05.123456789 +0000".
std::string exact_time_text(const timespec& time);
/// "512 B", "1.5 MiB".
std::string bytes_text(double bytes);
/// "0:07", "1:02:03".
std::string duration_text(double seconds);
std::string user_text(uid_t uid);
std::string group_text(gid_t gid);
const char* type_text(mode_t mode);

}  // namespace nfsrdma::tool
