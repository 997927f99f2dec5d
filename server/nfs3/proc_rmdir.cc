// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cerrno>

#include "server/nfs3/procedures.h"
#include "server/nfs3/remove_entry.h"

namespace nfsrdma::nfs3 {

Outcome rmdir(ServerContext& server, Request& request, xdr::Decoder& decoder,
              xdr::Encoder& result) {
  xdr::RMDIR3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  return run_removal<xdr::RMDIR3res>(server, request, args.object, result, EINVAL, EEXIST,
                                     AT_REMOVEDIR);
}

}  // namespace nfsrdma::nfs3
