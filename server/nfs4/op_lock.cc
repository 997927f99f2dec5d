// SPDX-License-Identifier: Apache-2.0
// LOCK, LOCKT, LOCKU (RFC 8881 18.10 to 18.12, RFC 7530 16.10 to 16.12). Nobody waits here: clients
// ask again. The -W kinds of locks say that they will; those who can be called are told when it is
// worth it (lock_notifier.h). Processes of this machine hold locks too (lock_mirror.h).
#include <cstring>

#include "server/nfs4/data_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;
using xdr::nfs_lock_type4;

namespace {

/// False: no such kind.
bool kind_of_lock(nfs_lock_type4 type, LockKind* kind) {
  switch (type) {
    case nfs_lock_type4::READ_LT:
    case nfs_lock_type4::READW_LT:
      *kind = LockKind::kRead;
      return true;
    case nfs_lock_type4::WRITE_LT:
    case nfs_lock_type4::WRITEW_LT:
      *kind = LockKind::kWrite;
      return true;
  }
  return false;
}

/// Whose lock it is, for the client. The owner's name is kept in the COMPOUND's scratch memory.
xdr::LOCK4denied denied(Compound& compound, const OpenStates::Holder& holder) {
  xdr::LOCK4denied out;
  out.offset = holder.held.range.first;
  out.length = length_of(holder.held.range);
  out.locktype =
      holder.held.kind == LockKind::kWrite ? nfs_lock_type4::WRITE_LT : nfs_lock_type4::READ_LT;
  out.owner.clientid = holder.client;
  const MutableByteSpan room = compound.scratch(holder.owner.size());
  std::memcpy(room.data(), holder.owner.data(), holder.owner.size());
  out.owner.owner = room;
  return out;
}

/// A process of this machine has it, which is no client and has no owner that one could know.
xdr::LOCK4denied denied(Compound& compound, const LockMirror::Holder& holder) {
  return denied(compound, {{0, holder.range, holder.kind}, 0, holder.who});
}

/// What a request for a lock names, and that the current handle can be locked.
struct Wanted {
  LockKind kind{};
  ByteRange range;
};
nfsstat4 check(Compound& compound, nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length,
               Wanted* wanted) {
  const std::optional<ByteRange> range = byte_range(offset, length);
  if (!kind_of_lock(type, &wanted->kind) || !range) return NFS4ERR_INVAL;
  wanted->range = *range;
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  FileCall call(compound.server(), compound.request());
  const nfsstat4 status = compound.enter(call, Use::kLook);
  return status == NFS4_OK ? check_regular(compound, compound.current) : status;
}

/// By way of which state a LOCK is asked for.
const xdr::stateid4& stateid_of(const xdr::LOCK4args& args) {
  return args.locker.new_lock_owner ? args.locker.open_owner.open_stateid
                                    : args.locker.lock_owner.lock_stateid;
}

/// May the client lock now? With the state's mutex.
nfsstat4 check_grace(Compound& compound, bool reclaim) {
  ServerState& state = compound.state();
  Client* client = state.clients.find(compound.client_id());
  if (client == nullptr) return NFS4ERR_EXPIRED;
  state.clients.renew(*client, state.now());  // who asks is not gone, however long it took
  return status_of(reclaim
                       ? state.grace.reclaim(client->owner.id, state.now())
                       : state.grace.make_new(client->owner.id, client->has_sessions, state.now()));
}

/// A LOCK goes in two steps: may the client have the lock, as far as other clients are concerned,
/// and then, when this machine's processes have none against it, it gets it.
enum class Step : std::uint8_t { kAsk, kEnter };

OpenStates::Answer take_step(Compound& compound, const xdr::LOCK4args& args, const Wanted& wanted,
                             Step step, std::optional<OpenStates::Holder>* holder) {
  ServerState& state = compound.state();
  OpenStates& opens = state.opens;
  const OpenStates::Asker asker = compound.asker();
  const Stateid stateid = compound.real(stateid_of(args));
  const bool first = args.locker.new_lock_owner;
  const std::string owner =
      first ? text_of(args.locker.open_owner.lock_owner.owner) : std::string();
  if (step == Step::kAsk) {
    return {opens.may_lock(asker, stateid, first ? &owner : nullptr, wanted.kind, wanted.range,
                           holder)};
  }
  // What a client locked by its delegation alone it brings here when that is recalled.
  const FileKey file = file_key(*compound.current.object.file);
  const bool held = args.reclaim || state.delegations.table().has_one(asker.client, file);
  const Claim claim = held ? Claim::kHeld : Claim::kNew;
  return state.with_room(state.clients.find(asker.client), [&] {
    return first ? opens.lock(asker, stateid, owner, wanted.kind, wanted.range, holder, claim)
                 : opens.lock(asker, stateid, wanted.kind, wanted.range, holder, claim);
  });
}

std::string lock_owner_of(Compound& compound, const xdr::LOCK4args& args) {
  if (args.locker.new_lock_owner) return text_of(args.locker.open_owner.lock_owner.owner);
  const auto owner = compound.state().opens.owner_of(compound.real(stateid_of(args)));
  return owner ? owner->name : std::string();
}

/// It was refused, or is done: does its owner wait for it?
void note_wait(Compound& compound, const xdr::LOCK4args& args, const Wanted& wanted, bool refused) {
  ServerState& state = compound.state();
  LockWaits& waits = state.lock_notifier.waits();
  const bool waits_for_it =
      refused && compound.minor_version() > 0 &&
      (args.locktype == nfs_lock_type4::READW_LT || args.locktype == nfs_lock_type4::WRITEW_LT) &&
      state.caller.reaches(compound.client_id());
  if (!waits_for_it && waits.empty()) return;
  const FileKey file = file_key(*compound.current.object.file);
  const std::string owner = lock_owner_of(compound, args);
  if (!waits_for_it) {
    waits.remove(file, compound.client_id(), owner);
    return;
  }
  const ByteSpan handle = compound.current.handle.bytes();
  waits.add(
      file,
      {compound.client_id(), owner, wanted.kind, wanted.range, {handle.begin(), handle.end()}});
  state.lock_mirror.waits_began();
}

/// Of a first lock in minor version 0: the lock-owner is of that client, and its sequence begins
/// where the request says.
nfsstat4 check_new_owner(Compound& compound, const xdr::open_to_lock_owner4& first) {
  if (compound.minor_version() != 0 || first.lock_owner.clientid == compound.client_id()) {
    return NFS4_OK;
  }
  const bool known = compound.state().clients.find(first.lock_owner.clientid) != nullptr;
  return known ? NFS4ERR_BAD_STATEID : compound.unknown_client(first.lock_owner.clientid);
}
void begin_sequence(Compound& compound, const xdr::open_to_lock_owner4& first) {
  if (compound.minor_version() != 0) return;
  SequencedOwner* owner = compound.state().owner_sequences.get(
      {compound.client_id(), OwnerKind::kLock, text_of(first.lock_owner.owner)});
  if (owner != nullptr && !owner->running) owner->sequence.start(first.lock_seqid);
}

/// One step of a LOCK. NFS4_OK to kEnter: it is done.
nfsstat4 lock_step(Compound& compound, const xdr::LOCK4args& args, const Wanted& wanted, Step step,
                   xdr::LOCK4res& res) {
  ServerState& state = compound.state();
  std::lock_guard guard(state.mutex);
  const Stateid stateid = compound.real(stateid_of(args));
  compound.act_for(stateid);
  if (compound.client_id() == 0) {  // a stateid that is nobody's
    return status_of(state.opens.test(compound.asker(), stateid), compound.minor_version());
  }
  const FileKey file = file_key(*compound.current.object.file);
  if (state.opens.is_of_another(stateid, file)) return NFS4ERR_BAD_STATEID;
  if (args.locker.new_lock_owner) {
    const nfsstat4 bad = check_new_owner(compound, args.locker.open_owner);
    if (bad != NFS4_OK) return bad;
  }
  if (const nfsstat4 bad = check_grace(compound, args.reclaim); bad != NFS4_OK) return bad;
  std::optional<OpenStates::Holder> holder;
  auto answer = take_step(compound, args, wanted, step, &holder);
  // A client that is gone does not keep others out. (One that came between the steps does: nobody
  // would write down in time that its lock is another's. Who gives way for want of room had nothing
  // that is given away here.)
  while (step == Step::kAsk && answer.status == OpenStates::Status::kDenied &&
         state.end_expired({holder->client}))
    answer = take_step(compound, args, wanted, step, &holder);
  const bool refused = answer.status == OpenStates::Status::kDenied;
  if (refused) res.denied = denied(compound, *holder);
  const bool entered = step == Step::kEnter && answer.status == OpenStates::Status::kOk;
  if (refused || entered) note_wait(compound, args, wanted, refused);
  // What was taken for it may be more than it has now: it failed, or had more before.
  if (step == Step::kEnter) state.lock_mirror.note_ended(file, wanted.range);
  if (!entered) return status_of(answer.status, compound.minor_version());
  if (args.locker.new_lock_owner) begin_sequence(compound, args.locker.open_owner);
  // A lock for writing may have become one for reading.
  state.lock_notifier.unlocked(file, wanted.range);
  state.count_holds(*state.clients.find(compound.client_id()));
  res.resok4.lock_stateid = to_wire(answer.stateid);
  compound.current_stateid = answer.stateid;
  return NFS4_OK;
}

/// Between the steps: the lock for all clients, against this machine's processes.
nfsstat4 take_from_machine(Compound& compound, const xdr::LOCK4args& args, const Wanted& wanted,
                           LockMirror::Turn& turn, xdr::LOCK4res& res) {
  LockMirror::Holder holder;
  switch (turn.acquire(wanted.kind, wanted.range, &holder)) {
    case LockMirror::Outcome::kDone:
      return NFS4_OK;
    case LockMirror::Outcome::kLater:
      return NFS4ERR_DELAY;
    case LockMirror::Outcome::kDenied:
      break;
  }
  // Somebody has taken what was the client's before the restart (RFC 8881 8.4.2.1).
  if (args.reclaim) return NFS4ERR_RECLAIM_CONFLICT;
  res.denied = denied(compound, holder);
  std::lock_guard guard(compound.state().mutex);
  note_wait(compound, args, wanted, true);
  return NFS4ERR_DENIED;
}

/// The holder of a write delegation may have locks that it has told nobody of; it is asked to give
/// the delegation back. (Who asks for a LOCK has opened the file, so that this was done then.)
bool is_promised_to_another(Compound& compound) {
  const FileEntry& file = *compound.current.object.file;
  const ClientId holder = file.promised_to.load(std::memory_order_acquire);
  DelegationGuard* guard = compound.server().delegations;
  return holder != 0 && holder != compound.client_id() && guard != nullptr &&
         guard->stops_reading(file.device(), file.inode(), compound.client_id());
}

/// The part of LOCKT that clients have in it.
nfsstat4 test_clients(Compound& compound, const xdr::LOCKT4args& args, const Wanted& wanted,
                      xdr::LOCKT4res& res) {
  ServerState& state = compound.state();
  std::lock_guard guard(state.mutex);
  if (compound.minor_version() == 0) {
    Client* client = state.clients.find(args.owner.clientid);
    if (client == nullptr || !speaks_4_0(*client)) {
      return compound.unknown_client(args.owner.clientid);
    }
    compound.act_as(*client);
  }
  if (!state.grace.over(state.now())) return NFS4ERR_GRACE;
  const FileKey key = file_key(*compound.current.object.file);
  const std::string owner = text_of(args.owner.owner);
  auto holder = state.opens.test_lock(compound.asker(), owner, key, wanted.kind, wanted.range);
  while (holder && state.end_expired({holder->client}))
    holder = state.opens.test_lock(compound.asker(), owner, key, wanted.kind, wanted.range);
  if (!holder) return NFS4_OK;
  res.denied = denied(compound, *holder);
  return NFS4ERR_DENIED;
}

}  // namespace

