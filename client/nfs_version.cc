// SPDX-License-Identifier: Apache-2.0
#include "client/nfs_version.h"

namespace nfsrdma {
std::string NfsVersion::text() const {
  if (any) return {};
  if (major == 3 || any_minor) return std::to_string(major);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string parse_nfs_version(std::string_view text, NfsVersion* version) {
  if (text == "3") {
    *version = {};
  } else if (text == "4") {
    *version = {4, 2, true};
  } else if (text == "4.1") {
    *version = {4, 1, false};
  } else if (text == "4.2") {
    *version = {4, 2, false};
  } else if (text == "4.0") {
    *version = {4, 0, false};
  } else if (text == "2") {
    return "NFSv2 is not supported; use 4.2, 4.1, 4.0 or 3";
  } else {
    return "'" + std::string(text) + "' is not an NFS version; use 4.2, 4.1, 4.0 or 3";
  }
  return {};
}

std::string parse_minor_version(std::string_view text, std::uint32_t* minor) {
  if (text != "0" && text != "1" && text != "2") {
    return "'" + std::string(text) + "' is not a minor version of NFSv4; use 0, 1 or 2";
  }
  *minor = static_cast<std::uint32_t>(text[0] - '0');
  return {};
}

std::string apply_minor_version(std::uint32_t minor, NfsVersion* version) {
  const std::string number = std::to_string(minor);
  const std::string both = "vers=" + version->text() + " and minorversion=" + number;
  if (version->major != 4) {
    return both + " exclude each other: NFSv3 has no minor versions; leave minorversion= out or " +
           "use vers=4." + number;
  }
  if (!version->any_minor && version->minor != minor) {
    return both + " differ; leave minorversion= out or use vers=4";
  }
  *version = {4, minor, false};
  return {};
}

}  // namespace nfsrdma
