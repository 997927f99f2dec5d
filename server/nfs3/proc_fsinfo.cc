// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome fsinfo(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  constexpr std::uint32_t kMult = 4096;
  constexpr std::uint32_t kPreferredDirectoryReply = 32768;  // what Linux's client asks for at most
  constexpr std::uint32_t kPreferredTransfer = 1u << 20;
  xdr::FSINFO3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::FSINFO3res res;
  Resolved object;
  res.status = call.resolve(args.fsroot, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resfail.obj_attributes = post_op(object);
  xdr::FSINFO3resok& ok = res.resok;
  ok.obj_attributes = res.resfail.obj_attributes;
  ok.rtmax = server.rtmax();
  ok.rtpref = std::min(server.rtmax(), kPreferredTransfer);
  ok.wtmax = server.wtmax();
  ok.wtpref = std::min(server.wtmax(), kPreferredTransfer);
  ok.rtmult = ok.wtmult = kMult;
  ok.dtpref = kPreferredDirectoryReply;
  ok.maxfilesize = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  ok.time_delta = {0, 1};
  ok.properties = xdr::FSF3_LINK | xdr::FSF3_SYMLINK | xdr::FSF3_HOMOGENEOUS | xdr::FSF3_CANSETTIME;
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
