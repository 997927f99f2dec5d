// SPDX-License-Identifier: Apache-2.0
// FileLocks: the OPENs that this client has on the server, and the byte-range locks that they carry
// (RFC 8881, sections 8, 9 and 18.10 to 18.12, 18.16).
//
// open() opens a file by its handle, once for each identity, until close(): others see with which
// share access it is in use, and a server keeps it as long, even without a name. What is opened
// under a delegation is only noted, and claimed when the delegation ends. READ and WRITE carry an
// open's stateid where nothing better is there. The server may lose one (the end of a lease): the
// data goes without it then, and it is opened again behind that (held_opens.cc).
//
// An open that denies something to others (share reservations) has an open-owner of its own, so
// that the server sees to it among the opens of this client, too (share_denials.cc).
//
// A LOCK needs a file that is open. So the first lock of a file opens it if nobody has; in minor
// version 0 by the name that OpContext::place has, and files without locks are not held open there,
// but where they deny others something.
// While one owner alone has locks on a file, READ and WRITE carry its lock's stateid: what was
// written under a lock that is lost is refused then, and not mixed with what the next owner writes.
//
//   granted      File::held says so, nothing else does. Conflicts among owners of this client are
//                answered from there, those with other clients by the server
//   waited for   asked for again and again, and at once when an owner of this client lets go of
//                something in the file, or when the server says that others did (CB_NOTIFY_LOCK)
//   reclaimed    after a restart of the server: OPEN by CLAIM_PREVIOUS, LOCK with `reclaim`
//   lost         the lease expired, the server revoked it or will not have it reclaimed. Whoever
//                locks as that owner, or reads or writes the file, gets EIO until the owner unlocks
//                it or the file is closed: what they believe of the file may not be so any more
//
// Requests that change what is held run in tasks of their own, one at a time for each file, and are
// never cut short: whoever asked may be interrupted, and what was granted to nobody is given back.
// So each owner has one request under way at a time, as minor version 0 wants it: there a
// lock-owner has another name for each file, and a new one for each LOCK that is its first.
//
// On the session's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "client/moved_state.h"
#include "client/nfs4/opened.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/owner_sequence.h"
#include "client/nfs4/session.h"
#include "client/nfs_types.h"
#include "client/pauses.h"
#include "client/turn.h"

namespace nfsrdma::nfs4 {

/// What goes along with an OPEN in its COMPOUND.
class OpenCompanion {
 public:
  virtual ~OpenCompanion() = default;
  /// OPEN4_SHARE_ACCESS_WANT_ bits.
  virtual std::uint32_t wants() const = 0;
  virtual void opened(const xdr::open_delegation4& delegation) = 0;
  /// The operations behind it, and their results.
  virtual void build(CompoundWriter& out) const = 0;
  virtual void parse(CompoundReader& in) = 0;
};

class FileLocks final : public HeldState {
 public:
  explicit FileLocks(Session& session);
  ~FileLocks() override;

  /// Opens the file for `access` (OPEN4_SHARE_ACCESS_ bits) until close(). `with` goes along, and
  /// is not told when the server refuses. In minor version 0 only where it denies something, which
  /// wants OpContext::place.
  Task<Result<void>> open(const OpContext& op, const FileHandle& file, std::uint32_t access,
                          std::shared_ptr<OpenCompanion> with, ShareDenial deny = {});
  /// The open by which `owner` denies something, and what `owner` has locked, end.
  Task<void> end_denial(const OpContext& op, const FileHandle& file, LockOwnerId owner);
  /// The same, and nobody waits for it.
  void drop_denial(const FileHandle& file, LockOwnerId owner);
  /// True: `identity` has it open for that, and goes on to have it: a close() that has not begun
  /// does not happen.
  bool open_already(const AuthSys& identity, const FileHandle& file, std::uint32_t access);
  /// It is open here, under a delegation, without the server's knowing: claim() and claim_later()
  /// tell it.
  void note_open(const AuthSys& identity, const FileHandle& file, std::uint32_t access);
  /// The delegation that noted opens rely on is to end: what is open here is open there when this
  /// is over, `by` the delegation. Unless the file's turn is another's, who may wait for that end.
  Task<void> claim(FileHandle file, xdr::stateid4 by);
  /// It has ended: the same without it, on its own.
  void claim_later(const FileHandle& file);
  /// As open(), of an OPEN that stands on the server already. `unfinished`: it is closed by nobody
  /// before finish_new(), when its creator has done what was left, or failed to.
  void adopt(const FileHandle& file, const AuthSys& identity, std::uint64_t owner,
             std::uint32_t access, ShareDenial deny, const xdr::stateid4& stateid, bool unfinished);
  void finish_new(const FileHandle& file, bool good);
  /// `identity` uses the file for `access` alone from now on, or not at all. The server is told on
  /// its own, soon (open_downgrade.cc).
  void narrow(const AuthSys& identity, const FileHandle& file, std::uint32_t access);