nfsstat4 lock(Compound& compound, const xdr::LOCK4args& args, xdr::LOCK4res& res) {
  Wanted wanted;
  if (const nfsstat4 bad = check(compound, args.locktype, args.offset, args.length, &wanted);
      bad != NFS4_OK) {
    return bad;
  }
  LockMirror::Turn turn(compound.state().lock_mirror, *compound.current.object.file,
                        compound.may_block());
  if (turn.would_block()) return compound.retry(Outcome::kWouldBlock);
  nfsstat4 status = lock_step(compound, args, wanted, Step::kAsk, res);
  // That others lost what was in the way, and may not reclaim it.
  if (status == NFS4_OK && !args.reclaim) status = compound.settle_first();
  if (status == NFS4_OK) status = take_from_machine(compound, args, wanted, turn, res);
  return status == NFS4_OK ? lock_step(compound, args, wanted, Step::kEnter, res) : status;
}

nfsstat4 lockt(Compound& compound, const xdr::LOCKT4args& args, xdr::LOCKT4res& res) {
  Wanted wanted;
  if (const nfsstat4 bad = check(compound, args.locktype, args.offset, args.length, &wanted);
      bad != NFS4_OK) {
    return bad;
  }
  LockMirror::Turn turn(compound.state().lock_mirror, *compound.current.object.file,
                        compound.may_block());
  if (turn.would_block()) return compound.retry(Outcome::kWouldBlock);
  if (const nfsstat4 status = test_clients(compound, args, wanted, res); status != NFS4_OK) {
    return status;
  }
  if (is_promised_to_another(compound)) return NFS4ERR_DELAY;
  LockMirror::Holder holder;
  switch (turn.test(wanted.kind, wanted.range, &holder)) {
    case LockMirror::Outcome::kDone:
      return NFS4_OK;
    case LockMirror::Outcome::kLater:
      return NFS4ERR_DELAY;
    case LockMirror::Outcome::kDenied:
      break;
  }
  res.denied = denied(compound, holder);
  return NFS4ERR_DENIED;
}

