// SPDX-License-Identifier: Apache-2.0
// SimFileClient: a client of any minor version that does at random what clients do with files.
#pragma once

#include "tests/sim/nfs4_sim_client.h"

namespace nfsrdma::test {

class SimFileClient : public SimClient {
 public:
  static constexpr std::size_t kNames = 4;

  using SimClient::SimClient;

 protected:
  /// Now and then, what clients of its minor version do beside files; null: nothing just now.
  virtual SimRequestPtr rare_request(std::size_t slot) = 0;
  /// And what they ask of an open file that others do not.
  virtual SimRequestPtr own_request(std::size_t slot, std::size_t file) = 0;
  bool nothing_pending() const {
    return std::ranges::none_of(pending, [](const SimRequestPtr& one) { return one != nullptr; });
  }

  std::string random_name() { return owner_name("f", world_.below(kNames)); }
  SimShare random_share() {
    SimShare out;
    out.access = 1 + static_cast<std::uint32_t>(world_.below(3));
    if (world_.chance(25)) out.deny = 1 + static_cast<std::uint32_t>(world_.below(3));
    return out;
  }
  SimRange random_range() {
    const std::size_t first = world_.below(kLockable - 1);
    return {first, first + 1 + world_.below(kLockable - first)};
  }

  static bool allows(const SimShare& share, char kind) {
    const std::uint32_t needs =
        kind == 'w' ? xdr::OPEN4_SHARE_ACCESS_WRITE : xdr::OPEN4_SHARE_ACCESS_READ;
    return (share.access & needs) != 0;
  }

