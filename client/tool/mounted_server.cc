// SPDX-License-Identifier: Apache-2.0
#include "client/tool/mounted_server.h"

#include <fmt/format.h>

#include "client/status_source.h"

namespace nfsrdma::tool {
namespace {

/// The value of one of the options in force, as -v shows them; "": it is not there.
std::string option(const std::string& options, std::string_view name) {
  const std::string wanted = fmt::format(",{}=", name);
  const std::size_t at = options.find(wanted);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + wanted.size();
  return options.substr(begin, options.find(',', begin) - begin);
}

}  // namespace

std::string server_url(const JsonValue& status) {
  const std::string& source = status["source"].text();
  const std::string& options = status["options"].text();
  const std::size_t path = source.find(":/");
  if (path == std::string::npos || path == 0) return {};
  std::string url = "nfs://" + source.substr(0, path);
  if (const std::string port = option(options, "port"); !port.empty()) url += ":" + port;
  url += "/";
  char before = '?';
  for (const char* name : {"proto", "fabric", "tcpport"}) {
    const std::string value = option(options, name);
    if (value.empty()) continue;
    url += fmt::format("{}{}={}", before, name, value);
    before = '&';
  }
  return url;
}

std::string server_url_of_mount(const std::string& directory, std::string* why) {
  Result<std::string> document = fetch_mount_status(directory, why);
  if (!document.ok()) return {};
  const std::optional<JsonValue> status = JsonValue::parse(*document);
  std::string url = status ? server_url(*status) : "";
  if (url.empty()) *why = directory + ": the mount does not say where its server is";
  return url;
}

}  // namespace nfsrdma::tool
