// SPDX-License-Identifier: Apache-2.0
// SimClient: a client that does at random what clients do with files.
#pragma once

#include "tests/sim/nfs4_sim_session.h"

namespace nfsrdma::test {

class SimClient final : public SimSessionClient {
 public:
  static constexpr std::size_t kNames = 4;

  using SimSessionClient::SimSessionClient;

 private:
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

  SimRequestPtr random_request(std::size_t slot) override {
    const std::size_t dice = world_.below(100);
    if (dice < 3) return remove(slot);
    if (dice < 6) return rename(slot);
    if (dice < 7 && nothing_pending()) return destroy_session();
    if (opens_[slot].empty() || dice < 22) return open(slot);
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
    if (dice < 72) return test_stateid(slot, file);
    if (dice < 76) return commit(slot, file);
    const bool writes = (it->second.share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
    const bool reads = (it->second.share.access & xdr::OPEN4_SHARE_ACCESS_READ) != 0;
    return writes && (!reads || world_.chance(60)) ? write(slot, file) : read(slot, file);
  }
  bool nothing_pending() const {
    return std::ranges::none_of(pending, [](const SimRequestPtr& one) { return one != nullptr; });
  }

  SimRequestPtr open(std::size_t owner) {
    SimRules::OpenWanted wanted{{index_, owner}, random_share(), random_name(), false, false};
    wanted.create = world_.chance(60);
    wanted.guarded = wanted.create && world_.chance(30);
    std::array<std::byte, 4> mode{};
    store_be32(mode.data(), 0644);
    xdr::OPEN4args args = open_args(wanted.share);
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
    return in_slot(
        owner, "OPEN " + wanted.name,
        Operations4().putfh(world_.root()).add<OP_OPEN>(args).add<OP_GETFH>(),
        [this, wanted](const Reply4& reply) { rules_.opened(wanted, reply); },
        [this, owner, share = wanted.share](const Reply4& reply) {
          if (reply.status != NFS4_OK) return;
          const FileHandle handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
          KnownOpen& known = opens_[owner][world_.model.number_of(handle)];
          known.handle = handle;
          known.share.add(share);
          take(&known.stateid, reply.get<OP_OPEN>().resok4.stateid, "OPEN");
        });
  }
  SimRequestPtr close(std::size_t owner, std::size_t file) override {
    const KnownOpen open = *find_open(owner, file);
    opens_[owner].erase(file);
    return in_slot(
        owner, "CLOSE of file " + std::to_string(file),
        Operations4().putfh(open.handle).add<OP_CLOSE>({0, open.stateid}),
        [this, owner, file](const Reply4& reply) {
          rules_.closed({index_, owner}, file, reply);
        },
        [](const Reply4&) {});
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
    return in_slot(
        owner, "OPEN_DOWNGRADE of file " + std::to_string(file),
        Operations4()
            .putfh(open.handle)
            .add<OP_OPEN_DOWNGRADE>({open.stateid, 0, share.access, share.deny}),
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
  }

  SimRequestPtr unlock(std::size_t owner, std::size_t file, std::size_t locker) {
    KnownOpen& open = *find_open(owner, file);
    const SimRange range = random_range();
    KnownLocks& locks = open.locks[locker];
    if (locks.stateid.seqid == 0) return read(owner, file);
    std::fill(locks.bytes.begin() + static_cast<std::ptrdiff_t>(range.first),
              locks.bytes.begin() + static_cast<std::ptrdiff_t>(range.end), ' ');
    xdr::LOCKU4args args;
    args.locktype = xdr::nfs_lock_type4::WRITE_LT;
    args.lock_stateid = locks.stateid;
    args.offset = range.first;
    args.length = range.end - range.first;
    const SimRules::LockWanted wanted{{index_, owner}, {index_, locker}, file, 'w', range, false};
    return in_slot(
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
    return in_slot(
        owner, "LOCKT of " + std::to_string(file),
        Operations4().putfh(find_open(owner, file)->handle).add<OP_LOCKT>(args),
        [this, wanted](const Reply4& reply) { rules_.tested(wanted, reply); }, [](const Reply4&) {},
        false);
  }
  /// What the client was told is its own is still there.
  SimRequestPtr test_stateid(std::size_t owner, std::size_t file) {
    std::vector<xdr::stateid4> stateids{find_open(owner, file)->stateid};
    for (const auto& [locker, locks] : find_open(owner, file)->locks) {
      if (locks.stateid.seqid != 0) stateids.push_back(locks.stateid);
    }
    std::vector<std::byte> room(stateids.size() * 16);
    xdr::Encoder encoder(room);
    for (const xdr::stateid4& one : stateids)
      xdr::encode(encoder, one);
    xdr::TEST_STATEID4args args;
    args.ts_stateids = {encoder.bytes(), static_cast<std::uint32_t>(stateids.size())};
    return in_slot(
        owner, "TEST_STATEID", Operations4().add<OP_TEST_STATEID>(args),
        [this](const Reply4& reply) {
          const auto res = reply.get<OP_TEST_STATEID>();
          for (const nfsstat4 status : res.resok4.tsr_status_codes)
            rules_.expect(status, NFS4_OK, "TEST_STATEID");
        },
        [](const Reply4&) {}, false);
  }

  SimRequestPtr write(std::size_t owner, std::size_t file) {
    const KnownOpen& open = *find_open(owner, file);
    const std::size_t offset = world_.below(200);
    const std::string data(1 + world_.below(60), static_cast<char>('!' + world_.below(90)));
    const auto stable = static_cast<xdr::stable_how4>(world_.below(3));
    return in_slot(
        owner, "WRITE to " + std::to_string(file) + " at " + std::to_string(offset),
        Operations4()
            .putfh(open.handle)
            .add<OP_WRITE>({open.stateid, offset, stable, {as_bytes(data)}}),
        [this, file, offset, data](const Reply4& reply) {
          rules_.expect(reply.status, NFS4_OK, "WRITE");
          if (reply.status != NFS4_OK) return;
          const auto res = reply.get<OP_WRITE>().resok4;
          if (res.count != data.size()) world_.fail("WRITE wrote less");
          world_.verifier_seen(res.writeverf);
          world_.model.files[file]->set(offset, data, res.committed != xdr::stable_how4::UNSTABLE4);
        },
        [](const Reply4&) {});
  }
  SimRequestPtr read(std::size_t owner, std::size_t file) {
    const KnownOpen& open = *find_open(owner, file);
    const std::size_t offset = world_.below(220);
    const std::size_t count = 1 + world_.below(200);
    return in_slot(
        owner, "READ of " + std::to_string(file),
        Operations4()
            .putfh(open.handle)
            .add<OP_READ>({open.stateid, offset, static_cast<std::uint32_t>(count)}),
        [this, file, offset, count](const Reply4& reply) {
          // A client may have nothing but the right to write.
          if (reply.status == NFS4ERR_OPENMODE || reply.status == NFS4ERR_LOCKED) return;
          rules_.expect(reply.status, NFS4_OK, "READ");
          if (reply.status != NFS4_OK) return;
          const std::string& bytes = world_.model.files[file]->bytes;
          const std::string want = offset < bytes.size() ? bytes.substr(offset, count) : "";
          if (as_text(reply.get<OP_READ>().resok4.data.bytes) != want) {
            world_.fail("READ of file " + std::to_string(file) + " has other bytes");
          }
        },
        [](const Reply4&) {}, false);
  }
  SimRequestPtr commit(std::size_t owner, std::size_t file) {
    const KnownOpen& open = *find_open(owner, file);
    return in_slot(
        owner, "COMMIT of " + std::to_string(file),
        Operations4().putfh(open.handle).add<OP_COMMIT>({0, 0}),
        [this, file](const Reply4& reply) {
          rules_.expect(reply.status, NFS4_OK, "COMMIT");
          if (reply.status != NFS4_OK) return;
          world_.verifier_seen(reply.get<OP_COMMIT>().resok4.writeverf);
          world_.model.files[file]->all_stable();
        },
        [](const Reply4&) {});
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
