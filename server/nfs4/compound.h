// SPDX-License-Identifier: Apache-2.0
// Compound: one COMPOUND being served (RFC 8881 15.2, RFC 7530 15.2). It decodes one operation,
// runs it, encodes its result, and goes on until one fails, so that a bad operation spoils nothing
// that came before it.
//
// Waiting: an operation that would block says so before it did anything (retry()). The COMPOUND
// then stops at it, and goes on from it on a worker, with a buffer, or with more room for its
// result; what was done before is not done again. Everything that has to reach stable storage is
// waited for once, at the end; when that fails, the first operation that wanted it gets the error
// and those behind it lose their results.
//
// Lifetimes: taken from a thread's own stock at the first run, given back when the call is over
// (Progress::release, on the loop's thread). FileCalls live on the stack of one operation.
// Threads: one at a time; operations find out on which by request().may_block.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/files/file_call.h"
#include "server/nfs4/awaited_opens.h"
#include "server/nfs4/current_handle.h"
#include "server/nfs4/op_table.h"
#include "server/nfs4/server_state.h"
#include "xdr/nfs4_compound.h"
#include "xdr/nfs4_session.h"

namespace nfsrdma::nfs4 {

/// May requests of minor version 0 name it? IDs and stateids can be guessed: who has sessions acts
/// in them alone, and a host of NFSv3 by NLM. With the state's mutex.
inline bool speaks_4_0(const Client& client) {
  return !client.has_sessions && !client.locks_by_nlm;
}

class Compound final : public Progress {
 public:
  /// The procedure COMPOUND.
  static Outcome serve(ServerContext& server, Request& request, xdr::Decoder& args,
                       xdr::Encoder& result);

  void finish(xdr::Encoder& result, int commit_error) override;
  void release() override;
  std::span<const OperationTime> operations() const override { return times_; }

  // --- for operations ---

  ServerContext& server() { return *server_; }
  ServerState& state();
  Request& request() { return *request_; }
  bool may_block() const { return request_->may_block; }
  std::uint32_t minor_version() const { return minor_version_; }
  ConnectionId connection() const { return request_->call->connection().id; }
  /// Who calls, for tables that compare: flavor and uid.
  std::string principal() const;
  /// The address that the call came from, for people.
  std::string peer_text() const { return request_->call->connection().peer().host_text(); }

  /// The operation at hand: its place, and whether it is the last.
  std::uint32_t index() const { return index_; }
  std::uint32_t count() const { return count_; }
  /// Of the results: what is written so far, for those that write theirs themselves.
  xdr::Encoder& result() { return *result_; }
  /// How many bytes the result of the operation at hand may have, its number and status included.
  std::size_t room_left() const;
  /// Is there a reply into which the result of the operation at hand goes with `bytes` more?
  xdr::nfsstat4 check_length(std::size_t bytes) const;
  /// For results that can be long: the encoder shall have room for `bytes` more, less when the
  /// reply may not be so long. False: return retry(kNeedRoom), with request().room_wanted set.
  bool have_room(std::size_t bytes);

  /// The operation is to be run again, from its start, as `where` says; nothing was done. By the
  /// client (NFS4ERR_DELAY) where a worker would block, by us else. To be returned:
  /// `return compound.retry(Outcome::kWouldBlock)`.
  xdr::nfsstat4 retry(Outcome where);
  /// Has an earlier part of the operation asked for that?
  bool is_retry() const { return retry_ != Outcome::kReply; }

  /// Room for data that the result refers to, of `wanted` bytes. What operations before have used
  /// stays where it is.
  xdr::nfsstat4 payload_room(std::size_t wanted, MutableByteSpan* room);
  /// The result refers to the first `size` bytes of that room.
  void use_payload(std::size_t size) { payload_used_ += round_up4(size); }

  /// May a window be the payload? What a slot keeps of replies is smaller than one shows.
  bool may_show_pages() const { return payload_used_ == 0; }

  /// Memory for what the result refers to until it is encoded; one piece per operation.
  MutableByteSpan scratch(std::size_t size) {
    scratch_.resize(std::max(scratch_.size(), size));
    return MutableByteSpan(scratch_).first(size);
  }

  CurrentHandle current, saved;
  /// What the client has closed, and nobody else has open: it is not to stay open for writing.
  std::vector<FilePin> closed;
  /// From minor version 1 on: what the special stateid "current" stands for.
  Stateid current_stateid, saved_stateid;

  /// Makes `call` one for the object of `handle` (current or saved, not a pseudo directory) and the
  /// thread act as the caller; attributes are as fresh as this COMPOUND needs them. A file whose
  /// last name is gone can be entered for as long as a client has it open.
  xdr::nfsstat4 enter(FileCall& call, CurrentHandle& handle, Use use);
  xdr::nfsstat4 enter(FileCall& call, Use use) { return enter(call, current, use); }
  /// The same for a directory, else NFS4ERR_NOTDIR.
  xdr::nfsstat4 enter_directory(FileCall& call, CurrentHandle& handle, Use use);

