// SPDX-License-Identifier: Apache-2.0
// CLOSE, OPEN_DOWNGRADE, TEST_STATEID, FREE_STATEID, DELEGRETURN (RFC 8881 18.2, 18.18, 18.48,
// 18.38, 18.6).
#include <optional>

#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// State is of regular files.
nfsstat4 check_file(const Compound& compound) {
  const CurrentHandle& handle = compound.current;
  if (handle.kind != CurrentHandle::Kind::kObject || !handle.object.file)
    return NFS4ERR_BAD_STATEID;
  return NFS4_OK;
}

/// Than the current one. With the state's mutex.
bool is_of_another(Compound& compound, const Stateid& stateid) {
  return compound.state().opens.is_of_another(stateid, file_key(*compound.current.object.file));
}

void count_holds(ServerState& state, ClientId id) {
  if (Client* client = state.clients.find(id)) state.count_holds(*client);
}

/// The result of TEST_STATEID begins with its status and how many there are.
constexpr std::size_t kTestedHead = 8;
/// Stateids that are looked up under one hold of the mutex: some ten microseconds.
constexpr std::uint32_t kTestedAtOnce = 256;

void test_all(Compound& compound, const xdr::EncodedArray<xdr::stateid4>& stateids,
              xdr::Encoder& statuses) {
  ServerState& state = compound.state();
  for (auto next = stateids.begin(); next != stateids.end();) {
    std::lock_guard lock(state.mutex);
    for (std::uint32_t i = 0; i < kTestedAtOnce && next != stateids.end(); ++i, ++next) {
      const auto status = state.test(compound.asker(), from_wire(*next));
      statuses.u32(static_cast<std::uint32_t>(status_of(status, compound.minor_version())));
    }
  }
}

/// Something was revoked, and the client has said that it knows: unless there is more, what it
/// still holds is its own after a restart too.
void may_reclaim_again(Compound& compound, std::unique_lock<std::mutex>& lock) {
  ServerState& state = compound.state();
  const Client* client = state.clients.find(compound.client_id());
  if (client == nullptr || client->recorded || !state.grace.has_completed(client->owner.id) ||
      state.lost_unknown(client->id)) {
    return;
  }
  lock.unlock();
  // What cannot be written is left to the next FREE_STATEID.
  (void)state.record(compound.client_id());
}

}  // namespace

nfsstat4 close(Compound& compound, const xdr::CLOSE4args& args, xdr::CLOSE4res& res) {
  if (const nfsstat4 bad = check_file(compound); bad != NFS4_OK) return bad;
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  const Stateid stateid = compound.real(args.open_stateid);
  compound.act_for(stateid);
  if (is_of_another(compound, stateid)) return NFS4ERR_BAD_STATEID;
  std::optional<OpenStates::OwnerOf> owner;
  if (compound.minor_version() == 0) owner = state.opens.owner_of(stateid);
  const auto answer = state.opens.close(compound.asker(), stateid);
  if (answer.status != OpenStates::Status::kOk) {
    return status_of(answer.status, compound.minor_version());
  }
  if (owner) {
    state.owner_sequences.note_closed({owner->client, OwnerKind::kOpen, owner->name}, stateid);
  }
  state.let_go_of(file_key(*compound.current.object.file), &compound.closed);
  count_holds(state, compound.client_id());
  res.resok4 = to_wire(answer.stateid);
  compound.current_stateid = answer.stateid;
  return NFS4_OK;
}

nfsstat4 open_downgrade(Compound& compound, const xdr::OPEN_DOWNGRADE4args& args,
                        xdr::OPEN_DOWNGRADE4res& res) {
  if (const nfsstat4 bad = check_file(compound); bad != NFS4_OK) return bad;
  // What a 4.1 client wants of delegations may stand there too.
  const std::uint32_t access = args.share_access & 0xff;
  if (compound.minor_version() == 0 && access != args.share_access) return NFS4ERR_INVAL;
  if (access > 255 || args.share_deny > 255) return NFS4ERR_INVAL;
  const Share share{static_cast<std::uint8_t>(access), static_cast<std::uint8_t>(args.share_deny)};
  if (!valid(share)) return NFS4ERR_INVAL;
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  const Stateid stateid = compound.real(args.open_stateid);
  compound.act_for(stateid);
  if (is_of_another(compound, stateid)) return NFS4ERR_BAD_STATEID;
  const auto answer = state.opens.open_downgrade(compound.asker(), stateid, share);
  if (answer.status != OpenStates::Status::kOk) {
    return status_of(answer.status, compound.minor_version());
  }
  res.resok4.open_stateid = to_wire(answer.stateid);
  compound.current_stateid = answer.stateid;
  return NFS4_OK;
}

nfsstat4 test_stateid(Compound& compound, const xdr::TEST_STATEID4args& args,
                      xdr::TEST_STATEID4res& res) {
  // There may be thousands: none is looked up for an answer that goes nowhere.
  const std::uint32_t count = args.ts_stateids.count;
  const std::size_t size = count * sizeof(std::uint32_t);
  if (const nfsstat4 bad = compound.check_length(kTestedHead + size); bad != NFS4_OK) return bad;
  if (!compound.have_room(kTestedHead + size)) return compound.retry(Outcome::kNeedRoom);
  xdr::Encoder encoder(compound.scratch(size));
  test_all(compound, args.ts_stateids, encoder);
  res.resok4.tsr_status_codes = {encoder.bytes(), count};
  compound.request().work_units = 1 + count / kTestedAtOnce;
  return NFS4_OK;
}

nfsstat4 free_stateid(Compound& compound, const xdr::FREE_STATEID4args& args,
                      xdr::FREE_STATEID4res&) {
  ServerState& state = compound.state();
  const Stateid stateid = compound.real(args.fsa_stateid);
  const bool delegation = DelegationTable::is_one(stateid);
  std::unique_lock lock(state.mutex);
  // It may have to be written down that the client knows.
  const bool revoked = delegation || state.opens.test(compound.asker(), stateid) ==
                                         OpenStates::Status::kAdminRevoked;
  if (revoked && !compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  const auto status = delegation ? state.delegations.table().free(compound.client_id(), stateid)
                      : OffloadTable::is_one(stateid)
                          ? state.offloads.free(compound.client_id(), stateid)
                          : state.opens.free(compound.asker(), stateid);
  count_holds(state, compound.client_id());
  if (revoked && status == OpenStates::Status::kOk) may_reclaim_again(compound, lock);
  return status_of(status, compound.minor_version());
}

nfsstat4 delegreturn(Compound& compound, const xdr::DELEGRETURN4args& args, xdr::DELEGRETURN4res&) {
  if (const nfsstat4 bad = check_file(compound); bad != NFS4_OK) return bad;
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  const Stateid stateid = compound.real(args.deleg_stateid);
  compound.act_for(stateid);
  if (!DelegationTable::is_one(stateid)) return NFS4ERR_BAD_STATEID;
  const auto status = state.delegations.give_back(
      compound.client_id(), stateid, file_key(*compound.current.object.file), &compound.closed);
  count_holds(state, compound.client_id());
  return status_of(status, compound.minor_version());
}

}  // namespace nfsrdma::nfs4
