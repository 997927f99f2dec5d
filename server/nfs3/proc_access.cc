// SPDX-License-Identifier: Apache-2.0
#include "server/files/access_rights.h"
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome access(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  constexpr std::uint32_t kKnown = xdr::ACCESS3_READ | xdr::ACCESS3_LOOKUP | xdr::ACCESS3_MODIFY |
                                   xdr::ACCESS3_EXTEND | xdr::ACCESS3_DELETE | xdr::ACCESS3_EXECUTE;
  xdr::ACCESS3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::ACCESS3res res;
  Resolved object;
  res.status = call.resolve(args.object, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resok.obj_attributes = res.resfail.obj_attributes = post_op(object);
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.resok.access = access_granted(call, object, args.access & kKnown);
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
