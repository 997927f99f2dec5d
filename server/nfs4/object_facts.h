// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/nfs4/attributes.h"
#include "server/nfs4/compound.h"

namespace nfsrdma::nfs4 {

/// What is the same for all objects that this server shows.
AttributeFacts common_facts(Compound& compound);
/// What there is to know of a handle, for the attributes in `mask`. When its change attribute is
/// asked for, an object's attributes are read anew unless nothing has changed since PUTFH. Makes
/// the thread act as the caller towards the object (Compound::enter). NFS4ERR_MOVED for an absent
/// file system of which more is asked than there is to know, without asking for fs_locations or
/// rdattr_error. Refers to `handle`.
xdr::nfsstat4 facts_of(Compound& compound, FileCall& call, CurrentHandle& handle,
                       const xdr::bitmap4& mask, AttributeFacts* out);
/// fs_locations of `handle` in `call`'s export. To be called before anything that may change which
/// exports there are for this thread (View).
xdr::nfsstat4 find_locations(Compound& compound, FileCall& call, const CurrentHandle& handle,
                             AttributeFacts* out);

/// Is any of these what the holder of a write delegation knows better (RFC 8881 10.4.3)?
bool holder_knows(const xdr::bitmap4& mask);
/// *out is what the server sees of the file: made what it would be with what the holder has not
/// written yet. `holder` is kKnown.
void add_holder(Compound& compound, dev_t device, ino_t inode,
                const HolderAttributes::Answer& holder, AttributeFacts* out);

}  // namespace nfsrdma::nfs4
