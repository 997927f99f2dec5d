// SPDX-License-Identifier: Apache-2.0
// OPEN (RFC 8881 18.16, RFC 7530 16.16): find or make the file, ask the kernel whether the caller
// may, enter the open into the state, cut the file when that was asked for. In this order: nothing
// is cut that somebody else has denied writing to, and nobody holds an open that he may not have.
// Delegations that stand against the open are recalled before anything else is done to the file,
// and the client asks again (NFS4ERR_DELAY).
#include <cerrno>

#include "server/files/change_scope.h"
#include "server/files/create_file.h"
#include "server/files/default_acl.h"
#include "server/files/set_attributes.h"
#include "server/nfs4/attributes.h"
#include "server/nfs4/change_info.h"
#include "server/nfs4/open_delegation.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/places.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;
using xdr::createmode4;
using xdr::open_claim_type4;

namespace {

constexpr std::uint32_t kWants = xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK |
                                 xdr::OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |
                                 xdr::OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED;

/// One OPEN on its way.
struct Opening {
  Opening(Compound& its_compound, const xdr::OPEN4args& its_args, xdr::OPEN4resok& its_res)
      : compound(its_compound), args(its_args), res(its_res) {
    owner = text_of(args.owner.owner);
    if (args.claim.claim == open_claim_type4::CLAIM_DELEGATE_CUR) {
      delegation = compound.real(args.claim.delegate_cur_info.delegate_stateid);
    } else if (args.claim.claim == open_claim_type4::CLAIM_DELEG_CUR_FH) {
      delegation = compound.real(args.claim.oc_delegate_stateid);
    }
  }
  /// Of CLAIM_NULL and CLAIM_DELEGATE_CUR.
  std::string_view name() const {
    return args.claim.claim == open_claim_type4::CLAIM_NULL ? args.claim.file
                                                            : args.claim.delegate_cur_info.file;
  }

