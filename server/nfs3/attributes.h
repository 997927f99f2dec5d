// SPDX-License-Identifier: Apache-2.0
// Attributes of the kernel as NFSv3's.
#pragma once

#include <sys/stat.h>

#include "server/files/change_scope.h"
#include "server/files/new_attributes.h"
#include "server/vfs/resolver.h"
#include "xdr/nfs3_types.h"

namespace nfsrdma::nfs3 {

/// False when a time is none (NFS3ERR_INVAL).
bool new_attributes(const xdr::sattr3& from, NewAttributes* to);

xdr::fattr3 fattr3_of(const struct stat& st, std::uint64_t fsid);

inline xdr::post_op_attr post_op(const struct stat& st, std::uint64_t fsid) {
  return {true, fattr3_of(st, fsid)};
}
/// Of a resolved object as it was last looked at; absent when there is none, or when a client of
/// NFSv4 has a write delegation and may know better.
inline xdr::post_op_attr post_op(const Resolved& object) {
  if (!object.file || object.file->promised_to.load(std::memory_order_acquire) != 0) return {};
  return post_op(object.attributes, object.file->fsid());
}

/// One change of one object, for wcc_data: construct before the change, ask after it.
class WccScope {
 public:
  WccScope(ServerContext& server, Resolved& object) : scope_(server, object), object_(object) {}
  /// The attributes before the change.
  const struct stat& before() const {
    return scope_.looked() ? scope_.before() : object_.attributes;
  }
  /// Looks again. `before` is there only when nothing else changed the object meanwhile.
  xdr::wcc_data finish();

 private:
  ChangeScope scope_;
  Resolved& object_;
};

}  // namespace nfsrdma::nfs3
