// SPDX-License-Identifier: Apache-2.0
#include "client/tool/mounted_server.h"

#include "client/mount/settings_of.h"
#include "client/status_source.h"

namespace nfsrdma::tool {

bool settings_of_status(const JsonValue& status, MountSettings* settings) {
  MountSource source;
  MountOptions options;
  std::string error;
  if (!parse_mount_source(status["source"].text(), &source, &error)) return false;
  // Of another release it may have some that are not known here.
  if (!parse_mount_options(status["options"].text(), true, &options, &error)) return false;
  *settings = settings_of(source, options);
  settings->called_at.reset();  // nobody here holds a delegation
  return true;
}

bool settings_of_mount(const std::string& directory, MountSettings* settings, std::string* source,
                       std::string* why) {
  Result<std::string> document = fetch_mount_status(directory, why);
  if (!document.ok()) return false;
  const std::optional<JsonValue> status = JsonValue::parse(*document);
  if (!status || !settings_of_status(*status, settings)) {
    *why = directory + ": the mount does not say where its server is";
    return false;
  }
  *source = (*status)["source"].text();
  return true;
}

}  // namespace nfsrdma::tool