  /// What it does between the restarts.
  SimRequestPtr random_request(std::size_t slot) {
    const std::size_t dice = world_.below(100);
    if (dice < 3) return remove(slot);
    if (dice < 6) return rename(slot);
    if (dice < 7) {
      if (SimRequestPtr rare = rare_request(slot)) return rare;
    }
    if (dice < 10) {
      if (SimRequestPtr look = getattr(slot)) return look;
    }
    if (opens_[slot].empty() || dice < 24) return open(slot);
    auto it = opens_[slot].begin();
    std::advance(it, static_cast<std::ptrdiff_t>(world_.below(opens_[slot].size())));
    const std::size_t file = it->first;
    const std::size_t locker = 2 * slot + world_.below(2);
    char kind = world_.chance(50) ? 'r' : 'w';
    // What its open no longer allows, a lock state may still take; a restart would tell.
    if (it->second.locks.contains(locker) && !allows(it->second.share, kind)) {
      kind = kind == 'r' ? 'w' : 'r';
    }
    if (dice < 32) return close(slot, file);
    if (dice < 38) return downgrade(slot, file);
    if (dice < 56) return lock(slot, file, locker, kind, random_range(), false);
    if (dice < 64 && it->second.locks.contains(locker)) return unlock(slot, file, locker);
    if (dice < 68) return test_lock(slot, file, locker, kind);
    if (dice < 72) return own_request(slot, file);
    if (dice < 76) return commit(slot, file);
    const bool writes = (it->second.share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
    const bool reads = (it->second.share.access & xdr::OPEN4_SHARE_ACCESS_READ) != 0;
    return writes && (!reads || world_.chance(60)) ? write(slot, file) : read(slot, file);
  }

  SimRequestPtr open(std::size_t owner) {
    SimRules::OpenWanted wanted{{index_, owner}, random_share(), random_name(), false, false};
    // What alone brings one of minor version 0 a delegation.
    if (minor_version_ == 0 && world_.chance(50)) {
      wanted.share = {xdr::OPEN4_SHARE_ACCESS_READ, xdr::OPEN4_SHARE_DENY_NONE};
    }
    wanted.create = world_.chance(60);
    wanted.guarded = wanted.create && world_.chance(30);
    std::array<std::byte, 4> mode{};
    store_be32(mode.data(), 0644);
    const SimTurn turn = next_turn(owner, false, OP_OPEN);
    xdr::OPEN4args args = open_args(wanted.share);
    args.seqid = turn.seqid;
    if (minor_version_ > 0 && world_.chance(40)) {
      args.share_access = wanted.share.access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE;
    }
    const std::string name = owner_name("open", owner);
    args.owner.owner = as_bytes(name);
    args.claim.file = wanted.name;
    if (wanted.create) {
      args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
      args.openhow.how.mode =
          wanted.guarded ? xdr::createmode4::GUARDED4 : xdr::createmode4::UNCHECKED4;
      args.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
      args.openhow.how.createattrs.attr_vals = mode;
    }
    Operations4 operations;
    operations.putfh(world_.root()).add<OP_OPEN>(args).add<OP_GETFH>();
    // What comes behind would not be the same in a replay of minor version 0.
    if (minor_version_ > 0) operations.add<OP_GETATTR>({kLooks});
    SimRequestPtr out = in_slot(
        owner, "OPEN " + wanted.name, operations,
        [this, wanted](const Reply4& reply) { rules_.opened(wanted, reply); },
        [this, owner, share = wanted.share](const Reply4& reply) {
          if (reply.status != NFS4_OK) return;
          const std::size_t file = note_open(owner, share, reply);
          const KnownOpen& known = *find_open(owner, file);
          const auto res = reply.get<OP_OPEN>().resok4;
          delegated(file, known.handle, res, minor_version_ > 0 ? seen_in(reply).change : 0);
        });
    return by_client(out, turn);
  }
  /// Of which file it was.
  std::size_t note_open(std::size_t owner, const SimShare& share, const Reply4& reply) {
    const FileHandle handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
    const std::size_t file = world_.model.number_of(handle);
    KnownOpen& known = opens_[owner][file];
    known.handle = handle;
    known.share.add(share);
    const auto res = reply.get<OP_OPEN>().resok4;
    take(&known.stateid, res.stateid, "OPEN");
    opened(owner, file, res.rflags);
    return file;
  }
  SimRequestPtr close(std::size_t owner, std::size_t file) {
    const KnownOpen open = *find_open(owner, file);
    opens_[owner].erase(file);
    const SimTurn turn = next_turn(owner, false, OP_CLOSE);
    SimRequestPtr out = in_slot(
        owner, "CLOSE of file " + std::to_string(file),
        Operations4().putfh(open.handle).add<OP_CLOSE>({turn.seqid, open.stateid}),
        [this, owner, file](const Reply4& reply) {
          rules_.closed({index_, owner}, file, reply);
        },
        [](const Reply4&) {});
    return by_state(out, file, open.stateid, turn);
  }
  SimRequestPtr downgrade(std::size_t owner, std::size_t file) {
    KnownOpen& open = *find_open(owner, file);
    SimShare share = random_share();
    const SimShare before = open.share;
    // What its locks need, it keeps.
    share.access &= before.access;
    if (share.access == 0 || !open.locks.empty()) share.access = before.access;
    share.deny &= before.deny;
    open.share = share;
    const SimTurn turn = next_turn(owner, false, OP_OPEN_DOWNGRADE);
    SimRequestPtr out = in_slot(
        owner, "OPEN_DOWNGRADE of file " + std::to_string(file),
        Operations4()
            .putfh(open.handle)
            .add<OP_OPEN_DOWNGRADE>({open.stateid, turn.seqid, share.access, share.deny}),
        [this, owner, file, share](const Reply4& reply) {
          rules_.downgraded({index_, owner}, file, share, reply);
        },
        [this, owner, file, share, before](const Reply4& reply) {
          KnownOpen& known = *find_open(owner, file);
          known.share = reply.status == NFS4_OK ? share : before;
          if (reply.status != NFS4_OK) return;  // no OPENs make that up
          take(&known.stateid, reply.get<OP_OPEN_DOWNGRADE>().resok4.open_stateid,
               "OPEN_DOWNGRADE");
        });
    return by_state(out, file, open.stateid, turn);
  }

  SimRequestPtr unlock(std::size_t owner, std::size_t file, std::size_t locker) {
    KnownOpen& open = *find_open(owner, file);
    const SimRange range = random_range();
    KnownLocks& locks = open.locks[locker];
    if (locks.stateid.seqid == 0) return read(owner, file);
    std::fill(locks.bytes.begin() + static_cast<std::ptrdiff_t>(range.first),
              locks.bytes.begin() + static_cast<std::ptrdiff_t>(range.end), ' ');
    const SimTurn turn = next_turn(locker, true, OP_LOCKU);
    xdr::LOCKU4args args;
    args.seqid = turn.seqid;
    args.locktype = xdr::nfs_lock_type4::WRITE_LT;
    args.lock_stateid = locks.stateid;
    args.offset = range.first;
    args.length = range.end - range.first;
    const SimRules::LockWanted wanted{{index_, owner}, {index_, locker}, file, 'w', range, false};
    SimRequestPtr out = in_slot(
        owner,
        "LOCKU of " + std::to_string(file) + " " + std::to_string(range.first) + "-" +
            std::to_string(range.end),
        Operations4().putfh(open.handle).add<OP_LOCKU>(args),
        [this, wanted](const Reply4& reply) { rules_.unlocked(wanted, reply); },
        [this, wanted](const Reply4& reply) {
          if (reply.status != NFS4_OK) return;
          take(&find_open(wanted.opener.number, wanted.file)->locks[wanted.locker.number].stateid,
               reply.get<OP_LOCKU>().resok4, "LOCKU");
        });
    return by_state(out, file, locks.stateid, turn);
  }
  SimRequestPtr test_lock(std::size_t owner, std::size_t file, std::size_t locker, char kind) {
    const SimRange range = random_range();
    xdr::LOCKT4args args;
    args.locktype = kind == 'w' ? xdr::nfs_lock_type4::WRITE_LT : xdr::nfs_lock_type4::READ_LT;
    args.offset = range.first;
    args.length = range.end - range.first;
    const std::string name = owner_name("lock", locker);
    args.owner = {id_, as_bytes(name)};
    const SimRules::LockWanted wanted{{index_, owner}, {index_, locker}, file, kind, range, false};
    SimRequestPtr out = in_slot(
        owner, "LOCKT of " + std::to_string(file),
        Operations4().putfh(find_open(owner, file)->handle).add<OP_LOCKT>(args),
        [this, wanted](const Reply4& reply) { rules_.tested(wanted, reply); }, [](const Reply4&) {},
        false);
    out->file = file;
    return by_client(out);
  }
  /// By what a request of data goes: an open, or a delegation.
  struct By {
    xdr::stateid4 stateid;
    bool delegation = false;
  };
  By by_which(std::size_t owner, std::size_t file, bool writes) {
    const xdr::stateid4* delegation = delegation_for(file, writes);
    if (delegation != nullptr && world_.chance(50)) return {*delegation, true};
    return {find_open(owner, file)->stateid, false};
  }
  /// False: it was refused for a delegation's sake, rightly.
  bool may_use(const By& by, std::size_t file, bool writes, nfsstat4 status, const char* what) {
    if (by.delegation && !rules_.promises.used(by.stateid, status, what)) return false;
    return rules_.promises.settle(index_, file, writes, status, what, SimPromises::Own::kMaybe);
  }
  SimRequestPtr write(std::size_t owner, std::size_t file) {
    const std::size_t offset = world_.below(200);
    const std::string data(1 + world_.below(60), static_cast<char>('!' + world_.below(90)));
    return write(owner, file, find_open(owner, file)->handle, by_which(owner, file, true), offset,
                 data, [](const Reply4&) {});
  }
  SimRequestPtr write(std::size_t slot, std::size_t file, const FileHandle& handle, const By& by,
                      std::size_t offset, const std::string& data,
                      std::function<void(const Reply4&)> then) {
    const auto stable = static_cast<xdr::stable_how4>(world_.below(3));
    SimRequestPtr out = in_slot(
        slot, "WRITE to " + std::to_string(file) + " at " + std::to_string(offset),
        Operations4().putfh(handle).add<OP_WRITE>({by.stateid, offset, stable, {as_bytes(data)}}),
        [this, file, offset, data, by](const Reply4& reply) {
          if (gone_with_delegation(by, file, reply)) return;
          if (!may_use(by, file, true, reply.status, "WRITE")) return;
          rules_.expect(reply.status, NFS4_OK, "WRITE");
          if (reply.status != NFS4_OK) return;
          const auto res = reply.get<OP_WRITE>().resok4;
          if (res.count != data.size()) world_.fail("WRITE wrote less");
          world_.verifier_seen(res.writeverf);
          world_.model.files[file]->set(offset, data, res.committed != xdr::stable_how4::UNSTABLE4);
        },
        [this, file, then = std::move(then)](const Reply4& reply) {
          if (reply.status == NFS4ERR_DELEG_REVOKED) delegation_revoked(file);
          then(reply);
        });
    out->by_delegation = by.delegation;
    return by_state(out, file, by.stateid);
  }
  /// A file without a name that nothing but a delegation held, which was revoked.
  bool gone_with_delegation(const By& by, std::size_t file, const Reply4& reply) {
    const bool stale = reply.status == NFS4ERR_STALE && by.delegation;
    return stale && !world_.model.files[file]->linked && !world_.model.is_held(file);
  }
  SimRequestPtr read(std::size_t owner, std::size_t file) {
    const By by = by_which(owner, file, false);
    const std::size_t offset = world_.below(220);
    const std::size_t count = 1 + world_.below(200);
    SimRequestPtr out = in_slot(
        owner, "READ of " + std::to_string(file),
        Operations4()
            .putfh(find_open(owner, file)->handle)
            .add<OP_READ>({by.stateid, offset, static_cast<std::uint32_t>(count)}),
        [this, file, offset, count, by](const Reply4& reply) {
          // A client may have nothing but the right to write.
          if (reply.status == NFS4ERR_OPENMODE || reply.status == NFS4ERR_LOCKED) return;
          if (gone_with_delegation(by, file, reply)) return;
          if (!may_use(by, file, false, reply.status, "READ")) return;
          rules_.expect(reply.status, NFS4_OK, "READ");
          if (reply.status != NFS4_OK) return;
          const std::string& bytes = world_.model.files[file]->bytes;
          const std::string want = offset < bytes.size() ? bytes.substr(offset, count) : "";
          if (as_text(reply.get<OP_READ>().resok4.data.bytes) != want) {
            world_.fail("READ of file " + std::to_string(file) + " has other bytes");
          }
        },
        [this, file](const Reply4& reply) {
          if (reply.status == NFS4ERR_DELEG_REVOKED) delegation_revoked(file);
        },
        false);
    out->by_delegation = by.delegation;
    return by_state(out, file, by.stateid);
  }
  /// Of any file that there is. Null: there is none.
  SimRequestPtr getattr(std::size_t slot) {
    const auto& names = world_.model.names;
    if (names.empty()) return nullptr;
    auto some = names.begin();
    std::advance(some, static_cast<std::ptrdiff_t>(world_.below(names.size())));
    const std::size_t file = some->second;
    SimRequestPtr out = in_slot(
        slot, "GETATTR of " + std::to_string(file),
        Operations4().putfh(world_.model.files[file]->handle).add<OP_GETATTR>({kLooks}),
        [this, file](const Reply4& reply) {
          const SimModel& model = world_.model;
          const bool stale = status_in<OP_PUTFH>(reply) == NFS4ERR_STALE;
          if (stale && !model.files[file]->linked && !model.is_held(file)) return;
          const auto seen = seen_in(reply);
          rules_.promises.looked(index_, file, reply.status, seen.size, seen.change);
        },
        [](const Reply4&) {}, false);
    out->file = file;
    out->looks = true;
    return out;
  }
  SimRequestPtr commit(std::size_t owner, std::size_t file) {
    const KnownOpen& open = *find_open(owner, file);
    SimRequestPtr out = in_slot(
        owner, "COMMIT of " + std::to_string(file),
        Operations4().putfh(open.handle).add<OP_COMMIT>({0, 0}),
        [this, file](const Reply4& reply) {
          if (reply.status == NFS4ERR_DELAY) {
            rules_.promises.settle(index_, file, false, reply.status, "COMMIT",
                                   SimPromises::Own::kMaybe);
            return;
          }
          rules_.expect(reply.status, NFS4_OK, "COMMIT");
          if (reply.status != NFS4_OK) return;
          world_.verifier_seen(reply.get<OP_COMMIT>().resok4.writeverf);
          world_.model.files[file]->all_stable();
        },
        [](const Reply4&) {});
    out->file = file;
    return out;
  }
  SimRequestPtr remove(std::size_t slot) {
    const std::string name = random_name();
    return in_slot(
        slot, "REMOVE " + name, Operations4().putfh(world_.root()).add<OP_REMOVE>({name}),
        [this, name](const Reply4& reply) { rules_.removed(index_, name, reply); },
        [](const Reply4&) {});
  }
  SimRequestPtr rename(std::size_t slot) {
    const std::string from = random_name(), to = random_name();
    return in_slot(
        slot, "RENAME " + from + " " + to,
        Operations4().putfh(world_.root()).add<OP_SAVEFH>().add<OP_RENAME>({from, to}),
        [this, from, to](const Reply4& reply) { rules_.renamed(index_, from, to, reply); },
        [](const Reply4&) {});
  }
};

}  // namespace nfsrdma::test
