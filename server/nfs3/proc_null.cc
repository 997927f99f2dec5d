// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome null(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder&) {
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
