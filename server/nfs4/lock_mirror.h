// SPDX-License-Identifier: Apache-2.0
// LockMirror: shows the byte-range locks of NFSv4 to the processes of this machine, and theirs to
// NFSv4. Of each file that clients have locked, one descriptor holds, as a lock of the kernel, what
// all of them hold together: byte by byte, a lock for writing before one for reading. To the kernel
// that is one owner, so that clients never stand in each other's way there; who of them may lock
// what is OpenStates' to say.
//
// What the kernel's lock covers is never less than what clients hold. It is raised before a lock
// enters the table, in the file's *turn*, which one LOCK or LOCKU has at a time; locks that ended
// are let go of afterwards, at the end of a turn, which looks at the table anew: that of the LOCKU,
// or one of a thread of this object: one for files of this machine, and one for those whose file
// systems ask others, which may hang.
//
// Where a file system has no locks, or the file cannot be opened for it, clients' locks are among
// clients alone.
//
// Locking: a turn is taken before ServerState::mutex and never under it, since system calls are
// made in it. What is called with the mutex held says so.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/unique_fd.h"
#include "server/nfs4/state/file_state.h"
#include "server/vfs/file_entry.h"

namespace nfsrdma::nfs4 {

class ServerState;

class LockMirror {
 public:
  /// Not `enabled`: no lock is mirrored, and turns are nothing.
  LockMirror(ServerState& state, bool enabled) : state_(state), enabled_(enabled) {}
  ~LockMirror();
  /// Without the mutex. Ends the thread; what it has not done stays undone.
  void stop();
  /// With the mutex: somebody waits for a lock, perhaps for a local process (LockNotifier). Nobody
  /// tells of those, so that the thread looks again every two seconds.
  void waits_began();

  /// A lock of a process that is no client.
  struct Holder {
    LockKind kind{};
    ByteRange range;
    std::string who;  // for people
  };
  enum class Outcome : std::uint8_t {
    kDone,    // held, or nobody is in the way
    kDenied,  // somebody of this machine is
    kLater,   // no descriptor can be had now: NFS4ERR_DELAY
  };

 private:
  struct File;

 public:
  /// The right to lock a file. Lives on the stack of one operation; its end lets go of what has
  /// ended meanwhile. Without the mutex.
  class Turn {
   public:
    /// `file`: pinned for as long as the turn.
    Turn(LockMirror& mirror, const FileEntry& file, bool may_block);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// Not here: the operation is to be run again where it may block.
    bool would_block() const { return would_block_; }
    /// Takes for the clients what `kind` needs in `range`; what they have is not made less. The
    /// lock is to be entered into the table while the turn lasts, or LockMirror::note_ended()
    /// called.
    Outcome acquire(LockKind kind, const ByteRange& range, Holder* holder);
    /// Would they get it?
    Outcome test(LockKind kind, const ByteRange& range, Holder* holder);

   private:
    friend class LockMirror;
    Turn(LockMirror& mirror, std::shared_ptr<File> file, bool may_block);
    void take();

    LockMirror& mirror_;
    const FileEntry* entry_ = nullptr;
    const bool may_block_;
    bool would_block_ = false;
    std::shared_ptr<File> file_;  // null: nothing is mirrored, or would_block()
    std::unique_lock<std::mutex> lock_;
  };

  /// Without the mutex: are locks of that file mirrored, and by this machine alone?
  bool has_at_hand(const FileKey& file);
  /// With the mutex: locks that clients had in that range have ended, or may have. To be followed
  /// by settle_later(), or by the end of a turn.
  void note_ended(const FileKey& file, const ByteRange& range = {0, UINT64_MAX});
  /// With the mutex.
  void settle_later(const FileKey& file);

  /// With the mutex: of how many files locks are, or were until now.
  std::size_t files() const { return files_.size(); }

 private:
  int prepare(File& file, const FileEntry& entry, LockKind kind);
  Outcome judge(int error);
  bool settle_in_turn(File& file);
  bool lower(File& file, const ByteRange& range, const std::vector<ByteRangeLocks::Held>& held);
  void end_turn(Turn& turn);
  void queue(File& file);
  std::shared_ptr<File> file_of(const FileEntry& file, bool may_block);

  /// A thread, and what it has to settle. Guarded by ServerState::mutex.
  struct Settler {
    std::deque<FileKey> queue;
    std::vector<FileKey> failed;  // to be tried again
    std::condition_variable more;
    std::thread thread;
  };
  Settler& settler_of(const File& file);
  void start(Settler& settler);
  void serve(Settler& settler);
  void settle_next(Settler& settler, std::unique_lock<std::mutex>& lock);

  ServerState& state_;
  const bool enabled_;

  // Guarded by ServerState::mutex:
  std::map<FileKey, std::shared_ptr<File>> files_;
  Settler local_, remote_;
  bool logged_ = false;
  RateLimit complaints_{1, std::chrono::seconds(60)};
  bool stopping_ = false;
};

}  // namespace nfsrdma::nfs4
