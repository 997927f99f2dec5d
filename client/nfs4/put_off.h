// SPDX-License-Identifier: Apache-2.0
// PutOff: what people are told of a server that keeps saying "later" (NFS4ERR_DELAY, NFS4ERR_GRACE,
// NFS4ERR_FILE_OPEN). Calls of a hard mount go on asking without an end, and whoever made them
// would have no way to see what they wait for.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rpcrdma/base/clock.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

class PutOff {
 public:
  /// A recall that is not answered, and most disks, are over by then.
  static constexpr Duration kLong = std::chrono::seconds(60);
  static constexpr Duration kTellAgain = std::chrono::minutes(5);

  /// `operation` has been put off for `so_far`, with `status`. The line to write, if it is time for
  /// one: calls that wait together have one.
  std::optional<std::string> told(std::uint32_t minor, xdr::nfs_opnum4 operation,
                                  xdr::nfsstat4 status, Duration so_far, TimePoint now) {
    if (so_far < kLong || (told_at_ && now - *told_at_ < kTellAgain)) return std::nullopt;
    told_at_ = now;
    std::string_view name = xdr::enum_name(operation);
    if (name.starts_with("OP_")) name.remove_prefix(3);
    return fmt::format(
        "NFSv4.{}: the server has been putting off {} for {} s ({}), still trying; its log may "
        "tell why",
        minor, name, std::chrono::duration_cast<std::chrono::seconds>(so_far).count(),
        xdr::enum_name(status));
  }

 private:
  std::optional<TimePoint> told_at_;
};

}  // namespace nfsrdma::nfs4
