// SPDX-License-Identifier: Apache-2.0
// SimHolder: what a client knows of its delegations, and what it does when it is called back: gives
// one back at once, later, or never. What it writes into a file of which it has a write delegation
// may stay with it until then, and it tells the size that the file will have. So may what its
// programs open: the server hears of that when the delegation is called back, or sooner.
#pragma once

#include "tests/sim/nfs4_sim_files.h"

namespace nfsrdma::test {

class SimHolder : public SimFileClient {
 public:
  using SimFileClient::SimFileClient;

  nfsstat4 recall(const xdr::stateid4& stateid) override {
    for (auto& [file, known] : delegations_) {
      if (known.stateid.other != stateid.other) continue;
      if (!known.recalled) known.answers = world_.chance(85);
      known.recalled = true;
      return NFS4_OK;
    }
    // The OPEN's reply may still be on its way.
    return world_.chance(50) ? NFS4ERR_DELAY : NFS4ERR_BAD_STATEID;
  }
  std::optional<Told> tell(const FileHandle& handle) override {
    for (const auto& [file, known] : delegations_) {
      if (!std::ranges::equal(known.handle.bytes(), handle.bytes()) || !known.write) continue;
      if (known.former) continue;
      const std::uint64_t size = size_of(file, known);
      const bool changed = !known.unwritten.empty();
      return Told{known.stateid, size, known.change + (changed ? 1 : 0), changed};
    }
    return std::nullopt;
  }

 protected:
  /// What it does about its delegations, if anything.
  SimRequestPtr tend_delegations(std::size_t slot) {
    if (!freed_.empty() && world_.chance(30)) return free_stateid(slot);
    for (auto& [file, known] : delegations_) {
      if (known.revoked) {
        free_later(known.stateid);
        note_ended(file, known);
        delegations_.erase(file);
        return world_.chance(50) && !freed_.empty() ? free_stateid(slot) : open_by_ended(slot);
      }
      if (known.write && !known.recalled && world_.chance(10)) write_later(known);
      if (!known.recalled && world_.chance(10)) known.opened.push_back(share_by(known));
      if (!known.recalled && world_.chance(2)) known.recalled = known.answers = true;
      if (world_.chance(10)) return open_by(slot, slot, file, known, share_by(known));
      if (!known.recalled || !known.answers || known.busy || world_.chance(60)) continue;
      if (!known.opened.empty()) return tell_of_open(slot, file);
      return known.unwritten.empty() ? give_back(slot, file) : flush(slot, file);
    }
    if (!ended_.empty() && world_.chance(4)) return open_by_ended(slot);
    return world_.chance(1) ? open_by_foreign(slot) : nullptr;
  }
  /// Before it has said that it has reclaimed everything. Null: nothing, or not now.
  SimRequestPtr use_reclaimed() {
    for (const auto& [file, known] : delegations_) {
      if (known.former || known.revoked || world_.chance(40)) continue;
      // An owner of minor version 0 may have to be confirmed first.
      const std::size_t owner = minor_version_ == 0 ? 0 : world_.below(kSlots);
      return open_by(0, owner, file, known, share_by(known));
    }
    return nullptr;
  }
  /// At the end of a tidy client. Null: it has none.
  SimRequestPtr give_back_all(std::size_t slot) {
    if (!delegations_.empty()) {
      const auto& [file, known] = *delegations_.begin();
      return give_back(slot, file);
    }
    return freed_.empty() ? nullptr : free_stateid(slot);
  }
  void forget_delegations() {
    delegations_.clear();
    ended_.clear();
    freed_.clear();
  }
  /// The server has been restarted. What was not written yet stays, for as long as the delegation
  /// may come back.
  void keep_for_reclaim() {
    std::erase_if(delegations_, [](const auto& one) {
      return one.second.revoked || one.second.returned;  // or asked to be
    });
    for (auto& [file, known] : delegations_)
      known.former = true;
    nothing_is_busy();
    freed_.clear();
    // By what is from another life of the server, a client of minor version 0 knows a restart.
    if (minor_version_ == 0) ended_.clear();
  }
  /// What was not reclaimed.
  void give_up_former() {
    std::erase_if(delegations_, [](const auto& one) { return one.second.former; });
  }
  /// It is good for nothing any more.
  void lost(std::size_t file, const xdr::stateid4& stateid) {
    if (Known* its = find(file, stateid)) its->revoked = true;
  }
  std::map<std::size_t, FormerDelegation> former_delegations() override {
    std::map<std::size_t, FormerDelegation> out;
    for (const auto& [file, known] : delegations_) {
      if (known.former) out[file] = {known.handle, known.write};
    }
    return out;
  }
  void delegation_reclaimed(std::size_t file, const Reply4& reply) override {
    Known known = delegations_[file];
    delegations_.erase(file);
    if (minor_version_ > 0) note_ended(file, known);
    if (status_in<OP_OPEN>(reply) != NFS4_OK) return;
    const std::uint64_t change = minor_version_ > 0 ? seen_in(reply).change : 0;
    delegated(file, known.handle, reply.get<OP_OPEN>().resok4, change);
    const auto found = delegations_.find(file);
    if (found == delegations_.end()) return;
    found->second.unwritten = known.unwritten;
    found->second.opened = known.opened;
  }
  /// What was under way has no answer to come any more.
  void nothing_is_busy() {
    for (auto& [file, known] : delegations_)
      known.busy = false;
  }
  /// Those that TEST_STATEID may be asked for.
  const xdr::stateid4* tested(std::size_t file) const {
    const auto found = delegations_.find(file);
    return found == delegations_.end() ? nullptr : &found->second.stateid;
  }

