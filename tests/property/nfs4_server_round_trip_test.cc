// SPDX-License-Identifier: Apache-2.0
// Every type that a server of NFS version 4 reads.
#include "tests/support/xdr_nfs4_rules.h"

namespace nfsrdma::testing {
namespace {

NFSRDMA_NFS4_RULES(Nfs4ServerReads)

}  // namespace
}  // namespace nfsrdma::testing