  /// `open_for`: access_bits::kRead and kModify, for which the OPEN is made, besides what the lock
  /// needs. EAGAIN: somebody else's lock is in the way, and `wait` is kNo. EDEADLK: waiting would
  /// be in vain. EIO: the owner has lost a lock here.
  Task<Result<void>> lock(const OpContext& op, const FileHandle& file, FileLock wanted,
                          LockWait wait, std::uint32_t open_for);
  /// Bytes that are not locked need not be. All bytes: the server forgets the owner, too.
  Task<Result<void>> unlock(const OpContext& op, const FileHandle& file, FileLock what);
  /// A lock that is in the way of `wanted`; none: it would be granted.
  Task<Result<std::optional<LockHolder>>> test(const OpContext& op, const FileHandle& file,
                                               FileLock wanted);
  /// Of this mount, those that `wanted` would have to wait for.
  std::vector<LockOwnerId> owners_in_the_way(const FileHandle& file, const FileLock& wanted) const;
  /// Lets go of everything that is held of the file, unless it is opened again before that begins.
  /// Runs on its own.
  void close(const FileHandle& file);
  /// The same of every file, until that is done or `op` cancelled.
  Task<void> close_all(const OpContext& op);
  /// Nobody waits from now on: EINTR.
  void stop_waiting();
  /// Everything fails with EIO from now on.
  void stop();

  bool holds(const FileHandle& file) const override {
    return !files_.empty() && files_.contains(file);
  }
  /// What a READ or WRITE (OPEN4_SHARE_ACCESS_ bits) carries: that of a lock, or the anonymous one;
  /// before all that of a denial which is lost, or one that no server takes while a lock is: the
  /// loss may come to light when the request was made already, and goes out once more.
  xdr::stateid4 stateid_of_lock(const FileHandle& file, std::uint32_t access) const;
  /// That of an open, preferably of `identity`, or the anonymous one.
  xdr::stateid4 stateid_of_open(const FileHandle& file, std::uint32_t access,
                                const AuthSys& identity) const;
  /// That of an open which denies something, or has until it was lost, or the anonymous one: what
  /// travels without a stateid else is refused for the sake of the denial, ours or not. Of what is
  /// lost as above.
  xdr::stateid4 stateid_of_denial(const FileHandle& file, std::uint32_t access) const;
  /// EIO: a lock on this file, or a denial, is lost.
  Result<void> usable(const FileHandle& file) const;
  /// A READ or WRITE with `used` ended with `status`. True: once more, with another stateid.
  bool again(const FileHandle& file, const xdr::stateid4& used, xdr::nfsstat4 status);

  /// For people.
  std::size_t files_open() const { return files_.size(); }
  std::size_t locks_held() const;

  // moved_files.cc
  /// What applications have open and locked of these files, which are on another server now. This
  /// one forgets it, without a word to its server.
  std::unique_ptr<MovedState> hand_over(const WhichFiles& which);
  /// The same on that other server: opens are claimed there on their own, locks are lost.
  void take_over(std::unique_ptr<MovedState> state);

  // HeldState:
  Task<Result<void>> reclaim(const OpContext& op) override;
  void some_is_revoked() override;
  void none_is_revoked() override;
  void lock_may_be_free(const FileHandle& file) override;
  std::vector<FileHandle> files() const override;

