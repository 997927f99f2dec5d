// SPDX-License-Identifier: Apache-2.0
// UrlOpener: opens what a URL of the library, or a referral of a server, stands for.
#pragma once

#include "client/follow_referral.h"
#include "client/library/mount_impl.h"

namespace nfsrdma::client {

/// Says on standard error when `server` does not respond, and when it is back: calls of a mount
/// that is not soft wait for ever, and so it can be seen for what.
MountObserver telling_of_silence(std::string_view server);

/// Mounts the longest export, and looks for referrals on the way from there.
class UrlOpener final : public TreeOpener {
 public:
  /// May paths lead to what is above the tree? Not where that is another place than above the
  /// referral that led there.
  enum class Leaving : std::uint8_t { kMay, kNever };

  /// `impl`, which gets what is opened, outlives this. Nothing is open in it.
  UrlOpener(Mount::Impl& impl, LastReferral last, Leaving leaving)
      : impl_(impl), last_(last), leaving_(leaving) {}

  Task<nfsrdma::Result<void>> open(MountSettings settings, std::string* detail,
                                   std::optional<ReferralMet>* met) override;

 private:
  Mount::Impl& impl_;
  const LastReferral last_;
  const Leaving leaving_;
};

}  // namespace nfsrdma::client
