// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/open_delegation.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "server/credentials.h"

#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::open_claim_type4;
using xdr::why_no_delegation4;

using Kind = Delegation::Kind;

/// Which one does the client want, if any? Read delegations are for those who read, write
/// delegations for all who open the file for writing.
std::optional<Kind> wanted_kind(const xdr::OPEN4args& args) {
  const bool writes = (args.share_access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
  const auto type = writes ? xdr::open_delegation_type4::OPEN_DELEGATE_WRITE
                           : xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  switch (args.claim.claim) {
    case open_claim_type4::CLAIM_NULL:
    case open_claim_type4::CLAIM_FH:
      break;
    case open_claim_type4::CLAIM_PREVIOUS:
      if (args.claim.delegate_type != type) return {};
      break;
    default:  // it has one
      return {};
  }
  switch (args.share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK) {
    case xdr::OPEN4_SHARE_ACCESS_WANT_READ_DELEG:
      if (writes) return {};
      break;
    case xdr::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG:
      if (!writes) return {};
      break;
    case xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE:
    case xdr::OPEN4_SHARE_ACCESS_WANT_ANY_DELEG:
      break;
    default:
      return {};
  }
  return writes ? Kind::kWrite : Kind::kRead;
}

/// The open and the rest of the COMPOUND go by that entry from now on.
void use_instead(Compound& compound, CurrentHandle& file, CurrentHandle again) {
  const FileKey key = file_key(*file.object.file);
  if (compound.current.object.file && file_key(*compound.current.object.file) == key) {
    compound.current = again.copy();
  }
  file = std::move(again);
  ServerState& state = compound.state();
  FilePin before;  // closed without the lock
  std::lock_guard lock(state.mutex);
  before = state.hold_instead(FilePin::another(*file.object.file));
}

/// Is it by that entry that others find the file? (A full cache does not take one in.)
bool is_known(Compound& compound, const CurrentHandle& file) {
  const FilePin known = compound.server().files.find(file.handle);
  return known && &*known == &*file.object.file;
}

/// May the file's entry be closed for another? Not one that has a delegation's lease, nor one that
/// has to tell of write-back errors, nor what another thread has put in its place.
bool may_let_go(Compound& compound, const CurrentHandle& file) {
  const FileEntry& entry = *file.object.file;
  return is_known(compound, file) && !entry.unstable.load(std::memory_order_acquire) &&
         entry.promised_to.load(std::memory_order_acquire) == 0;
}

/// There is no lease while we have the file open for writing ourselves, as the cache has a file
/// that was just made or written. So it is let go of, and opened anew. False: that cannot be.
bool reopen_unwritten(Compound& compound, CurrentHandle& file) {
  if (!may_let_go(compound, file)) return false;
  compound.server().files.forget(file.handle);
  CurrentHandle again;
  again.kind = file.kind;
  again.handle = file.handle;
  again.parts = file.parts;
  FileCall call(compound.server(), compound.request());
  // Not by compound.enter(): the OPEN is done and must not be run again.
  if (call.admit(again.parts, Use::kLook) != 0 ||
      compound.server().resolver.open(call.exported(), again.handle, again.parts, &again.object) !=
          0) {
    return false;
  }
  use_instead(compound, file, std::move(again));
  return true;
}

/// A write lease stands against all other descriptors. So the file's entry gets one that reads and
/// writes, and has no other. False: that cannot be.
bool reopen_for_both(Compound& compound, CurrentHandle& file) {
  FileEntry& old = *file.object.file;
  if (!may_let_go(compound, file)) return false;
  FdCache::Opened opened{
      file.handle, file.parts, {}, file.object.attributes, old.fsid(), kRightRead | kRightWrite};
  {
    AsServer privileged;
    opened.path_fd.reset(reopen(old.path_fd(), O_RDWR));
  }
  if (!opened.path_fd) return false;
  CurrentHandle again;
  again.kind = file.kind;
  again.handle = file.handle;
  again.parts = file.parts;
  again.object.attributes = file.object.attributes;
  FdCache& files = compound.server().files;
  files.forget(file.handle);
  again.object.file = files.insert(std::move(opened));
  use_instead(compound, file, std::move(again));
  return file.object.file->path_is_data();  // else somebody opened it meanwhile
}

/// Nobody is let in by the delegation alone: for every user, the client asks by ACCESS.
xdr::nfsace4 nobodys_permissions() {
  xdr::nfsace4 out;
  out.type = xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE;
  out.who = "EVERYONE@";
  return out;
}

/// Where all delegations are given away, those of clients that are gone end first.
void make_room(ServerState& state, const Client& client) {
  const DelegationTable::Limits& limits = state.limits().delegations;
  if (limits.all == 0 || !state.caller.reaches(client.id)) return;  // then none is refused
  const DelegationTable& table = state.delegations.table();
  for (int i = 0; i < ServerState::kMostGiveWay && table.size() >= limits.all; ++i) {
    if (!state.make_room(Limit::kDelegations, client.id)) break;
  }
  const Limit met = table.size() >= limits.all                    ? Limit::kDelegations
                    : table.holds(client.id) >= limits.per_client ? Limit::kDelegationsOfClient
                                                                  : Limit::kNone;
  if (met != Limit::kNone) state.refusals.refused(met, &client, client.address, state.now());
}

bool may_give_read(Compound& compound, const CurrentHandle& file) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  if (const Client* client = state.clients.find(compound.client_id())) make_room(state, *client);
  return state.delegations.may_give(compound.client_id(), file_key(*file.object.file), Kind::kRead);
}

