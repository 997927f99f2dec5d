// SPDX-License-Identifier: Apache-2.0
// The only file of the client library that names the fabrics.
#include "client/default_fabrics.h"

#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "rpcrdma/verbs/device_probe.h"
#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma {

Fabrics default_fabrics(bool require_crc) {
  // Never destroyed: mounts in other static objects may outlive us.
  static Fabric* const verbs = [] {
    verbs::VerbsOptions options;
    options.windows = verbs::WindowUse::kSafe;
    return verbs::make_fabric(options).release();
  }();
  static Fabric* const iwarp = iwarp::make_fabric({}).release();
  if (!require_crc) return {verbs, iwarp, "", ""};
  static Fabric* const with_crc = [] {
    iwarp::IwarpOptions options;
    options.require_crc = true;
    return iwarp::make_fabric(options).release();
  }();
  return {verbs, with_crc, "", ""};
}

RdmaHostReport report_rdma_host() {
  return {verbs::probe_host(), iwarp::IwarpOptions{}.max_inbound_reads};
}

}  // namespace nfsrdma
