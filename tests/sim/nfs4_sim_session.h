// SPDX-License-Identifier: Apache-2.0
// SimSessionClient: who a client of minor version 1 or 2 is, its session, and what it claims after
// a restart of the server: what it was told it holds and has not asked to release. Each slot of its
// session is one open-owner's, with two lock-owners, and has one request under way at a time.
#pragma once

#include <deque>

#include "tests/sim/nfs4_sim_rules.h"

namespace nfsrdma::test {

class SimSessionClient {
 public:
  static constexpr std::size_t kSlots = 3;

  SimSessionClient(SimWorld& world, std::size_t index, std::uint32_t minor_version)
      : world_(world), rules_(world), index_(index), minor_version_(minor_version) {}
  virtual ~SimSessionClient() = default;

  /// What waits for an answer; null: the slot is free.
  std::array<SimRequestPtr, kSlots> pending;
  /// Nothing can be asked in that slot now.
  bool is_idle(std::size_t slot) const { return phase_ != Phase::kActive && slot != 0; }
  bool is_active() const { return phase_ == Phase::kActive; }
  bool holds_nothing() const {
    return std::ranges::all_of(opens_, [](const auto& some) { return some.empty(); });
  }

  SimRequestPtr next(std::size_t slot) {
    switch (phase_) {
      case Phase::kUnknown:
        return exchange_id();
      case Phase::kIdentified:
        return create_session();
      case Phase::kReclaiming:
        if (!claims_.empty()) {
          auto claim = std::move(claims_.front());
          claims_.pop_front();
          if (SimRequestPtr request = claim()) return request;
          return next(slot);
        }
        return reclaim_complete();
      case Phase::kActive:
      case Phase::kEnding:
        break;
    }
    return random_request(slot);
  }
  /// The end of a tidy client: gives back what it has, then itself. Null: there is nothing left.
  SimRequestPtr next_farewell() {
    if (phase_ != Phase::kActive) return phase_ == Phase::kUnknown ? nullptr : next(0);
    for (std::size_t owner = 0; owner < kSlots; ++owner) {
      if (!opens_[owner].empty()) return close(owner, opens_[owner].begin()->first);
    }
    return destroy_session();
  }
  std::uint64_t id() const { return id_; }

  /// The reply to what is pending in that slot. `lost`: what has no answer to come any more.
  void hear(std::size_t slot, const Reply4& reply, std::vector<SimRequestPtr>& lost) {
    if (pending[slot]->in_session && !reply.results.empty() &&
        reply.results[0].status == NFS4ERR_BADSESSION) {
      return lose_session(lost);
    }
    const SimRequestPtr request = std::move(pending[slot]);
    if (reply.status != NFS4ERR_RETRY_UNCACHED_REP) request->learn(reply);
  }
  /// It starts anew, and remembers nothing.
  void reboot(std::vector<SimRequestPtr>& lost) {
    lose_session(lost);
    forget();
    ++incarnation_;
    id_ = 0;
  }

 protected:
  /// What it does between the restarts.
  virtual SimRequestPtr random_request(std::size_t slot) = 0;
  virtual SimRequestPtr close(std::size_t owner, std::size_t file) = 0;

  enum class Phase : std::uint8_t { kUnknown, kIdentified, kReclaiming, kActive, kEnding };
  struct KnownLocks {
    xdr::stateid4 stateid{};
    SimLocks bytes = no_locks();
  };
  struct KnownOpen {
    FileHandle handle;
    xdr::stateid4 stateid{};
    SimShare share;
    std::map<std::size_t, KnownLocks> locks;  // by the lock-owner's number
  };

  void forget() {
    for (auto& some : opens_)
      some.clear();
    claims_.clear();
  }
  void lose_session(std::vector<SimRequestPtr>& lost) {
    for (SimRequestPtr& request : pending) {
      if (request) lost.push_back(std::move(request));
      request.reset();
    }
    phase_ = Phase::kUnknown;
  }

