// SPDX-License-Identifier: Apache-2.0
// What the server's answers to OPEN, LOCK and their kin mean, and whether they may be what they
// are: each function is told once that the server has run an operation.
#pragma once

#include "tests/sim/nfs4_sim_request.h"

namespace nfsrdma::test {

class SimRules {
 public:
  explicit SimRules(SimWorld& world) : world_(world), model_(world.model) {}

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
  }

  /// CLAIM_PREVIOUS.
  void reclaimed(const SimOwner& owner, std::size_t number, const SimShare& share,
                 const Reply4& reply) {
    SimTrueClient& client = model_.clients[owner.client];
    SimFile& file = *model_.files[number];
    const bool granted = status_in<OP_OPEN>(reply) == NFS4_OK;
    const bool claims = client.claims.opens.contains({number, owner});
    if (!judge_reclaim(owner.client, file, claims, granted, "OPEN", reply.status)) return;
    if (!file.against(share).empty()) world_.fail("an OPEN was reclaimed against another");
    SimOpen& open = file.opens[owner];
    open.share.add(share);
    open.asked.insert(share);
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
    open.share = share;
    open.asked = stay;
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
  }
  void unlocked(const LockWanted& wanted, const Reply4& reply) {
    expect(reply.status, NFS4_OK, "LOCKU");
    SimLocks& locks = model_.files[wanted.file]->opens[wanted.opener].locks[wanted.locker];
    std::fill(locks.begin() + static_cast<std::ptrdiff_t>(wanted.range.first),
              locks.begin() + static_cast<std::ptrdiff_t>(wanted.range.end), ' ');
  }
  void tested(const LockWanted& wanted, const Reply4& reply) {
    if (refused_by_grace(wanted.locker.client, reply.status)) return;
    const auto against =
        model_.files[wanted.file]->against(wanted.locker, wanted.kind, wanted.range);
    if (!settle_conflict(against, reply.status, NFS4ERR_DENIED, "LOCKT")) return;
    expect(reply.status, NFS4_OK, "LOCKT");
  }

  void removed(std::size_t client, const std::string& name, const Reply4& reply) {
    if (refused_by_grace(client, reply.status)) return;
    const bool there = model_.find(name) != nullptr;
    expect(reply.status, there ? NFS4_OK : NFS4ERR_NOENT, "REMOVE");
    if (there) new_state("REMOVE");
    model_.unlink(name);
  }
  void renamed(std::size_t client, const std::string& from, const std::string& to,
               const Reply4& reply) {
    if (refused_by_grace(client, reply.status)) return;
    const auto found = model_.names.find(from);
    if (found == model_.names.end()) return expect(reply.status, NFS4ERR_NOENT, "RENAME");
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
  /// While somebody is waited for, or before the client has completed.
  bool refused_by_grace(std::size_t client, nfsstat4 status) {
    if (status != NFS4ERR_GRACE) return false;
    if (model_.now >= model_.grace_end && model_.clients[client].completed) {
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
    const bool in_time = model_.now < model_.grace_end && !client.completed;
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
