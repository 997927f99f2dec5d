// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/compound.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "rpcrdma/base/clock.h"
#include "server/files/file_data.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/retries.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"
#include "server/placement.h"
#include "xdr/flatten.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

/// The result of an operation that has changed something is not longer than this, its number
/// included.
std::size_t longest_change(std::uint32_t number) {
  switch (static_cast<xdr::nfs_opnum4>(number)) {
    // 128 with a write delegation, whose ACE is nobody's (open_delegation.cc). Not more than that
    // is asked for: clients have as little as 1 KiB of a reply kept.
    case xdr::nfs_opnum4::OP_OPEN:
      return 160;
    case xdr::nfs_opnum4::OP_EXCHANGE_ID:
    case xdr::nfs_opnum4::OP_SETCLIENTID:
      return 1024 + 128;
    case xdr::nfs_opnum4::OP_CREATE_SESSION:
      return 128;
    default:  // two change_info4 or an attribute mask
      return 64;
  }
}
/// The same of one that may have changed nothing: a LOCK that is denied names the owner that stands
/// against it, and can still become an error.
std::size_t longest_result(std::uint32_t number) {
  const bool lock = number == static_cast<std::uint32_t>(xdr::nfs_opnum4::OP_LOCK);
  return lock ? 1024 + 128 : longest_change(number);
}
/// Room to go on with when a result did not fit.
constexpr std::size_t kNextRoom = 16u << 10;
constexpr std::size_t kMostRoom = std::size_t{1} << 20;
/// Of a COMPOUND without a session to bound it: others wait while it runs.
constexpr std::uint32_t kMostOldOperations = 256;

/// Where each operation runs (server/placement.h), as this thread has seen them.
MeasuredPlacement& placement_of(std::uint32_t number) {
  thread_local std::array<MeasuredPlacement, xdr::kNfs4LastOperation + 1> placements;
  return placements[std::min<std::size_t>(number, placements.size() - 1)];
}

std::vector<std::unique_ptr<Compound>>& stock() {
  thread_local std::vector<std::unique_ptr<Compound>> compounds;
  return compounds;
}

/// GETATTR and its kind say of an absent file system where it is (RFC 8881 11.4.2).
bool knows_absent(xdr::nfs_opnum4 number) {
  return number == xdr::nfs_opnum4::OP_GETATTR || number == xdr::nfs_opnum4::OP_VERIFY ||
         number == xdr::nfs_opnum4::OP_NVERIFY;
}

}  // namespace

// --- from the dispatcher
// --------------------------------------------------------------------------

Compound& Compound::take(ServerContext& server, Request& request) {
  auto& compounds = stock();
  std::unique_ptr<Compound> taken;
  if (compounds.empty()) {
    taken = std::make_unique<Compound>();
  } else {
    taken = std::move(compounds.back());
    compounds.pop_back();
  }
  taken->server_ = &server;
  taken->request_ = &request;
  request.progress = taken.get();
  return *taken.release();
}

Outcome Compound::serve(ServerContext& server, Request& request, xdr::Decoder& args,
                        xdr::Encoder& result) {
  if (request.progress != nullptr) return static_cast<Compound*>(request.progress)->run(result);
  return take(server, request).begin(args, result);
}

Outcome Compound::begin(xdr::Decoder& args, xdr::Encoder& result) {
  const xdr::Decoder whole = args;
  xdr::COMPOUND4args head;
  if (!xdr::decode(args, head)) return Outcome::kGarbageArgs;
  if (head.minorversion != 0) fingerprint_ = fingerprint_of(*request_, whole);
  decoder_ = args;
  tag_ = head.tag;
  minor_version_ = head.minorversion;
  count_ = head.argarray_len;
  if (minor_version_ == 0) find_speaker();
  head_mark_ = result.mark();
  xdr::encode(result, xdr::COMPOUND4res{NFS4_OK, tag_, 0});
  count_mark_ = result.mark() - 4;
  if (minor_version_ > kLastMinorVersion) {
    status_ = NFS4ERR_MINOR_VERS_MISMATCH;
    count_ = 0;
  } else if (minor_version_ == 0 && count_ > kMostOldOperations) {
    status_ = NFS4ERR_RESOURCE;
    count_ = 0;
  }
  return run(result);
}

