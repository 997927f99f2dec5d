// SPDX-License-Identifier: Apache-2.0
// MKNOD. The kernel lets only a root caller make devices (CAP_MKNOD leaves a thread's effective set
// with uid 0); anybody may make fifos and sockets.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "server/nfs3/new_object.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

/// 0 when `type` is none that MKNOD makes.
mode_t format_of(xdr::ftype3 type) {
  switch (type) {
    case xdr::ftype3::NF3CHR:
      return S_IFCHR;
    case xdr::ftype3::NF3BLK:
      return S_IFBLK;
    case xdr::ftype3::NF3SOCK:
      return S_IFSOCK;
    case xdr::ftype3::NF3FIFO:
      return S_IFIFO;
    default:
      return 0;
  }
}

bool is_device(mode_t format) {
  return format == S_IFCHR || format == S_IFBLK;
}

}  // namespace

Outcome mknod(ServerContext& server, Request& request, xdr::Decoder& decoder,
              xdr::Encoder& result) {
  xdr::MKNOD3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const mode_t format = format_of(args.what.type);
  if (format == 0) {
    xdr::MKNOD3res res;
    res.status = xdr::nfsstat3::NFS3ERR_BADTYPE;
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  NewAttributes values;
  const bool good = new_attributes(
      is_device(format) ? args.what.device.dev_attributes : args.what.pipe_attributes, &values);
  const dev_t device =
      is_device(format) ? makedev(args.what.device.spec.specdata1, args.what.device.spec.specdata2)
                        : 0;
  return make_object<xdr::MKNOD3res>(
      server, request, args.where, result,
      [&](CallContext& call, Resolved& directory, Resolved& object) {
        if (!good) return EINVAL;
        const std::uint32_t mode = initial_mode(values);
        if (::mknodat(directory.file->path_fd(), EntryName(args.where.name).c_str(), format | mode,
                      device) != 0) {
          return errno;
        }
        return finish_object(call, directory, args.where.name, values, format | mode, &object);
      });
}

}  // namespace nfsrdma::nfs3
