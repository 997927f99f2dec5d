// SPDX-License-Identifier: Apache-2.0
#include "client/op_context.h"

#include <unistd.h>

#include <vector>

namespace nfsrdma {

AuthSys AuthSys::of_process() {
  AuthSys identity;
  identity.uid = ::geteuid();
  identity.gid = ::getegid();
  const int count = ::getgroups(0, nullptr);
  if (count > 0) {
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    const int got = ::getgroups(count, groups.data());
    if (got > 0) identity.set_groups({groups.data(), static_cast<std::size_t>(got)});
  }
  return identity;
}

}  // namespace nfsrdma
