// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/doubtful.h"
#include "client/nfs4/compound.h"
#include "client/nfs4/convert.h"

namespace nfsrdma::nfs4 {

/// The next of the results, which is a GETATTR of kAttributes; nothing when it failed. *attributes
/// stay in place until call() is over, which fills in what their owners are called.
inline void next_attributes(CompoundReader& in, IdNames& names,
                            std::optional<Attributes>* attributes) {
  xdr::GETATTR4res got;
  attributes->reset();
  if (!in.next(xdr::nfs_opnum4::OP_GETATTR, got)) return;
  from_wire(got.resok4.obj_attributes, names, attributes);
}

}  // namespace nfsrdma::nfs4
