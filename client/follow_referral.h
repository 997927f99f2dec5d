// SPDX-License-Identifier: Apache-2.0
// Going where a referral leads: which servers are tried, in which order, for how long, and when it
// is given up. What "going there" means is a TreeOpener's: the FUSE mount connects and walks, the
// tool looks for the longest export.
//
// Nothing here waits without an end: servers are tried one after the other, kMostReferralTries at
// most, within kReferralPatience together; no more than kMostReferrals lead from one to the next,
// and none to where it has been before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/async_mount.h"
#include "client/referral.h"

namespace nfsrdma {

inline constexpr std::chrono::seconds kReferralPatience{30};
inline constexpr unsigned kMostReferralTries = 16;

/// The places that led to another one.
class ReferralTrail {
 public:
  /// It begins with a mount's own server and path.
  explicit ReferralTrail(const MountSettings& start) { places_.push_back(place_of(start)); }

  /// The same with one more. ELOOP: it has been there, or there are too many; *detail says which.
  Result<ReferralTrail> with(const MountSettings& next, std::string* detail) const;
  std::size_t referrals() const { return places_.size() - 1; }

 private:
  static std::string place_of(const MountSettings& settings);
  std::vector<std::string> places_;
};

/// Opens one tree, as the settings say.
class TreeOpener {
 public:
  virtual ~TreeOpener() = default;
  /// `settings` have their addresses. A referral on the way is an error, with *met.
  virtual Task<Result<void>> open(MountSettings settings, std::string* detail,
                                  std::optional<ReferralMet>* met) = 0;
};

/// The settings for `target` with the options of `from`, which led there: but for the ports, which
/// are the usual ones where the referral names none, as Linux's client has it. Without addresses,
/// unless it is the same server.
MountSettings settings_at(const MountSettings& from, const ReferralTarget& target,
                          std::string path);

/// Looks settings->host up on another thread, for so long at most.
inline constexpr std::chrono::milliseconds kNamePatience{10'000};
Task<Result<void>> find_addresses(EventLoop& loop, MountSettings* settings, std::string* detail,
                                  std::chrono::milliseconds patience = kNamePatience);

/// From `met`, which `from` led to, to the first tree that `opener` can open. *trail, which begins
/// with all places up to `from`, ends with that one's. An error says in *detail what was tried:
/// ENOENT where there was nothing to try, as with Linux's client, ELOOP, or why the last could not
/// be opened. All that is given outlives the Task.
Task<Result<void>> follow_referral(EventLoop& loop, const MountSettings& from,
                                   const ReferralMet& met, TreeOpener& opener, ReferralTrail* trail,
                                   std::string* detail);

}  // namespace nfsrdma