Outcome Compound::run(xdr::Encoder& result) {
  result_ = &result;
  looked_at_clock_ = 0;
  // Before anything goes to a worker again.
  if (payload_wanted_ != 0 && !may_block())
    payload_lack_ = enlarge_payload(std::exchange(payload_wanted_, 0));
  while (index_ < count_ && status_ == NFS4_OK && !replayed_) {
    if (!step()) return std::exchange(retry_, Outcome::kReply);
  }
  if (!replayed_) write_head(status_);
  request_->ended_ns = closed.empty() ? looked_at_clock_ : 0;
  if (!closed.empty()) close_files();
  request_->remember = changed_;
  return awaited_ && request_->durable_fd[0] != -1 ? Outcome::kReplyDurable : Outcome::kReply;
}

/// Before the client hears that they are.
void Compound::close_files() {
  current = CurrentHandle();
  saved = CurrentHandle();
  for (FilePin& file : closed)
    server_->files.end_writing(std::move(file));
  closed.clear();
}

void Compound::write_head(nfsstat4 status) {
  result_->patch_u32(head_mark_, static_cast<std::uint32_t>(status));
  result_->patch_u32(count_mark_, results_);
}

// --- one operation
// --------------------------------------------------------------------------------

bool Compound::step() {
  const xdr::Decoder before = decoder_;
  operation_mark_ = result_->mark();
  number_ = decoder_.u32();
  if (!decoder_.ok()) {
    // There is not even a number that a result could name.
    status_ = NFS4ERR_BADXDR;
    return true;
  }
  const Operation* operation = find_operation(number_);
  nfsstat4 status = check_place(number_, minor_version_, index_, count_, in_session_);
  if (status == NFS4_OK && uncached_retry_) status = NFS4ERR_RETRY_UNCACHED_REP;
  if (status == NFS4_OK) status = prepare(*operation);
  if (status_ != NFS4_OK) return true;  // prepare() found that what came before has failed
  if (status == NFS4_OK) {
    result_->u32(number_);
    status = run_measured(number_);
    if (replayed_) {
      result_->rewind(operation_mark_);  // its own result has no place in it
      return true;
    }
    if (status == NFS4ERR_MINOR_VERS_MISMATCH) {
      // The request's, not the operation's: there is no result of it (RFC 8881 16.2.3).
      result_->rewind(operation_mark_);
      status_ = status;
      return true;
    }
    const bool overflowed = result_->overflowed();
    if (!is_retry() && overflowed && !operation->changes && request_->room_wanted < kMostRoom) {
      request_->room_wanted = std::max(kNextRoom, request_->room_wanted * 4);
      retry(Outcome::kNeedRoom);
    }
    if (!is_retry() && overflowed && request_->no_memory) {
      status = NFS4ERR_DELAY;
      write_error(number_, status);
    } else if (!is_retry() && (overflowed || reply_bytes() > max_response_)) {
      status = minor_version_ == 0 ? NFS4ERR_RESOURCE : NFS4ERR_REP_TOO_BIG;
      write_error(number_, status);
    } else if (!is_retry() && cache_this_ && reply_bytes() > max_response_cached_) {
      status = NFS4ERR_REP_TOO_BIG_TO_CACHE;
      write_error(number_, status);
    } else if (!is_retry() && status == NFS4_OK) {
      changed_ |= operation->changes;
      // It may have been the same object, or the directory that it was in.
      if (operation->changes) saved.fresh = false;
      // The last word of its result.
      if (index_ == 0 && in_session_) status_flags_mark_ = result_->mark() - 4;
      if (told_of_) note_told_where(*told_of_);
      if (verifier_noted_ && verifiers_ < kMostVerifiers) {
        verifier_marks_[verifiers_++] = result_->mark() - xdr::kNfs4VerifierBytes;
      }
    }
    verifier_noted_ = false;
    told_of_.reset();
  } else if (!is_retry()) {
    write_error(number_, status);
  }
  if (is_retry()) {
    times_.resize(std::min<std::size_t>(times_.size(), index_));
    decoder_ = before;
    result_->rewind(operation_mark_);
    return false;
  }
  request_->room_wanted = 0;
  payload_lack_ = NFS4_OK;
  // Also of what was not run at all, or became an error behind it.
  if (times_.size() == index_) times_.push_back({number_, 0, 0});
  times_.back().status = static_cast<std::uint32_t>(status);
  status_ = status;
  ++results_;
  ++index_;
  return true;
}