nfsstat4 locku(Compound& compound, const xdr::LOCKU4args& args, xdr::LOCKU4res& res) {
  Wanted wanted;
  if (const nfsstat4 bad = check(compound, args.locktype, args.offset, args.length, &wanted);
      bad != NFS4_OK) {
    // From minor version 1 on it has no errors for kinds of objects: nothing else can be locked.
    const bool other_kind =
        bad == NFS4ERR_ISDIR || bad == NFS4ERR_SYMLINK || bad == NFS4ERR_WRONG_TYPE;
    return other_kind && compound.minor_version() != 0 ? NFS4ERR_BAD_STATEID : bad;
  }
  ServerState& state = compound.state();
  const FileEntry& entry = *compound.current.object.file;
  const FileKey file = file_key(entry);
  // What is unlocked is free when this is answered; but a file whose locks another host keeps is
  // not waited for. The turn's end lets go.
  std::optional<LockMirror::Turn> turn;
  if (state.lock_mirror.has_at_hand(file)) {
    turn.emplace(state.lock_mirror, entry, compound.may_block());
    if (turn->would_block()) return compound.retry(Outcome::kWouldBlock);
  }
  std::lock_guard guard(state.mutex);
  const Stateid stateid = compound.real(args.lock_stateid);
  compound.act_for(stateid);
  if (state.opens.is_of_another(stateid, file)) return NFS4ERR_BAD_STATEID;
  const auto answer = state.with_room(state.clients.find(compound.client_id()), [&] {
    return state.opens.unlock(compound.asker(), stateid, wanted.range);
  });
  if (answer.status != OpenStates::Status::kOk) {
    return status_of(answer.status, compound.minor_version());
  }
  state.lock_mirror.note_ended(file, wanted.range);
  state.lock_notifier.unlocked(file, wanted.range);
  res.resok4 = to_wire(answer.stateid);
  compound.current_stateid = answer.stateid;
  if (!turn) state.lock_mirror.settle_later(file);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
