// SPDX-License-Identifier: Apache-2.0
// SimClient: what a client of any minor version knows of its opens and locks, and what it claims
// after a restart of the server: what it was told it holds and has not asked to release. It has
// slots, each of which is one open-owner's, with two lock-owners, and has one request under way at
// a time.
#pragma once

#include <deque>

#include "tests/sim/nfs4_sim_rules.h"
#include "xdr/nfs4_attributes.h"

namespace nfsrdma::test {

class SimClient {
 public:
  static constexpr std::size_t kSlots = 3;

  SimClient(SimWorld& world, std::size_t index, std::uint32_t minor_version)
      : world_(world), rules_(world), index_(index), minor_version_(minor_version) {}
  virtual ~SimClient() = default;

  std::uint32_t minor_version() const { return minor_version_; }
  std::uint64_t id() const { return id_; }
  /// What waits for an answer; null: the slot is free.
  std::array<SimRequestPtr, kSlots> pending;
  /// Nothing can be asked in that slot now.
  virtual bool is_idle(std::size_t slot) const = 0;
  bool holds_nothing() const {
    return std::ranges::all_of(opens_, [](const auto& some) { return some.empty(); });
  }
  virtual SimRequestPtr next(std::size_t slot) = 0;
  /// The end of a tidy client: gives back what it has, then itself. Null: there is nothing left.
  virtual SimRequestPtr next_farewell() = 0;
  /// The reply to what is pending in that slot. `lost`: what has no answer to come any more.
  virtual void hear(std::size_t slot, const Reply4& reply, std::vector<SimRequestPtr>& lost) = 0;
  /// It starts anew, and remembers nothing.
  virtual void reboot(std::vector<SimRequestPtr>& lost) = 0;
  /// It has another connection from now on.
  virtual void connection_lost() {}
  /// It is called back (RFC 8881 20.2, 20.1). Empty: it knows nothing of such a delegation.
  virtual nfsstat4 recall(const xdr::stateid4&) { return NFS4ERR_BAD_STATEID; }
  struct Told {
    xdr::stateid4 stateid;
    std::uint64_t size = 0;
    std::uint64_t change = 0;
    bool changed = false;
  };
  virtual std::optional<Told> tell(const FileHandle&) { return std::nullopt; }

 protected:
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

  /// As its minor version sends operations: the owner's sequence or the session's slot.
  virtual SimRequestPtr in_slot(std::size_t slot, const std::string& what,
                                const Operations4& operations,
                                std::function<void(const Reply4&)> happens,
                                std::function<void(const Reply4&)> learn, bool cached = true) = 0;
  /// In the sequence of an open-owner or lock-owner. Only minor version 0 looks at it.
  virtual SimTurn next_turn(std::size_t owner, bool locks, nfs_opnum4 operation) {
    return {{index_, owner}, locks, 0, operation, {}};
  }

  /// An OPEN has been answered.
  virtual void opened(std::size_t, std::size_t, std::uint32_t) {}
  /// It brought a delegation along, when the change attribute was that.
  virtual void delegated(std::size_t, const FileHandle&, const xdr::OPEN4resok&, std::uint64_t) {}
  /// A delegation to use in place of the open; null: there is none.
  virtual const xdr::stateid4* delegation_for(std::size_t, bool) { return nullptr; }
  virtual void delegation_revoked(std::size_t) {}
  /// From before a restart of the server, to be reclaimed.
  struct FormerDelegation {
    FileHandle handle;
    bool write = false;
  };
  virtual std::map<std::size_t, FormerDelegation> former_delegations() { return {}; }
  /// An OPEN that asked for it has been answered.
  virtual void delegation_reclaimed(std::size_t, const Reply4&) {}

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
  /// What it goes by.
  static SimRequestPtr by_state(SimRequestPtr out, std::size_t file, const xdr::stateid4& stateid,
                                std::optional<SimTurn> turn = std::nullopt) {
    out->file = file;
    out->stateid = stateid;
    out->turn = turn;
    return out;
  }
  SimRequestPtr by_client(SimRequestPtr out, std::optional<SimTurn> turn = std::nullopt) const {
    out->client_id = id_;
    out->turn = turn;
    return out;
  }

