// SPDX-License-Identifier: Apache-2.0
// What the server's answers to OPEN, LOCK and their kin mean, and whether they may be what they
// are: each function is told once that the server has run an operation.
#pragma once

#include "tests/sim/nfs4_sim_promises.h"

namespace nfsrdma::test {

class SimRules {
 public:
  explicit SimRules(SimWorld& world) : promises(world), world_(world), model_(world.model) {}

  SimPromises promises;

  struct OpenWanted {
    SimOwner owner;
    SimShare share;
    std::string name;
    bool create = false;
    bool guarded = false;
  };
  void opened(const OpenWanted& wanted, const Reply4& reply) {
    const nfsstat4 status = *status_in<OP_OPEN>(reply);
    if (refused_by_grace(wanted.owner.client, status)) return;
    SimFile* file = model_.find(wanted.name);
    if (file == nullptr && !wanted.create) return expect(status, NFS4ERR_NOENT, "OPEN");
    if (file != nullptr && wanted.create && wanted.guarded) {
      return expect(status, NFS4ERR_EXIST, "OPEN");
    }
    if (file != nullptr) {
      const bool disturbs = (wanted.share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0 ||
                            (wanted.share.deny & xdr::OPEN4_SHARE_DENY_READ) != 0;
      const std::size_t number = model_.names.at(wanted.name);
      const bool goes_on = promises.settle(wanted.owner.client, number, disturbs, status, "OPEN",
                                           SimPromises::Own::kMaybe);
      if (!goes_on) return;
      const auto against = file->against(wanted.share);
      if (!settle_conflict(against, status, NFS4ERR_SHARE_DENIED, "OPEN")) return;
    }
    expect(status, NFS4_OK, "OPEN");
    if (status != NFS4_OK) return;
    new_state("OPEN");
    model_.new_state_given = true;
    const FileHandle handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
    if (file == nullptr) {
      if (model_.number_of(handle) != model_.files.size()) world_.fail("OPEN made a known file");
      model_.add_file(wanted.name, handle);
      file = model_.find(wanted.name);
    } else if (!std::ranges::equal(file->handle.bytes(), handle.bytes())) {
      world_.fail("OPEN found another file");
    }
    SimOpen& open = file->opens[wanted.owner];
    open.share.add(wanted.share);
    open.asked.insert(wanted.share);
    now_known_by(&open.stateid, reply.get<OP_OPEN>().resok4.stateid, "OPEN");
    recorded(wanted.owner.client);
    given(wanted.owner.client, model_.names.at(wanted.name), reply);
  }

  /// CLAIM_PREVIOUS. `dummy`: for the sake of a delegation alone, without an open from before (RFC
  /// 8881 10.2.1), which may stand against opens of the client's own.
  void reclaimed(const SimOwner& owner, std::size_t number, const SimShare& share, bool dummy,
                 const Reply4& reply) {
    SimTrueClient& client = model_.clients[owner.client];
    SimFile& file = *model_.files[number];
    const nfsstat4 status = *status_in<OP_OPEN>(reply);
    const bool granted = status == NFS4_OK;
    if (granted || status == NFS4ERR_DELAY) {
      const bool disturbs = (share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0 ||
                            (share.deny & xdr::OPEN4_SHARE_DENY_READ) != 0;
      if (!promises.settle(owner.client, number, disturbs, status, "OPEN",
                           SimPromises::Own::kMaybe)) {
        return;
      }
    }
    const bool claims = dummy ? client.claims.delegations.contains(number)
                              : client.claims.opens.contains({number, owner});
    if (dummy && !granted) return;
    if (!judge_reclaim(owner.client, file, claims, granted, "OPEN", status)) return;
    if (!file.against(share).empty()) world_.fail("an OPEN was reclaimed against another");
    SimOpen& open = file.opens[owner];
    open.share.add(share);
    open.asked.insert(share);
    now_known_by(&open.stateid, reply.get<OP_OPEN>().resok4.stateid, "OPEN");
    recorded(owner.client);
    reclaimed_delegation(owner.client, number, reply);
  }
  /// CLAIM_DELEGATE_CUR and CLAIM_DELEG_CUR_FH: what the client was promised, it may have at once
  /// (RFC 8881 10.4, 18.16.3), also where who has no delegation waits for the end of a grace
  /// period.
  struct OpenByDelegation {
    SimOwner owner;
    SimShare share;
    xdr::stateid4 delegation{};
    std::size_t file = 0;
    std::string name;  // in place of `file`'s handle
  };
  void opened_by_delegation(const OpenByDelegation& wanted, const Reply4& reply) {
    const auto answered = status_in<OP_OPEN>(reply);
    if (!answered) {
      // Its handle is of a file without a name that nobody holds any more.
      const bool gone = !model_.files[wanted.file]->linked && !model_.is_held(wanted.file);
      return expect(reply.status, gone ? NFS4ERR_STALE : NFS4_OK, "PUTFH");
    }
    const nfsstat4 status = *answered;
    std::size_t number = wanted.file;
    if (!wanted.name.empty()) {
      const auto found = model_.names.find(wanted.name);
      if (found == model_.names.end()) return expect(status, NFS4ERR_NOENT, "OPEN");
      number = found->second;
    }
    if (!may_open_by(wanted, number, status)) return;
    SimFile& file = *model_.files[number];
    const bool disturbs = (wanted.share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0 ||
                          (wanted.share.deny & xdr::OPEN4_SHARE_DENY_READ) != 0;
    if (!promises.settle(wanted.owner.client, number, disturbs, status, "OPEN")) return;
    const auto against = file.against(wanted.share);
    const SimDelegation& by = model_.delegations.at(wanted.delegation.other);
    // Who reads without denying that to others, and who has a write delegation, meets only himself.
    if ((by.write || !disturbs) && std::ranges::any_of(against, [&](std::size_t client) {
          return client != wanted.owner.client && !model_.clients[client].unsure;
        })) {
      world_.fail("an open stands against a delegation");
    }
    if (!settle_conflict(against, status, NFS4ERR_SHARE_DENIED, "OPEN")) {
      ++model_.by_delegation.denied;
      return;
    }
    expect(status, NFS4_OK, "OPEN");
    if (status != NFS4_OK) return;
    const FileHandle handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
    if (!std::ranges::equal(file.handle.bytes(), handle.bytes())) {
      world_.fail("OPEN found another file");
    }
    SimOpen& open = file.opens[wanted.owner];
    open.share.add(wanted.share);
    open.asked.insert(wanted.share);
    now_known_by(&open.stateid, reply.get<OP_OPEN>().resok4.stateid, "OPEN");
    note_opened_by(wanted, by);
    recorded(wanted.owner.client);
    given(wanted.owner.client, number, reply);  // nothing, since it has one
  }
  /// OPEN_CONFIRM.
  void confirmed(const SimOwner& owner, std::size_t number, const Reply4& reply) {
    expect(reply.status, NFS4_OK, "OPEN_CONFIRM");
    if (reply.status != NFS4_OK) return;
    now_known_by(&model_.files[number]->opens[owner].stateid,
                 reply.get<OP_OPEN_CONFIRM>().resok4.open_stateid, "OPEN_CONFIRM");
  }

  void closed(const SimOwner& owner, std::size_t number, const Reply4& reply) {
    expect(reply.status, NFS4_OK, "CLOSE");
    model_.files[number]->opens.erase(owner);
  }

  void downgraded(const SimOwner& owner, std::size_t number, const SimShare& share,
                  const Reply4& reply) {
    SimOpen& open = model_.files[number]->opens[owner];
    SimShare sum;
    std::set<SimShare> stay;
    for (const SimShare& asked : open.asked) {
      if (!asked.within(share)) continue;
      sum.add(asked);
      stay.insert(asked);
    }
    if (sum != share) return expect(reply.status, NFS4ERR_INVAL, "OPEN_DOWNGRADE");
    expect(reply.status, NFS4_OK, "OPEN_DOWNGRADE");
    if (reply.status != NFS4_OK) return;
    open.share = share;
    open.asked = stay;
    now_known_by(&open.stateid, reply.get<OP_OPEN_DOWNGRADE>().resok4.open_stateid,
                 "OPEN_DOWNGRADE");
  }

  struct LockWanted {
    SimOwner opener;
    SimOwner locker;
    std::size_t file = 0;
    char kind = 'r';
    SimRange range;
    bool reclaim = false;
  };
  void locked(const LockWanted& wanted, const Reply4& reply) {
    SimFile& file = *model_.files[wanted.file];
    const auto opened = file.opens.find(wanted.opener);
    if (opened == file.opens.end()) return world_.fail("LOCK ran without an open");
    SimOpen& open = opened->second;
    const nfsstat4 status = reply.status;
    const auto against = file.against(wanted.locker, wanted.kind, wanted.range);
    if (wanted.reclaim) {
      const auto claim =
          model_.clients[wanted.locker.client].claims.locks.find({wanted.file, wanted.locker});
      bool claims = claim != model_.clients[wanted.locker.client].claims.locks.end();
      for (std::size_t at = wanted.range.first; claims && at < wanted.range.end; ++at)
        claims = claim->second[at] == 'w' || claim->second[at] == wanted.kind;
      const bool granted = status == NFS4_OK;
      if (!judge_reclaim(wanted.locker.client, file, claims, granted, "LOCK", status)) return;
      if (!against.empty()) world_.fail("a lock was reclaimed against another");
    } else {
      if (refused_by_grace(wanted.locker.client, status)) return;
      const bool tells = status == NFS4_OK || status == NFS4ERR_DELAY;
      if (tells && !promises.settle(wanted.locker.client, wanted.file, wanted.kind == 'w', status,
                                    "LOCK", SimPromises::Own::kMaybe)) {
        return;
      }
      const std::uint32_t needs =
          wanted.kind == 'w' ? xdr::OPEN4_SHARE_ACCESS_WRITE : xdr::OPEN4_SHARE_ACCESS_READ;
      const bool may = (open.share.access & needs) != 0;
      // Once there is a lock state, its access is that of when it was made.
      const bool certain = !open.locks.contains(wanted.locker);
      if (status == NFS4ERR_OPENMODE && (!may || !certain)) return;
      if (!may && certain) return expect(status, NFS4ERR_OPENMODE, "LOCK");
      if (!settle_conflict(against, status, NFS4ERR_DENIED, "LOCK")) return;
      expect(status, NFS4_OK, "LOCK");
      if (status != NFS4_OK) return;
      new_state("LOCK");
      model_.new_state_given = true;
    }
    SimLocks& locks = open.locks.try_emplace(wanted.locker, no_locks()).first->second;
    std::fill(locks.begin() + static_cast<std::ptrdiff_t>(wanted.range.first),
              locks.begin() + static_cast<std::ptrdiff_t>(wanted.range.end), wanted.kind);
    now_known_by(&open.lock_stateids[wanted.locker], reply.get<OP_LOCK>().resok4.lock_stateid,
                 "LOCK");
  }
  void unlocked(const LockWanted& wanted, const Reply4& reply) {
    expect(reply.status, NFS4_OK, "LOCKU");
    if (reply.status != NFS4_OK) return;
    SimOpen& open = model_.files[wanted.file]->opens[wanted.opener];
    now_known_by(&open.lock_stateids[wanted.locker], reply.get<OP_LOCKU>().resok4, "LOCKU");
    SimLocks& locks = open.locks[wanted.locker];
    std::fill(locks.begin() + static_cast<std::ptrdiff_t>(wanted.range.first),
              locks.begin() + static_cast<std::ptrdiff_t>(wanted.range.end), ' ');
  }
  /// RELEASE_LOCKOWNER.
  void released(const SimOwner& locker, const Reply4& reply) {
    bool holds = false;
    for (const auto& file : model_.files) {
      for (const auto& [opener, open] : file->opens) {
        const auto its = open.locks.find(locker);
        holds |= its != open.locks.end() && its->second != no_locks();
      }
    }
    expect(reply.status, holds ? NFS4ERR_LOCKS_HELD : NFS4_OK, "RELEASE_LOCKOWNER");
    if (reply.status != NFS4_OK) return;
    for (const auto& file : model_.files) {
      for (auto& [opener, open] : file->opens) {
        open.locks.erase(locker);
        open.lock_stateids.erase(locker);
      }
    }
  }
  void tested(const LockWanted& wanted, const Reply4& reply) {
    if (refused_by_grace(wanted.locker.client, reply.status)) return;
    if (!promises.settle(wanted.locker.client, wanted.file, false, reply.status, "LOCKT",
                         SimPromises::Own::kMaybe)) {
      return;
    }
    const auto against =
        model_.files[wanted.file]->against(wanted.locker, wanted.kind, wanted.range);
    if (!settle_conflict(against, reply.status, NFS4ERR_DENIED, "LOCKT")) return;
    expect(reply.status, NFS4_OK, "LOCKT");
  }

  void removed(std::size_t client, const std::string& name, const Reply4& reply) {
    if (refused_by_grace(client, reply.status)) return;
    const bool there = model_.find(name) != nullptr;
    if (there && !may_change(client, name, reply.status, "REMOVE")) return;
    expect(reply.status, there ? NFS4_OK : NFS4ERR_NOENT, "REMOVE");
    if (there) new_state("REMOVE");
    model_.unlink(name);
  }
  void renamed(std::size_t client, const std::string& from, const std::string& to,
               const Reply4& reply) {
    if (refused_by_grace(client, reply.status)) return;
    const auto found = model_.names.find(from);
    if (found == model_.names.end()) {
      // What would be replaced is looked at first.
      const bool waits = reply.status == NFS4ERR_DELAY;
      if (waits && !may_change(client, to, reply.status, "RENAME")) return;
      return expect(reply.status, NFS4ERR_NOENT, "RENAME");
    }
    const bool changes = from != to || reply.status == NFS4ERR_DELAY;
    if (changes && !may_change(client, from, to, reply.status)) return;
    expect(reply.status, NFS4_OK, "RENAME");
    new_state("RENAME");
    if (from == to) return;
    const std::size_t number = found->second;
    model_.unlink(to);
    model_.names.erase(from);
    model_.names[to] = number;
  }

  void expect(nfsstat4 status, nfsstat4 wanted, const char* what) {
    if (status != wanted) {
      world_.fail(std::string(what) + ": " + number_text(status) + " instead of " +
                  number_text(wanted));
    }
  }

 private:
  /// False: not by that delegation, rightly.
  bool may_open_by(const OpenByDelegation& wanted, std::size_t number, nfsstat4 status) {
    SimModel::ByDelegation& seen = model_.by_delegation;
    const auto found = model_.delegations.find(wanted.delegation.other);
    const bool ended = found == model_.delegations.end();
    if (ended || found->second.client != wanted.owner.client) {
      ++(ended ? seen.ended : seen.foreign);
      expect(status, NFS4ERR_BAD_STATEID, "OPEN");
      return false;
    }
    const SimDelegation& by = found->second;
    const bool other = by.file != number;
    // To minor version 0 the same is said of one that is gone.
    if (other && model_.is_old(wanted.owner.client)) {
      ++seen.other_file;
      expect(status, NFS4ERR_BAD_STATEID, "OPEN");
      return false;
    }
    // What is asked of it is looked at once it is known to be good.
    const bool misused = other && status == NFS4ERR_BAD_STATEID;
    if (!promises.used(wanted.delegation, misused ? NFS4_OK : status, "OPEN")) {
      ++seen.revoked;
      return false;
    }
    if (other) {
      ++seen.other_file;
      expect(status, NFS4ERR_BAD_STATEID, "OPEN");
      return false;
    }
    if (!by.write && (wanted.share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0) {
      ++seen.only_read;
      expect(status, NFS4ERR_OPENMODE, "OPEN");
      return false;
    }
    return true;
  }
  void note_opened_by(const OpenByDelegation& wanted, const SimDelegation& by) {
    SimModel::ByDelegation& seen = model_.by_delegation;
    ++seen.done;
    seen.recalled += by.certain_since.has_value();
    seen.in_grace += model_.is_grace() || !model_.clients[wanted.owner.client].completed;
    seen.by_name += !wanted.name.empty();
  }
  /// It is promised again what it was promised before, unless that was revoked.
  void reclaimed_delegation(std::size_t client, std::size_t number, const Reply4& reply) {
    using enum xdr::open_delegation_type4;
    const auto type = reply.get<OP_OPEN>().resok4.delegation.delegation_type;
    auto& claims = model_.clients[client].claims.delegations;
    const auto claim = claims.find(number);
    const bool old = model_.is_old(client);
    if (type != OPEN_DELEGATE_READ && type != OPEN_DELEGATE_WRITE) {
      model_.old.kept_from_it += old && claim != claims.end() && claim->second.revoked;
      return;
    }
    if (claim == claims.end() || claim->second.write != (type == OPEN_DELEGATE_WRITE)) {
      return world_.fail("a delegation was reclaimed by whom it did not belong to");
    }
    if (claim->second.revoked) return world_.fail("a revoked delegation was reclaimed");
    model_.old.reclaimed += old;
    claims.erase(claim);
    ++model_.delegations_reclaimed;
    given(client, number, reply);
  }
  /// The OPEN may have brought a delegation along.
  void given(std::size_t client, std::size_t number, const Reply4& reply) {
    const auto delegation = reply.get<OP_OPEN>().resok4.delegation;
    switch (delegation.delegation_type) {
      case xdr::open_delegation_type4::OPEN_DELEGATE_READ:
        return promises.given(client, number, false, delegation.read.stateid,
                              delegation.read.recall);
      case xdr::open_delegation_type4::OPEN_DELEGATE_WRITE:
        return promises.given(client, number, true, delegation.write.stateid,
                              delegation.write.recall);
      default:
        return;
    }
  }
  /// In minor version 0 REMOVE and RENAME do not say whose they are: their connection does, once
  /// the client has named itself there. So the holder may have to wait, and nobody else may not.
  std::size_t by_name(std::size_t client, nfsstat4 status) const {
    return model_.is_old(client) && status == NFS4ERR_DELAY ? SimPromises::kNobody : client;
  }
  bool may_change(std::size_t client, const std::string& name, nfsstat4 status, const char* what) {
    const auto found = model_.names.find(name);
    if (found == model_.names.end()) return true;
    if (!promises.settle(by_name(client, status), found->second, true, status, what)) return false;
    if (status == NFS4_OK) promises.changed_by(client, found->second);
    return true;
  }
  /// RENAME: of one file or the other.
  bool may_change(std::size_t client, const std::string& from, const std::string& to,
                  nfsstat4 status) {
    if (status != NFS4ERR_DELAY) {
      return may_change(client, from, status, "RENAME") && may_change(client, to, status, "RENAME");
    }
    const auto other = model_.names.find(to);
    const std::size_t first = model_.names.at(from);
    const std::size_t second = other == model_.names.end() ? first : other->second;
    promises.settle_either(by_name(client, status), first, second, "RENAME");
    return false;
  }
  /// The state has a stateid of its own, one step on from the last one.
  void now_known_by(xdr::stateid4* known, const xdr::stateid4& told, const char* what) {
    const bool first = known->seqid == 0;
    if (first ? told.seqid != 1 || model_.was_given(told)
              : told.other != known->other || told.seqid != known->seqid + 1) {
      world_.fail(std::string(what) + ": a stateid that is not the next one");
    }
    *known = told;
    model_.note_stateid(told);
  }
  /// In minor version 0 that is what a client does before it holds anything.
  void recorded(std::size_t client) {
    if (model_.clients[client].never_completes) model_.clients[client].completed = true;
  }
  /// While somebody is waited for, or before the client has completed.
  bool refused_by_grace(std::size_t client, nfsstat4 status) {
    if (status != NFS4ERR_GRACE) return false;
    const SimTrueClient& its = model_.clients[client];
    if (model_.now >= model_.grace_end && (its.completed || its.never_completes)) {
      world_.fail("NFS4ERR_GRACE after the grace period");
    }
    return true;
  }
  void new_state(const char* what) {
    if (model_.is_grace()) world_.fail(std::string(what) + " while others may reclaim");
  }
  /// False: it was refused, and rightly so.
  bool settle_conflict(const std::set<std::size_t>& against, nfsstat4 status, nfsstat4 refusal,
                       const char* what) {
    if (against.empty()) return true;
    const bool gone = model_.all_expired(against);
    if (status == refusal && !gone) {
      // Of several, those that are expired may have been ended before one was met that is not.
      for (std::size_t client : against)
        model_.clients[client].unsure |= model_.expired(client);
      return false;
    }
    if (!gone) world_.fail(std::string(what) + " was granted against another client's");
    world_.evict(against);
    return true;
  }
  /// True: granted, and so it should be.
  bool judge_reclaim(std::size_t number, const SimFile& file, bool claims, bool granted,
                     const char* what, nfsstat4 status) {
    const SimTrueClient& client = model_.clients[number];
    const bool in_time =
        model_.now < model_.grace_end && (!client.completed || client.never_completes);
    if (granted && (!in_time || !client.may_reclaim || !claims)) {
      world_.fail(std::string(what) + " was reclaimed by whom it did not belong to");
    }
    if (!granted && in_time && client.must_reclaim && claims && file.linked && !client.unsure) {
      world_.fail(std::string(what) + " could not be reclaimed: " + number_text(status));
    }
    return granted;
  }

  SimWorld& world_;
  SimModel& model_;
};

}  // namespace nfsrdma::test