/// What can be said before the arguments are looked at.
nfsstat4 Compound::prepare(const Operation& operation) {
  if (operation.needs_handle && !current.is_set()) return NFS4ERR_NOFILEHANDLE;
  if (operation.needs_saved_handle && !saved.is_set()) return NFS4ERR_NOFILEHANDLE;
  if (current.absent && operation.needs_handle && !knows_absent(operation.number)) {
    return NFS4ERR_MOVED;
  }
  const bool waits =
      operation.changes || operation.number == xdr::nfs_opnum4::OP_COMMIT;  // for the disk
  if (waits && !make_place_to_wait()) return may_block() ? status_ : retry(Outcome::kWouldBlock);
  if (!operation.changes) return NFS4_OK;
  const std::size_t longest = longest_change(number_);
  if (index_ > 0 || minor_version_ == 0) {
    // Found out now, since afterwards it could not be undone.
    if (const nfsstat4 bad = check_length(longest); bad != NFS4_OK) return bad;
  }
  if (result_->room() < longest_result(number_)) {
    request_->room_wanted = kNextRoom;
    return retry(Outcome::kNeedRoom);
  }
  return NFS4_OK;
}

/// An operation waits for two objects at most. Where there is no place for them, what has to reach
/// the disk so far does so now. False: not here; or it failed, and the COMPOUND ends where the
/// first operation is whose change was lost.
bool Compound::make_place_to_wait() {
  if (request_->durable_fd[Request::kMaxDurable - 2] == -1) return true;
  if (!may_block()) return false;
  const int error =
      server_->committer.commit_now(request_->durable_fd, false, request_->durable_since());
  request_->durable_fd.fill(-1);
  request_->durable_own = false;
  looked_at_clock_ = 0;  // that time is no operation's
  if (request_->release != nullptr) request_->release(*request_);
  if (error != 0) fail_awaited(*result_, error);
  awaited_.reset();
  awaited_opens_.clear();
  return error == 0;
}

nfsstat4 Compound::run_measured(std::uint32_t number) {
  const Runner runner = runner_of(number);
  if (runner == nullptr) {
    write_error(number, NFS4ERR_NOTSUPP);
    return NFS4ERR_NOTSUPP;
  }
  // READ knows for itself whether it would block.
  const bool knows = number == static_cast<std::uint32_t>(xdr::nfs_opnum4::OP_READ);
  if (!knows && !may_block() && placement_of(number).on_workers()) {
    return retry(Outcome::kWouldBlock);
  }
  // The clock has its price too: where one operation ends the next begins.
  const std::uint64_t begun = looked_at_clock_ != 0 ? looked_at_clock_ : now_ns();
  const nfsstat4 status = runner(*this, decoder_, *result_);
  if (is_retry()) return status;
  looked_at_clock_ = now_ns();
  times_.push_back({number, static_cast<std::uint32_t>(status), looked_at_clock_ - begun});
  if (knows) return status;
  const std::uint64_t ns = (looked_at_clock_ - begun) / std::max(1u, request_->work_units);
  request_->work_units = 1;
  if (!may_block()) {
    placement_of(number).add(ns);
  } else if (elapsed_count_ < kMostElapsed) {
    elapsed_[elapsed_count_++] = {number, ns};
  }
  return status;
}

/// In place of whatever the operation at hand wrote.
void Compound::write_error(std::uint32_t number, nfsstat4 status) {
  result_->rewind(operation_mark_);
  const bool known = find_operation(number) != nullptr && status != NFS4ERR_OP_ILLEGAL;
  const auto written = known ? static_cast<xdr::nfs_opnum4>(number) : xdr::nfs_opnum4::OP_ILLEGAL;
  result_->u32(static_cast<std::uint32_t>(written));
  xdr::with_operation(written, [&](auto row) {
    typename decltype(row)::Res res{};
    res.status = status;
    xdr::encode(*result_, res);
  });
}

