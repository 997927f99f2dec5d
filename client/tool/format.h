// SPDX-License-Identifier: Apache-2.0
// Numbers and attributes as people read them.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace nfsrdma::tool {

/// "drwxr-xr-x".
std::string mode_text(mode_t mode);
/// "2026-11-21 05:04".
std::string minute_text(const timespec& time);
/// "2026-11-21 05:04:05.123456789 +0000".
std::string exact_time_text(const timespec& time);
/// "512 B", "1.5 MiB".
std::string bytes_text(double bytes);
/// To standard output. What goes wrong there is for main() to tell at the end: fmt::print throws.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... arguments) {
  std::fputs(fmt::format(format, std::forward<Args>(arguments)...).c_str(), stdout);
}
/// "0:07", "1:02:03".
std::string duration_text(double seconds);
std::string user_text(uid_t uid);
std::string group_text(gid_t gid);
const char* type_text(mode_t mode);

}  // namespace nfsrdma::tool
