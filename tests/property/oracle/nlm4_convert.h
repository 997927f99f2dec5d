// SPDX-License-Identifier: Apache-2.0
// Our NLM values as the oracle's.
#pragma once

#include "nlm4_oracle.h"
#include "tests/property/oracle/convert.h"
#include "xdr/nlm4.h"

namespace nfsrdma::oracle {

// clang-format off
ORACLE_BEGIN(nlm4_holder)
  ORACLE_FIELD(exclusive) ORACLE_FIELD(svid) ORACLE_OPAQUE(oh, from.oh)
  ORACLE_FIELD(l_offset) ORACLE_FIELD(l_len)
ORACLE_END
ORACLE_UNION(nlm4_testrply, stat, from.stat == xdr::nlm4_stats::NLM4_DENIED, holder)
ORACLE_BEGIN(nlm4_testres)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(test_stat)
ORACLE_END
ORACLE_BEGIN(nlm4_res)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(stat)
ORACLE_END
ORACLE_BEGIN(nlm4_lock)
  ORACLE_FIELD(caller_name) ORACLE_OPAQUE(fh, from.fh) ORACLE_OPAQUE(oh, from.oh)
  ORACLE_FIELD(svid) ORACLE_FIELD(l_offset) ORACLE_FIELD(l_len)
ORACLE_END
ORACLE_BEGIN(nlm4_lockargs)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(block) ORACLE_FIELD(exclusive)
  ORACLE_FIELD(alock) ORACLE_FIELD(reclaim) ORACLE_FIELD(state)
ORACLE_END
ORACLE_BEGIN(nlm4_cancargs)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(block) ORACLE_FIELD(exclusive)
  ORACLE_FIELD(alock)
ORACLE_END
ORACLE_BEGIN(nlm4_testargs)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(exclusive) ORACLE_FIELD(alock)
ORACLE_END
ORACLE_BEGIN(nlm4_unlockargs)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(alock)
ORACLE_END
ORACLE_BEGIN(nlm4_share)
  ORACLE_FIELD(caller_name) ORACLE_OPAQUE(fh, from.fh) ORACLE_OPAQUE(oh, from.oh)
  ORACLE_FIELD(mode) ORACLE_FIELD(access)
ORACLE_END
ORACLE_BEGIN(nlm4_shareargs)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(share) ORACLE_FIELD(reclaim)
ORACLE_END
ORACLE_BEGIN(nlm4_shareres)
  ORACLE_OPAQUE(cookie, from.cookie) ORACLE_FIELD(stat) ORACLE_FIELD(sequence)
ORACLE_END
ORACLE_2(nlm4_notify, name, state)
// clang-format on

}  // namespace nfsrdma::oracle
