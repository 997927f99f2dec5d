// SPDX-License-Identifier: Apache-2.0
#include "client/mount/remount.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "client/mount/mount_point.h"
#include "client/mount/remount_plan.h"
#include "client/status_source.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma {

namespace {

/// The document of the daemon behind the mount.
std::optional<JsonValue> ask_daemon(const std::string& mount_point, std::string* why) {
  for (const std::string& socket : mount_status_sockets(mount_point, why)) {
    Result<std::string> text = fetch_status(socket, why);
    if (text.ok()) return JsonValue::parse(*text);
  }
  return {};
}

}  // namespace

std::string remount(const MountCommandLine& line) {
  const std::string& where = line.mount_point;
  std::string why;
  const std::optional<OurMount> mounted = our_mount(where, &why);
  if (!mounted) return why;
  if (!mounted->is_its_point) return where + ": lies in a mount, but is no mount point";
  const std::optional<JsonValue> running = ask_daemon(mounted->mount_point, &why);
  if (!running) return why.empty() ? where + ": its daemon says nothing" : why;
  const RemountPlan plan = plan_remount(line.options.given, (*running)["options"].text());
  if (!plan.refused.empty()) {
    return fmt::format(
        "{}: remount changes ro, rw and the like only; unmount and mount again for {}", where,
        fmt::join(plan.refused, ","));
  }
  if (::mount("none", mounted->mount_point.c_str(), nullptr, plan.flags, nullptr) == 0) return {};
  return fmt::format("{}: remount: {}{}", where, std::strerror(errno),
                     errno == EPERM ? "; only root may" : "");
}

}  // namespace nfsrdma