  const xdr::stateid4* delegation_for(std::size_t file, bool writes) override {
    const auto found = delegations_.find(file);
    if (found == delegations_.end() || found->second.revoked) return nullptr;
    return writes && !found->second.write ? nullptr : &found->second.stateid;
  }
  void delegation_revoked(std::size_t file) override {
    const auto found = delegations_.find(file);
    if (found != delegations_.end()) found->second.revoked = true;
  }
  void delegated(std::size_t file, const FileHandle& handle, const xdr::OPEN4resok& res,
                 std::uint64_t change) override {
    using enum xdr::open_delegation_type4;
    const auto type = res.delegation.delegation_type;
    if (type != OPEN_DELEGATE_READ && type != OPEN_DELEGATE_WRITE) return;
    // The one from before must have been revoked.
    if (delegations_.contains(file)) free_later(delegations_[file].stateid);
    Known& known = delegations_[file] = Known();
    known.handle = handle;
    known.write = type == OPEN_DELEGATE_WRITE;
    known.stateid = known.write ? res.delegation.write.stateid : res.delegation.read.stateid;
    known.change = change;
    known.recalled = known.answers =
        known.write ? res.delegation.write.recall : res.delegation.read.recall;
  }

 private:
  struct Known {
    FileHandle handle;
    xdr::stateid4 stateid{};
    bool write = false;
    bool recalled = false;
    bool answers = false;  // to the recall, by giving it back
    bool revoked = false;
    bool returned = false;  // or about to be
    bool former = false;    // from before a restart of the server
    bool busy = false;      // what it does about the recall is under way
    std::uint64_t change = 0;
    std::deque<std::pair<std::size_t, std::string>> unwritten;
    std::deque<SimShare> opened;  // by its programs, which the server does not know yet
  };
  /// One that it had, and what it was of.
  struct Ended {
    std::size_t file = 0;
    Known known;
  };

  void write_later(Known& known) {
    known.unwritten.emplace_back(
        world_.below(250),
        std::string(1 + world_.below(60), static_cast<char>('!' + world_.below(90))));
  }
  /// What the server has, which nobody else writes, and what is to come.
  std::uint64_t size_of(std::size_t file, const Known& known) const {
    std::uint64_t size = world_.model.files[file]->bytes.size();
    for (const auto& [offset, data] : known.unwritten)
      size = std::max<std::uint64_t>(size, offset + data.size());
    return size;
  }

  SimRequestPtr flush(std::size_t slot, std::size_t file) {
    Known& known = delegations_[file];
    known.busy = true;
    const auto [offset, data] = known.unwritten.front();
    return write(slot, file, known.handle, {known.stateid, true}, offset, data,
                 [this, file, stateid = known.stateid](const Reply4& reply) {
                   Known* its = find(file, stateid);
                   if (its == nullptr) return;
                   its->busy = false;
                   if (reply.status == NFS4_OK) its->unwritten.pop_front();
                   // It is good for nothing more.
                   if (reply.status == NFS4ERR_BAD_STATEID || reply.status == NFS4ERR_STALE) {
                     its->revoked = true;
                   }
                 });
  }
  // --- OPENs by delegation ---

