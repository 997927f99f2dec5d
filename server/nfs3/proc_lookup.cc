// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

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
    res.status = status_of_errno(
        server.resolver.look(call.exported(), *directory.file, args.what.name, &object));
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
