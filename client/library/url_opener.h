// SPDX-License-Identifier: Apache-2.0
// UrlOpener: opens what a URL of the library, or a referral of a server, stands for.
#pragma once

#include "client/follow_referral.h"
#include "client/library/mount_impl.h"

namespace nfsrdma::client {

/// Says on standard error when `server` does not respond, and when it is back: calls of a mount
/// that is not soft wait for ever, and so it can be seen for what.
MountObserver telling_of_silence(std::string_view server);

/// Mounts the longest export, and looks for referrals on the way from there. All of it is over
/// within the settings' times for connecting and for the first answers.
class UrlOpener final : public TreeOpener {
 public:
  /// What a URL stands for may be missing, and no path leads out of what a referral does: above
  /// that is something else than above the referral itself.
  enum class For : std::uint8_t { kUrl, kReferral };

  /// `impl`, which gets what is opened, outlives this. Nothing is open in it.
  UrlOpener(Mount::Impl& impl, LastReferral last, For what)
      : impl_(impl), last_(last), what_(what) {}

  Task<nfsrdma::Result<void>> open(MountSettings settings, std::string* detail,
                                   std::optional<ReferralMet>* met) override;

 private:
  /// The way to the base of `tree`. kReferralMet: *met is in it.
  Task<nfsrdma::Result<void>> walk(PathTree& tree, std::string* detail,
                                   std::optional<ReferralMet>* met);

  Mount::Impl& impl_;
  const LastReferral last_;
  const For what_;
};

}  // namespace nfsrdma::client
