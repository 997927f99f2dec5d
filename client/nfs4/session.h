// SPDX-License-Identifier: Apache-2.0
// Session: the client's id and session with one server (RFC 8881, sections 2.4 and 2.10), and what
// brings them back when the server has lost them.
//
//   begin():   EXCHANGE_ID, CREATE_SESSION
//   allow_opens():  RECLAIM_COMPLETE, once. From then on the server keeps the client on record, and
//              after a restart waits for it with its grace period; so only a client that opens
//              files does it (a mount's data shards do not), and each new client id does it at once
//   call.h:    take a Turn (a slot), SEQUENCE and operations, give the Turn back
//   renew():   a call was told that session or client id are gone. One task makes new ones, all
//              other calls wait for it, and go out again. What the client held is asked for again
//              in front of RECLAIM_COMPLETE (HeldState). A session that is replaced, and may stand,
//              is destroyed when nothing is under way by it any more: the server keeps its answers
//   keep_lease():  SEQUENCE when nothing else was sent for half of the lease, and at once when a
//              connection was lost: a server that has restarted waits for its clients, and keeps
//              everybody else waiting until then
//   make_session(): CREATE_SESSION for another thread of the mount, which has a Session with that
//   as
//              its `source`: it makes nothing itself, and asks there again when it was lost
//   callbacks: the server calls on the connection that made the session (callbacks.h). When that is
//              lost, it says so in SEQUENCE's reply, and is given another one by
//              BIND_CONN_TO_SESSION; when the back channel is past help, another session
//   lease_moved(): what the server holds for this client is another server's business in part. All
//              of it is asked about, so that it is found out which file systems have moved
//   end():     DESTROY_SESSION of all of them, DESTROY_CLIENTID
//
// Minor version 0 (RFC 7530) has the client id alone (client_id.cc): begin() is SETCLIENTID and
// SETCLIENTID_CONFIRM, keep_lease() is RENEW, the slots bound what is under way and are told to
// nobody, and whoever has a Session as its `source` is given the client id. The server calls at a
// place that is named with it (callback_place.h), and can do so when it has done so once; when
// RENEW says that it cannot any more, the place is named again.
//
// A connection that breaks costs nothing here: RpcClient sends the same request again, and the
// server knows it by slot and sequence id. What was executed already is answered from its slot.
//
// A call that was given up (an interrupt, a soft time-out) leaves a slot of which nobody knows
// whether the server has seen its request. The slot stays taken until a SEQUENCE alone with the
// same sequence id was answered: new, retry or false retry, in each case the next id is the one
// behind it.
//
// On the RpcClient's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/nfs4/callback_place.h"
#include "client/nfs4/callbacks.h"
#include "client/nfs4/compound.h"
#include "client/nfs4/recovery.h"
#include "client/nfs4/session_source.h"
#include "client/nfs4/slot_table.h"
#include "client/pauses.h"
#include "client/rpc_client.h"
#include "xdr/nfs3_constants.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

class IdNames;

struct SessionOptions {
  std::uint32_t minor = 2;               // 0 to 2
  bool any_minor = true;                 // what is older will do where the server has no 2
  std::uint32_t max_transfer = 1 << 20;  // bytes of one READ or WRITE
  std::uint32_t slots = 64;              // at most so many requests at once
  AuthSys identity;                      // the principal of the client id
  std::string owner;                     // co_ownerid: this client's alone
  /// Where the session comes from, which outlives it; null: it makes a client id of its own, by
  /// what stands above.
  SessionSource* source = nullptr;
  /// Minor version 0: where the server may call. None: nowhere.
  std::optional<CalledAt> called_at;
};

/// Of which files something is held.
class HeldFiles {
 public:
  virtual ~HeldFiles() = default;
  virtual std::vector<FileHandle> files() const = 0;
  virtual bool holds(const FileHandle& file) const = 0;
};

