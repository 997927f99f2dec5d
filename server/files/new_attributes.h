// SPDX-License-Identifier: Apache-2.0
// NewAttributes: what a call wants an object's attributes to become, whichever NFS version said it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>

#include "server/files/posix_acl.h"

namespace nfsrdma {

/// A time to be set, as utimensat(2) takes it: UTIME_OMIT leaves it, UTIME_NOW is the server's now.
struct NewTime {
  timespec value{0, UTIME_OMIT};

  bool is_set() const { return value.tv_nsec != UTIME_OMIT; }
};

/// What an ACL of NFSv4 comes to, by what gets it: only directories have a default ACL. None: such
/// objects cannot have it.
struct NewAcls {
  std::optional<PosixAcls> directory;
  std::optional<PosixAcls> other;

  const std::optional<PosixAcls>& of(mode_t mode) const {
    return S_ISDIR(mode) ? directory : other;
  }
};

struct NewAttributes {
  std::optional<std::uint32_t>
      mode;  // permission, set-id and sticky bits; others are not looked at
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;
  NewTime atime, mtime;
  /// Set after the mode, whose permission bits they then are.
  std::shared_ptr<const NewAcls> acls;

  bool sets_owner() const { return uid.has_value() || gid.has_value(); }
  bool sets_times() const { return atime.is_set() || mtime.is_set(); }
};

}  // namespace nfsrdma