  void forget() {
    for (auto& some : opens_)
      some.clear();
    claims_.clear();
  }
  void give_up_pending(std::vector<SimRequestPtr>& lost) {
    for (SimRequestPtr& request : pending) {
      if (request) lost.push_back(std::move(request));
      request.reset();
    }
  }
  static constexpr xdr::bitmap4 kLooks =
      xdr::bitmap4::of({xdr::fattr4_number::FATTR4_CHANGE, xdr::fattr4_number::FATTR4_SIZE});
  static xdr::FileAttributes4 seen_in(const Reply4& reply) {
    xdr::FileAttributes4 out;
    if (reply.status != NFS4_OK) return out;
    const auto res = reply.get<OP_GETATTR>();
    EXPECT_EQ(xdr::decode_attributes(res.resok4.obj_attributes, out).outcome,
              xdr::AttributeDecoding::kOk);
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

  // --- after a restart of the server ---

  /// An open, a run of bytes that one of its lock-owners has locked, or a delegation.
  struct Claim {
    std::size_t owner = 0, file = 0;
    char kind = ' ';  // of a lock, ' ', or 'd'
    std::size_t locker = 0;
    SimRange range;
  };
  void plan_claims() {
    claims_.clear();
    for (std::size_t owner = 0; owner < kSlots; ++owner) {
      for (auto& [file, open] : opens_[owner]) {
        claims_.push_back({owner, file, ' ', 0, {}});
        for (auto& [locker, locks] : open.locks) {
          for (const auto& [range, kind] : runs(locks.bytes))
            claims_.push_back({owner, file, kind, locker, range});
          locks.stateid = {};
        }
      }
    }
    // Unless they came with the opens.
    for (const auto& [file, former] : former_delegations())
      claims_.push_back({0, file, 'd', 0, {}});
  }
  /// Null: there is nothing more to be claimed.
  SimRequestPtr next_claim() {
    while (!claims_.empty()) {
      const Claim claim = claims_.front();
      claims_.pop_front();
      if (claim.kind == ' ') return reclaim_open(claim);
      if (claim.kind == 'd') {
        if (!former_delegations().contains(claim.file)) continue;
        return reclaim_open(claim);
      }
      if (find_open(claim.owner, claim.file) == nullptr) continue;
      return lock(claim.owner, claim.file, claim.locker, claim.kind, claim.range, true);
    }
    return nullptr;
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
  /// With the delegation of the file, if there was one that goes with the open. Without an open
  /// from before, one is made for its sake.
  SimRequestPtr reclaim_open(const Claim& claim) {
    const auto [owner, file] = std::pair(claim.owner, claim.file);
    const bool dummy = claim.kind == 'd';
    const auto all = former_delegations();
    const auto former = all.find(file);
    SimShare share{xdr::OPEN4_SHARE_ACCESS_READ, 0};
    if (!dummy) share = find_open(owner, file)->share;
    if (dummy && former->second.write) share.access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    const bool writes = (share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
    const bool both = former != all.end() && former->second.write == writes;
    const FileHandle handle = dummy ? former->second.handle : find_open(owner, file)->handle;
    const SimTurn turn = next_turn(owner, false, OP_OPEN);
    xdr::OPEN4args args = open_args(share);
    const std::string name = owner_name("open", owner);
    args.seqid = turn.seqid;
    args.owner.owner = as_bytes(name);
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    if (both) {
      args.share_access = share.access;
      args.claim.delegate_type = writes ? xdr::open_delegation_type4::OPEN_DELEGATE_WRITE
                                        : xdr::open_delegation_type4::OPEN_DELEGATE_READ;
    }
    Operations4 operations;
    operations.putfh(handle).add<OP_OPEN>(args);
    if (both && minor_version_ > 0) operations.add<OP_GETATTR>({kLooks});
    const char* with = dummy ? " for its delegation" : both ? " and its delegation" : "";
    SimRequestPtr out = in_slot(
        0, "OPEN reclaim of file " + std::to_string(file) + with, operations,
        [this, owner = owner, file = file, share, dummy](const Reply4& reply) {
          rules_.reclaimed({index_, owner}, file, share, dummy, reply);
        },
        [this, claim, share, handle, both, dummy](const Reply4& reply) {
          const auto status = status_in<OP_OPEN>(reply);
          if (status == NFS4ERR_DELAY) return claims_.push_front(claim);
          if (status == NFS4_OK) {
            KnownOpen& known = opens_[claim.owner][claim.file];
            known.handle = handle;
            known.share.add(share);
            known.stateid = reply.get<OP_OPEN>().resok4.stateid;
          } else if (!dummy) {
            opens_[claim.owner].erase(claim.file);
          }
          if (both && (dummy || status == NFS4_OK)) delegation_reclaimed(claim.file, reply);
        });
    out->file = file;
    out->reclaims = true;
    return by_client(out, turn);
  }

  // --- for what it does with files ---

  xdr::OPEN4args open_args(const SimShare& share) const {
    xdr::OPEN4args args;
    args.share_access = share.access;
    if (minor_version_ > 0) args.share_access |= xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
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
    const SimTurn lock_turn = next_turn(locker, true, OP_LOCK);
    SimTurn turn = first ? next_turn(owner, false, OP_LOCK) : lock_turn;
    if (first) {
      args.locker.open_owner = {turn.seqid, open.stateid, lock_turn.seqid, {id_, as_bytes(name)}};
      turn.begins = {lock_turn.owner, lock_turn.seqid};
    } else {
      args.locker.lock_owner = {known_locks->second.stateid, turn.seqid};
    }
    const xdr::stateid4 stateid = first ? open.stateid : known_locks->second.stateid;
    const SimRules::LockWanted wanted{{index_, owner}, {index_, locker}, file, kind,
                                      range,           reclaim};
    SimRequestPtr out = in_slot(
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
    return by_state(out, file, stateid, turn);
  }

  SimWorld& world_;
  SimRules rules_;
  const std::size_t index_;
  const std::uint32_t minor_version_;
  unsigned incarnation_ = 1;
  std::uint64_t id_ = 0;
  std::array<std::map<std::size_t, KnownOpen>, kSlots> opens_;  // by open-owner, then file
  std::deque<Claim> claims_;
};

}  // namespace nfsrdma::test
