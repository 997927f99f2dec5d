// SPDX-License-Identifier: Apache-2.0
#include "server/mount/exported_path.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "server/server_context.h"

namespace nfsrdma {

namespace {

/// What `path` is behind symbolic links, or "".
std::string real_path(const std::string& path) {
  AsServer rights;
  char real[PATH_MAX];
  return ::realpath(path.c_str(), real) != nullptr ? real : "";
}

/// Where a path leads to.
struct Target {
  const Export* entry = nullptr;
  std::string rest;  // below the export
};

Target find_target(const ExportSnapshot& exports, const std::string& path) {
  Target target;
  std::string_view rest;
  if (path.empty()) return target;
  target.entry = exports.find_path(path, &rest);
  target.rest = rest;
  return target;
}

/// May the caller use it? Refusals say why in the log; the client learns nothing.
bool may_use(ServerContext& server, const Request& request, const Export& entry,
             const std::string& path, std::string_view refusal, Ports ports) {
  static thread_local RateLimit refusals(10, std::chrono::seconds(10));
  const ServerConnection& connection = request.call->connection();
  ExportAccess access;
  server.exports.access(entry, connection, true, &access);
  if (access.allowed) return true;
  // Was it its port alone?
  server.exports.access(entry, connection.peer(), true, &access);
  if (access.allowed && ports == Ports::kAny) return true;
  const char* why = access.allowed
                        ? "its port is not below 1024, and the export lacks the option insecure"
                        : "no line of the exports is for it";
  if (refusals.allow()) {
    log_notice("{} {} {}: {}", connection.peer().text(), refusal, path, why);
  }
  return false;
}

/// Walks from the export's directory; 0 or an errno.
int walk(ServerContext& server, const Export& entry, std::string_view rest, Resolved* out) {
  AsServer rights;
  if (int error = server.resolver.open_root(entry, out)) return error;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name.empty()) continue;
    if (!S_ISDIR(out->attributes.st_mode)) return ENOTDIR;
    Resolved next;
    if (int error = server.resolver.lookup(entry, *out->file, name, &next)) return error;
    *out = std::move(next);
  }
  const mode_t mode = out->attributes.st_mode;
  return S_ISDIR(mode) || S_ISREG(mode) ? 0 : ENOTDIR;
}

}  // namespace

int find_exported(ServerContext& server, const Request& request, const std::string& path,
                  std::string_view refusal, Ports ports, Resolved* found) {
  const ExportSnapshot& exports = server.exports.current();
  const Target target = find_target(exports, path);
  int error = ENOENT;
  if (target.entry != nullptr) {
    if (!may_use(server, request, *target.entry, path, refusal, ports)) return EACCES;
    error = walk(server, *target.entry, target.rest, found);
  }
  if (error != ENOENT && error != ENOTDIR && error != ELOOP) return error;
  const Target behind = find_target(exports, path.empty() ? path : real_path(path));
  if (behind.entry == nullptr) return target.entry == nullptr ? EACCES : error;
  if (!may_use(server, request, *behind.entry, path, refusal, ports)) return EACCES;
  return walk(server, *behind.entry, behind.rest, found);
}

}  // namespace nfsrdma
