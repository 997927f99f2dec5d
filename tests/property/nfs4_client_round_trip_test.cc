// SPDX-License-Identifier: Apache-2.0
// Every type that a client of NFS version 4 reads.
#include "tests/support/xdr_nfs4_rules.h"

namespace nfsrdma::testing {
namespace {

NFSRDMA_NFS4_RULES(Nfs4ClientReads)

}  // namespace
}  // namespace nfsrdma::testing
