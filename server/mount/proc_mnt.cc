// SPDX-License-Identifier: Apache-2.0
// MNT. A client may mount what its users could not reach from above (exported_path.h).
#include "server/mount/proc_mnt.h"

#include <cerrno>

#include "rpcrdma/base/log.h"
#include "server/mount/exported_path.h"
#include "server/mount/mount_program.h"
#include "server/server_context.h"
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

Outcome refuse(mountstat3 status, xdr::Encoder& result) {
  xdr::mountres3 reply;
  reply.fhs_status = status;
  xdr::encode(result, reply);
  return Outcome::kReply;
}

/// What sec= of the export lists, AUTH_SYS first. AUTH_NONE only where it is all that there is.
void list_flavors(const ExportAccess& access, xdr::mountres3* reply) {
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
  const std::string path = normalise_mount_path(argument.path);
  Resolved found;
  ExportAccess access;
  const int error =
      find_exported(server, request, path, "may not mount", Ports::kAsExported, &found, &access);
  if (error == EAGAIN) return Outcome::kWouldBlock;
  if (error != 0) return refuse(mount_status(error), result);
  const FileHandle handle = found.file->handle();
  xdr::mountres3 reply;
  reply.mountinfo.fhandle = handle.bytes();
  list_flavors(access, &reply);
  xdr::encode(result, reply);
  const SocketAddress& peer = request.call->connection().peer();
  server.mounts.add(peer.host_text(), path);
  log_debug("{} mounted {}", peer.text(), path);
  return Outcome::kReply;
}

}  // namespace nfsrdma