nfsstat4 Compound::retry(Outcome where) {
  // A worker waits for others who ask the name service: the client comes again, since a call that
  // is put off keeps what came with it, and anybody can send this one.
  if (where == Outcome::kWouldBlock && may_block()) return NFS4ERR_DELAY;
  // Without memory the operation fails with just that.
  const bool refused = request_->no_memory && where != Outcome::kWouldBlock;
  retry_ = refused ? Outcome::kReply : where;
  return NFS4ERR_DELAY;
}

std::size_t Compound::reply_bytes() const {
  return xdr::flattened_size(*result_);
}

std::size_t Compound::room_left() const {
  const std::size_t used = reply_bytes();
  std::size_t left = max_response_ > used ? max_response_ - used : 0;
  if (cache_this_) {
    left = std::min(left, max_response_cached_ > used ? max_response_cached_ - used : 0);
  }
  return left;
}

nfsstat4 Compound::check_length(std::size_t bytes) const {
  if (bytes > kMostRoom || reply_bytes() + bytes > max_response_)
    return minor_version_ == 0 ? NFS4ERR_RESOURCE : NFS4ERR_REP_TOO_BIG;
  const bool kept = !cache_this_ || reply_bytes() + bytes <= max_response_cached_;
  return kept ? NFS4_OK : NFS4ERR_REP_TOO_BIG_TO_CACHE;
}

bool Compound::have_room(std::size_t bytes) {
  const std::size_t wanted = std::min({bytes, room_left(), kMostRoom});
  if (result_->room() >= wanted) return true;
  // Beside what is written anew then, the operation's number.
  request_->room_wanted = wanted + (result_->size() - operation_mark_);
  return false;
}

// --- the end
// --------------------------------------------------------------------------------------

void Compound::finish(xdr::Encoder& result, int commit_error) {
  result_ = &result;
  for (std::size_t i = 0; i < elapsed_count_; ++i)
    placement_of(elapsed_[i].number).add(elapsed_[i].ns);
  if (commit_error != 0) {
    fail_awaited(result, commit_error);
  } else {
    const std::uint64_t verifier = server_->verifier.value();
    for (std::size_t i = 0; i < verifiers_; ++i) {
      result.patch_u32(verifier_marks_[i], static_cast<std::uint32_t>(verifier >> 32));
      result.patch_u32(verifier_marks_[i] + 4, static_cast<std::uint32_t>(verifier));
    }
  }
  end_slot(result);
}

void Compound::fail_awaited(xdr::Encoder& result, int error) {
  if (!awaited_) return;
  result.rewind(awaited_->mark);
  operation_mark_ = awaited_->mark;
  const nfsstat4 status = status_of_errno(error);
  write_error(awaited_->number, status);
  awaited_opens_.undo(state(), awaited_->index, status,
                      result.bytes().subspan(awaited_->mark + 4));  // behind its number
  results_ = awaited_->index + 1;
  while (verifiers_ > 0 && verifier_marks_[verifiers_ - 1] >= awaited_->mark)
    --verifiers_;
  status_ = status;
  write_head(status);
}

/// The reply is as it will be sent: the slot keeps it, or knows that it did not.
void Compound::end_slot(const xdr::Encoder& result) {
  if (!runs_in_slot_) return;
  runs_in_slot_ = false;
  std::vector<std::byte> flat;  // payloads in line, as they are over TCP
  ByteSpan reply = result.bytes();
  if (cache_this_ && !result.payloads().empty()) {
    flat.resize(reply_bytes());
    xdr::flatten(result, flat);
    reply = flat;
  }
  std::lock_guard lock(state().mutex);
  runs_no_more();
  Session* session = state().sessions.find(session_);
  if (session == nullptr) return;  // it ended meanwhile, perhaps by this very request
  // The lease counts from the end of the request (RFC 8881 8.3).
  state().clients.renew(*session->client, state().now());
  if (!cache_this_) return session->slots.finish_uncached(slot_);
  session->slots.finish(slot_, reply.subspan(head_mark_));
}

/// With the mutex. The client may have ended meanwhile, perhaps by this very request.
void Compound::runs_no_more() {
  Client* client = state().clients.find(client_id_);
  if (client != nullptr && client->running != 0) --client->running;
}