  SimRequestPtr request(std::string what, std::function<void(const Reply4&)> happens,
                        std::function<void(const Reply4&)> learn) {
    auto out = std::make_shared<SimRequest>();
    out->client = index_;
    out->what = std::move(what);
    out->minor_version = minor_version_;
    out->happens = std::move(happens);
    out->learn = std::move(learn);
    return out;
  }
  SimRequestPtr in_slot(std::size_t slot, const std::string& what, const Operations4& operations,
                        std::function<void(const Reply4&)> happens,
                        std::function<void(const Reply4&)> learn, bool cached = true) {
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
  static std::string owner_name(const char* kind, std::size_t number) {
    return kind + std::to_string(number);
  }
  KnownOpen* find_open(std::size_t owner, std::size_t file) {
    const auto found = opens_[owner].find(file);
    return found == opens_[owner].end() ? nullptr : &found->second;
  }
  /// The same state, one step on; or new state.
  void take(xdr::stateid4* known, const xdr::stateid4& told, const char* what) {
    const bool same = std::ranges::equal(known->other, told.other);
    if (same && told.seqid != known->seqid + 1) {
      world_.fail(std::string(what) + ": the seqid of a stateid went on by more than one");
    }
    *known = told;
  }

  // --- who it is ---

  SimRequestPtr exchange_id() {
    xdr::EXCHANGE_ID4args args;
    const std::string name = owner_name("client", index_);
    args.eia_clientowner.co_ownerid = as_bytes(name);
    args.eia_clientowner.co_verifier[0] = static_cast<std::byte>(incarnation_);
    SimRequestPtr out = request(
        "EXCHANGE_ID", [](const Reply4&) {},
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
    for (xdr::channel_attrs4* channel : {&args.csa_fore_chan_attrs, &args.csa_back_chan_attrs})
      *channel = {0, 65536, 65536, 4096, 16, kSlots, {}};
    SimRequestPtr out = request(
        "CREATE_SESSION",
        [this, id = offered_](const Reply4& reply) {
          if (reply.status == NFS4_OK) session_happens(id, reply);
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
    // Those that hold nothing are forgotten now and then.
    for (std::size_t other = 0; other < model.clients.size(); ++other) {
      if (model.expired(other) && !model.has_state(other)) model.clients[other].unsure = true;
    }
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
    if (offered_ == id_ && completed_) {
      phase_ = Phase::kActive;
      return;
    }
    id_ = offered_;
    completed_ = false;
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

  // --- after a restart of the server ---

  void plan_claims() {
    claims_.clear();
    for (std::size_t owner = 0; owner < kSlots; ++owner) {
      for (auto& [file, open] : opens_[owner]) {
        claims_.push_back([this, owner, file = file] { return reclaim_open(owner, file); });
        for (auto& [locker, locks] : open.locks) {
          for (const auto& [range, kind] : runs(locks.bytes)) {
            claims_.push_back([this, owner, file = file, locker = locker, range = range,
                               kind = kind]() -> SimRequestPtr {
              if (find_open(owner, file) == nullptr) return nullptr;
              return lock(owner, file, locker, kind, range, true);
            });
          }
          locks.stateid = {};
        }
      }
    }
  }
  static std::vector<std::pair<SimRange, char>> runs(const SimLocks& bytes) {
    std::vector<std::pair<SimRange, char>> out;
    for (std::size_t at = 0; at < kLockable; ++at) {
      if (bytes[at] == ' ') continue;
      if (at == 0 || bytes[at - 1] != bytes[at]) out.push_back({{at, at}, bytes[at]});
      out.back().first.end = at + 1;
    }
    return out;
  }
  SimRequestPtr reclaim_open(std::size_t owner, std::size_t file) {
    const KnownOpen& open = *find_open(owner, file);
    xdr::OPEN4args args = open_args(open.share);
    const std::string name = owner_name("open", owner);
    args.owner.owner = as_bytes(name);
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    return in_slot(
        0, "OPEN reclaim of file " + std::to_string(file),
        Operations4().putfh(open.handle).add<OP_OPEN>(args),
        [this, owner, file, share = open.share](const Reply4& reply) {
          rules_.reclaimed({index_, owner}, file, share, reply);
        },
        [this, owner, file](const Reply4& reply) {
          if (reply.status == NFS4_OK) {
            find_open(owner, file)->stateid = reply.get<OP_OPEN>().resok4.stateid;
          } else {
            opens_[owner].erase(file);
          }
        });
  }

  // --- for what it does with files ---

  xdr::OPEN4args open_args(const SimShare& share) const {
    xdr::OPEN4args args;
    args.share_access = share.access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.share_deny = share.deny;
    args.owner.clientid = id_;
    return args;
  }
  SimRequestPtr lock(std::size_t owner, std::size_t file, std::size_t locker, char kind,
                     const SimRange& range, bool reclaim) {
    KnownOpen& open = *find_open(owner, file);
    const auto known_locks = open.locks.find(locker);
    const bool first = known_locks == open.locks.end() || known_locks->second.stateid.seqid == 0;
    if (known_locks != open.locks.end() && kind == 'r') {
      for (std::size_t at = range.first; at < range.end; ++at) {
        char& byte = known_locks->second.bytes[at];
        byte = byte == 'w' ? 'r' : byte;  // whatever comes of it
      }
    }
    xdr::LOCK4args args;
    args.locktype = kind == 'w' ? xdr::nfs_lock_type4::WRITE_LT : xdr::nfs_lock_type4::READ_LT;
    args.reclaim = reclaim;
    args.offset = range.first;
    args.length = range.end - range.first;
    args.locker.new_lock_owner = first;
    const std::string name = owner_name("lock", locker);
    if (first) {
      args.locker.open_owner.open_stateid = open.stateid;
      args.locker.open_owner.lock_owner = {id_, as_bytes(name)};
    } else {
      args.locker.lock_owner.lock_stateid = known_locks->second.stateid;
    }
    const SimRules::LockWanted wanted{{index_, owner}, {index_, locker}, file, kind,
                                      range,           reclaim};
    return in_slot(
        reclaim ? 0 : owner,
        std::string(reclaim ? "LOCK reclaim of " : "LOCK of ") + std::to_string(file) + " " + kind +
            " " + std::to_string(range.first) + "-" + std::to_string(range.end),
        Operations4().putfh(open.handle).add<OP_LOCK>(args),
        [this, wanted](const Reply4& reply) { rules_.locked(wanted, reply); },
        [this, wanted](const Reply4& reply) {
          const bool granted = reply.status == NFS4_OK;
          if (!granted && !wanted.reclaim) return;
          KnownLocks& known =
              find_open(wanted.opener.number, wanted.file)->locks[wanted.locker.number];
          if (granted) take(&known.stateid, reply.get<OP_LOCK>().resok4.lock_stateid, "LOCK");
          std::fill(known.bytes.begin() + static_cast<std::ptrdiff_t>(wanted.range.first),
                    known.bytes.begin() + static_cast<std::ptrdiff_t>(wanted.range.end),
                    granted ? wanted.kind : ' ');
        });
  }
  SimWorld& world_;
  SimRules rules_;
  const std::size_t index_;
  const std::uint32_t minor_version_;
  Phase phase_ = Phase::kUnknown;
  unsigned incarnation_ = 1;
  std::uint64_t offered_ = 0, id_ = 0;
  std::uint32_t create_sequence_ = 0;
  bool completed_ = false;
  xdr::sessionid4 session_{};
  std::array<std::uint32_t, kSlots> sequences_{};
  std::array<std::map<std::size_t, KnownOpen>, kSlots> opens_;  // by open-owner, then file
  std::deque<std::function<SimRequestPtr()>> claims_;
};

}  // namespace nfsrdma::test