/// One who is about to give a write delegation: others who open the file meanwhile are given none,
/// and leave its lease and its entry alone.
class Giving {
 public:
  Giving(Compound& compound, const CurrentHandle& file)
      : state_(compound.state()), file_(file_key(*file.object.file)) {
    std::lock_guard lock(state_.mutex);
    if (const Client* client = state_.clients.find(compound.client_id())) {
      make_room(state_, *client);
    }
    begun_ = state_.delegations.begin_giving(compound.client_id(), file_);
  }
  ~Giving() {
    if (!begun_) return;
    std::lock_guard lock(state_.mutex);
    state_.delegations.end_giving(file_);
  }
  Giving(const Giving&) = delete;
  Giving& operator=(const Giving&) = delete;
  bool begun() const { return begun_; }

 private:
  ServerState& state_;
  const FileKey file_;
  bool begun_ = false;
};

/// With the mutex.
void note_given_in(Compound& compound, DelegationNumber number) {
  const auto request = compound.as_referring();
  if (request) compound.state().delegations.table().note_given_in(number, *request);
}

bool give_read(Compound& compound, CurrentHandle& file, xdr::OPEN4resok& res) {
  ServerState& state = compound.state();
  if (!may_give_read(compound, file)) return false;
  UniqueFd lease = state.delegations.take_lease(file.object.file->path_fd());
  if (!lease && errno == EAGAIN && reopen_unwritten(compound, file)) {
    lease = state.delegations.take_lease(file.object.file->path_fd());
  }
  if (!lease) return false;
  const FileKey key = file_key(*file.object.file);
  DelegationNumber number = 0;
  {
    std::lock_guard lock(state.mutex);
    Client* client = state.clients.find(compound.client_id());
    if (client == nullptr || !state.delegations.may_give(client->id, key, Kind::kRead)) {
      return false;
    }
    const Delegation& given =
        state.delegations.give_read(client->id, key, file.handle.bytes(), std::move(lease));
    state.count_holds(*client);
    number = given.number;
    note_given_in(compound, number);
    res.delegation.read.stateid = to_wire(state.delegations.table().stateid_of(given));
  }
  state.delegations.watch(number, file.object.file->path_fd());
  res.delegation.delegation_type = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  res.delegation.read.permissions = nobodys_permissions();
  return true;
}

