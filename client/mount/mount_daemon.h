// SPDX-License-Identifier: Apache-2.0
// MountDaemon: one mount from connecting to the last byte written back. Makes the objects in order,
// runs the event loop, takes them down in the opposite order.
//
// The end comes from the kernel (umount) or by a signal, which unmounts. In both cases data that is
// not stable yet is written back; EndPatience says how long. A second signal gives up at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/async_mount.h"
#include "client/fuse/channel.h"
#include "client/fuse/fuse_operations.h"
#include "client/fuse/mounted_remote.h"
#include "client/fuse/notifier.h"
#include "client/mount/command_line.h"
#include "client/mount/end_patience.h"
#include "client/mount/mount_point.h"
#include "client/mount/mount_trees.h"
#include "client/mount/status_socket.h"
#include "client/mount/syslog_pipe.h"

namespace nfsrdma {

class MountDaemon {
 public:
  /// `fabrics` outlive the daemon. `mount_point` is absolute.
  MountDaemon(EventLoop& loop, Fabrics fabrics, const MountCommandLine& line,
              std::string mount_point);
  ~MountDaemon();

  /// Connects once; blocks the thread. Empty: connected, else why not. *again: trying later may
  /// help.
  std::string connect(bool* again);
  /// Until the next attempt; a signal ends the program.
  void pause(Duration duration);
  /// Mounts; after this the kernel has it, and requests are answered as soon as run() runs.
  /// Empty: fine, else why not.
  std::string mount();
  /// Serves until unmounted; `usable` is called once, when the mount can be used. False when it
  /// never could.
  bool run(std::function<void()> usable);

  /// As a signal does: unmounts. On the loop.
  void stop();
  /// From now on messages go to syslog, and the standard streams are nobody else's.
  void log_to_syslog();

  /// "server:/path on /mnt type fuse.nfs-rdma (rw,...)" and how it is connected.
  std::string description();
  /// To the log: the transport, and why no faster one.
  void tell_way();

 private:
  class Signals;
  bool fell_back() const;
  /// Is it what is mounted at the mount point? Everything that unmounts goes by the path.
  bool is_on_top() const;
  /// After a signal, on a thread of its own: the kernel writes back through us while it unmounts.
  void unmount();
  void on_ready();
  void on_ended();
  /// connect() met a referral on the way to the path: follows it. Empty: fine, else why not.
  std::string follow(const MountSettings& from, const ReferralMet& met,
                     std::unique_ptr<AsyncMount>* server, bool* again);
  /// trunkdiscovery: uses further addresses of the server, if it has some.
  void discover();
  /// Calls that servers have answered.
  std::uint64_t replies() const;
  void abort_all();
  void stop_referrals();
  /// Makes the data shards and waits until each is usable or known not to be.
  void start_shards(const MountSettings& settings);
  /// Ends everything that waits for the server; says which data that costs.
  void give_up(const char* why);
  void on_patience();
  /// With the kernel still asking: refuses what comes until the notifier's thread is gone.
  void stop_notifier();
  std::string status_document();

  std::unique_ptr<SyslogPipe> syslog_;  // the last to go
  EventLoop& loop_;
  Fabrics fabrics_;
  MountCommandLine line_;  // as given, but for the version, which the server has a say in
  std::string mount_point_;
  std::unique_ptr<AsyncMount> server_;
  std::shared_ptr<OutageWatch> outage_ = std::make_shared<OutageWatch>();
  std::unique_ptr<MountShards> shards_;
  std::unique_ptr<MountedRemote> remote_;
  CancelToken stop_referrals_;
  std::unique_ptr<MountTrees> trees_;
  std::unique_ptr<ReferringRemote> referring_;  // null: NFSv3, which has no referrals
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<FuseOperations> operations_;
  fuse_session* session_ = nullptr;
  bool kernel_has_it_ = false;
  std::optional<DeviceNumber> device_;  // the kernel's, of the mount; none: not to be found out
  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<StatusSocket> status_;
  std::unique_ptr<Signals> signals_;
  std::thread unmounter_;
  Timer detach_timer_;
  Timer patience_timer_;
  EndPatience patience_;
  bool ending_ = false;
  bool gave_up_ = false;
  std::function<void()> usable_;
  bool was_usable_ = false;
  int signals_seen_ = 0;
};

}  // namespace nfsrdma
