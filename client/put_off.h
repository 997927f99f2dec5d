// SPDX-License-Identifier: Apache-2.0
// PutOff: what people are told of a server that keeps saying "later" (NFS3ERR_JUKEBOX,
// NFS4ERR_DELAY, NFS4ERR_GRACE, NFS4ERR_FILE_OPEN). Calls of a hard mount go on asking without an
// end, and whoever made them would have no way to see what they wait for.
//
// One for a server, however many threads and connections a mount has to it: any thread.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "client/nfs_version.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {

class PutOff {
 public:
  /// A recall that is not answered, and most disks, are over by then.
  static constexpr Duration kLong = std::chrono::seconds(60);
  static constexpr Duration kTellAgain = std::chrono::minutes(5);

  struct Call {
    NfsVersion version;
    std::string_view operation;  // "OPEN"
    std::string_view status;     // what the server says, "NFS4ERR_DELAY"
    Duration so_far;             // since it said so first
  };

  /// `server`: its name.
  explicit PutOff(std::string_view server) : server_(terminal_text(server)) {}

  /// `call` was put off once more. The line to write, if it is time for one: calls that wait
  /// together have one.
  std::optional<std::string> told(const Call& call, TimePoint now) {
    if (call.so_far < kLong) return std::nullopt;
    TimePoint next = next_.load(std::memory_order_relaxed);
    if (now < next || !next_.compare_exchange_strong(next, now + kTellAgain)) return std::nullopt;
    return fmt::format(
        "NFSv{}: server {} has been putting off {} for {} s ({}), still trying; its log may tell "
        "why",
        call.version.text(), server_, call.operation,
        std::chrono::duration_cast<std::chrono::seconds>(call.so_far).count(), call.status);
  }

 private:
  const std::string server_;
  std::atomic<TimePoint> next_{TimePoint::min()};
};

}  // namespace nfsrdma