/// What the client holds on the server besides the session: a new client id begins without it.
class HeldState : public HeldFiles {
 public:
  /// Asks for all of it again, by Session::ask_in_recovery(). What the server refuses is lost, and
  /// no error; an error is the session's.
  virtual Task<Result<void>> reclaim(const OpContext& op) = 0;
  /// The server says, perhaps not for the first time, that it has revoked something.
  virtual void some_is_revoked() = 0;
  /// It does not say so, or no longer.
  virtual void none_is_revoked() = 0;
  /// A lock on `file` for which this client waits may be granted now.
  virtual void lock_may_be_free(const FileHandle& file) = 0;
};

/// The delegations that the client has. Their calls come from within messages of the server.
class DelegationState : public HeldFiles {
 public:
  /// The server has forgotten all of them.
  virtual void all_lost() = 0;
  /// It says, perhaps not for the first time, that it has revoked one.
  virtual void some_is_revoked() = 0;
  /// It does not say so, or no longer.
  virtual void none_is_revoked() = 0;
  virtual xdr::nfsstat4 recall(const xdr::stateid4& stateid, const FileHandle& file) = 0;
  virtual std::optional<HeldAttributes> held_attributes(const FileHandle& file) = 0;
  virtual void keep_most(std::uint32_t most) = 0;
  /// The server has told that this file's file system is on another one now.
  virtual void has_moved(const FileHandle& file) = 0;
  /// The fsid of a file, whoever holds it; none: not known.
  virtual std::optional<std::uint64_t> file_system_of(const FileHandle& file) const = 0;
};

class Session final : public SessionSource, private CallbackHandler {
 public:
  /// The right to one request.
  struct Turn {
    std::uint32_t slot = 0;
    std::uint64_t epoch = 0;  // of which session
    TimePoint since{};        // when it was taken, before anything was sent
  };

  Session(RpcClient& rpc, SessionOptions options);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Task<Result<void>> begin(const OpContext& op, std::string* detail);
  Task<void> end(const OpContext& op);
  /// Whatever runs or waits here ends with EIO, now and ever after.
  void stop();

  /// `state` (may be null) outlives the session's last call.
  void set_state(HeldState* state) { state_held_ = state; }
  /// The same.
  void set_delegations(DelegationState* state) { delegations_ = state; }
  /// The same, of what replies are read with; null: none has attributes.
  void set_names(IdNames* names) { names_ = names; }
  IdNames* names() const { return names_; }
  /// The server's, in which it must hear of us.
  void set_lease(Duration lease);
  Duration lease() const { return lease_; }
  /// The server has not been heard of for so long that it may have given up this client.
  bool lease_is_over() const { return rpc_.environment().now() - heard_at_ > lease_; }
  using Builder = std::function<void(CompoundWriter&)>;
  using Parser = std::function<void(CompoundReader&)>;
  /// One COMPOUND of HeldState::reclaim(). Who is told "later" asks again, behind others.
  Task<Result<xdr::nfsstat4>> ask_in_recovery(const OpContext& op, const Builder& build,
                                              const Parser& parse);

  /// Before the first OPEN.
  Task<Result<void>> allow_opens(const OpContext& op);

  Task<Result<MadeSession>> make_session(const OpContext& op, xdr::sessionid4 before,
                                         std::string* detail) override;
  // moved_lease.cc
  void lease_moved() override;
  /// Lets the server know that this client has heard where the file's file system is: it waits for
  /// that with SEQ4_STATUS_LEASE_MOVED, and NFS4ERR_LEASE_MOVED. Without an answer it is tried
  /// again when the server says so next.
  Task<void> acknowledge_move(const OpContext& op, FileHandle file);
  /// The same, when the server says so next: nothing of the file is held any more.
  void acknowledge_later(const FileHandle& file);

