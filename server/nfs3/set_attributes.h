// SPDX-License-Identifier: Apache-2.0
// sattr3 onto an object, as the caller: the kernel decides what is allowed and which set-id bits
// fall. Order as in Linux's server: size, then owner and group, mode, times.
#pragma once

#include "server/nfs3/call_context.h"

namespace nfsrdma::nfs3 {

/// SETATTR. 0 or an errno; what came before a failure stays done. Reads and refreshes
/// object.attributes.
int set_attributes(CallContext& call, Resolved& object, const xdr::sattr3& values);

/// What is left to do for an object that was just made with `mode`: owner, times, size, and the
/// set-id and sticky bits where the making call dropped them. Permission bits are left alone: a
/// default ACL may have shaped them.
int set_initial_attributes(CallContext& call, Resolved& object, const xdr::sattr3& values,
                           std::uint32_t mode);

/// The mode for making something; none given is 0, as in Linux's server.
inline std::uint32_t initial_mode(const xdr::sattr3& values) {
  return values.mode.set_it ? values.mode.mode & 07777 : 0;
}

}  // namespace nfsrdma::nfs3
