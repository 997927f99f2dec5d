// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/nfs4/attributes.h"
#include "server/nfs4/compound.h"

namespace nfsrdma::nfs4 {

/// What is the same for all objects that this server shows.
AttributeFacts common_facts(Compound& compound);
/// What there is to know of a current handle, for the attributes in `mask`. An object's attributes
/// are read anew when its change attribute is asked for. As the caller (Compound::enter). Refers to
/// `handle`.
xdr::nfsstat4 facts_of(Compound& compound, FileCall& call, CurrentHandle& handle,
                       const xdr::bitmap4& mask, AttributeFacts* out);
/// Of a pseudo directory.
AttributeFacts pseudo_facts(Compound& compound, const CurrentHandle& handle);

}  // namespace nfsrdma::nfs4
