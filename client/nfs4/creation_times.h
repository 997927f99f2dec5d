// SPDX-License-Identifier: Apache-2.0
// The access time of a file that is made with a verifier (OPEN, EXCLUSIVE4_1). Servers keep the
// verifier in the file's times, so that these are to be set behind it; and whoever does that in the
// same COMPOUND, for one round trip less, takes away what proves that the file is his own, should
// the answer be lost with the server. So an access time does it that is as good as a verifier: the
// server's own time as far as it is known here, less some nanoseconds by lot.
//
// It serves only where file systems keep nanoseconds: known by the first files that are made.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "client/nfs_types.h"
#include "rpcrdma/base/clock.h"

namespace nfsrdma::nfs4 {

class CreationTimes {
 public:
  /// What the server's clock said is believed for so long.
  static constexpr std::chrono::seconds kBelieved{60};
  /// By lot from so many nanoseconds: the time is no more than a millisecond old.
  static constexpr std::uint32_t kLot = 1'000'000;

  /// Seconds that no server's clock has (in the year 2242), and of which nanoseconds can be
  /// counted.
  static constexpr std::int64_t kNoClock = std::int64_t{1} << 33;

  explicit CreationTimes(std::uint64_t seed) : lot_(seed) {}

  /// For a file that is to be made now; none: what the server's clock says is not known.
  std::optional<timespec> next(TimePoint now) {
    if (!seen_ || keeps_ == Keeps::kNot || now - seen_->at > kBelieved) return std::nullopt;
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t passed =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - seen_->at).count();
    const std::int64_t less = std::uniform_int_distribution<std::int64_t>(0, kLot - 1)(lot_);
    const std::int64_t total = seen_->time.tv_sec * kSecond + seen_->time.tv_nsec + passed - less;
    return timespec{total / kSecond, total % kSecond};
  }
  /// Do they prove anything? Then they may go along with OPEN.
  bool prove() const { return keeps_ == Keeps::kYes; }
  /// The server has just made a file, and says so of it. `asked`: none, or what next() gave.
  void made(TimePoint now, const Attributes& attributes, std::optional<timespec> asked) {
    // A server may say anything; zero: it tells none.
    const std::int64_t seconds = attributes.ctime.tv_sec;
    if (seconds > 0 && seconds < kNoClock) seen_ = Seen{now, attributes.ctime};
    if (!asked || keeps_ == Keeps::kNot) return;
    keeps_ = same_time(attributes.atime, *asked) ? Keeps::kYes : Keeps::kNot;
  }
  /// No such time may be set.
  void refused() { keeps_ = Keeps::kNot; }

 private:
  struct Seen {
    TimePoint at;
    timespec time;
  };
  enum class Keeps : std::uint8_t { kUnknown, kYes, kNot };

  std::mt19937_64 lot_;
  std::optional<Seen> seen_;
  Keeps keeps_ = Keeps::kUnknown;
};

}  // namespace nfsrdma::nfs4
