// SPDX-License-Identifier: Apache-2.0
// MountTrees: the trees of other servers behind the referrals of a FUSE mount (referring_remote.h).
// Each is an AsyncMount of its own on the mount's main thread, with the mount's options.
#pragma once

#include <functional>

#include "client/fuse/referring_remote.h"
#include "client/mount/options.h"

namespace nfsrdma {

/// Connects as MountDaemon does for the mount itself.
class ConnectOpener final : public TreeOpener {
 public:
  ConnectOpener(EventLoop& loop, Fabrics fabrics, MountFamily family)
      : loop_(loop), fabrics_(std::move(fabrics)), family_(family) {}

  Task<Result<void>> open(MountSettings settings, std::string* detail,
                          std::optional<ReferralMet>* met) override;
  /// What was opened.
  std::unique_ptr<AsyncMount> take() { return std::move(opened_); }

 private:
  EventLoop& loop_;
  Fabrics fabrics_;
  MountFamily family_;
  std::unique_ptr<AsyncMount> opened_;
};

/// Leaves addresses of `family`. False: none is left.
bool keep_family(MountFamily family, std::vector<SocketAddress>* addresses);

class MountTrees final : public TreeWays {
 public:
  using MakeObserver = std::function<MountObserver(const std::string& host)>;
  /// `errno_of_timeout` as MountedRemote has it. The fabrics outlive this.
  MountTrees(EventLoop& loop, Fabrics fabrics, MountFamily family, int errno_of_timeout,
             MakeObserver observer)
      : loop_(loop),
        fabrics_(std::move(fabrics)),
        family_(family),
        errno_of_timeout_(errno_of_timeout),
        observer_(std::move(observer)) {}

  Task<Result<std::unique_ptr<OpenTree>>> open(const MountSettings& from, const Referral& referral,
                                               ReferralTrail* trail, std::string* detail) override;

 private:
  EventLoop& loop_;
  Fabrics fabrics_;
  MountFamily family_;
  int errno_of_timeout_;
  MakeObserver observer_;
};

}  // namespace nfsrdma
