// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/files/change_scope.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::nfs4 {

/// change_info4 of a directory (RFC 8881 3.3.3), after ChangeScope::finish(). Atomic as far as this
/// server goes: local processes change directories too, and nothing keeps them out.
inline xdr::change_info4 change_info(const ChangeScope& scope) {
  return {scope.alone(), scope.change_before(), scope.change_after()};
}

}  // namespace nfsrdma::nfs4
