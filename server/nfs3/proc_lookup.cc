// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cerrno>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

/// Is there an export of its own at the root of a mount that was met on the way? It is gone into
/// where it has the option nohide, or the export above it crossmnt for this client. Its id; 0:
/// there is none. *would_block: the name service has to be asked first.
std::uint64_t export_at(CallContext& call, dev_t device, ino_t inode, bool* would_block) {
  const ExportTable& exports = call.server().exports;
  // current() may let go of the table that exported() is part of.
  const Export& exported = call.exported();
  const std::string inside = exported.path == "/" ? exported.path : exported.path + "/";
  const std::uint64_t outer = exported.id;
  const bool crossmnt = call.access().crossmnt;
  const ExportSnapshot& all = exports.current();
  for (std::size_t nth = 0;; ++nth) {
    const Export* entry = all.find_at(device, inode, nth);
    if (entry == nullptr) return 0;
    if (entry->id == outer || !entry->path.starts_with(inside)) continue;
    ExportAccess access;
    const Request& request = call.request();
    if (exports.access(*entry, request.call->connection(), request.may_block, &access) ==
        ExportTable::Verdict::kWouldBlock) {
      *would_block = true;
      return 0;
    }
    if (access.allowed && (access.nohide || crossmnt)) return entry->id;
  }
}

/// Looks for the object that `name` is in another export, when `error`, and `object` without one,
/// say that a file system is mounted there. The same error, or another, when there is none.
int cross(CallContext& call, const Resolved& directory, std::string_view name, int error,
          SeenEntry* object, bool* would_block) {
  struct stat st = object->attributes;
  if (error == EXDEV) {
    const std::string text(name);
    if (::fstatat(directory.file->path_fd(), text.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return errno;
  } else if (error != 0 || !S_ISDIR(st.st_mode) || st.st_dev == directory.file->device()) {
    return error;  // the usual case
  }
  HandleParts parts;
  parts.export_id = export_at(call, st.st_dev, st.st_ino, would_block);
  if (parts.export_id == 0) return error;
  FileCall inner(call.server(), call.request());
  if (const int refused = inner.admit(parts, Use::kLook)) {
    *would_block |= inner.would_block();
    return refused;
  }
  Resolved root;
  if (const int failed = call.server().resolver.open_root(inner.exported(), &root)) return failed;
  *object = {root.file->handle(), root.attributes, root.file->fsid()};
  return 0;
}

}  // namespace

Outcome lookup(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::LOOKUP3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::LOOKUP3res res;
  Resolved directory;
  SeenEntry object;
  res.status = call.resolve(args.what.dir, Use::kLook, &directory);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    int error = server.resolver.look(call.exported(), call.access(), *directory.file,
                                     args.what.name, &object);
    bool would_block = false;
    if (args.what.name != "." && args.what.name != "..") {
      error = cross(call, directory, args.what.name, error, &object, &would_block);
      if (would_block) return Outcome::kWouldBlock;
    }
    res.status = status_of_errno(error);
  }
  res.resok.dir_attributes = res.resfail.dir_attributes = post_op(directory);
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.resok.object.data = object.handle.bytes();
    res.resok.obj_attributes = call.attributes_of(object.attributes, object.fsid);
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
