// SPDX-License-Identifier: Apache-2.0
// LockService: what the lock manager of NFSv3 keeps between calls. Hosts are clients of the state
// that NFSv4 has too (nfs4/server_state.h); here is what only NLM has: those who wait for a lock
// and are given it when it is free, and how their hosts are called.
//
// A thread of its own gives locks, which may block in a file system. Calls to hosts, and what has
// to be done at a time, are the CallingThread's.
//
// Locking: what is shared is guarded by ServerState::mutex.
// Lifetimes: the state outlives the service, which outlives all calls that are served, and is
// destroyed after CallingThread::stop().
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rpcrdma/base/log.h"
#include "server/calling_thread.h"
#include "server/nlm/locker.h"
#include "server/nlm/waits.h"
#include "server/vfs/file_scope.h"
#include "xdr/nlm4.h"

namespace nfsrdma::nlm {

class LockService final : private nfs4::LockWatcher {
 public:
  struct Options {
    /// How long until a host that did not answer GRANTED is called again.
    Duration call_again = std::chrono::seconds(10);
    /// How often locks that local processes have are looked at for clients that wait.
    Duration look_again = std::chrono::seconds(1);
  };
  LockService(nfs4::ServerState& state, CallingThread& caller, const Options& options);
  LockService(nfs4::ServerState& state, CallingThread& caller)
      : LockService(state, caller, Options()) {}
  ~LockService() override;

  nfs4::ServerState& state() { return state_; }

  // --- any thread, without the mutex ---

  /// The host as a client; 0: there are as many as may be. `state`: of its status monitor, when the
  /// call says it, else 0.
  nfs4::ClientId admit(const Host& host, std::int32_t state);
  /// The same without making one: 0 when it is not known.
  nfs4::ClientId find(const Host& host);
  /// Takes the lock; NLM4_BLOCKED when the caller wants to wait for it, which it does from then on.
  struct Request {
    LockOrder order;
    bool block = false;
    Host host;
    ByteSpan handle;
  };
  LockResult lock(FilePin file, const Request& request);
  xdr::nlm4_stats cancel(const FileEntry& file, const Wish& wish);
  xdr::nlm4_stats unlock(FileEntry& file, const Wish& wish);

  /// An administrator has taken all locks of those files away: nobody is told any more that it was
  /// given one. `waiting`: nor does anybody wait for one there any more, since the files are not
  /// served.
  void release(const FileScope& files, bool waiting);
  /// The host with that name at that address has restarted, or holds nothing any more: so says a
  /// call from there. False: none is known, or this was told before (`state`, unless it is 0). For
  /// kEveryName: of all hosts there.
  bool host_restarted(const SocketAddress& from, std::string_view name, std::int32_t state);
  static constexpr std::string_view kEveryName = "*";
  /// `tell` hears of each host that is known, and of others when they become so, with the mutex
  /// held.
  void tell_of_new_hosts(std::function<void(const Host&)> tell);
  /// A result goes as a call of its own: the procedures that end in _RES.
  void answer(const Host& host, xdr::nlmproc4 procedure, std::vector<std::byte> results);

 private:
  /// A lock that was given, and whose host has not yet said that it knows.
  struct Given {
    Wait wait;
    int calls = 0;
    bool may_know = false;  // a call may have arrived
    bool under_way = false;
    TimePoint again{};
  };

  void on_unlocked(const nfs4::FileKey& file) override;
  void on_client_ended(nfs4::ClientId client) override;

  LockResult lock_or_wait(FilePin file, const Request& request);
  void give_locks();
  void give(const Wait& wait);
  void take_back(std::uint64_t id);
  void keep_who_waits();
  void look_at_local_holders();
  // On the loop's thread:
  void tell(std::uint64_t id);
  void told(std::uint64_t id, HostCalls::End end, ByteSpan results);
  void on_time();
  bool closes_circle(const nfs4::FileKey& file, const Wish& wish);
  void forget_given(const nfs4::FileKey& file, const Wish& wish);

  nfs4::ServerState& state_;
  CallingThread& caller_;
  const Options options_;

  // Guarded by the mutex:
  Waits waits_;
  std::set<nfs4::FileKey> freed_;  // where somebody may get what he waits for
  std::map<std::uint64_t, Given> given_;
  std::vector<std::uint64_t> returned_;  // of given_: their hosts do not want them any more
  struct Known {
    Host host;
    std::int32_t state = 0;  // of its status monitor, when it first locked; 0: not told
  };
  std::map<nfs4::ClientId, Known> known_;
  std::function<void(const Host&)> new_host_;
  std::condition_variable more_;
  bool stopping_ = false;

  Timer timer_;  // of the loop's thread
  RateLimit strangers_{10, std::chrono::seconds(10)};
  std::thread giver_;
};

}  // namespace nfsrdma::nlm
