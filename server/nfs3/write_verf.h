// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpcrdma/base/bytes.h"
#include "server/vfs/write_verifier.h"
#include "xdr/nfs3_types.h"

namespace nfsrdma::nfs3 {

inline xdr::writeverf3 write_verf(const WriteVerifier& verifier) {
  xdr::writeverf3 bytes;
  store_be64(bytes.data(), verifier.value());
  return bytes;
}

}  // namespace nfsrdma::nfs3
