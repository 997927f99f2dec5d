// SPDX-License-Identifier: Apache-2.0
// SimSessionClient: who a client of minor version 1 or 2 is, and its session, in whose slots its
// requests go.
#pragma once

#include "tests/sim/nfs4_sim_holder.h"

namespace nfsrdma::test {

class SimSessionClient final : public SimHolder {
 public:
  using SimHolder::SimHolder;

  bool is_idle(std::size_t slot) const override { return phase_ != Phase::kActive && slot != 0; }
  SimRequestPtr next(std::size_t slot) override {
    switch (phase_) {
      case Phase::kUnknown:
        return exchange_id();
      case Phase::kIdentified:
        return create_session();
      case Phase::kReclaiming:
        if (SimRequestPtr claim = next_claim()) return claim;
        if (SimRequestPtr use = use_reclaimed()) return use;
        return reclaim_complete();
      case Phase::kActive:
        if (unbound_ && slot == 0 && world_.chance(60)) return bind();
        if (SimRequestPtr urgent = tend_delegations(slot)) return urgent;
        break;
      case Phase::kEnding:
        break;
    }
    return random_request(slot);
  }
  void connection_lost() override { unbound_ = true; }
  SimRequestPtr next_farewell() override {
    if (phase_ != Phase::kActive) return phase_ == Phase::kUnknown ? nullptr : next(0);
    for (std::size_t owner = 0; owner < kSlots; ++owner) {
      if (!opens_[owner].empty()) return close(owner, opens_[owner].begin()->first);
    }
    if (SimRequestPtr more = give_back_all(0)) return more;
    return destroy_session();
  }

  void hear(std::size_t slot, const Reply4& reply, std::vector<SimRequestPtr>& lost) override {
    const bool names_session = pending[slot]->in_session || pending[slot]->binds;
    if (names_session && reply.results[0].status == NFS4ERR_BADSESSION) {
      return lose_session(lost);
    }
    const SimRequestPtr request = std::move(pending[slot]);
    if (request->in_session && reply.results[0].status == NFS4_OK) {
      constexpr std::uint32_t kDown =
          xdr::SEQ4_STATUS_CB_PATH_DOWN | xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION;
      unbound_ |= (reply.get<OP_SEQUENCE>().resok4.sr_status_flags & kDown) != 0;
    }
    if (reply.status != NFS4ERR_RETRY_UNCACHED_REP) request->learn(reply);
  }
  void reboot(std::vector<SimRequestPtr>& lost) override {
    lose_session(lost);
    forget();
    forget_delegations();
    ++incarnation_;
    id_ = 0;
  }

 private:
  enum class Phase : std::uint8_t { kUnknown, kIdentified, kReclaiming, kActive, kEnding };
  void lose_session(std::vector<SimRequestPtr>& lost) {
    give_up_pending(lost);
    nothing_is_busy();
    phase_ = Phase::kUnknown;
  }

  SimRequestPtr in_slot(std::size_t slot, const std::string& what, const Operations4& operations,
                        std::function<void(const Reply4&)> happens,
                        std::function<void(const Reply4&)> learn, bool cached = true) override {
    SimRequestPtr out = request(what, std::move(happens), std::move(learn));
    out->in_session = true;
    out->session = session_;
    out->slot = static_cast<std::uint32_t>(slot);
    out->sequence = ++sequences_[slot];
    out->cached = cached;
    out->operations.add<OP_SEQUENCE>({session_, out->sequence, out->slot, kSlots - 1, cached});
    out->operations.add(operations);
    return out;
  }

  // --- who it is ---

  SimRequestPtr exchange_id() {
    xdr::EXCHANGE_ID4args args;
    const std::string name = owner_name("client", index_);
    args.eia_clientowner.co_ownerid = as_bytes(name);
    args.eia_clientowner.co_verifier[0] = static_cast<std::byte>(incarnation_);
    SimRequestPtr out = request(
        "EXCHANGE_ID", [this](const Reply4&) { world_.model.forget_idle(); },
        [this](const Reply4& reply) {
          const auto res = reply.get<OP_EXCHANGE_ID>();
          if (res.status != NFS4_OK) return world_.fail("EXCHANGE_ID: " + number_text(res.status));
          offered_ = res.resok4.eir_clientid;
          create_sequence_ = res.resok4.eir_sequenceid;
          phase_ = Phase::kIdentified;
        });
    out->operations.add<OP_EXCHANGE_ID>(args);
    return out;
  }

