// SPDX-License-Identifier: Apache-2.0
// Our RQUOTA values as the oracles'.
#pragma once

#include "tests/property/oracle/convert.h"
#include "xdr/rquota.h"

// Behind ours: the procedures' names are macros there.
#include "rquota_oracle.h"
#include "rquota_system.h"

namespace nfsrdma::oracle {

// clang-format off
ORACLE_2(getquota_args, gqa_pathp, gqa_uid)
ORACLE_BEGIN(rquota)
  ORACLE_FIELD(rq_bsize) ORACLE_FIELD(rq_active)
  ORACLE_FIELD(rq_bhardlimit) ORACLE_FIELD(rq_bsoftlimit) ORACLE_FIELD(rq_curblocks)
  ORACLE_FIELD(rq_fhardlimit) ORACLE_FIELD(rq_fsoftlimit) ORACLE_FIELD(rq_curfiles)
  ORACLE_FIELD(rq_btimeleft) ORACLE_FIELD(rq_ftimeleft)
ORACLE_END
ORACLE_UNION(getquota_rslt, status, from.status == xdr::gqr_status::Q_OK, gqr_rquota)
ORACLE_8(sq_dqblk, rq_bhardlimit, rq_bsoftlimit, rq_curblocks, rq_fhardlimit, rq_fsoftlimit,
         rq_curfiles, rq_btimeleft, rq_ftimeleft)
ORACLE_3(ext_getquota_args, gqa_pathp, gqa_type, gqa_id)
ORACLE_4(setquota_args, sqa_qcmd, sqa_pathp, sqa_id, sqa_dqblk)
ORACLE_5(ext_setquota_args, sqa_qcmd, sqa_pathp, sqa_id, sqa_type, sqa_dqblk)
// clang-format on

}  // namespace nfsrdma::oracle