  /// Seldom more than was promised.
  SimShare share_by(const Known& known) {
    SimShare out = random_share();
    if (!known.write && world_.chance(90)) out.access = xdr::OPEN4_SHARE_ACCESS_READ;
    return out;
  }
  /// What its programs have open, the server has to know before the delegation is given back.
  SimRequestPtr tell_of_open(std::size_t slot, std::size_t file) {
    Known& known = delegations_[file];
    known.busy = true;
    const SimShare share = known.opened.front();
    known.opened.pop_front();
    return open_by(slot, slot, file, known, share, true);
  }
  SimRequestPtr open_by_ended(std::size_t slot) {
    const Ended& one = ended_[world_.below(ended_.size())];
    return open_by(slot, slot, one.file, one.known, share_by(one.known));
  }
  /// Another client's. Null: nobody has one.
  SimRequestPtr open_by_foreign(std::size_t slot) {
    for (const auto& [other, one] : world_.model.delegations) {
      if (one.client == index_ || world_.chance(30)) continue;
      Known known;
      known.handle = world_.model.files[one.file]->handle;
      known.stateid.seqid = 1;
      known.stateid.other = other;
      known.write = one.write;
      return open_by(slot, slot, one.file, known, share_by(known));
    }
    return nullptr;
  }
  /// By the file's handle, or by the name that it has; now and then by another one's.
  /// `about_recall`: it is what keeps the delegation busy.
  SimRequestPtr open_by(std::size_t slot, std::size_t owner, std::size_t file, const Known& by,
                        const SimShare& share, bool about_recall = false) {
    SimRules::OpenByDelegation wanted{{index_, owner}, share, by.stateid, file, {}};
    xdr::OPEN4args args = open_args(share);
    if (world_.chance(50)) {
      args.share_access = share.access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE;
    }
    const SimTurn turn = next_turn(owner, false, OP_OPEN);
    args.seqid = turn.seqid;
    const std::string owner_text = owner_name("open", owner);
    args.owner.owner = as_bytes(owner_text);
    const bool by_name = minor_version_ == 0 || world_.chance(50);
    FileHandle handle = by.handle;
    if (by_name) {
      for (const auto& [name, number] : world_.model.names) {
        if (number == file) wanted.name = name;
      }
      if (wanted.name.empty() || world_.chance(5)) wanted.name = random_name();
      handle = world_.root();
      args.claim.claim = xdr::open_claim_type4::CLAIM_DELEGATE_CUR;
      args.claim.delegate_cur_info = {by.stateid, wanted.name};
    } else {
      if (world_.chance(5)) {
        wanted.file = world_.below(world_.model.files.size());
        handle = world_.model.files[wanted.file]->handle;
      }
      args.claim.claim = xdr::open_claim_type4::CLAIM_DELEG_CUR_FH;
      args.claim.oc_delegate_stateid = by.stateid;
    }
    SimRequestPtr out = in_slot(
        slot, "OPEN by the delegation of " + std::to_string(file) + " " + wanted.name,
        Operations4().putfh(handle).add<OP_OPEN>(args).add<OP_GETFH>(),
        [this, wanted](const Reply4& reply) { rules_.opened_by_delegation(wanted, reply); },
        [this, owner, file, share, about_recall, stateid = by.stateid](const Reply4& reply) {
          if (Known* its = find(file, stateid)) {
            if (about_recall) its->busy = false;
            its->revoked |= reply.status == NFS4ERR_DELEG_REVOKED ||
                            (minor_version_ == 0 && reply.status == NFS4ERR_BAD_STATEID);
          }
          if (reply.status == NFS4_OK) note_open(owner, share, reply);
        });
    return by_client(out, turn);
  }
  void note_ended(std::size_t file, const Known& known) {
    constexpr std::size_t kRemembered = 3;
    ended_.push_back({file, known});
    if (ended_.size() > kRemembered) ended_.pop_front();
  }

  SimRequestPtr give_back(std::size_t slot, std::size_t file) {
    Known& known = delegations_[file];
    known.busy = known.returned = true;
    SimRequestPtr out = in_slot(
        slot, "DELEGRETURN of " + std::to_string(file),
        Operations4().putfh(known.handle).add<OP_DELEGRETURN>({known.stateid}),
        [this, file, stateid = known.stateid](const Reply4& reply) {
          if (gone_with_delegation({stateid, true}, file, reply)) return;
          rules_.promises.returned(stateid, reply.status);
        },
        [this, file, stateid = known.stateid](const Reply4& reply) {
          if (find(file, stateid) == nullptr) return;
          note_ended(file, delegations_[file]);
          delegations_.erase(file);
          if (reply.status != NFS4_OK) free_later(stateid);
        });
    out->by_delegation = true;
    return by_state(out, file, known.stateid);
  }
  /// Minor version 0 has nothing to do it with.
  void free_later(const xdr::stateid4& stateid) {
    if (minor_version_ > 0) freed_.push_back(stateid);
  }
  SimRequestPtr free_stateid(std::size_t slot) {
    const xdr::stateid4 stateid = freed_.front();
    freed_.pop_front();
    return in_slot(
        slot, "FREE_STATEID", Operations4().add<OP_FREE_STATEID>({stateid}),
        [this, stateid](const Reply4& reply) { rules_.promises.freed(stateid, reply.status); },
        [](const Reply4&) {});
  }
  /// Null: it is no more, or another one.
  Known* find(std::size_t file, const xdr::stateid4& stateid) {
    const auto found = delegations_.find(file);
    const bool same = found != delegations_.end() && found->second.stateid.other == stateid.other;
    return same ? &found->second : nullptr;
  }

  std::map<std::size_t, Known> delegations_;  // by file
  std::deque<xdr::stateid4> freed_;           // to be freed
  std::deque<Ended> ended_;                   // the last few that it has no more
};

}  // namespace nfsrdma::test