 private:
  /// An OPEN that stands on the server while it has a stateid.
  struct Open {
    AuthSys identity;
    std::uint64_t owner = 0;   // open-owner, of this OPEN alone
    std::uint32_t access = 0;  // OPEN4_SHARE_ACCESS_ bits, by which it is open there
    std::uint32_t wanted = 0;  // here
    ShareDenial deny{};        // its owner's open alone, where it denies something
    std::uint32_t asked = 0;   // 1 << access of each OPEN that stands in it
    std::optional<xdr::stateid4> stateid;
    std::uint32_t doubtful = 0;  // access of an OPEN that was given up: it may stand all the same
    std::optional<Opened> unsettled;  // settle_open() is not through with it: good for nothing yet
    bool unfinished = false;          // its creator does not know of it yet
    bool closing = false;             // alone of the file's
    bool locks_due = false;           // reclaimed, but for the locks
    unsigned endings = 0;             // tried in vain, of one that denies something
    unsigned refused = 0;             // READs and WRITEs by a stateid that was good a moment ago
    OwnerSequence sequence;

    /// Do some of these OPENs make just `access` together?
    bool asked_for(std::uint32_t its_access) const;
  };
  /// A lock-owner of one file.
  struct Locker {
    LockOwnerId owner = 0;
    std::shared_ptr<Open> open;  // whose stateid made ours
    std::optional<xdr::stateid4> stateid;
    bool leaving = false;           // FREE_STATEID is under way
    std::uint64_t name_there = 0;   // of the owner, in minor version 0
    std::optional<FileLock> doubt;  // was given up: nobody knows whether it was done
    OwnerSequence sequence;
  };
  /// An open that denied something and is lost. What it had goes on to be shown, and refused:
  /// anything else might be taken, over what others have written since.
  struct UndoneDenial {
    LockOwnerId owner = 0;
    xdr::stateid4 stateid;
  };
  using OpenRef = std::shared_ptr<Open>;
  using LockerRef = std::shared_ptr<Locker>;
  /// What may stand on the server although nobody here wants it.
  struct Loose {
    FileLock what;
    bool gone;  // its owner is, with all it held. Else what it holds by our count is its own
    bool operator==(const Loose&) const = default;
  };
  struct File {
    explicit File(const FileHandle& its_handle) : handle(its_handle) {}
    const FileHandle handle;
    std::vector<OpenRef> opens;
    std::vector<LockerRef> lockers;
    ByteRangeLocks held;
    ByteRangeLocks lost;                       // what was held, until it is unlocked
    std::vector<UndoneDenial> undone_denials;  // until end_denial()
    bool busy = false;                         // a request is under way
    bool notifies = false;                     // the server says when to ask again for a lock
    unsigned closings = 0;                     // in a row that left something on the server
    bool in_use = false;                       // by an application that will close it
    bool closing = false;                      // a CLOSE is under way
    bool claiming = false;                     // claim_later() runs
    bool narrowing = false;                    // narrow_later() runs
    bool moved = false;                        // to another server: nothing here counts any more
    std::uint64_t opens_asked = 0;  // ever; locks as well, for which minor version 0 opens it
    std::uint64_t locks_asked = 0;  // ever
    std::optional<std::uint64_t> leaving_as_of;  // opens_asked at the last close()
    std::optional<FilePlace> place;              // where it was found last
    std::vector<Loose> loose;
    bool letting_go = false;  // keep_letting_go() runs
    Turn turn;
    std::vector<bool*> waiting;  // set when a lock is let go of
  };
  using FileRef = std::shared_ptr<File>;
  class Moved;
  struct Request;
  using RequestRef = std::shared_ptr<Request>;

  FileRef file_of(const FileHandle& handle);
  FileRef find(const FileHandle& handle) const;
  static Locker* find_locker(const File& file, LockOwnerId owner);
  Locker& locker_of(File& file, LockOwnerId owner);
  /// Of one that was refused its first lock.
  static void drop_idle_locker(File& file, LockOwnerId owner);
  OpenRef open_of(File& file, const AuthSys& identity, ShareDenial deny = {});
  /// By which `owner` denies something; null: it does not.
  static OpenRef denying_open(const File& file, LockOwnerId owner);
  /// Opens that stand nowhere, of nobody.
  static void drop_empty_opens(File& file);
  void drop_unless_used(const FileRef& file);

