// SPDX-License-Identifier: Apache-2.0
// The only file of the client library that names the fabrics.
#include "client/default_fabrics.h"

#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma {

Fabrics default_fabrics() {
  // Never destroyed: mounts in other static objects may outlive us.
  static Fabric* const verbs = verbs::make_fabric({}).release();
  static Fabric* const iwarp = iwarp::make_fabric({}).release();
  return {verbs, iwarp, "", ""};
}

}  // namespace nfsrdma
