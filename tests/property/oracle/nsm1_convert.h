// SPDX-License-Identifier: Apache-2.0
// Our NSM values as the oracle's.
#pragma once

#include "nsm1_oracle.h"
#include "tests/property/oracle/convert.h"
#include "xdr/nsm1.h"

namespace nfsrdma::oracle {

// clang-format off
ORACLE_1(sm_name, mon_name)
ORACLE_4(my_id, my_name, my_prog, my_vers, my_proc)
ORACLE_2(mon_id, mon_name, id)
ORACLE_2(sm_mon, id, priv)
ORACLE_2(stat_chge, mon_name, state)
ORACLE_1(sm_stat, state)
ORACLE_2(sm_stat_res, res_stat, state)
ORACLE_3(sm_status, mon_name, state, priv)
// clang-format on

}  // namespace nfsrdma::oracle