  Task<Result<void>> perform(RequestRef request, CancelToken* cancel);
  Task<void> carry_out(RequestRef request);
  Task<Result<void>> lock_now(File& file, const OpContext& op, FileLock wanted, LockWait wait,
                              std::uint32_t access);
  Task<Result<void>> unlock_now(File& file, const OpContext& op, FileLock what);
  /// False: something of it stands on the server all the same.
  Task<bool> close_now(File& file, const OpContext& op);
  /// close_one() of what stands, or may: opened once more then. False: it stands, perhaps.
  Task<bool> close_what_may_stand(File& file, const OpContext& op, Open& open);
  /// CLOSE of one OPEN. False: it stands.
  Task<bool> close_one(File& file, const OpContext& op, Open& open);
  /// A request for it was not answered, as it happens on soft mounts.
  static bool in_doubt(const File& file, LockOwnerId owner);
  /// Notes what the server did not answer. It is tried again until it does: nobody
  /// else will.
  void let_go_later(const FileRef& file, Loose loose);
  Task<void> keep_letting_go(FileRef file);
  /// Once.
  Task<Result<void>> let_go(File& file, const OpContext& op);
  Task<void> close_later(FileRef file);
  /// The server has answered `status` to `stateid`, of `open` or of a lock by it: if it is revoked,
  /// the server wants to hear that its loss is known. check_all() does not come by it any more.
  void free_if_revoked(xdr::nfsstat4 status, const Open& open,
                       const std::optional<xdr::stateid4>& stateid);
  Task<void> free_revoked(AuthSys identity, xdr::stateid4 stateid);
  /// Lets go of `granted` but for what its owner holds by `kept`. It was granted to somebody who is
  /// gone, or perhaps without an answer.
  Task<Result<void>> undo(File& file, const OpContext& op, FileLock granted, ByteRangeLocks kept);
  /// A first LOCK without an answer: asked once more, which gives the stateid that lets go of it.
  /// No stateid: it was not granted.
  Task<Result<void>> settle_doubt(File& file, const OpContext& op, Locker& locker);
  /// `with`: an OPEN is made whatever stands already. `by`: of a delegation.
  Task<Result<void>> ensure_open(File& file, const OpContext& op, Open& open, std::uint32_t access,
                                 OpenCompanion* with = nullptr, const xdr::stateid4* by = nullptr);
  Task<Result<void>> open_now(File& file, const OpContext& op, Request& request);
  // share_denials.cc
  Task<Result<void>> deny_now(File& file, const OpContext& op, Request& request);
  Task<void> end_denial_now(File& file, const OpContext& op, LockOwnerId owner);
  Task<void> end_denial_later(FileRef file, LockOwnerId owner);
  /// Some application that will close it has it open.
  static bool is_used(const File& file);
  static bool denial_is_undone(const File& file, LockOwnerId owner);
  /// What requests for the data of a file show of which something is lost: no server takes it.
  static std::optional<xdr::stateid4> refused_by(const File& file);
  // open_downgrade.cc
  static bool is_wider_than_wanted(const File& file, const Open& open);
  /// If something is.
  void narrow_soon(const FileRef& file);
  Task<void> narrow_later(FileRef file);
  Task<void> narrow_now(File& file, const OpContext& op);
  Task<void> downgrade(File& file, const OpContext& op, Open& open);
  // close_together.cc
  /// From the end of an open until the server hears of it.
  static constexpr Duration kGather = std::chrono::milliseconds(5);
  struct Leaving {
    FileRef file;
    std::uint64_t as_of = 0;  // File::opens_asked
  };
  /// The server knows nothing of this client's about it.
  static bool nothing_there(const File& file);
  /// One CLOSE will do, and nobody waits for his turn.
  bool closes_simply(const File& file) const;
  Task<void> gather();
  void close_what_leaves();
  /// Of one identity, in their turn.
  Task<void> close_together(std::vector<FileRef> files);
  /// The end of that for a file, closed or not.
  void over_with(FileRef file);
  /// OPEN of what is open here and not there.
  Task<void> claim_now(File& file, const OpContext& op, const xdr::stateid4* by);
  /// A close() of our own: nobody uses the file, as far as is known now.
  void close_unused(const FileRef& file);
  /// The same in minor version 0 (open_by_name.cc): ENOLCK when nobody knows a name of the file.
  Task<Result<void>> open_by_name(File& file, const OpContext& op, Open& open,
                                  std::uint32_t wanted);
  /// Once. False: the server does not go on with it, and it may be tried again.
  Task<Result<bool>> try_by_name(File& file, const OpContext& op, Open& open, std::uint32_t wanted);
  /// Goes on with Open::unsettled. What it stood for may be gone behind that.
  Task<Result<xdr::nfsstat4>> settle(File& file, const OpContext& op, Open& open);
  /// Another file is there, which is to be closed again: why there is no lock.
  Task<Error> met_another(File& file, const OpContext& op, Open& open, FileHandle found,
                          Opened opened);
  Task<void> close_stray(AuthSys identity, FileHandle file, Opened opened, OwnerSequence sequence);
  void note_released(File& file);
  /// LOCK of `what`, by the locker's stateid or the first by that of its OPEN; *owner, which
  /// becomes the locker's on the wire, outlives what it gives.
  xdr::LOCK4args lock_args(Locker& locker, const FileLock& what, OwnerBytes* owner);
  /// What the server knows the locker as.
  std::uint64_t name_of(const Locker& locker) const {
    return session_.minor() == 0 ? locker.name_there : locker.owner;
  }
  /// What LOCK has answered; `first`: by the stateid of its OPEN. True: granted.
  static bool next_lock(CompoundReader& in, Locker& locker, bool first, xdr::LOCK4res& got);
  /// The server has lost count of the owner, or we have: it begins again under another name.
  void rename(Open& open) {
    open.owner = ++next_owner_;
    open.sequence = {};
  }

