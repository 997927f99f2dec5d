// SPDX-License-Identifier: Apache-2.0
// What only minor version 0 has: SETCLIENTID, SETCLIENTID_CONFIRM, RENEW, OPEN_CONFIRM,
// RELEASE_LOCKOWNER (RFC 7530 16.33, 16.34, 16.28, 16.18, 16.37).
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// Where the client wants to be called.
std::string callback_text(const xdr::SETCLIENTID4args& args) {
  const xdr::netaddr4& where = args.callback.cb_location;
  return CallbackAddress::to_text(where.na_r_netid, where.na_r_addr, args.callback.cb_program,
                                  args.callback_ident);
}

/// Only where the client itself is: it is not for us to make connections that somebody else wants
/// to be made.
void use_callback(Compound& compound, const Client& client) {
  CallbackLines& lines = compound.state().caller.lines();
  const auto address = CallbackAddress::parse(client.callback);
  if (address && address->where.same_host(compound.request().call->connection().peer())) {
    lines.set(client.id, *address);
  } else {
    lines.end_client(client.id);
  }
}

/// The first RENEW behind a revocation, and those of a lease from then on: an answer may be lost.
bool tells_of_loss(Client& client, TimePoint now, Duration lease) {
  if (!client.lost_delegation) return false;
  if (client.told_until == TimePoint{}) client.told_until = now + lease;
  client.lost_delegation = now < client.told_until;
  return client.lost_delegation;
}

}  // namespace

nfsstat4 setclientid(Compound& compound, const xdr::SETCLIENTID4args& args,
                     xdr::SETCLIENTID4res& res) {
  const ClientOwner owner{text_of(args.client.id), args.client.verifier};
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  state.sweep_locked();
  ClientTable::Answer answer =
      state.clients.set_client_id(owner, compound.principal(), callback_text(args), state.now());
  state.take_in(answer, compound.peer_text());
  if (answer.status != ClientTable::Status::kOk) return status_of(answer.status);
  answer.client->address = compound.peer_text();
  res.resok4.clientid = answer.client->id;
  res.resok4.setclientid_confirm = answer.client->confirm;
  return NFS4_OK;
}

nfsstat4 setclientid_confirm(Compound& compound, const xdr::SETCLIENTID_CONFIRM4args& args,
                             xdr::SETCLIENTID_CONFIRM4res&) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  ClientTable::Answer answer = state.clients.set_client_id_confirm(
      args.clientid, args.setclientid_confirm, compound.principal(), state.now());
  state.end_clients(std::move(answer.ended));
  if (answer.status == ClientTable::Status::kOk) {
    state.came_from(*answer.client, compound.peer_text());
    compound.act_as(*answer.client);
    answer.client->lost_delegation = false;
    use_callback(compound, *answer.client);
  }
  return status_of(answer.status);
}

nfsstat4 renew(Compound& compound, const xdr::RENEW4args& args, xdr::RENEW4res&) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  Client* client = state.clients.find(args.clientid);
  if (client == nullptr || !speaks_4_0(*client)) return compound.unknown_client(args.clientid);
  const std::string principal = compound.principal();
  const auto in_use = [&state](const OwnerKey& key) {
    return state.opens.has_owner(key.client, key.name, false);
  };
  if (client->principal != principal &&
      !state.owner_sequences.has_opener(client->id, principal, in_use)) {
    return NFS4ERR_ACCESS;  // neither the client's own, nor one that has a file open
  }
  compound.act_as(*client);
  // What it was promised could not be asked for back (RFC 7530 16.28.4): it is to name an address
  // anew.
  const CallbackLines::State line = state.caller.lines().state(client->id);
  const bool unreachable =
      line == CallbackLines::State::kNone || line == CallbackLines::State::kDown;
  const bool loses = unreachable && state.delegations.table().holds(client->id) != 0;
  // Nothing else tells it that one was revoked, in whose stead it may believe what it has cached.
  return loses || tells_of_loss(*client, state.now(), state.lease()) ? NFS4ERR_CB_PATH_DOWN
                                                                     : NFS4_OK;
}

nfsstat4 open_confirm(Compound& compound, const xdr::OPEN_CONFIRM4args& args,
                      xdr::OPEN_CONFIRM4res& res) {
  if (compound.current.kind != CurrentHandle::Kind::kObject) return NFS4ERR_ISDIR;
  ServerState& state = compound.state();
  const Stateid stateid = from_wire(args.open_stateid);
  std::lock_guard lock(state.mutex);
  compound.act_for(stateid);
  const auto owner = state.opens.owner_of(stateid);
  if (compound.current.object.file &&
      state.opens.is_of_another(stateid, file_key(*compound.current.object.file))) {
    return NFS4ERR_BAD_STATEID;
  }
  const auto good = state.opens.test(compound.asker(), stateid);
  if (good == OpenStates::Status::kAdminRevoked) return status_of(good, 0);
  if (!owner || owner->locks) {
    return status_of(good, 0) == NFS4ERR_STALE_STATEID ? NFS4ERR_STALE_STATEID
                                                       : NFS4ERR_BAD_STATEID;
  }
  SequencedOwner* sequenced =
      state.owner_sequences.find({owner->client, OwnerKind::kOpen, owner->name});
  if (sequenced == nullptr || sequenced->confirmed) return NFS4ERR_BAD_STATEID;
  const auto answer = state.opens.open_confirm(compound.asker(), stateid);
  if (answer.status != OpenStates::Status::kOk) return status_of(answer.status, 0);
  sequenced->confirmed = true;
  res.resok4.open_stateid = to_wire(answer.stateid);
  return NFS4_OK;
}

nfsstat4 release_lockowner(Compound& compound, const xdr::RELEASE_LOCKOWNER4args& args,
                           xdr::RELEASE_LOCKOWNER4res&) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  Client* client = state.clients.find(args.lock_owner.clientid);
  if (client == nullptr || !speaks_4_0(*client))
    return compound.unknown_client(args.lock_owner.clientid);
  compound.act_as(*client);
  const std::string name = text_of(args.lock_owner.owner);
  const SequencedOwner* sequenced =
      state.owner_sequences.find({client->id, OwnerKind::kLock, name});
  if (sequenced != nullptr && sequenced->running) return NFS4ERR_DELAY;
  const auto status = state.opens.release_lock_owner(compound.asker(), name);
  if (status == OpenStates::Status::kOk) {
    state.owner_sequences.forget({client->id, OwnerKind::kLock, name});
    state.count_holds(*client);
  }
  return status_of(status, 0);
}

}  // namespace nfsrdma::nfs4