  SimRequestPtr create_session() {
    xdr::CREATE_SESSION4args args;
    args.csa_clientid = offered_;
    args.csa_sequence = create_sequence_;
    std::array<std::byte, 4> no_security{};  // callback_sec_parms4 of AUTH_NONE
    args.csa_flags = xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    args.csa_cb_program = 0x40000000;
    args.csa_sec_parms = {no_security, 1};
    for (xdr::channel_attrs4* channel : {&args.csa_fore_chan_attrs, &args.csa_back_chan_attrs})
      *channel = {0, 65536, 65536, 4096, 16, kSlots, {}};
    SimRequestPtr out = request(
        "CREATE_SESSION",
        [this, id = offered_](const Reply4& reply) {
          if (reply.status == NFS4_OK) session_happens(id, reply);
          world_.model.forget_idle();
        },
        [this](const Reply4& reply) { session_told(reply); });
    out->operations.add<OP_CREATE_SESSION>(args);
    return out;
  }
  void session_happens(std::uint64_t id, const Reply4& reply) {
    SimModel& model = world_.model;
    SimTrueClient& its = model.clients[index_];
    if (its.known && its.id != id) world_.evict({index_});  // it has been started anew
    its.known = true;
    its.id = id;
    its.renewed = model.now;
    world_.session_made(index_, reply.get<OP_CREATE_SESSION>().resok4.csr_sessionid);
  }
  void session_told(const Reply4& reply) {
    phase_ = Phase::kUnknown;
    if (reply.status != NFS4_OK) {
      // Another EXCHANGE_ID of the same client, on its way for longer, has come between.
      if (reply.status != NFS4ERR_STALE_CLIENTID && reply.status != NFS4ERR_SEQ_MISORDERED) {
        world_.fail("CREATE_SESSION: " + number_text(reply.status));
      }
      return;
    }
    session_ = reply.get<OP_CREATE_SESSION>().resok4.csr_sessionid;
    sequences_ = {};
    unbound_ = false;
    if (offered_ == id_ && completed_) {
      phase_ = Phase::kActive;
      return;
    }
    id_ = offered_;
    completed_ = false;
    keep_for_reclaim();
    plan_claims();
    phase_ = Phase::kReclaiming;
  }
  SimRequestPtr reclaim_complete() {
    return in_slot(
        0, "RECLAIM_COMPLETE", Operations4().add<OP_RECLAIM_COMPLETE>(),
        [this](const Reply4& reply) {
          rules_.expect(reply.status, NFS4_OK, "RECLAIM_COMPLETE");
          world_.model.clients[index_].completed = true;
        },
        [this](const Reply4&) {
          completed_ = true;
          phase_ = Phase::kActive;
        });
  }
  SimRequestPtr destroy_session() {
    phase_ = Phase::kEnding;  // an answer that is on its way would be lost with the session
    return in_slot(
        0, "DESTROY_SESSION", Operations4().add<OP_DESTROY_SESSION>({session_}),
        [this, session = session_](const Reply4& reply) {
          rules_.expect(reply.status, NFS4_OK, "DESTROY_SESSION");
          world_.session_ended(session);
        },
        [this](const Reply4&) { phase_ = Phase::kUnknown; });
  }

  /// The callbacks of the session come by the connection of now.
  SimRequestPtr bind() {
    SimRequestPtr out = request(
        "BIND_CONN_TO_SESSION", [](const Reply4&) {},
        [this](const Reply4& reply) {
          rules_.expect(reply.status, NFS4_OK, "BIND_CONN_TO_SESSION");
          unbound_ = false;
        });
    out->binds = true;
    out->session = session_;
    out->operations.add<OP_BIND_CONN_TO_SESSION>(
        {session_, xdr::channel_dir_from_client4::CDFC4_FORE_OR_BOTH, false});
    return out;
  }

  SimRequestPtr rare_request(std::size_t) override {
    return nothing_pending() ? destroy_session() : nullptr;
  }
  /// What the client was told is its own is still there.
  SimRequestPtr own_request(std::size_t owner, std::size_t file) override {
    std::vector<xdr::stateid4> stateids{find_open(owner, file)->stateid};
    for (const auto& [locker, locks] : find_open(owner, file)->locks) {
      if (locks.stateid.seqid != 0) stateids.push_back(locks.stateid);
    }
    const xdr::stateid4* delegation = tested(file);
    if (delegation != nullptr) stateids.push_back(*delegation);
    std::vector<std::byte> room(stateids.size() * 16);
    xdr::Encoder encoder(room);
    for (const xdr::stateid4& one : stateids)
      xdr::encode(encoder, one);
    xdr::TEST_STATEID4args args;
    args.ts_stateids = {encoder.bytes(), static_cast<std::uint32_t>(stateids.size())};
    return in_slot(
        owner, "TEST_STATEID", Operations4().add<OP_TEST_STATEID>(args),
        [this, last = delegation == nullptr ? std::nullopt
                                            : std::optional(stateids.back())](const Reply4& reply) {
          const std::vector<nfsstat4> told = tests_in(reply);
          for (std::size_t i = 0; i < told.size(); ++i) {
            if (last && i + 1 == told.size()) {
              rules_.promises.used(*last, told[i], "TEST_STATEID");
            } else {
              rules_.expect(told[i], NFS4_OK, "TEST_STATEID");
            }
          }
        },
        [this, file, asked = delegation != nullptr](const Reply4& reply) {
          const std::vector<nfsstat4> told = tests_in(reply);
          const bool revoked = !told.empty() && told.back() == NFS4ERR_DELEG_REVOKED;
          if (asked && revoked) delegation_revoked(file);
        },
        false);
  }
  /// None in a reply that ended with SEQUENCE.
  static std::vector<nfsstat4> tests_in(const Reply4& reply) {
    if (reply.status != NFS4_OK) return {};
    const auto res = reply.get<OP_TEST_STATEID>();
    std::vector<nfsstat4> out;
    for (const nfsstat4 status : res.resok4.tsr_status_codes)
      out.push_back(status);
    return out;
  }

  Phase phase_ = Phase::kUnknown;
  std::uint64_t offered_ = 0;
  std::uint32_t create_sequence_ = 0;
  bool completed_ = false;
  bool unbound_ = false;  // the session has no connection to call it back by
  xdr::sessionid4 session_{};
  std::array<std::uint32_t, kSlots> sequences_{};
};

}  // namespace nfsrdma::test
