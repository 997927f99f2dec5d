// SPDX-License-Identifier: Apache-2.0
// SimOwnerClient: a client of minor version 0: its client ID, and the sequences of its open-owners
// and lock-owners, one request of each at a time, which it asks again until it is answered. It
// takes STALE_CLIENTID or STALE_STATEID for a restart, waits for what is under way, makes itself
// known again and reclaims. Nothing tells a server of this minor version that all has been
// reclaimed: what it has not got back when there is another restart it gives up, since there may
// have been time to give it to others in between (RFC 7530 9.6.3.4). It is called where its
// SimLine is, and names that anew when it hears that it could not be called.
#pragma once

#include "tests/sim/nfs4_sim_holder.h"
#include "tests/sim/nfs4_sim_line.h"
#include "tests/sim/nfs4_sim_owners.h"

namespace nfsrdma::test {

class SimOwnerClient final : public SimHolder {
 public:
  SimOwnerClient(SimWorld& world, std::size_t index, const SimLine& line)
      : SimHolder(world, index, 0), line_(line) {
    world.model.clients[index].never_completes = true;
    start_sequences();
  }

  bool is_idle(std::size_t slot) const override {
    return phase_ != Phase::kActive && (slot != 0 || !nothing_pending());
  }
  SimRequestPtr next(std::size_t slot) override {
    switch (phase_) {
      case Phase::kUnknown:
        return set_client_id();
      case Phase::kIdentified:
        return set_client_id_confirm();
      case Phase::kInDoubt:
        return renew();
      case Phase::kReclaiming:
        if (unconfirmed_[0]) return open_confirm(0);
        if (SimRequestPtr claim = next_claim()) return claim;
        if (SimRequestPtr use = use_reclaimed()) return use;
        phase_ = Phase::kActive;
        break;
      case Phase::kActive:
        break;
    }
    if (unconfirmed_[slot]) return open_confirm(slot);
    if (unheard_ && slot == 0 && nothing_pending()) return set_client_id_again();
    if (SimRequestPtr urgent = tend_delegations(slot)) return urgent;
    return random_request(slot);
  }
  SimRequestPtr next_farewell() override {
    if (phase_ != Phase::kActive) return phase_ == Phase::kUnknown ? nullptr : next(0);
    for (std::size_t owner = 0; owner < kSlots; ++owner) {
      if (unconfirmed_[owner]) return open_confirm(owner);
      if (!opens_[owner].empty()) return close(owner, opens_[owner].begin()->first);
    }
    return give_back_all(0);
  }

  void hear(std::size_t slot, const Reply4& reply, std::vector<SimRequestPtr>&) override {
    const SimRequestPtr request = std::move(pending[slot]);
    // A file without a name went with its last open: that CLOSE is asked again tells that it was
    // done, and its answer lost.
    const bool closed =
        reply.status == NFS4ERR_STALE && request->turn && request->turn->operation == OP_CLOSE;
    if (closed) count(*request, NFS4_OK);
    for (const Reply4::Result& result : reply.results) {
      if (!request->turn || result.number != request->turn->operation) continue;
      count(*request, result.status);
      request->same_turn_again |= !SimOwners::counts(result.status);
    }
    request->learn(reply);
    switch (reply.status) {
      case NFS4ERR_STALE_CLIENTID:
      case NFS4ERR_STALE_STATEID:
        return begin_again();
      case NFS4ERR_EXPIRED:
        if (request->client_id != 0 && !request->stateid) return begin_again();
        return doubt(slot, *request);
      case NFS4ERR_BAD_STATEID:
      case NFS4ERR_OLD_STATEID:
      case NFS4ERR_STALE:
        return doubt(slot, *request);
      case NFS4ERR_BAD_SEQID:
        return world_.fail(request->what + ": NFS4ERR_BAD_SEQID to who counts as it should");
      default:
        return;
    }
  }
  void reboot(std::vector<SimRequestPtr>& lost) override {
    give_up_pending(lost);
    forget();
    forget_delegations();
    unheard_ = false;
    start_sequences();
    unconfirmed_ = {};
    phase_ = Phase::kUnknown;
    ++incarnation_;
    id_ = 0;
  }

 private:
  enum class Phase : std::uint8_t { kUnknown, kIdentified, kReclaiming, kActive, kInDoubt };
  /// What the last one was, wherever it begins.
  void start_sequences() {
    const auto anywhere = [this]() -> std::uint32_t {
      return world_.chance(30) ? UINT32_MAX - static_cast<std::uint32_t>(world_.below(4)) : 7;
    };
    for (std::uint32_t& one : open_sequences_)
      one = anywhere();
    for (std::uint32_t& one : lock_sequences_)
      one = anywhere();
  }
  std::uint32_t& last_of(const SimOwner& owner, bool locks) {
    return locks ? lock_sequences_[owner.number] : open_sequences_[owner.number];
  }
  SimTurn next_turn(std::size_t owner, bool locks, nfs_opnum4 operation) override {
    const SimOwner its{index_, owner};
    return {its, locks, last_of(its, locks) + 1, operation, {}};
  }
  void count(const SimRequest& request, nfsstat4 status) {
    const SimTurn& turn = *request.turn;
    if (!SimOwners::counts(status)) return;
    last_of(turn.owner, turn.locks) = turn.seqid;
    // A first LOCK that failed has begun nothing.
    if (turn.begins && status == NFS4_OK) last_of(turn.begins->first, true) = turn.begins->second;
  }
  SimRequestPtr in_slot(std::size_t slot, const std::string& what, const Operations4& operations,
                        std::function<void(const Reply4&)> happens,
                        std::function<void(const Reply4&)> learn, bool) override {
    SimRequestPtr out = request(what, std::move(happens), std::move(learn));
    out->slot = static_cast<std::uint32_t>(slot);
    out->operations.add(operations);
    return out;
  }

