// SPDX-License-Identifier: Apache-2.0
#include "server/mount/exported_path.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "server/server_context.h"

namespace nfsrdma {

namespace {

/// Behind links a path may lead anywhere, to a server that is dead or to autofs, and whoever can
/// send a call says where. So most workers are kept out of that.
class PlaceToFollow {
 public:
  PlaceToFollow() : has_one_(taken_.fetch_add(1, std::memory_order_relaxed) < kPlaces) {}
  ~PlaceToFollow() { taken_.fetch_sub(1, std::memory_order_relaxed); }
  PlaceToFollow(const PlaceToFollow&) = delete;
  PlaceToFollow& operator=(const PlaceToFollow&) = delete;
  bool has_one() const { return has_one_; }

 private:
  static constexpr int kPlaces = 2;
  static inline std::atomic<int> taken_{0};  // by all workers of the process
  const bool has_one_;
};

/// What `path` is behind symbolic links; "" when it is nothing, or that cannot be found out since
/// others hang in it. False: it may be found out a moment later.
bool real_path(const Request& request, const std::string& path, std::string* out) {
  constexpr auto kPatience = std::chrono::seconds(5);
  const PlaceToFollow place;
  if (!place.has_one())
    return std::chrono::steady_clock::now() - request.call->arrived >= kPatience;
  AsServer rights;
  char real[PATH_MAX];
  if (!path.empty() && ::realpath(path.c_str(), real) != nullptr) *out = real;
  return true;
}

/// Where a path leads to.
struct Target {
  const Export* entry = nullptr;
  std::string rest;  // below the export
  ExportAccess access;
};

/// One lookup for a caller.
struct Search {
  ServerContext& server;
  const Request& request;
  std::string_view refusal;
  Ports ports;

  ExportTable::Verdict access(const Export& entry, ExportAccess* out) const {
    const ServerConnection& connection = request.call->connection();
    return ports == Ports::kAny ? server.exports.access_by_any_port(entry, connection, true, out)
                                : server.exports.access(entry, connection, true, out);
  }
  /// Is anything exported to the caller's host, or may be, for all that is known yet?
  bool is_client() const {
    return std::ranges::any_of(server.exports.current().exports, [this](const auto& entry) {
      ExportAccess may;
      return access(*entry, &may) == ExportTable::Verdict::kWouldBlock || may.allowed ||
             may.wrong_port;
    });
  }
  /// Why is for the log; the client learns nothing.
  int refuse(const std::string& path, bool wrong_port) const {
    static thread_local RateLimit refusals(10, std::chrono::seconds(10));
    const char* why = wrong_port
                          ? "its port is not below 1024, and the export lacks the option insecure"
                          : "no line of the exports is for it";
    if (refusals.allow()) {
      log_notice("{} {} {}: {}", request.call->connection().peer().text(), refusal, path, why);
    }
    return EACCES;
  }
};

/// The innermost export that `path` lies in and that is for the caller's host: where the inner ones
/// are for others, an outer one is good, as in mountd and on the way down by LOOKUP. Its port is no
/// reason to look further. 0 or an errno: ENOENT when it lies in none, EACCES when in none for the
/// caller, EAGAIN when that is not known yet.
int find_target(const Search& search, const std::string& path, Target* target) {
  const ExportSnapshot& exports = search.server.exports.current();
  std::size_t shorter_than = std::string::npos;
  std::string_view rest;
  while (!path.empty()) {
    const Export* entry = exports.find_path(path, &rest, shorter_than);
    if (entry == nullptr) break;
    if (search.access(*entry, &target->access) == ExportTable::Verdict::kWouldBlock) return EAGAIN;
    if (target->access.allowed) {
      target->entry = entry;
      target->rest = rest;
      return 0;
    }
    if (target->access.wrong_port) return search.refuse(path, true);
    shorter_than = ExportSnapshot::matched(path, rest);
  }
  return shorter_than == std::string::npos ? ENOENT : search.refuse(path, false);
}

/// Walks from the export's directory; 0 or an errno.
int walk(ServerContext& server, const Target& target, Resolved* out) {
  AsServer rights;
  if (int error = server.resolver.open_root(*target.entry, out)) return error;
  std::string_view rest = target.rest;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name.empty()) continue;
    if (!S_ISDIR(out->attributes.st_mode)) return ENOTDIR;
    Resolved next;
    if (int error = server.resolver.lookup(*target.entry, target.access, *out->file, name, &next)) {
      return error;
    }
    *out = std::move(next);
  }
  const mode_t mode = out->attributes.st_mode;
  return S_ISDIR(mode) || S_ISREG(mode) ? 0 : ENOTDIR;
}

}  // namespace

int find_exported(ServerContext& server, const Request& request, const std::string& path,
                  std::string_view refusal, Ports ports, Resolved* found, ExportAccess* access) {
  const Search search{server, request, refusal, ports};
  Target target;
  const int given = find_target(search, path, &target);
  if (given != 0 && given != ENOENT) return given;
  int error = given;
  if (given == 0) error = walk(server, target, found);
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
    std::string real;
    if (search.is_client() && !real_path(request, path, &real)) return EAGAIN;
    const int behind = find_target(search, real, &target);
    if (behind == ENOENT) return given == 0 ? error : EACCES;
    if (behind != 0) return behind;
    error = walk(server, target, found);
  }
  *access = target.access;
  return error;
}

}  // namespace nfsrdma
