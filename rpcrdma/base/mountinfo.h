// SPDX-License-Identifier: Apache-2.0
// Text of /proc/self/mountinfo (proc(5)).
#pragma once

#include <string>
#include <string_view>

namespace nfsrdma {

/// A path as it is: mountinfo writes space, tab, newline and backslash as a backslash and three
/// octal digits. What is no such escape stays as it stands.
std::string unescape_mountinfo(std::string_view text);

/// Where the file system of that line is mounted; "": it is no line of mountinfo.
std::string mount_point_in(const std::string& line);

}  // namespace nfsrdma