/// Also of calls that never got an answer: the slot must not stay busy.
void Compound::release() {
  if (runs_in_slot_) {
    std::lock_guard lock(state().mutex);
    runs_no_more();
    if (Session* session = state().sessions.find(session_)) session->slots.finish_uncached(slot_);
  }
  if (state().refusals.pending()) state().write_refusals();
  const std::vector<FilePin> released = state().take_released();
  clear();
  stock().emplace_back(this);
}

void Compound::clear() {
  current = CurrentHandle();
  saved = CurrentHandle();
  closed.clear();
  times_.clear();
  current_stateid = saved_stateid = Stateid();
  server_ = nullptr;
  request_ = nullptr;
  result_ = nullptr;
  count_ = index_ = results_ = 0;
  status_flags_ = 0;
  told_of_.reset();
  status_ = NFS4_OK;
  retry_ = Outcome::kReply;
  changed_ = false;
  awaited_.reset();
  awaited_opens_.clear();
  verifiers_ = elapsed_count_ = payload_used_ = payload_wanted_ = 0;
  payload_lack_ = NFS4_OK;
  in_session_ = runs_in_slot_ = cache_this_ = uncached_retry_ = replayed_ = false;
  max_response_ = BufferPool::kMaxBuffer;
  max_response_cached_ = 0;
  client_id_ = speaker_ = 0;
}

// --- for operations
// -------------------------------------------------------------------------------

ServerState& Compound::state() {
  return *server_->nfs4;
}

void Compound::note_told_where(std::uint64_t export_id) {
  MovedExports& moved = state().moved_exports;
  if (moved.any()) {
    std::lock_guard lock(state().mutex);
    moved.heard(client_id_, export_id);
  }
  if (!in_session_ || (status_flags_ & xdr::SEQ4_STATUS_LEASE_MOVED) == 0) return;
  status_flags_ &= ~xdr::SEQ4_STATUS_LEASE_MOVED;
  result_->patch_u32(status_flags_mark_, status_flags_);
}

std::string Compound::principal() const {
  const RpcCredentials& who = request_->credentials;
  return who.flavor == RpcCredentials::Flavor::kSys ? "sys:" + std::to_string(who.uid) : "none";
}

/// A further READ of the same COMPOUND: all payload has to lie in one buffer.
nfsstat4 Compound::enlarge_payload(std::size_t bytes) {
  Buffer& payload = request_->payload;
  Buffer larger = request_->call->connection().buffers().acquire(bytes);
  if (!larger) return NFS4ERR_DELAY;
  if (!payload.settle()) return NFS4ERR_IO;
  std::copy_n(payload.data(), payload_used_, larger.data());
  result_->move_payloads(payload.bytes(), larger.data());
  payload = std::move(larger);
  return NFS4_OK;
}

nfsstat4 Compound::payload_room(std::size_t wanted, MutableByteSpan* room) {
  if (payload_lack_ != NFS4_OK) return payload_lack_;
  Buffer& payload = request_->payload;
  if (payload_used_ == 0) {
    if (!have_buffer(*request_, wanted)) return retry(Outcome::kNeedBuffer);
  } else if (payload.window() != nullptr || payload.size() - payload_used_ < wanted) {
    // None is so large, however often the client comes again.
    if (payload_used_ + wanted > BufferPool::kMaxBuffer)
      return minor_version_ == 0 ? NFS4ERR_RESOURCE : NFS4ERR_REP_TOO_BIG;
    // Getting one is for the loop's thread, where more room for the result leads as well.
    if (may_block()) {
      payload_wanted_ = payload_used_ + wanted;
      return retry(Outcome::kNeedRoom);
    }
    const nfsstat4 status = enlarge_payload(payload_used_ + wanted);
    if (status != NFS4_OK) return status;
  }
  *room = payload.bytes().subspan(payload_used_, wanted);
  return NFS4_OK;
}

void Compound::wait_for(FileCall& call, const Resolved& object, bool data_only) {
  call.request().durable_own = true;
  await(call, object, data_only);
}

void Compound::wait_for_written(FileCall& call, const Resolved& file) {
  await(call, file, false);
}

