// SPDX-License-Identifier: Apache-2.0
// Our MOUNT values as the oracle's.
#pragma once

#include "mount3_oracle.h"
#include "tests/property/oracle/convert.h"
#include "xdr/mount3.h"

namespace nfsrdma::oracle {

// clang-format off
ORACLE_1(dirpath, path)
ORACLE_BEGIN(mountres3_ok)
  ORACLE_OPAQUE(fhandle, from.fhandle)
  to.auth_flavors.auth_flavors_len = from.auth_flavors.count;
  to.auth_flavors.auth_flavors_val = const_cast<unsigned*>(from.auth_flavors.items.data());
ORACLE_END
ORACLE_UNION(mountres3, fhs_status, from.fhs_status == xdr::mountstat3::MNT3_OK, mountinfo)
ORACLE_2(mountbody, ml_hostname, ml_directory)
ORACLE_1(mountlist, mounts)
ORACLE_1(groupnode, gr_name)
ORACLE_2(exportnode, ex_dir, ex_groups)
ORACLE_1(exports, nodes)
// clang-format on

}  // namespace nfsrdma::oracle