  /// The server has been restarted, or has forgotten this client.
  void begin_again() {
    for (const Claim& claim : claims_) {
      KnownOpen* open = find_open(claim.owner, claim.file);
      if (open == nullptr) continue;
      if (claim.kind == ' ') {
        opens_[claim.owner].erase(claim.file);
        continue;
      }
      SimLocks& bytes = open->locks[claim.locker].bytes;
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(claim.range.first),
                bytes.begin() + static_cast<std::ptrdiff_t>(claim.range.end), ' ');
    }
    claims_.clear();
    drop_unconfirmed();
    const bool was_known = phase_ != Phase::kUnknown && phase_ != Phase::kIdentified;
    if (was_known) give_up_former();
    keep_for_reclaim();
    phase_ = Phase::kUnknown;
  }
  /// What was not confirmed was not held: an old request may have ended it.
  void drop_unconfirmed() {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (unconfirmed_[slot]) opens_[slot].erase(*unconfirmed_[slot]);
    }
    unconfirmed_ = {};
  }
  /// What it went by is no more. Is it that alone?
  void doubt(std::size_t slot, const SimRequest& request) {
    if (request.by_delegation) {
      lost(*request.file, *request.stateid);
    } else if (request.file && request.stateid) {
      opens_[slot].erase(*request.file);
    }
    unconfirmed_[slot].reset();
    if (phase_ == Phase::kActive) phase_ = Phase::kInDoubt;
  }

  // --- who it is ---

  SimRequestPtr set_client_id() {
    const std::string name = owner_name("client", index_);
    xdr::SETCLIENTID4args args;
    args.client.id = as_bytes(name);
    args.client.verifier[0] = static_cast<std::byte>(incarnation_);
    const std::string where = world_.chance(10) ? line_.dead_address() : line_.address();
    args.callback = {SimLine::kProgram, {"tcp", where}};
    args.callback_ident = SimLine::kIdent;
    unheard_ = false;
    SimRequestPtr out = request(
        "SETCLIENTID",
        [this, incarnation = incarnation_](const Reply4& reply) { offered(incarnation, reply); },
        [this](const Reply4& reply) {
          if (reply.status != NFS4_OK) return;
          offered_ = reply.get<OP_SETCLIENTID>().resok4;
          phase_ = Phase::kIdentified;
        });
    out->operations.add<OP_SETCLIENTID>(args);
    return out;
  }
  void offered(unsigned incarnation, const Reply4& reply) {
    rules_.expect(reply.status, NFS4_OK, "SETCLIENTID");
    if (reply.status != NFS4_OK) return;
    world_.model.forget_idle();
    SimTrueClient& its = world_.model.clients[index_];
    const auto res = reply.get<OP_SETCLIENTID>().resok4;
    world_.model.note_client_id(res.clientid);
    its.offer = {res.clientid, res.setclientid_confirm, incarnation, world_.model.now};
    const bool same_life = its.known && its.confirmed.incarnation == incarnation;
    if (its.unsure) return;
    if (its.known && same_life != (res.clientid == its.id)) {
      world_.fail("SETCLIENTID: the client ID is not what it should be");
    }
  }
  SimRequestPtr set_client_id_confirm() {
    SimRequestPtr out = request(
        "SETCLIENTID_CONFIRM",
        [this, told = offered_](const Reply4& reply) {
          confirmed(told.clientid, told.setclientid_confirm, reply);
        },
        [this](const Reply4& reply) {
          phase_ = Phase::kUnknown;
          if (reply.status != NFS4_OK) return;
          const bool is_new = std::exchange(id_, offered_.clientid) != offered_.clientid;
          if (is_new) {
            drop_unconfirmed();
            plan_claims();
          } else {
            give_up_former();
          }
          phase_ = is_new ? Phase::kReclaiming : Phase::kActive;
        });
    out->operations.add<OP_SETCLIENTID_CONFIRM>({offered_.clientid, offered_.setclientid_confirm});
    return out;
  }
  void confirmed(std::uint64_t id, const xdr::verifier4& confirm, const Reply4& reply) {
    SimModel& model = world_.model;
    const auto is = [&](const SimOffer& one) { return one.id == id && one.confirm == confirm; };
    const SimTrueClient before = model.clients[index_];
    const bool fresh = is(before.offer);
    const bool again = before.known && is(before.confirmed);
    // What is not confirmed within a lease is forgotten.
    const bool certain = fresh ? !model.is_past_lease(before.offer.made) : !before.unsure;
    if (reply.status == NFS4ERR_STALE_CLIENTID && ((!fresh && !again) || !certain)) return;
    rules_.expect(reply.status, fresh || again ? NFS4_OK : NFS4ERR_STALE_CLIENTID,
                  "SETCLIENTID_CONFIRM");
    if (reply.status != NFS4_OK) return;
    // Its client ID may have been offered again before all that it had was ended; it is good then,
    // and nothing of it is left.
    const bool ended = before.unsure && model.has_state(index_) && !world_.still_holds(id);
    if (before.known && (before.id != id || ended)) world_.evict({index_});
    SimTrueClient& its = model.clients[index_];
    its.known = true;
    its.id = id;
    its.renewed = model.now;
    its.unsure &= !its.completed;
    if (!fresh) return;
    its.confirmed = before.offer;
    its.offer = SimOffer();
  }
  SimRequestPtr renew() {
    return by_client(in_slot(
        0, "RENEW", Operations4().add<OP_RENEW>({id_}),
        [this](const Reply4& reply) {
          const bool unheard = reply.status == NFS4ERR_CB_PATH_DOWN;
          if (unheard && rules_.promises.has_any(index_)) return;
          if (unheard && rules_.promises.renew_tells_of_loss(index_)) return;
          rules_.expect(reply.status, NFS4_OK, "RENEW");
        },
        [this](const Reply4& reply) {
          const bool unheard = reply.status == NFS4ERR_CB_PATH_DOWN;
          unheard_ |= unheard;
          if ((reply.status == NFS4_OK || unheard) && phase_ == Phase::kInDoubt) {
            phase_ = Phase::kActive;
          }
        },
        false));
  }

  // --- what only this minor version has ---

  SimRequestPtr rare_request(std::size_t slot) override {
    if (slot != 0 || !nothing_pending()) return nullptr;
    return set_client_id_again();
  }
  /// As with another address to be called at: its state stays.
  SimRequestPtr set_client_id_again() {
    phase_ = Phase::kUnknown;
    return set_client_id();
  }
  SimRequestPtr own_request(std::size_t slot, std::size_t) override {
    const std::size_t locker = 2 * slot + world_.below(2);
    return world_.chance(50) ? renew_in(slot) : release_lock_owner(slot, locker);
  }
  SimRequestPtr renew_in(std::size_t slot) {
    SimRequestPtr out = renew();
    out->slot = static_cast<std::uint32_t>(slot);
    return out;
  }
  SimRequestPtr release_lock_owner(std::size_t slot, std::size_t locker) {
    const std::string name = owner_name("lock", locker);
    return by_client(in_slot(
        slot, "RELEASE_LOCKOWNER " + name,
        Operations4().add<OP_RELEASE_LOCKOWNER>({{id_, as_bytes(name)}}),
        [this, locker](const Reply4& reply) {
          rules_.released({index_, locker}, reply);
        },
        [this, slot, locker](const Reply4& reply) {
          if (reply.status != NFS4_OK) return;
          for (auto& [file, open] : opens_[slot])
            open.locks.erase(locker);
        },
        true));
  }
  /// After the first OPEN of an owner.
  void opened(std::size_t slot, std::size_t file, std::uint32_t flags) override {
    if ((flags & xdr::OPEN4_RESULT_CONFIRM) != 0) unconfirmed_[slot] = file;
  }
  SimRequestPtr open_confirm(std::size_t slot) {
    const std::size_t file = *unconfirmed_[slot];
    const KnownOpen& open = *find_open(slot, file);
    const SimTurn turn = next_turn(slot, false, OP_OPEN_CONFIRM);
    SimRequestPtr out = in_slot(
        slot, "OPEN_CONFIRM of file " + std::to_string(file),
        Operations4().putfh(open.handle).add<OP_OPEN_CONFIRM>({open.stateid, turn.seqid}),
        [this, slot, file](const Reply4& reply) {
          rules_.confirmed({index_, slot}, file, reply);
        },
        [this, slot, file](const Reply4& reply) {
          if (reply.status != NFS4_OK) return;
          unconfirmed_[slot].reset();
          take(&find_open(slot, file)->stateid, reply.get<OP_OPEN_CONFIRM>().resok4.open_stateid,
               "OPEN_CONFIRM");
        },
        true);
    return by_state(out, file, open.stateid, turn);
  }

  const SimLine& line_;
  Phase phase_ = Phase::kUnknown;
  bool unheard_ = false;  // it was told that it could not be called
  xdr::SETCLIENTID4resok offered_;
  std::array<std::uint32_t, kSlots> open_sequences_{};
  std::array<std::uint32_t, 2 * kSlots> lock_sequences_{};
  std::array<std::optional<std::size_t>, kSlots> unconfirmed_;  // the file that it opened
};

}  // namespace nfsrdma::test
