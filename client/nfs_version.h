// SPDX-License-Identifier: Apache-2.0
// Which version of NFS a mount asks for (nfs(5): vers=, minorversion=).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nfsrdma {

struct NfsVersion {
  std::uint32_t major = 3;
  std::uint32_t minor = 0;
  /// 4.2 was not named: a server that has 4.1 or 4.0 alone will do.
  bool any_minor = false;
  /// No version was named: the server's best (version_choice.h).
  bool any = false;

  /// "3", "4", "4.1"; "" while any will do.
  std::string text() const;
  bool operator==(const NfsVersion&) const = default;
};

/// What is asked for where nobody names a version.
inline constexpr NfsVersion kBestVersion{4, 2, true, true};

/// Takes "3", "4", "4.0", "4.1" or "4.2". Returns what is wrong with `text`, or nothing.
std::string parse_nfs_version(std::string_view text, NfsVersion* version);
/// The minor version apart, as in "vers=4,minorversion=1".
std::string parse_minor_version(std::string_view text, std::uint32_t* minor);
/// Makes that of *version, which was parsed or is kBestVersion. Returns what is wrong about both
/// together, or nothing.
std::string apply_minor_version(std::uint32_t minor, NfsVersion* version);

}  // namespace nfsrdma