/// How large the client may make the file and still keep back at CLOSE what it has written (RFC
/// 8881 10.4.1): not at all. Linux's client gives a delegation back without waiting for the writes
/// that the close or the recall began, so that whoever opens the file next would find a part of it.
xdr::nfs_space_limit4 nothing_kept_back() {
  xdr::nfs_space_limit4 out;
  out.limitby = xdr::limit_by4::NFS_LIMIT_SIZE;
  out.filesize = 0;
  return out;
}

bool take_write_lease(Compound& compound, CurrentHandle& file) {
  const Delegations& delegations = compound.state().delegations;
  if (file.object.file->path_is_data() &&
      delegations.take_write_lease(file.object.file->path_fd())) {
    return true;
  }
  return reopen_for_both(compound, file) &&
         delegations.take_write_lease(file.object.file->path_fd());
}

bool give_write(Compound& compound, CurrentHandle& file, xdr::OPEN4resok& res) {
  ServerState& state = compound.state();
  const Giving giving(compound, file);
  if (!giving.begun() || !take_write_lease(compound, file)) return false;
  const FileEntry& entry = *file.object.file;
  std::uint64_t change = 0;
  bool given = is_known(compound, file) &&
               compound.server().change_counter.look(entry.path_fd(), entry.device(), entry.inode(),
                                                     &file.object.attributes, &change) == 0;
  DelegationNumber number = 0;
  if (given) {
    std::lock_guard lock(state.mutex);
    Client* client = state.clients.find(compound.client_id());
    given = client != nullptr && state.delegations.may_go_on(client->id, file_key(entry));
    if (given) {
      const Delegation& made =
          state.delegations.give_write(client->id, FilePin::another(*file.object.file), change);
      state.count_holds(*client);
      number = made.number;
      note_given_in(compound, number);
      res.delegation.write.stateid = to_wire(state.delegations.table().stateid_of(made));
    }
  }
  if (!given) {
    state.delegations.drop_write_lease(entry.path_fd());
    return false;
  }
  state.delegations.watch(number, entry.path_fd());
  res.delegation.delegation_type = xdr::open_delegation_type4::OPEN_DELEGATE_WRITE;
  res.delegation.write.space_limit = nothing_kept_back();
  res.delegation.write.permissions = nobodys_permissions();
  return true;
}

void say_why_not(const Compound& compound, const xdr::OPEN4args& args, xdr::OPEN4resok& res) {
  if (compound.minor_version() == 0) return;
  const std::uint32_t want = args.share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
  if (want == xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE) return;
  res.delegation.delegation_type = xdr::open_delegation_type4::OPEN_DELEGATE_NONE_EXT;
  res.delegation.od_whynone.ond_why =
      want == xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG ? why_no_delegation4::WND4_NOT_WANTED
      : want == xdr::OPEN4_SHARE_ACCESS_WANT_CANCEL ? why_no_delegation4::WND4_CANCELLED
                                                    : why_no_delegation4::WND4_RESOURCE;
}

/// The client says that it had one before the server's restart.
bool may_reclaim(Compound& compound) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  const Client* client = state.clients.find(compound.client_id());
  return client != nullptr && state.grace.reclaims_delegations(client->owner.id);
}

}  // namespace

bool offer_delegation(Compound& compound, const xdr::OPEN4args& args, CurrentHandle& file,
                      xdr::OPEN4resok& res) {
  auto kind = wanted_kind(args);
  const bool reclaims = args.claim.claim == open_claim_type4::CLAIM_PREVIOUS;
  if (kind && reclaims && !may_reclaim(compound)) kind.reset();
  if (kind && (kind == Kind::kWrite ? give_write : give_read)(compound, file, res)) return true;
  say_why_not(compound, args, res);
  return false;
}

}  // namespace nfsrdma::nfs4