  /// What an operation that puts a handle (PUTFH, PUTROOTFH, RESTOREFH) says where the export does
  /// not serve the caller's flavour: NFS4_OK when what follows leads elsewhere or asks for the
  /// flavours (RFC 8881 2.6.3.1.1), else NFS4ERR_WRONGSEC.
  xdr::nfsstat4 put_by_wrong_flavor() const;

  /// The reply waits until the object's changes are on stable storage, and until names and
  /// attributes are where the export is `sync`.
  void wait_for(FileCall& call, const Resolved& object, bool data_only = false);
  void wait_for_metadata(FileCall& call, const Resolved& object);
  /// The same of what was written before (COMMIT).
  void wait_for_written(FileCall& call, const Resolved& file);
  /// The operation is an OPEN that will succeed. If its result waits for the disk, it is undone
  /// where that fails.
  void note_open(const FileEntry& file, const OpenStates::Answer& answer, const Share& share,
                 const std::optional<Stateid>& delegation);
  /// In minor version 0: that OPEN was the request of `seqid` in its owner's sequence.
  void note_turn(const OwnerKey& owner, std::uint64_t generation, std::uint32_t seqid);
  /// The result of the operation ends with the write verifier, which is to be the one in force
  /// after the sync.
  void note_verifier() { verifier_noted_ = true; }

  /// Whose session it is, from minor version 1 on; else whom the operation's client id named. 0:
  /// nobody's.
  ClientId client_id() const { return client_id_; }
  void set_client(ClientId client);
  /// In minor version 0, with the state's mutex: the operation at hand names that client. Its lease
  /// is renewed, and it is known whose connection this is.
  void act_as(Client& client);
  /// Whose delegation is the caller's own: client_id(), or in minor version 0, while there are
  /// write delegations, whose connection it is (Speakers).
  ClientId speaker() const { return client_id_ != 0 ? client_id_ : speaker_; }
  /// Is the next operation the DELEGRETURN of the write delegation that somebody has of the file?
  /// Without the state's mutex.
  bool gives_back_next(const FileEntry& file) const;
  /// In minor version 0, with the state's mutex: the client whose stateid it is, and its lease is
  /// renewed. Nothing in later ones.
  void act_for(const Stateid& stateid);
  /// In minor version 0: what the operation at hand says when act_for() was asked for a stateid of
  /// a client that is gone, with all its state (RFC 7530 9.6.3.1). Of one that was revoked it notes
  /// that the client hears of it. Without the state's mutex.
  xdr::nfsstat4 with_expired(xdr::nfsstat4 status);
  /// In minor version 0, with the state's mutex: what is said of a client ID that means nobody.
  /// NFS4ERR_EXPIRED for one that was given in this life of the server: whose it was lost its lease
  /// or was replaced, and has nothing to reclaim. Else NFS4ERR_STALE_CLIENTID.
  xdr::nfsstat4 unknown_client(ClientId client);
  OpenStates::Asker asker() const { return {client_id_, minor_version_}; }
  /// Before new state is given: that others have lost theirs is on stable storage, and that the
  /// grace period is over, so that after a restart nobody reclaims what is somebody else's by then
  /// (RFC 8881 8.4.3). NFS4_OK; or to be returned, NFS4ERR_DELAY or a retry() where it may block.
  /// Without the state's mutex.
  xdr::nfsstat4 settle_first();
  /// READ, WRITE, SETATTR of the size: may the stateid do `access` (kShareRead, kShareWrite) to the
  /// file of `handle` (current or saved)? Takes the state's lock.
  xdr::nfsstat4 may_access(const xdr::stateid4& stateid, std::uint8_t access,
                           const CurrentHandle& handle);
  xdr::nfsstat4 may_access(const xdr::stateid4& stateid, std::uint8_t access);
  /// Replaces the special stateid "current" by what it stands for.
  Stateid real(const xdr::stateid4& stateid) const;

  // --- for SEQUENCE and its kin ---

