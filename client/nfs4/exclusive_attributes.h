// SPDX-License-Identifier: Apache-2.0
// The attributes of a file that is made with a verifier (OPEN, EXCLUSIVE4_1): which of them go with
// it, and which with a SETATTR afterwards, since the server may keep the verifier in their place
// (RFC 8881, 5.8.1.14 and 18.16.3).
#pragma once

#include "client/nfs_types.h"
#include "xdr/nfs4_attributes.h"

namespace nfsrdma::nfs4 {

struct ExclusiveAttributes {
  /// What servers take that do not say (suppattr_exclcreat).
  static constexpr xdr::bitmap4 kUsual = xdr::bitmap4::of({xdr::fattr4_number::FATTR4_MODE});

  SetAttributes at_once;
  SetAttributes later;

  /// `set` and what else such a file needs: a mode, and times that are no verifier.
  static ExclusiveAttributes of(const SetAttributes& set, const xdr::bitmap4& taken) {
    using enum xdr::fattr4_number;
    const SetAttributes::Time now{.server_now = true};
    constexpr std::uint32_t kPrivate = 0600;
    ExclusiveAttributes result;
    auto goes = [&](xdr::fattr4_number which) -> SetAttributes& {
      return taken.has(which) ? result.at_once : result.later;
    };
    goes(FATTR4_MODE).mode = set.mode.value_or(kPrivate);
    if (set.size) goes(FATTR4_SIZE).size = set.size;
    if (set.uid) goes(FATTR4_OWNER).uid = set.uid;
    if (set.gid) goes(FATTR4_OWNER_GROUP).gid = set.gid;
    goes(FATTR4_TIME_ACCESS_SET).atime = set.atime.value_or(now);
    goes(FATTR4_TIME_MODIFY_SET).mtime = set.mtime.value_or(now);
    return result;
  }
  bool all_at_once() const {
    return !later.mode && !later.size && !later.uid && !later.gid && !later.atime && !later.mtime;
  }
};

}  // namespace nfsrdma::nfs4
