// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/nfs4/attributes.h"
#include "server/nfs4/compound.h"

namespace nfsrdma::nfs4 {

/// What is the same for all objects that this server shows.
AttributeFacts common_facts(Compound& compound);
/// What there is to know of a handle, for the attributes in `mask`. An object's attributes are read
/// anew when its change attribute is asked for. Makes the thread act as the caller towards the
/// object (Compound::enter). NFS4ERR_MOVED for an absent file system of which more is asked than
/// there is to know, without asking for fs_locations or rdattr_error. Refers to `handle`.
xdr::nfsstat4 facts_of(Compound& compound, FileCall& call, CurrentHandle& handle,
                       const xdr::bitmap4& mask, AttributeFacts* out);
/// fs_locations of `handle` in `call`'s export. To be called before anything that may change which
/// exports there are for this thread (View).
xdr::nfsstat4 find_locations(Compound& compound, FileCall& call, const CurrentHandle& handle,
                             AttributeFacts* out);

}  // namespace nfsrdma::nfs4