  Compound& compound;
  const xdr::OPEN4args& args;
  xdr::OPEN4resok& res;
  std::string owner;
  Share share;
  /// What the delegation that the client opens by allows already is not asked for again.
  std::optional<Stateid> delegation;
  bool made = false;
  bool ours = false;                  // made now, or by an earlier try of the same exclusive OPEN
  bool truncate = false;              // an existing file is to be cut to no bytes
  std::optional<std::uint64_t> size;  // asked for with the creation
  OpenStates::Answer answer;
  bool reaches_client = false;  // it can be called back
  bool unconfirmed = false;     // its owner, of minor version 0
  CurrentHandle file;
  /// Of creations: there is no room for one more open of one more file.
  bool full = false;
  /// Clients that gave way for this one. A file that has been made had its room before that.
  int gave_way = 0;
  bool may_make_room() { return !made && gave_way++ < ServerState::kMostGiveWay; }
};

nfsstat4 check_arguments(Opening& opening) {
  const xdr::OPEN4args& args = opening.args;
  const bool old = opening.compound.minor_version() == 0;
  const std::uint32_t wants = args.share_access & ~xdr::OPEN4_SHARE_ACCESS_BOTH;
  if ((wants & ~(old ? 0 : kWants)) != 0) return NFS4ERR_INVAL;
  opening.share = {static_cast<std::uint8_t>(args.share_access & xdr::OPEN4_SHARE_ACCESS_BOTH),
                   static_cast<std::uint8_t>(std::min(args.share_deny, 255u))};
  if (!valid(opening.share)) return NFS4ERR_INVAL;
  const bool creates = args.openhow.opentype == xdr::opentype4::OPEN4_CREATE;
  switch (args.claim.claim) {
    case open_claim_type4::CLAIM_NULL:
      return NFS4_OK;
    case open_claim_type4::CLAIM_PREVIOUS:
      return creates ? NFS4ERR_INVAL : NFS4_OK;
    case open_claim_type4::CLAIM_FH:
      if (old) return NFS4ERR_BADXDR;
      return creates ? NFS4ERR_INVAL : NFS4_OK;
    case open_claim_type4::CLAIM_DELEGATE_CUR:
      return creates ? NFS4ERR_INVAL : NFS4_OK;
    case open_claim_type4::CLAIM_DELEG_CUR_FH:
      if (old) return NFS4ERR_BADXDR;
      return creates ? NFS4ERR_INVAL : NFS4_OK;
    case open_claim_type4::CLAIM_DELEGATE_PREV:
    case open_claim_type4::CLAIM_DELEG_PREV_FH:
      // RFC 7530 13.4 lists NOTSUPP for OPEN, RFC 8881 15.2 does not.
      return old ? NFS4ERR_NOTSUPP : NFS4ERR_INVAL;
  }
  return NFS4ERR_INVAL;
}

/// May the client have new state, or reclaim some?
nfsstat4 check_grace(Opening& opening) {
  Compound& compound = opening.compound;
  ServerState& state = compound.state();
  bool unrecorded = false;
  {
    std::lock_guard lock(state.mutex);
    if (compound.minor_version() == 0) compound.set_client(opening.args.owner.clientid);
    Client* client = state.clients.find(compound.client_id());
    if (client == nullptr || (compound.minor_version() == 0 && !speaks_4_0(*client))) {
      return compound.minor_version() == 0 ? compound.unknown_client(opening.args.owner.clientid)
                                           : NFS4ERR_BADSESSION;
    }
    if (compound.minor_version() == 0) compound.act_as(*client);
    const bool reclaims = opening.args.claim.claim == open_claim_type4::CLAIM_PREVIOUS;
    const auto verdict =
        reclaims ? state.grace.reclaim(client->owner.id, state.now())
                 : state.grace.make_new(client->owner.id, client->has_sessions, state.now());
    // What the client's delegation allows stands in nobody's way (RFC 8881 10.2.1).
    if (!opening.delegation && verdict != GracePeriod::Verdict::kGo) return status_of(verdict);
    if (opening.args.openhow.opentype == xdr::opentype4::OPEN4_CREATE)
      opening.full = state.opens.check_room(client->id) != Limit::kNone;
    // Later minor versions do that with RECLAIM_COMPLETE. Not while it may believe to have what was
    // revoked.
    unrecorded =
        compound.minor_version() == 0 && !client->recorded && !state.lost_unknown(client->id);
    if (reclaims && !unrecorded) return NFS4_OK;
  }
  if (unrecorded) {
    if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
    if (!state.record(compound.client_id()).ok()) return NFS4ERR_DELAY;
  }
  return compound.settle_first();
}

nfsstat4 to_new_file(Opening& opening, const Resolved& directory, NewFile* wanted,
                     WantedAttributes* attributes) {
  Compound& compound = opening.compound;
  const xdr::createhow4& how = opening.args.openhow.how;
  const xdr::fattr4* given = &how.createattrs;
  Setting setting = Setting::kCreate;
  switch (how.mode) {
    case createmode4::UNCHECKED4:
      wanted->how = NewFile::How::kUnchecked;
      break;
    case createmode4::GUARDED4:
      wanted->how = NewFile::How::kGuarded;
      break;
    case createmode4::EXCLUSIVE4:
      wanted->how = NewFile::How::kExclusive;
      wanted->verifier = how.createverf;
      return NFS4_OK;
    case createmode4::EXCLUSIVE4_1:
      if (compound.minor_version() == 0) return NFS4ERR_BADXDR;
      wanted->how = NewFile::How::kExclusive;
      wanted->verifier = how.ch_createboth.cva_verf;
      given = &how.ch_createboth.cva_attrs;
      setting = Setting::kExclusiveCreate;
      break;
  }
  const nfsstat4 bad =
      decode_wanted(*given, setting, compound.minor_version(), compound.state().owner_names(),
                    compound.may_block(), attributes);
  if (bad == NFS4ERR_DELAY && !compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  if (bad != NFS4_OK) return bad;
  if (attributes->umask) attributes->apply_umask(has_default_acl(*directory.file));
  wanted->attributes = attributes->values;
  // An existing file is cut only once the open stands.
  opening.size = std::exchange(wanted->attributes.size, std::nullopt);
  return NFS4_OK;
}

/// What can be opened is a regular file.
nfsstat4 check_type(const Compound& compound, const CurrentHandle& handle) {
  if (handle.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  const mode_t mode = handle.object.attributes.st_mode;
  if (S_ISREG(mode)) return NFS4_OK;
  if (S_ISDIR(mode)) return NFS4ERR_ISDIR;
  if (S_ISLNK(mode) || compound.minor_version() == 0) return NFS4ERR_SYMLINK;
  return NFS4ERR_WRONG_TYPE;
}

/// CLAIM_NULL without creation.
nfsstat4 find_file(Opening& opening, FileCall& call, Resolved& directory) {
  Resolved found;
  const int error = call.server().resolver.lookup(call.exported(), call.access(), *directory.file,
                                                  opening.name(), &found);
  if (error == EXDEV) return NFS4ERR_ACCESS;
  if (error != 0) return status_of_errno(error);
  opening.file = CurrentHandle::of(std::move(found));
  return NFS4_OK;
}

/// No file is made that could not be held; what is there may be open already, so that nothing more
/// is needed (enter_state() knows).
nfsstat4 check_room(const Opening& opening, FileCall& call, Resolved& directory) {
  if (!opening.full) return NFS4_OK;
  Resolved there;
  const int error = call.server().resolver.lookup(call.exported(), call.access(), *directory.file,
                                                  opening.name(), &there);
  if (error != ENOENT) return NFS4_OK;
  Compound& compound = opening.compound;
  ServerState& state = compound.state();
  {
    std::lock_guard lock(state.mutex);
    const Client* client = state.clients.find(compound.client_id());
    if (client == nullptr) return NFS4ERR_EXPIRED;
    if (const Limit met = state.find_room_to_open(*client); met != Limit::kNone) {
      state.refusals.refused(met, client, client->address, state.now());
      return status_of(OpenStates::Status::kResource, compound.minor_version());
    }
  }
  return compound.settle_first();
}

/// *changed: the directory was, or may have been.
nfsstat4 make_file(Opening& opening, FileCall& call, Resolved& directory, bool* changed) {
  NewFile wanted;
  WantedAttributes attributes;
  if (const nfsstat4 bad = to_new_file(opening, directory, &wanted, &attributes); bad != NFS4_OK) {
    return bad;
  }
  if (const nfsstat4 bad = check_room(opening, call, directory); bad != NFS4_OK) return bad;
  Resolved object;
  const int error = create_file(call, directory, opening.name(), wanted, &object, &opening.made);
  *changed = opening.made || (error != 0 && may_have_changed(error));
  if (error != 0) {
    // What is there and is no file says so.
    if (error != EEXIST || wanted.how != NewFile::How::kUnchecked) return status_of_errno(error);
    return find_file(opening, call, directory);
  }
  opening.file = CurrentHandle::of(std::move(object));
  opening.ours = opening.made || wanted.how == NewFile::How::kExclusive;
  if (opening.made) {
    opening.res.attrset = attributes.requested;
    if (opening.size.value_or(0) == 0) opening.size.reset();
  } else {
    // Of the attributes, an existing file takes only the size, and only to become empty.
    opening.truncate = opening.size == 0u;
    opening.size.reset();
    if (opening.truncate) opening.res.attrset.set(xdr::fattr4_number::FATTR4_SIZE);
  }
  // Times that hold a verifier were set as well (RFC 8881 18.16.3).
  if (wanted.how == NewFile::How::kExclusive) {
    opening.res.attrset.set(xdr::fattr4_number::FATTR4_TIME_ACCESS_SET);
    opening.res.attrset.set(xdr::fattr4_number::FATTR4_TIME_MODIFY_SET);
  }
  return NFS4_OK;
}

/// The kernel's word on what the open is for. Whoever made the file may use it whatever its mode.
nfsstat4 check_rights(const Opening& opening, FileCall& call) {
  if (opening.ours || opening.delegation) return NFS4_OK;
  std::uint8_t wanted = 0;
  if ((opening.share.access & kShareRead) != 0) wanted |= kRightRead;
  if ((opening.share.access & kShareWrite) != 0 || opening.truncate) wanted |= kRightWrite;
  const Resolved& object = opening.file.object;
  const auto has = [&](std::uint8_t rights) {
    return call.server().files.rights(*object.file, call.caller(), object.attributes, rights) ==
           rights;
  };
  if (has(wanted)) return NFS4_OK;
  // Who may execute may read (decisions.md 2): the client has to, to execute it.
  const bool executes = wanted == kRightRead && has(kRightExecute);
  return executes ? NFS4_OK : NFS4ERR_ACCESS;
}

/// Of an open-owner of minor version 0, which has opened a file: one that the server has not heard
/// of before has to say that it was no old request (RFC 7530 16.18). With the state's mutex.
bool needs_confirmation(const Opening& opening) {
  if (opening.compound.minor_version() != 0) return false;
  SequencedOwner* owner = opening.compound.state().owner_sequences.look(
      {opening.compound.client_id(), OwnerKind::kOpen, opening.owner});
  if (owner == nullptr) return false;
  OwnerSequences::note_opener(*owner, opening.compound.principal());
  // Who reclaims was confirmed before the restart.
  if (opening.args.claim.claim == open_claim_type4::CLAIM_PREVIOUS) owner->confirmed = true;
  return !owner->confirmed;
}

nfsstat4 enter_state(Opening& opening);

/// With the state's mutex. To cut the file is to write it, whatever the open itself is for.
OpenStates::Answer enter_open(const Opening& opening, const FileKey& key, Claim claim) {
  OpenStates& opens = opening.compound.state().opens;
  const OpenStates::Asker asker = opening.compound.asker();
  if (opening.truncate && opens.is_writing_denied(asker, opening.owner, key))
    return {OpenStates::Status::kShareDenied};
  return opens.open(asker, opening.owner, key, opening.share, claim);
}

/// Clients whose opens deny it what it wants.
std::set<ClientId> in_the_way(const Opening& opening, const FileKey& key) {
  Share wanted = opening.share;
  if (opening.truncate) wanted.access |= kShareWrite;
  return opening.compound.state().opens.in_the_way(opening.compound.asker(), key, wanted);
}

/// That others lost what they had is written down before it is anybody else's.
nfsstat4 settle_and_enter(Opening& opening, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const nfsstat4 settled = opening.compound.settle_first();
  return settled == NFS4_OK ? enter_state(opening) : settled;
}

/// Enters the open. Expired clients whose opens are in the way lose them.
nfsstat4 enter_state(Opening& opening) {
  Compound& compound = opening.compound;
  ServerState& state = compound.state();
  const FileEntry& file = *opening.file.object.file;
  const FileKey key = file_key(file);
  std::unique_lock lock(state.mutex);
  Client* client = state.clients.find(compound.client_id());
  if (client == nullptr) return NFS4ERR_EXPIRED;
  state.clients.renew(*client, state.now());  // who asks is not gone, however long it took
  if (opening.delegation) {
    const auto good = state.delegations.table().may_access(client->id, *opening.delegation, key,
                                                           opening.share.access);
    if (good != OpenStates::Status::kOk) return status_of(good, compound.minor_version());
  }
  const bool disturbs = (opening.share.access & kShareWrite) != 0 ||
                        (opening.share.deny & kShareRead) != 0 || opening.truncate;
  const Delegation* writer = state.delegations.table().writer(key);
  const bool writes_itself = writer != nullptr && writer->client == client->id;
  // The client's own read delegation as well when the file is to be cut: its lease would stand
  // against that.
  const ClientId own = opening.truncate && !writes_itself ? 0 : client->id;
  using Wanted = DelegationTable::Wanted;
  if (state.delegations.recall(key, own, disturbs ? Wanted::kToChange : Wanted::kToRead)) {
    return NFS4ERR_DELAY;
  }
  // Who held a delegation and is gone may not come back for it. Nobody held one of a new file.
  if (!opening.made && state.any_ended()) return settle_and_enter(opening, lock);
  const bool reclaims = opening.args.claim.claim == open_claim_type4::CLAIM_PREVIOUS;
  // A file that was made had its room before that, which others may have taken meanwhile: it is not
  // left behind without an open.
  const bool promised = reclaims || opening.delegation || opening.made;
  const Claim claim = promised ? Claim::kHeld : Claim::kNew;
  const auto answer = enter_open(opening, key, claim);
  const bool denied = answer.status == OpenStates::Status::kShareDenied;
  const bool full = answer.status == OpenStates::Status::kResource;
  if ((denied && state.end_expired(in_the_way(opening, key))) ||
      (full && opening.may_make_room() && state.make_room(answer.limit, client->id))) {
    return settle_and_enter(opening, lock);
  }
  if (full) state.refusals.refused(answer.limit, client, client->address, state.now());
  if (answer.status != OpenStates::Status::kOk) {
    return status_of(answer.status, compound.minor_version());
  }
  state.hold_file(FilePin::another(*opening.file.object.file));
  state.count_holds(*client);
  opening.res.stateid = to_wire(answer.stateid);
  opening.answer = answer;
  if (compound.minor_version() == 0) state.caller.lines().look_again(client->id);
  opening.reaches_client = state.caller.reaches(client->id);
  opening.unconfirmed = needs_confirmation(opening);
  compound.current_stateid = answer.stateid;
  return NFS4_OK;
}

/// What was asked of the file's size, now that the open stands. As the caller.
nfsstat4 set_size(Opening& opening, FileCall& call) {
  if (!opening.truncate && !opening.size) return NFS4_OK;
  NewAttributes only_size;
  only_size.size = opening.size.value_or(0);
  Resolved& object = opening.file.object;
  ChangeScope scope(call.server(), object);
  const int error = set_attributes(call, object, only_size);
  scope.finish();
  if (error != 0) return status_of_errno(error);
  opening.compound.wait_for_metadata(call, object);
  return NFS4_OK;
}

/// The file could not be cut: then it is not open either, or no more than it was before.
void undo(Opening& opening) {
  ServerState& state = opening.compound.state();
  std::lock_guard lock(state.mutex);
  state.opens.undo(opening.answer, opening.share);
  state.let_go_of(file_key(*opening.file.object.file));
  if (Client* client = state.clients.find(opening.compound.client_id())) state.count_holds(*client);
}

/// CLAIM_NULL and CLAIM_DELEGATE_CUR: the current handle is the directory.
nfsstat4 open_by_name(Opening& opening) {
  Compound& compound = opening.compound;
  if (const nfsstat4 bad = check_component(opening.name()); bad != NFS4_OK) return bad;
  const bool creates = opening.args.openhow.opentype == xdr::opentype4::OPEN4_CREATE;
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) {
    if (creates) return NFS4ERR_ROFS;
    View view(compound);
    const auto place = view.fs().lookup(compound.current.node, opening.name(), view.allow());
    CurrentHandle found;
    const nfsstat4 status = view.go_to(place, NFS4ERR_NOENT, &found);
    return status == NFS4_OK ? NFS4ERR_ISDIR : status;
  }
  FileCall call(compound.server(), compound.request());
  const bool writes = (opening.share.access & kShareWrite) != 0;
  nfsstat4 status = compound.enter_directory(call, compound.current,
                                             creates || writes ? Use::kChange : Use::kLook);
  if (status != NFS4_OK) return status;
  Resolved& directory = compound.current.object;
  if (creates) {
    ChangeScope scope(compound.server(), directory);
    bool changed = false;
    status = make_file(opening, call, directory, &changed);
    scope.finish(changed);
    opening.res.cinfo = change_info(scope);
  } else {
    status = find_file(opening, call, directory);
    const std::uint64_t change = change_of_time(directory.attributes.st_ctim);
    opening.res.cinfo = {false, change, change};
  }
  if (status != NFS4_OK) return status;
  status = check_type(compound, opening.file);
  if (status == NFS4_OK) status = check_rights(opening, call);
  if (status == NFS4_OK) status = enter_state(opening);
  if (status != NFS4_OK) return status;
  if (opening.made) {
    compound.wait_for_metadata(call, directory);
    compound.wait_for_metadata(call, opening.file.object);
  }
  status = set_size(opening, call);
  if (status != NFS4_OK) undo(opening);
  return status;
}

/// All others: the current handle is the file.
nfsstat4 open_by_handle(Opening& opening) {
  Compound& compound = opening.compound;
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  FileCall call(compound.server(), compound.request());
  const bool writes = (opening.share.access & kShareWrite) != 0;
  nfsstat4 status = compound.enter(call, writes ? Use::kChange : Use::kLook);
  if (status != NFS4_OK) return status;
  opening.file = compound.current.copy();
  status = check_type(compound, opening.file);
  // Nobody gets by reclaiming what a plain OPEN would not give (RFC 8881 8.4.2.1.1); but the owner
  // may have made the file with a mode that would keep out himself.
  const bool reclaims = opening.args.claim.claim == open_claim_type4::CLAIM_PREVIOUS;
  const bool owns = opening.file.object.attributes.st_uid == call.caller().uid;
  if (status == NFS4_OK && !(reclaims && owns)) status = check_rights(opening, call);
  if (status == NFS4_OK) status = enter_state(opening);
  if (status == NFS4ERR_SHARE_DENIED && reclaims) return NFS4ERR_RECLAIM_CONFLICT;
  return status;
}

/// The stateid of the delegation that came along.
std::optional<Stateid> delegation_in(const xdr::OPEN4resok& res) {
  switch (res.delegation.delegation_type) {
    case xdr::open_delegation_type4::OPEN_DELEGATE_READ:
      return from_wire(res.delegation.read.stateid);
    case xdr::open_delegation_type4::OPEN_DELEGATE_WRITE:
      return from_wire(res.delegation.write.stateid);
    default:
      return std::nullopt;
  }
}

}  // namespace

nfsstat4 open(Compound& compound, const xdr::OPEN4args& args, xdr::OPEN4res& res) {
  Opening opening(compound, args, res.resok4);
  nfsstat4 status = check_arguments(opening);
  if (status == NFS4_OK) status = check_grace(opening);
  if (status != NFS4_OK) return status;
  const bool by_name = args.claim.claim == open_claim_type4::CLAIM_NULL ||
                       args.claim.claim == open_claim_type4::CLAIM_DELEGATE_CUR;
  status = by_name ? open_by_name(opening) : open_by_handle(opening);
  if (status != NFS4_OK) return status;
  res.resok4.rflags = xdr::OPEN4_RESULT_LOCKTYPE_POSIX;
  // Not PRESERVE_UNLINKED: it promises that an open file without a name outlives a restart of the
  // server. Without it, clients rename what is open instead of removing it.
  const bool old = compound.minor_version() == 0;
  if (opening.unconfirmed) res.resok4.rflags |= xdr::OPEN4_RESULT_CONFIRM;
  if (!old && opening.reaches_client) res.resok4.rflags |= xdr::OPEN4_RESULT_MAY_NOTIFY_LOCK;
  // Not before the owner is known (RFC 7530 16.18.5 has the client confirm it first). Later clients
  // are told why there is none.
  const bool offer = old ? opening.reaches_client && !opening.unconfirmed : true;
  const bool stale = offer && offer_delegation(compound, args, opening.file, res.resok4);
  compound.note_open(*opening.file.object.file, opening.answer, opening.share,
                     delegation_in(res.resok4));
  const Stateid stateid = compound.current_stateid;
  compound.current = std::move(opening.file);
  compound.current.fresh = !stale;
  compound.current_stateid = stateid;
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