  // reclaim.cc
  /// An open that stood, and how far its reclaim has come.
  struct Due {
    struct Lock {
      LockerRef locker;
      FileLock what;
    };
    FileRef file;
    OpenRef open;
    bool opened = false;                      // the OPEN is made
    std::optional<xdr::stateid4> delegation;  // that came with it, and goes back
    std::vector<Lock> locks;                  // once it is opened: what is left, the last one first
    /// Of what was answered last.
    xdr::nfsstat4 status = xdr::nfsstat4::NFS4_OK;
  };
  /// One attempt. False: the server says "later", and it goes on from there.
  Task<Result<bool>> reclaim_all_of(const OpContext& op, Due& due);
  Task<Result<bool>> reclaim_open(const OpContext& op, Due& due);
  Task<Result<bool>> return_delegation(const OpContext& op, Due& due);
  Task<Result<bool>> reclaim_lock(const OpContext& op, Due& due);
  /// What is left of it is not to be had back.
  void give_up(Due& due, const char* why);
  Task<void> check_all();
  static constexpr const char* kLostByServer =
      "the server has given up waiting for this client, or was told to let go";
  static constexpr const char* kLostByDelay =
      "the server has restarted, and has put off giving it back for too long";
  static constexpr const char* kLostByMoving =
      "the file system has moved to another server, which does not know of it";
  /// Its locks are lost; its stateid is the caller's business. `why`: for people.
  void lose(File& file, Locker& locker, const char* why = kLostByServer);
  /// Who has it open in here is to have it open there again.
  void lose(File& file, Open& open, const char* why = kLostByServer);
  /// For another server.
  static FileRef copy_of(const File& file);
  std::vector<FileRef> all_files() const;

  Session& session_;
  Pauses pauses_;
  CancelToken stopping_;
  bool stopped_ = false;
  bool waits_no_more_ = false;
  std::unordered_map<FileHandle, FileRef, FileHandleHash> files_;
  Gate emptied_;  // files_
  std::uint64_t next_owner_ = 0;
  std::vector<Leaving> leaving_;
  bool gathering_ = false;
  unsigned lost_ = 0;  // locks, not told yet
  bool checking_ = false;
  TimePoint checked_at_{};
  Duration check_every_{};
  TaskGroup tasks_;
};

}  // namespace nfsrdma::nfs4