  /// Waits for a session and a free slot. EINTR: cancelled. A soft mount waits as long as for an
  /// answer.
  Task<Result<Turn>> take_turn(const OpContext& op);
  xdr::SEQUENCE4args sequence(const Turn& turn, bool cache) const;
  /// Is a good result that of this request (RFC 8881 18.46.3)? Else nothing behind it is, either.
  static bool answers(const xdr::SEQUENCE4args& asked, const xdr::SEQUENCE4res& result);
  /// SEQUENCE was answered.
  void give_back(const Turn& turn, const xdr::SEQUENCE4res& result);
  /// In minor version 0, where nothing was asked with it.
  void give_back(const Turn& turn);
  /// Lets those go on who wait for a slot, as long as one is free.
  void pass_slots_on();
  /// It was not, or not so that it can be read.
  void give_up(const Turn& turn);
  /// The session that `turn` was of is gone.
  void renew(const Turn& turn, Remedy remedy);
  /// Does `way` lead to the server of this session (session trunking, RFC 8881, section 2.10.5.1)?
  /// Asks by EXCHANGE_ID, over nothing else. An error: it cannot be said now.
  Task<Result<bool>> leads_here(const OpContext& op, RpcConnection& way);
  /// BIND_CONN_TO_SESSION, for the connection that the next call takes.
  Task<Result<void>> bind(const OpContext& op);
  /// RENEW, after an error that may have been that of the client id. False: it is gone, or was
  /// already, and what was asked is to be asked again.
  Task<Result<bool>> client_id_stands(const OpContext& op, Turn of);

  std::uint32_t minor() const { return options_.minor; }
  RpcClient& rpc() { return rpc_; }
  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t client_id() const { return client_id_; }
  /// Minor version 0: the recovery that is under way was given the former client id once more.
  bool client_id_kept() const { return client_id_kept_; }
  const AuthSys& identity() const { return options_.identity; }
  /// Over within stop(), too.
  Task<void> pause(Duration duration, CancelToken* cancel) {
    return pauses_.pause(duration, cancel, &stopped_);
  }
  /// The server has said "later" to a call's `operation` for `so_far`.
  void put_off(xdr::nfs_opnum4 operation, xdr::nfsstat4 status, Duration so_far);
  const SlotTable& slots() const { return slots_; }
  /// The server can call us.
  bool has_back_channel() const {
    return options_.minor == 0 ? called_ : back_channel_ && !back_channel_fault_;
  }
  /// Minor version 0: tells a server that has not called so far where it may, if that was some time
  /// ago. The way to that place may have been closed then.
  void offer_callbacks_again();
  std::uint64_t callbacks_done() const { return callbacks_.done(); }
  /// In minor version 0; for people.
  std::string called_at() const { return options_.minor == 0 ? place_.text() : std::string(); }
  /// Bytes of a READ's or WRITE's data that fit through the fore channel.
  std::uint32_t max_read() const { return max_read_; }
  std::uint32_t max_write() const { return max_write_; }
  /// Operations of a COMPOUND that the server takes, SEQUENCE included; 0: there is no session.
  std::uint32_t max_operations() const { return max_operations_; }

 private:
  enum class State : std::uint8_t { kNone, kUsable, kRenewing, kFailed };

  Task<Result<void>> establish(const OpContext& op, bool keep_client_id, std::string* detail);
  Task<Result<xdr::nfsstat4>> exchange_id(const OpContext& op);
  Task<Result<xdr::nfsstat4>> create_session(const OpContext& op, std::uint32_t flags,
                                             MadeSession* made);
  void use(const MadeSession& made);
  /// use(), in place of the session that there was, if any.
  void replace(const MadeSession& made);
  Task<Result<void>> establish_client_id(const OpContext& op, std::string* detail);
  Task<Result<xdr::nfsstat4>> ask_in_recovery_0(const OpContext& op, const Builder& build,
                                                const Parser& parse);
  /// For minor version 0: nothing but the client id.
  MadeSession without_session() const;
  Task<Result<xdr::nfsstat4>> name_client(const OpContext& op, std::uint64_t* id);
  Task<void> restore_callbacks(Turn of);
  Task<Result<xdr::nfsstat4>> destroy(const OpContext& op, xdr::sessionid4 session);
  struct Replaced {
    xdr::sessionid4 id{};
    std::uint64_t epoch = 0;
    std::uint32_t under_way = 0;  // requests
  };
  /// By end(), if nobody does before.
  void keep_replaced(const Replaced& session);
  Task<void> destroy_replaced(Replaced session);
  /// One of a session that was replaced is under way no more.
  void is_over(const Turn& turn);
  Task<void> destroy_client_id(const OpContext& op);
  /// Until there is a session. kStopped, kInterrupted, or why there is none.
  Task<Result<void>> usable(const OpContext& op);
  Task<Result<xdr::nfsstat4>> reclaim_complete(const OpContext& op, Turn turn);
  Task<void> recover();
  Task<void> probe(Turn turn);
  Task<void> keep_lease();
  Task<void> restore_back_channel();
  void look_at(std::uint32_t status_flags, const Turn& turn);
  void look_for_revoked(std::uint32_t status_flags);
  Task<void> find_what_moved();
  Task<bool> has_moved(const OpContext& op, FileHandle file);
  struct HeldFile {
    const HeldFiles* by = nullptr;
    FileHandle file;
  };
  std::size_t sort_by_file_system(std::vector<HeldFile>* held) const;
  void fail(Error why);
  void lock_may_be_free(const xdr::nfs_fh4& file) override;
  xdr::nfsstat4 recall(const xdr::stateid4& stateid, const xdr::nfs_fh4& file) override;
  std::optional<HeldAttributes> held_attributes(const xdr::nfs_fh4& file) override;
  void keep_delegations(std::uint32_t most) override;
  void give_up_slots(std::uint32_t highest) override;

