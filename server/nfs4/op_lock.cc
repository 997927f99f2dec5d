// SPDX-License-Identifier: Apache-2.0
// LOCK, LOCKT, LOCKU (RFC 8881 18.10 to 18.12, RFC 7530 16.10 to 16.12). Nobody waits here: clients
// ask again (the -W kinds of locks say that they will).
#include <cstring>

#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

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

std::string text_of(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
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

/// Locks are of regular files. As in OPEN, what else there is has errors of its own.
nfsstat4 check_file(Compound& compound) {
  const CurrentHandle& handle = compound.current;
  if (handle.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kLook); status != NFS4_OK) return status;
  if (handle.object.file->is_regular()) return NFS4_OK;
  if (handle.object.file->is_directory()) return NFS4ERR_ISDIR;
  if (compound.minor_version() == 0) return NFS4ERR_INVAL;
  return S_ISLNK(handle.object.attributes.st_mode) ? NFS4ERR_SYMLINK : NFS4ERR_WRONG_TYPE;
}

/// May the client lock now? With the state's mutex.
nfsstat4 check_grace(Compound& compound, bool reclaim) {
  ServerState& state = compound.state();
  const Client* client = state.clients.find(compound.client_id());
  if (client == nullptr) return NFS4ERR_EXPIRED;
  return status_of(reclaim
                       ? state.grace.reclaim(client->owner.id, state.now())
                       : state.grace.make_new(client->owner.id, client->has_sessions, state.now()));
}

/// Of a LOCK whose stateid is nobody's.
nfsstat4 check_stateid(Compound& compound, const xdr::LOCK4args& args) {
  const xdr::stateid4& stateid = args.locker.new_lock_owner ? args.locker.open_owner.open_stateid
                                                            : args.locker.lock_owner.lock_stateid;
  return status_of(compound.state().opens.test(compound.asker(), compound.real(stateid)),
                   compound.minor_version());
}

OpenStates::Answer try_lock(Compound& compound, const xdr::LOCK4args& args, LockKind kind,
                            const ByteRange& range, std::optional<OpenStates::Holder>* holder) {
  OpenStates& opens = compound.state().opens;
  if (!args.locker.new_lock_owner) {
    return opens.lock(compound.asker(), compound.real(args.locker.lock_owner.lock_stateid), kind,
                      range, holder);
  }
  const xdr::open_to_lock_owner4& first = args.locker.open_owner;
  return opens.lock(compound.asker(), compound.real(first.open_stateid),
                    text_of(first.lock_owner.owner), kind, range, holder);
}

}  // namespace

nfsstat4 lock(Compound& compound, const xdr::LOCK4args& args, xdr::LOCK4res& res) {
  LockKind kind{};
  if (!kind_of_lock(args.locktype, &kind)) return NFS4ERR_INVAL;
  const std::optional<ByteRange> range = byte_range(args.offset, args.length);
  if (!range) return NFS4ERR_INVAL;
  if (const nfsstat4 bad = check_file(compound); bad != NFS4_OK) return bad;
  ServerState& state = compound.state();
  std::lock_guard guard(state.mutex);
  compound.act_for(compound.real(args.locker.new_lock_owner ? args.locker.open_owner.open_stateid
                                                            : args.locker.lock_owner.lock_stateid));
  if (compound.client_id() == 0) return check_stateid(compound, args);
  if (const nfsstat4 bad = check_grace(compound, args.reclaim); bad != NFS4_OK) return bad;
  std::optional<OpenStates::Holder> holder;
  auto answer = try_lock(compound, args, kind, *range, &holder);
  // A client that is gone does not keep others out.
  while (answer.status == OpenStates::Status::kDenied && state.end_expired({holder->client}))
    answer = try_lock(compound, args, kind, *range, &holder);
  if (answer.status == OpenStates::Status::kDenied) res.denied = denied(compound, *holder);
  if (answer.status != OpenStates::Status::kOk) {
    return status_of(answer.status, compound.minor_version());
  }
  state.count_holds(*state.clients.find(compound.client_id()));
  res.resok4.lock_stateid = {answer.stateid.seqid, answer.stateid.other};
  compound.current_stateid = answer.stateid;
  return NFS4_OK;
}

nfsstat4 lockt(Compound& compound, const xdr::LOCKT4args& args, xdr::LOCKT4res& res) {
  LockKind kind{};
  if (!kind_of_lock(args.locktype, &kind)) return NFS4ERR_INVAL;
  const std::optional<ByteRange> range = byte_range(args.offset, args.length);
  if (!range) return NFS4ERR_INVAL;
  if (const nfsstat4 bad = check_file(compound); bad != NFS4_OK) return bad;
  ServerState& state = compound.state();
  std::lock_guard guard(state.mutex);
  if (compound.minor_version() == 0) {
    Client* client = state.clients.find(args.owner.clientid);
    if (client == nullptr) return NFS4ERR_STALE_CLIENTID;
    compound.set_client(client->id);
    state.clients.renew(*client, state.now());
  }
  if (!state.grace.over(state.now())) return NFS4ERR_GRACE;
  const FileKey key = file_key(*compound.current.object.file);
  const std::string owner = text_of(args.owner.owner);
  auto holder = state.opens.test_lock(compound.asker(), owner, key, kind, *range);
  while (holder && state.end_expired({holder->client}))
    holder = state.opens.test_lock(compound.asker(), owner, key, kind, *range);
  if (!holder) return NFS4_OK;
  res.denied = denied(compound, *holder);
  return NFS4ERR_DENIED;
}

nfsstat4 locku(Compound& compound, const xdr::LOCKU4args& args, xdr::LOCKU4res& res) {
  LockKind ignored{};
  if (!kind_of_lock(args.locktype, &ignored)) return NFS4ERR_INVAL;
  const std::optional<ByteRange> range = byte_range(args.offset, args.length);
  if (!range) return NFS4ERR_INVAL;
  ServerState& state = compound.state();
  std::lock_guard guard(state.mutex);
  const Stateid stateid = compound.real(args.lock_stateid);
  compound.act_for(stateid);
  const auto answer = state.opens.unlock(compound.asker(), stateid, *range);
  if (answer.status != OpenStates::Status::kOk) {
    return status_of(answer.status, compound.minor_version());
  }
  res.resok4 = {answer.stateid.seqid, answer.stateid.other};
  compound.current_stateid = answer.stateid;
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
