// SPDX-License-Identifier: Apache-2.0
// REMOVE and what it shares with RMDIR.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "server/nfs3/procedures.h"
#include "server/nfs3/remove_entry.h"

namespace nfsrdma::nfs3 {

Outcome remove(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::REMOVE3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  return run_removal<xdr::REMOVE3res>(server, request, args.object, result, EACCES, EACCES, 0);
}

}  // namespace nfsrdma::nfs3
