// SPDX-License-Identifier: Apache-2.0
// MNT. As mountd, it looks at the path with the server's own rights (a client may mount what its
// users could not reach from above), names the export by the path as given or by what the path
// really is behind symbolic links, and tells who may not mount nothing about what exists.
#include "server/mount/proc_mnt.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "server/mount/mount_program.h"
#include "server/server_context.h"
#include "server/vfs/resolver.h"
#include "xdr/mount3.h"
#include "xdr/rpc_auth.h"

namespace nfsrdma {

namespace {

using xdr::mountstat3;

mountstat3 mount_status(int error) {
  switch (error) {
    case 0:
      return mountstat3::MNT3_OK;
    case ENOENT:
    case ESTALE:
      return mountstat3::MNT3ERR_NOENT;
    case ENOTDIR:
    case ELOOP:
      return mountstat3::MNT3ERR_NOTDIR;
    case EACCES:
    case EPERM:
    case EXDEV:
      return mountstat3::MNT3ERR_ACCES;
    case ENAMETOOLONG:
      return mountstat3::MNT3ERR_NAMETOOLONG;
    case EIO:
      return mountstat3::MNT3ERR_IO;
    default:
      return mountstat3::MNT3ERR_SERVERFAULT;
  }
}

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

/// May the caller mount it? Refusals say why in the log; the client learns nothing.
bool may_mount(ServerContext& server, const Request& request, const Export& entry,
               const std::string& path) {
  static thread_local RateLimit refusals(10, std::chrono::seconds(10));
  const ServerConnection& connection = request.call->connection();
  ExportAccess access;
  server.exports.access(entry, connection, true, &access);
  if (access.allowed) return true;
  // Was it its port alone?
  server.exports.access(entry, connection.peer(), true, &access);
  const char* why = access.allowed
                        ? "its port is not below 1024, and the export lacks the option insecure"
                        : "no line of the exports is for it";
  if (refusals.allow()) log_notice("{} may not mount {}: {}", connection.peer().text(), path, why);
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

Outcome refuse(mountstat3 status, xdr::Encoder& result) {
  xdr::mountres3 reply;
  reply.fhs_status = status;
  xdr::encode(result, reply);
  return Outcome::kReply;
}

/// What sec= of the export lists, AUTH_SYS first. AUTH_NONE only where it is all that there is.
void list_flavors(ServerContext& server, const Request& request, std::uint64_t export_id,
                  xdr::mountres3* reply) {
  ExportAccess access;
  const Export* entry = server.exports.current().find(export_id);
  if (entry != nullptr) server.exports.access(*entry, request.call->connection(), true, &access);
  auto add = [reply](xdr::auth_flavor flavor) {
    reply->mountinfo.auth_flavors.push_back(static_cast<std::uint32_t>(flavor));
  };
  if (access.serves_sys) add(xdr::auth_flavor::AUTH_SYS);
  if (!access.serves_sys && access.serves_none) add(xdr::auth_flavor::AUTH_NONE);
}

}  // namespace

Outcome proc_mnt(ServerContext& server, Request& request, xdr::Decoder& args,
                 xdr::Encoder& result) {
  xdr::dirpath argument;
  if (!xdr::decode(args, argument) || !args.at_end()) return Outcome::kGarbageArgs;
  const ExportSnapshot& exports = server.exports.current();
  const std::string path = normalise_mount_path(argument.path);
  Target target = find_target(exports, path);
  Resolved found;
  int error = ENOENT;
  if (target.entry != nullptr) {
    if (!may_mount(server, request, *target.entry, path)) {
      return refuse(mountstat3::MNT3ERR_ACCES, result);
    }
    error = walk(server, *target.entry, target.rest, &found);
  }
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
    const Target behind = find_target(exports, path.empty() ? path : real_path(path));
    if (behind.entry == nullptr && target.entry == nullptr) {
      return refuse(mountstat3::MNT3ERR_ACCES, result);
    }
    if (behind.entry != nullptr) {
      if (!may_mount(server, request, *behind.entry, path)) {
        return refuse(mountstat3::MNT3ERR_ACCES, result);
      }
      error = walk(server, *behind.entry, behind.rest, &found);
    }
  }
  if (error != 0) return refuse(mount_status(error), result);
  const FileHandle handle = found.file->handle();
  xdr::mountres3 reply;
  reply.mountinfo.fhandle = handle.bytes();
  list_flavors(server, request, found.file->parts().export_id, &reply);
  xdr::encode(result, reply);
  const SocketAddress& peer = request.call->connection().peer();
  server.mounts.add(peer.host_text(), path);
  log_debug("{} mounted {}", peer.text(), path);
  return Outcome::kReply;
}

}  // namespace nfsrdma
