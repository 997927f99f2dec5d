// SPDX-License-Identifier: Apache-2.0
// EXCHANGE_ID, DESTROY_CLIENTID and RECLAIM_COMPLETE (RFC 8881 18.35, 18.50, 18.51).
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

/// What clients may set. SUPP_FENCE_OPS came with 4.2 (RFC 7862 14.1).
std::uint32_t flags_from_clients(std::uint32_t minor_version) {
  constexpr std::uint32_t k41 =
      xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER | xdr::EXCHGID4_FLAG_SUPP_MOVED_MIGR |
      xdr::EXCHGID4_FLAG_BIND_PRINC_STATEID | xdr::EXCHGID4_FLAG_MASK_PNFS |
      xdr::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;
  return minor_version < 2 ? k41 : k41 | xdr::EXCHGID4_FLAG_SUPP_FENCE_OPS;
}

/// Both other kinds bind state to RPCSEC_GSS, which this server does not have yet.
nfsstat4 check_protection(xdr::state_protect_how4 how) {
  switch (how) {
    case xdr::state_protect_how4::SP4_NONE:
      return NFS4_OK;
    case xdr::state_protect_how4::SP4_MACH_CRED:
      return NFS4ERR_INVAL;  // "... if the caller is not using RPCSEC_GSS"
    case xdr::state_protect_how4::SP4_SSV:
      return NFS4ERR_ENCR_ALG_UNSUPP;
  }
  return NFS4ERR_INVAL;
}

}  // namespace

nfsstat4 exchange_id(Compound& compound, const xdr::EXCHANGE_ID4args& args,
                     xdr::EXCHANGE_ID4res& res) {
  if ((args.eia_flags & ~flags_from_clients(compound.minor_version())) != 0) return NFS4ERR_INVAL;
  if (const nfsstat4 bad = check_protection(args.eia_state_protect.spa_how); bad != NFS4_OK) {
    return bad;
  }
  const ClientOwner owner{text_of(args.eia_clientowner.co_ownerid),
                          args.eia_clientowner.co_verifier};
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  const bool update = (args.eia_flags & xdr::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A) != 0;
  ClientTable::Answer answer =
      state.clients.exchange_id(owner, compound.principal(), update, state.now());
  state.take_in(answer, compound.peer_text());
  if (answer.status != ClientTable::Status::kOk) return status_of(answer.status);
  Client& client = *answer.client;
  // A client ID belongs to one minor version for as long as it lasts.
  if (client.confirmed) {
    if (const nfsstat4 bad = compound.check_minor_version(client); bad != NFS4_OK) return bad;
  }
  client.minor_version = compound.minor_version();
  client.address = compound.peer_text();
  res.resok4.eir_clientid = client.id;
  res.resok4.eir_sequenceid = client.create_session.next(0);
  // No pNFS: this is an ordinary server.
  // refer= of exports may come at any time.
  res.resok4.eir_flags = xdr::EXCHGID4_FLAG_USE_NON_PNFS | xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER;
  if (client.confirmed) res.resok4.eir_flags |= xdr::EXCHGID4_FLAG_CONFIRMED_R;
  const std::span<const char> name(state.server_owner());
  res.resok4.eir_server_owner.so_major_id = std::as_bytes(name);
  res.resok4.eir_server_scope = std::as_bytes(name);
  return NFS4_OK;
}

nfsstat4 destroy_clientid(Compound& compound, const xdr::DESTROY_CLIENTID4args& args,
                          xdr::DESTROY_CLIENTID4res&) {
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  ServerState& state = compound.state();
  nfsstat4 status = NFS4_OK;
  {
    std::lock_guard lock(state.mutex);
    // By way of a session of its own the client is busy by that very session.
    if (Client* client = state.clients.find(args.dca_clientid)) state.count_holds(*client);
    ClientTable::Answer answer = state.clients.destroy_client_id(args.dca_clientid);
    state.end_clients(std::move(answer.ended));
    status = status_of(answer.status);
  }
  // With its record still there, a restart would hold up everybody for a grace period in which
  // nobody comes. What could not be written is tried again with the next OPEN.
  if (state.must_settle()) (void)state.settle();
  return status;
}

nfsstat4 reclaim_complete(Compound& compound, const xdr::RECLAIM_COMPLETE4args& args,
                          xdr::RECLAIM_COMPLETE4res&) {
  ServerState& state = compound.state();
  if (args.rca_one_fs) {
    // Nothing migrates here: a file system has nothing to reclaim apart from the rest.
    return compound.current.is_set() ? NFS4_OK : NFS4ERR_NOFILEHANDLE;
  }
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  std::string owner;
  {
    std::lock_guard lock(state.mutex);
    const Client* client = state.clients.find(compound.client_id());
    if (client == nullptr) return NFS4ERR_STALE_CLIENTID;
    owner = client->owner.id;
    if (state.grace.has_completed(owner)) return NFS4ERR_COMPLETE_ALREADY;
  }
  // From here on it may hold state: the record comes before anybody can say so. Unless some of what
  // it reclaimed was revoked: then it comes with the FREE_STATEID that says that it knows.
  if (!state.record(compound.client_id()).ok()) return NFS4ERR_DELAY;
  std::lock_guard lock(state.mutex);
  Client* client = state.clients.find(compound.client_id());
  if (client == nullptr) return NFS4ERR_STALE_CLIENTID;
  // Nor does the record of the life before count any more.
  if (state.lost_unknown(client->id)) state.must_not_reclaim(*client);
  return state.grace.complete(owner) ? NFS4_OK : NFS4ERR_COMPLETE_ALREADY;
}

}  // namespace nfsrdma::nfs4
