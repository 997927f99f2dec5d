// SPDX-License-Identifier: Apache-2.0
// ChangeScope: one change of one object, seen from both sides: attributes before and after it, and
// whether anything else that this server does came in between. Construct before the change,
// finish() after it; every change of names, data or attributes is made within one, or change
// attributes and pre-operation attributes would lie.
#pragma once

#include <sys/stat.h>

#include "server/server_context.h"
#include "server/vfs/resolver.h"

namespace nfsrdma {

/// Did a system call that changes one object and ended with `error` (0: none) perhaps change it?
/// Not after errors by which the kernel says no; others may come from a disk or a network in the
/// middle.
bool may_have_changed(int error);

class ChangeScope {
 public:
  /// Looks at the attributes afresh, unless those of `object` are still good.
  ChangeScope(ServerContext& server, Resolved& object);

  /// The attributes from before; meaningless when !looked().
  const struct stat& before() const { return before_; }
  bool looked() const { return looked_; }
  /// Looks again, into object.attributes; false when that failed. Not `changed`: the attempt failed
  /// or there was nothing to do, and the change attribute stays as it was.
  bool finish(bool changed = true);

  // After finish():

  /// Nothing else changed the object meanwhile.
  bool alone() const { return alone_; }
  /// Values of the change attribute (RFC 8881 5.8.1.4).
  std::uint64_t change_before() const { return change_before_; }
  std::uint64_t change_after() const { return change_after_; }

 private:
  ChangeWitness::Watch watch_;
  ChangeCounter::Change change_;
  Resolved& object_;
  struct stat before_;
  std::uint64_t change_before_ = 0, change_after_ = 0;
  bool looked_ = false;
  bool alone_ = false;
};

}  // namespace nfsrdma