void Compound::await(FileCall& call, const Resolved& object, bool data_only) {
  Resolved awaited;
  awaited.file = FilePin::another(*object.file);
  awaited.covered_by_directory = object.covered_by_directory;
  if (!call.wait_for_written(awaited)) return;  // prepare() has seen to it that there is a place
  request_->durable_data_only = data_only && !awaited_;
  if (!awaited_) awaited_ = Awaited{operation_mark_, index_, number_};
}

void Compound::wait_for_metadata(FileCall& call, const Resolved& object) {
  if (call.syncs_metadata()) wait_for(call, object);
}

void Compound::note_open(const FileEntry& file, const OpenStates::Answer& answer,
                         const Share& share, const std::optional<Stateid>& delegation) {
  if (!awaited_) return;  // nothing up to here can fail any more
  awaited_opens_.add({index_, client_id_, file_key(file), answer, share, delegation, 0, {}, 0});
}

void Compound::note_turn(const OwnerKey& owner, std::uint64_t generation, std::uint32_t seqid) {
  AwaitedOpen* open = awaited_opens_.of(index_);
  if (open == nullptr) return;
  open->owner = owner;
  open->generation = generation;
  open->seqid = seqid;
}

void Compound::set_client(ClientId client) {
  client_id_ = client;
  request_->nfs4_client = speaker();
}

void Compound::act_as(Client& client) {
  ServerState& all = state();
  all.clients.renew(client, all.now());
  speaker_ = all.speakers.note(connection(), client.id, all.clients);
  set_client(client.id);
}

void Compound::find_speaker() {
  ServerState& all = state();
  if (!all.delegations.any_writer()) return;
  std::lock_guard lock(all.mutex);
  speaker_ = all.speakers.of(connection());
  request_->nfs4_client = speaker();
}

bool Compound::gives_back_next(const FileEntry& file) const {
  if (index_ + 1 >= count_) return false;
  xdr::Decoder ahead = decoder_;
  if (ahead.u32() != static_cast<std::uint32_t>(xdr::nfs_opnum4::OP_DELEGRETURN)) return false;
  xdr::DELEGRETURN4args args;
  if (!xdr::decode(ahead, args)) return false;
  const DelegationTable& table = server_->nfs4->delegations.table();
  std::lock_guard lock(server_->nfs4->mutex);
  const Delegation* writer = table.writer(file_key(file));
  return writer != nullptr &&
         table.stateid_of(*writer).other == from_wire(args.deleg_stateid).other;
}

void Compound::act_for(const Stateid& stateid) {
  if (minor_version_ != 0) return;
  ServerState& all = state();
  acted_for_ = stateid;
  set_client(DelegationTable::is_one(stateid) ? all.delegations.table().client_of(stateid)
                                              : all.opens.client_of(stateid));
  Client* its = all.clients.find(client_id_);
  if (its == nullptr) {
    of_ended_ = all.is_of_ended(stateid);
    return;
  }
  if (!speaks_4_0(*its)) {
    set_client(0);
  } else {
    act_as(*its);
  }
}

nfsstat4 Compound::with_expired(nfsstat4 status) {
  const bool expired = std::exchange(of_ended_, false) && status == NFS4ERR_BAD_STATEID;
  if (status == NFS4ERR_ADMIN_REVOKED && minor_version_ == 0) {
    std::lock_guard lock(state().mutex);
    state().note_told(client_id_, acted_for_);
  }
  return expired ? NFS4ERR_EXPIRED : status;
}

nfsstat4 Compound::unknown_client(ClientId client) {
  return state().clients.is_gone(client) ? NFS4ERR_EXPIRED : NFS4ERR_STALE_CLIENTID;
}

nfsstat4 Compound::settle_first() {
  if (!state().must_settle()) return NFS4_OK;
  if (!may_block()) return retry(Outcome::kWouldBlock);
  return state().settle().ok() ? NFS4_OK : NFS4ERR_DELAY;
}

