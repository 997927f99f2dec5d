// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome getattr(ServerContext& server, Request& request, xdr::Decoder& decoder,
                xdr::Encoder& result) {
  xdr::GETATTR3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::GETATTR3res res;
  Resolved object;
  res.status = call.resolve(args.object, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.status = status_of_errno(call.may_see(*object.file));
  }
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.resok.obj_attributes = fattr3_of(object.attributes, object.file->fsid());
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