  /// The request runs in that slot from now on: finish() keeps the reply there.
  void runs_in(const Session& session, SlotId slot, bool cache_this);
  /// SEQUENCE's own result will have `bytes`, its number not counted: may the reply be so long, and
  /// be kept if it is to be? A SEQUENCE that fails takes no slot (RFC 8881 18.46.3), so that is
  /// asked before.
  xdr::nfsstat4 check_reply(const Session& session, bool cache_this, std::size_t bytes) const;
  /// It goes by that session, but in no slot: a retry whose reply was not kept.
  void goes_by(const Session& session);
  /// The whole reply is a kept one; nothing more is run. False: not before a retry().
  bool reply_with(std::span<const std::byte> kept);
  /// Is the request of that client's minor version? Else to be returned:
  /// NFS4ERR_MINOR_VERS_MISMATCH (RFC 8178 8.1), which has no result.
  xdr::nfsstat4 check_minor_version(const Client& client) const {
    return client.minor_version == minor_version_ ? xdr::nfsstat4::NFS4_OK
                                                  : xdr::nfsstat4::NFS4ERR_MINOR_VERS_MISMATCH;
  }
  /// sr_status_flags as SEQUENCE answers them.
  void note_status_flags(std::uint32_t flags) { status_flags_ = flags; }
  /// The operation's result tells the client where that export has gone. This reply says nothing of
  /// moves then: Linux's client takes the flag beside fs_locations for the failure of its question.
  void tells_where(std::uint64_t export_id) { told_of_ = export_id; }
  /// The next operation gets NFS4ERR_RETRY_UNCACHED_REP.
  void reply_uncached() { uncached_retry_ = true; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  bool in_session() const { return in_session_; }
  const SessionId& session() const { return session_; }
  /// This request, for callbacks about what it gives. With ServerState::mutex; none outside of
  /// sessions.
  std::optional<ReferringCall> as_referring();

 private:
  static Compound& take(ServerContext& server, Request& request);
  Stateid real(const xdr::stateid4& stateid, const Stateid& current_one) const;
  Outcome begin(xdr::Decoder& args, xdr::Encoder& result);
  Outcome run(xdr::Encoder& result);
  void find_speaker();
  /// One operation. False: stop here.
  bool step();
  xdr::nfsstat4 run_measured(std::uint32_t number);
  xdr::nfsstat4 prepare(const Operation& operation);
  bool make_place_to_wait();
  xdr::nfsstat4 enlarge_payload(std::size_t bytes);
  void note_told_where(std::uint64_t export_id);
  void write_error(std::uint32_t number, xdr::nfsstat4 status);
  void close_files();
  void write_head(xdr::nfsstat4 status);
  void end_slot(const xdr::Encoder& result);
  void runs_no_more();
  void await(FileCall& call, const Resolved& object, bool data_only);
  void fail_awaited(xdr::Encoder& result, int error);
  /// What has no name any more, or is not there: the entry by which some client has it open, and
  /// `otherwise` when none has. A write delegation's lease stands against any other entry.
  xdr::nfsstat4 enter_held(CurrentHandle& handle, xdr::nfsstat4 otherwise);
  std::size_t reply_bytes() const;
  void clear();

  ServerContext* server_ = nullptr;
  Request* request_ = nullptr;
  xdr::Encoder* result_ = nullptr;  // while it runs
  xdr::Decoder decoder_{{}};
  std::string_view tag_;
  std::uint32_t minor_version_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t index_ = 0;
  xdr::nfsstat4 status_ = xdr::nfsstat4::NFS4_OK;
  Outcome retry_ = Outcome::kReply;
  std::size_t head_mark_ = 0;       // of COMPOUND4res
  std::size_t count_mark_ = 0;      // of resarray_len
  std::size_t operation_mark_ = 0;  // of the result of the operation at hand
  std::size_t status_flags_mark_ = 0;
  std::uint32_t status_flags_ = 0;
  std::optional<std::uint64_t> told_of_;  // tells_where(), of the operation at hand
  std::uint32_t results_ = 0;
  bool changed_ = false;  // something that must not be done twice was done

  /// The first operation whose change the reply waits for.
  struct Awaited {
    std::size_t mark = 0;
    std::uint32_t index = 0;
    std::uint32_t number = 0;
  };
  std::optional<Awaited> awaited_;
  AwaitedOpens awaited_opens_;
  std::uint32_t number_ = 0;  // of the operation at hand
  /// How long operations took on a worker, for the loop's thread to learn from.
  struct Elapsed {
    std::uint32_t number = 0;
    std::uint64_t ns = 0;
  };
  static constexpr std::size_t kMostElapsed = 8;
  std::vector<OperationTime> times_;
  std::array<Elapsed, kMostElapsed> elapsed_{};
  std::size_t elapsed_count_ = 0;
  static constexpr std::size_t kMostVerifiers = 4;
  std::array<std::size_t, kMostVerifiers> verifier_marks_{};
  std::size_t verifiers_ = 0;
  bool verifier_noted_ = false;
  std::size_t payload_used_ = 0;
  std::size_t payload_wanted_ = 0;                       // by a worker, of the loop's thread
  xdr::nfsstat4 payload_lack_ = xdr::nfsstat4::NFS4_OK;  // why that came to nothing
  std::vector<std::byte> scratch_;

  bool in_session_ = false;
  bool runs_in_slot_ = false;
  bool cache_this_ = false;
  bool uncached_retry_ = false;
  bool replayed_ = false;
  SessionId session_{};
  SlotId slot_ = 0;
  std::size_t max_response_ = BufferPool::kMaxBuffer;  // of the channel, payload included
  std::size_t max_response_cached_ = 0;
  std::uint64_t fingerprint_ = 0;      // of a request in a session
  std::uint64_t looked_at_clock_ = 0;  // when the operation before ended, ns; 0: to be looked at
  ClientId client_id_ = 0;
  ClientId speaker_ = 0;   // in minor version 0: by the connection
  bool of_ended_ = false;  // act_for(): nothing is known by it, since its client is gone
  Stateid acted_for_;      // act_for(), in minor version 0
};

}  // namespace nfsrdma::nfs4
