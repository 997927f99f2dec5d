// SPDX-License-Identifier: Apache-2.0
// New attributes onto an object, as the caller: the kernel decides what is allowed and which set-id
// bits fall. Order as in Linux's server: size, then owner and group, mode, ACLs, times.
#pragma once

#include "server/files/file_call.h"
#include "server/files/new_attributes.h"

namespace nfsrdma {

/// Can objects of that kind on the file system of `path_fd` have the ACLs that `values` may have? 0
/// or kNoSuchAttribute.
int check_acls(const NewAttributes& values, int path_fd, mode_t mode);

/// SETATTR. 0 or an errno; what came before a failure stays done, and is in `done` where that is
/// given. Reads and refreshes object.attributes.
int set_attributes(FileCall& call, Resolved& object, const NewAttributes& values,
                   NewAttributes* done = nullptr);

/// What is left to do for an object that was just made with `mode`: owner, times, size, ACLs, and
/// the set-id and sticky bits where the making call dropped them. Permission bits are left alone
/// without ACLs: a default ACL may have shaped them. `object` comes with fresh attributes and is
/// left with such.
int set_initial_attributes(FileCall& call, Resolved& object, const NewAttributes& values,
                           std::uint32_t mode);

/// An object that a system call just made under `name`, `mode` with its type: what is left to do
/// for it, and fresh attributes. 0 or an errno. Nothing is done to what can only be somebody
/// else's.
int finish_object(FileCall& call, Resolved& directory, std::string_view name,
                  const NewAttributes& values, std::uint32_t mode, Resolved* object);

/// The mode for making something; none given is 0, as in Linux's server.
inline std::uint32_t initial_mode(const NewAttributes& values) {
  return values.mode.value_or(0) & 07777;
}

}  // namespace nfsrdma
