// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome pathconf(ServerContext& server, Request& request, xdr::Decoder& decoder,
                 xdr::Encoder& result) {
  // What Linux says of a file system whose limit it does not know (pathconf(3) does the same).
  constexpr std::uint32_t kLinkMax = 32000;
  constexpr std::uint32_t kNameMax = 255;
  xdr::PATHCONF3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::PATHCONF3res res;
  Resolved object;
  res.status = call.resolve(args.object, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resok.obj_attributes = res.resfail.obj_attributes = post_op(object);
  res.resok.linkmax = kLinkMax;
  res.resok.name_max = kNameMax;
  struct statvfs fs;
  if (object.file && ::fstatvfs(object.file->path_fd(), &fs) == 0 && fs.f_namemax != 0) {
    res.resok.name_max = static_cast<std::uint32_t>(fs.f_namemax);
  }
  res.resok.no_trunc = true;
  res.resok.chown_restricted = true;
  res.resok.case_insensitive = false;
  res.resok.case_preserving = true;
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
