// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/doubtful.h"
#include "client/nfs4/compound.h"
#include "client/nfs4/convert.h"

namespace nfsrdma::nfs4 {

/// The next of the results, which is a GETATTR of kAttributes; nothing when it failed.
inline std::optional<Attributes> next_attributes(CompoundReader& in, IdNames& names) {
  xdr::GETATTR4res got;
  if (!in.next(xdr::nfs_opnum4::OP_GETATTR, got)) return {};
  return from_wire(got.resok4.obj_attributes, names);
}

}  // namespace nfsrdma::nfs4
