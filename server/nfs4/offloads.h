// SPDX-License-Identifier: Apache-2.0
// Offloads: copies that go on behind their replies (RFC 7862 4, 15.2.3): the OffloadTable with the
// threads that do them, a piece of each in turn, and the callbacks that tell how they ended.
//
// A copy holds both files open and goes on whatever becomes of the opens that it was asked by. It
// ends when there is nothing left, with an error, by OFFLOAD_CANCEL, with its client, with the
// client's right to use either export, when an administrator releases either file, and with the
// server, which waits for a piece of each thread at most.
//
// Locking: everything with ServerState::mutex held, but what says otherwise. Threads start with the
// first copy.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/credentials.h"
#include "server/nfs4/copy_range.h"
#include "server/nfs4/offload_callbacks.h"
#include "server/nfs4/state/offload_table.h"
#include "server/vfs/file_scope.h"

namespace nfsrdma::nfs4 {

class ServerState;

class Offloads {
 public:
  /// All that a copy needs to go on.
  struct Copying {
    ServerContext& server;  // outlives the ServerState's threads
    SocketAddress peer;     // whose right to use the exports is looked at again
    CallerIdentity caller;
    FilePin from;
    Resolved to;
    CopyRange range;
  };

  Offloads(ServerState& state, std::uint32_t boot);
  /// Without the mutex. Ends the threads; copies stop where they are.
  void stop();
  ~Offloads();

  /// There is room for one more, and the client can be told how it ended. Otherwise the copy is to
  /// be done before the reply.
  bool may_begin(ClientId client);
  /// After may_begin(), with the mutex held since. `principal`: who asks for it; `handle`: the
  /// current file handle.
  Stateid begin(ClientId client, const std::string& principal, ByteSpan handle,
                const Verifier& verifier, std::unique_ptr<Copying> copying);
  const OffloadTable& table() const { return table_; }
  void end_client(ClientId client) { table_.end_client(client); }
  /// FREE_STATEID.
  OffloadTable::Status free(ClientId client, const Stateid& stateid) {
    return table_.free(client, stateid);
  }

  /// OFFLOAD_CANCEL. Without the mutex; waits for the piece under way, after which nothing is
  /// written any more. False: NFS4ERR_BAD_STATEID.
  bool cancel(ClientId client, const std::string& principal, const Stateid& stateid,
              ByteSpan handle);

  /// Copies from or to those files end with an error, and hold none of them when this returns.
  /// Without the mutex; waits for pieces under way. How many.
  std::size_t release(const FileScope& files);

  /// With the mutex: are there copies that go on?
  bool any_running() const { return !ready_.empty() || !running_.empty(); }

  /// For tests: what a thread does before each piece, without the mutex. Set before the first copy.
  std::function<void()> before_piece;

  /// Tells clients what is due. Once a second while there is anything to be told.
  void tick() { callbacks_.tick(); }

 private:
  using Entry = std::pair<OffloadNumber, std::unique_ptr<Copying>>;

  bool start();
  void serve();
  void run_piece(std::unique_lock<std::mutex>& lock);

  ServerState& state_;
  OffloadTable table_;
  OffloadCallbacks callbacks_;
  std::deque<Entry> ready_;
  /// Those whose piece is being copied now, without the mutex, or that are being let go of.
  std::map<OffloadNumber, const Copying*> running_;
  std::set<OffloadNumber> released_;  // of these: are to end
  std::condition_variable more_, piece_ended_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma::nfs4
