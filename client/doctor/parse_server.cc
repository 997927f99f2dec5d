// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "client/doctor/server_visit.h"
#include "client/mount_url.h"

namespace nfsrdma::doctor {

bool parse_server(const std::string& text, MountSettings* settings, bool* has_path,
                  std::string* error) {
  std::string url = text, path;
  if (!looks_like_url(text)) {
    // "host:/path" as with mount(8); the path is taken as it is.
    if (const std::size_t at = text.find(":/"); at != std::string::npos) {
      path = text.substr(at + 1);
      url = text.substr(0, at);
    }
    const auto colons = std::count(url.begin(), url.end(), ':');
    if (colons > 1 && !url.starts_with('[')) url = "[" + url + "]";
    if (url.find('/') != std::string::npos) {
      *error = "'" + text + "': expected a host, host:port, host:/path or nfs://host/path";
      return false;
    }
    url = "nfs://" + url;
  }
  if (!parse_mount_url(url, settings, error)) return false;
  if (!path.empty()) settings->path = path;
  *has_path = settings->path != "/";
  return true;
}

}  // namespace nfsrdma::doctor
