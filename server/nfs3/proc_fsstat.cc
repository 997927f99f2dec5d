// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>

#include <cerrno>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome fsstat(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::FSSTAT3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::FSSTAT3res res;
  Resolved object;
  res.status = call.resolve(args.fsroot, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resok.obj_attributes = res.resfail.obj_attributes = post_op(object);
  struct statvfs fs {};
  if (res.status == xdr::nfsstat3::NFS3_OK && ::fstatvfs(object.file->path_fd(), &fs) != 0) {
    res.status = status_of_errno(errno);
  }
  res.resok.tbytes = fs.f_blocks * fs.f_frsize;
  res.resok.fbytes = fs.f_bfree * fs.f_frsize;
  res.resok.abytes = fs.f_bavail * fs.f_frsize;
  res.resok.tfiles = fs.f_files;
  res.resok.ffiles = fs.f_ffree;
  res.resok.afiles = fs.f_favail;
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
