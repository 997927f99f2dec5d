// SPDX-License-Identifier: Apache-2.0
// StatusMonitor: tells hosts that this server has restarted, so that they reclaim their locks of
// NFSv3, and hears of their restarts (X/Open C702, chapter 11).
//
// Two kinds of hosts are told. Those that held locks of this server's exports: after every start of
// the server, which has lost these locks. And those that a lock manager of this machine asked to
// have monitored (MON; the kernel's, for its own mounts): after a start of the machine alone.
//
// Where another status monitor runs on this machine (rpc.statd) and has the place in rpcbind, hosts
// tell that of their restarts: it is asked to pass it on (use_other()). Linux's lockd refuses locks
// to hosts that it does not take over, for as long as it is restarted, say. Here they are granted,
// and it is asked again and again while the host is known.
//
// What is believed: a notification ends locks of the host that it comes from, by its address, and
// of no other. More this protocol does not allow.
//
// Threads: any; what is sent is the CallingThread's business.
// Lifetimes: the lock service outlives it; destroyed after CallingThread::stop().
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "server/calling_thread.h"
#include "server/nfs4/record_storage.h"
#include "server/nlm/lock_service.h"
#include "server/nsm/monitored.h"

namespace nfsrdma::nsm {

class StatusMonitor {
 public:
  static constexpr std::size_t kMostMonitored = 4096;

  /// Begins to notify. What lock managers want monitored is kept in <state_dir>/nsm/log.
  static Result<std::unique_ptr<StatusMonitor>> start(nlm::LockService& locks,
                                                      CallingThread& caller,
                                                      const std::string& state_dir);
  ~StatusMonitor();

  /// Odd, and another one after each start of the server.
  std::int32_t state() const { return state_; }

  /// MON: when true, it is on stable storage. Blocks.
  bool monitor(Monitored what);
  /// UNMON.
  void unmonitor(const Monitored& what);
  /// UNMON_ALL, of that lock manager.
  void unmonitor_all(std::uint32_t my_prog, std::uint32_t my_vers, std::uint32_t my_proc);
  /// NOTIFY, from that address.
  void notified(const SocketAddress& from, std::string_view name, std::int32_t state);

  /// Another one has the place in rpcbind. `ask_again`: how long after it did not take a host over.
  void use_other(Duration ask_again = std::chrono::seconds(10));
  /// It says that a host restarted that use_other() had it monitor.
  void told_by_other(const xdr::sm_status& status);

 private:
  /// Somebody who has to be told.
  struct Notice {
    SocketAddress where;  // without a family: not found yet by `name`
    std::string name;     // empty: known by the address alone
    std::string my_name;
    std::int32_t state = 0;
    Duration pause{};
    TimePoint next{};
    TimePoint until{};
    bool under_way = false;
    bool done = false;
  };

  StatusMonitor(nlm::LockService& locks, CallingThread& caller,
                std::unique_ptr<nfs4::RecordStorage> storage, std::vector<Monitored> all,
                std::string boot_id);
  /// Addresses of names, as they are found: on a thread that lives as long as names are missing,
  /// and that nobody waits for, since DNS may take long to say that it does not know.
  struct Found;
  static void look_up(const std::shared_ptr<Found>& found);
  void take_found();
  void add_notices();
  void add_untold(Monitored one);
  bool write_down();
  void strike_out_told();
  void on_time();
  void send(std::size_t index);
  void pass_on(const Monitored& to, std::int32_t state);
  void ask_other(const nlm::Host& host, bool again);
  void not_watched(const nlm::Host& host);
  void ask_other_again();

  nlm::LockService& locks_;
  CallingThread& caller_;
  const std::int32_t state_;
  const std::string host_;
  const std::string boot_id_;

  std::mutex mutex_;
  const std::unique_ptr<nfs4::RecordStorage> storage_;  // guarded by mutex_
  std::vector<Monitored> monitored_;                    // guarded by mutex_
  // Of earlier lives of this machine; guarded by mutex_. Each host once, until it was told or given
  // up: this server may end before.
  std::vector<Monitored> untold_;

  // Of the loop's thread:
  std::vector<Notice> notices_;
  bool some_told_ = false;        // and are in untold_ still
  std::shared_ptr<Found> found_;  // null: every address is known
  Timer timer_;
  std::map<std::string, nlm::Host>
      unwatched_;  // by host_key(): the other one did not take them over
  Duration ask_again_{};
  Timer again_;
};

}  // namespace nfsrdma::nsm