  RpcClient& rpc_;
  SessionOptions options_;
  xdr::verifier4 verifier_{};  // of this life of the client
  State state_ = State::kNone;
  Error why_failed_{};
  std::uint64_t failures_ = 0;
  std::uint64_t client_id_ = 0;       // 0: none
  std::uint64_t last_client_id_ = 0;  // that minor version 0 was given
  bool client_id_kept_ = false;
  std::shared_ptr<const KnownServer> server_;
  std::uint32_t create_sequence_ = 0;
  // The server takes a second CREATE_SESSION with the same number for the first one come again.
  bool creating_ = false;
  Gate created_;
  std::vector<xdr::sessionid4> given_;  // by make_session()
  std::vector<Replaced> replaced_;      // of this client id
  xdr::sessionid4 session_id_{};
  std::uint64_t session_of_ = 0;  // client id
  std::uint64_t epoch_ = 0;
  SlotTable slots_;
  std::uint32_t max_read_ = 0;
  std::uint32_t max_write_ = 0;
  std::uint32_t max_operations_ = 0;
  Gate changed_;  // state_
  Gate slot_freed_;
  bool passing_on_ = false;
  Pauses pauses_;  // over within stop(), as all of tasks_ must be
  CancelToken stopping_;
  bool stopped_ = false;
  bool ended_ = false;        // end() was called
  bool opens_ = false;        // allow_opens() was called
  bool reclaim_due_ = false;  // no RECLAIM_COMPLETE yet by this client id
  HeldState* state_held_ = nullptr;
  DelegationState* delegations_ = nullptr;
  IdNames* names_ = nullptr;
  Callbacks callbacks_;
  CallbackPlace place_;
  bool called_ = false;  // at place_, since it was named last
  bool naming_ = false;  // name_client() runs
  TimePoint named_at_{};
  Gate named_;
  bool back_channel_ = false;
  bool back_channel_fault_ = false;  // as of the last answer
  TimePoint fault_mended_at_{};
  bool binding_ = false;
  TimePoint bound_at_{};
  Duration lease_ = std::chrono::seconds(90);
  /// When what the server answered last was sent, at the earliest: from then on it counts the
  /// lease.
  TimePoint heard_at_{};
  TimePoint reclaimed_at_{};
  bool finding_ = false;  // find_what_moved() runs
  TimePoint find_again_at_{};
  Duration find_every_{};
  std::vector<FileHandle> unacknowledged_;  // what has moved
  bool connection_lost_ = false;
  std::unique_ptr<Alarm> lost_alarm_;
  std::unique_ptr<Alarm> slot_alarm_;  // soft mounts: somebody has waited long enough for a slot
  TimePoint slot_alarm_at_{};
  TaskGroup tasks_;
};

}  // namespace nfsrdma::nfs4
