// SPDX-License-Identifier: Apache-2.0
// NFS version 4.1: TEST_STATEID and FREE_STATEID.
#pragma once

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct FREE_STATEID4args {
  stateid4 fsa_stateid{};
};
template <typename A, Is<FREE_STATEID4args> V>
void visit(A& ar, V& v) {
  ar("fsa_stateid", v.fsa_stateid);
}

using FREE_STATEID4res = Nfs4Result<Void>;

struct TEST_STATEID4args {
  EncodedArray<stateid4> ts_stateids{};
};
template <typename A, Is<TEST_STATEID4args> V>
void visit(A& ar, V& v) {
  ar.counted("ts_stateids", v.ts_stateids, kNfs4MaxStateids);
}

struct TEST_STATEID4resok {
  EncodedArray<nfsstat4> tsr_status_codes{};
};
template <typename A, Is<TEST_STATEID4resok> V>
void visit(A& ar, V& v) {
  ar.counted("tsr_status_codes", v.tsr_status_codes, kNfs4MaxStateids);
}

using TEST_STATEID4res = Nfs4Result<TEST_STATEID4resok>;

}  // namespace nfsrdma::xdr