nfsstat4 Compound::may_access(const xdr::stateid4& wire, std::uint8_t access,
                              const CurrentHandle& handle) {
  const Stateid stateid = real(wire, &handle == &saved ? saved_stateid : current_stateid);
  const StateidKind kind = kind_of(stateid, minor_version_);
  ServerState& all = state();
  std::lock_guard lock(all.mutex);
  // Without an open it might get in the way of what is yet to be reclaimed.
  if (kind != StateidKind::kOrdinary && !all.grace.over(all.now())) return NFS4ERR_GRACE;
  if (kind == StateidKind::kOrdinary) act_for(stateid);
  if (minor_version_ == 0) {
    // What was not confirmed is not open yet.
    const auto [owner, locks] = all.opens.find_owner(stateid);
    const SequencedOwner* sequenced =
        owner != nullptr && !locks
            ? all.owner_sequences.look({owner->client, OwnerKind::kOpen, owner->name})
            : nullptr;
    if (sequenced != nullptr && !sequenced->confirmed) return NFS4ERR_BAD_STATEID;
  }
  const FileKey file = file_key(*handle.object.file);
  if (DelegationTable::is_one(stateid)) {
    return status_of(all.delegations.table().may_access(client_id_, stateid, file, access),
                     minor_version_);
  }
  return status_of(all.opens.may_access(asker(), stateid, file, access), minor_version_);
}

nfsstat4 Compound::may_access(const xdr::stateid4& stateid, std::uint8_t access) {
  return may_access(stateid, access, current);
}

Stateid Compound::real(const xdr::stateid4& stateid) const {
  return real(stateid, current_stateid);
}

Stateid Compound::real(const xdr::stateid4& stateid, const Stateid& current_one) const {
  const Stateid given = from_wire(stateid);
  // Without one it stays what it is, and is good for nothing (RFC 8881 16.2.3.1.2).
  const bool is_current = kind_of(given, minor_version_) == StateidKind::kCurrent;
  return is_current && current_one != Stateid() ? current_one : given;
}

void Compound::runs_in(const Session& session, SlotId slot, bool cache_this) {
  goes_by(session);
  runs_in_slot_ = true;
  ++session.client->running;
  slot_ = slot;
  cache_this_ = cache_this;
}

nfsstat4 Compound::check_reply(const Session& session, bool cache_this, std::size_t bytes) const {
  const std::size_t whole = reply_bytes() + bytes;
  if (whole > session.fore.max_response) return NFS4ERR_REP_TOO_BIG;
  if (cache_this && whole > session.fore.max_response_cached) return NFS4ERR_REP_TOO_BIG_TO_CACHE;
  return NFS4_OK;
}

void Compound::goes_by(const Session& session) {
  in_session_ = true;
  session_ = session.id;
  client_id_ = request_->nfs4_client = session.client->id;
  max_response_ = session.fore.max_response;
  max_response_cached_ = session.fore.max_response_cached;
}

std::optional<ReferringCall> Compound::as_referring() {
  const Session* session = runs_in_slot_ ? state().sessions.find(session_) : nullptr;
  if (session == nullptr) return std::nullopt;
  return ReferringCall{session_, slot_, session->slots.next(slot_) - 1};
}

bool Compound::reply_with(std::span<const std::byte> kept) {
  if (head_mark_ + kept.size() > result_->size() + result_->room()) {
    request_->room_wanted = kept.size();
    retry(Outcome::kNeedRoom);
    return false;
  }
  // To an item that would have gone into a chunk a Write chunk of the retry belongs.
  std::vector<ByteSpan> items;
  if (is_rdma(request_->call->connection().transport())) items = reducible_items(kept);
  MutableByteSpan room;
  if (!items.empty() && payload_room(kept.size(), &room) != NFS4_OK) return false;
  result_->rewind(head_mark_);
  std::size_t done = 0;
  for (const ByteSpan item : items) {
    // Its length is the word before it, and payload() writes that.
    const auto at = static_cast<std::size_t>(item.data() - kept.data());
    result_->fixed_opaque(kept.subspan(done, at - 4 - done));
    std::copy(item.begin(), item.end(), room.begin());
    result_->payload(room.first(item.size()));
    room = room.subspan(round_up4(item.size()));
    done = at + round_up4(item.size());
  }
  result_->fixed_opaque(kept.subspan(done));
  operation_mark_ = result_->mark();
  replayed_ = true;
  return true;
}

}  // namespace nfsrdma::nfs4
