// SPDX-License-Identifier: Apache-2.0
// SimModel: what has to be true at the server, kept from what it answered: files and their bytes,
// opens, locks, who may reclaim what. Written from RFC 8881 8, 9 and 18, naively, one byte of a
// file at a time, and without a look at the server's own tables.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rpcrdma/base/clock.h"
#include "server/filehandle.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::test {

/// An open-owner, or a lock-owner, of a client.
struct SimOwner {
  std::size_t client = 0;
  std::size_t number = 0;
  auto operator<=>(const SimOwner&) const = default;
};

struct SimShare {
  std::uint32_t access = 0;  // OPEN4_SHARE_ACCESS_*
  std::uint32_t deny = 0;
  auto operator<=>(const SimShare&) const = default;

  bool within(const SimShare& other) const {
    return (access & ~other.access) == 0 && (deny & ~other.deny) == 0;
  }
  bool conflicts(const SimShare& other) const {
    return (access & other.deny) != 0 || (deny & other.access) != 0;
  }
  void add(const SimShare& other) {
    access |= other.access;
    deny |= other.deny;
  }
};

/// Locks reach over the first bytes of a file. ' ', 'r' or 'w' for each of them.
inline constexpr std::size_t kLockable = 32;
using SimLocks = std::array<char, kLockable>;
inline constexpr SimLocks no_locks() {
  SimLocks out{};
  for (char& byte : out)
    byte = ' ';
  return out;
}

struct SimRange {
  std::size_t first = 0, end = 0;
};

struct SimOpen {
  SimShare share;
  std::set<SimShare> asked;  // the OPENs that make it up
  std::map<SimOwner, SimLocks> locks;
  xdr::stateid4 stateid{};
  std::map<SimOwner, xdr::stateid4> lock_stateids;  // of `locks`
};

/// Whose a stateid is.
struct SimState {
  std::size_t file = 0;
  SimOwner opener;
  SimOwner owner;  // `opener`, or a lock-owner
  bool locks = false;
  std::uint32_t seqid = 0;
};

struct SimDelegation {
  std::size_t client = 0;
  std::size_t file = 0;
  bool write = false;
  /// It was asked for: then at the earliest, and by then for certain.
  std::optional<TimePoint> maybe_since, certain_since;
  bool revoked = false;
  /// Minor version 0: RENEW has said so from then on, for a lease.
  std::optional<TimePoint> renew_told;
  /// What the holder has said of a write delegation's file (CB_GETATTR), the last of it.
  struct Told {
    std::uint64_t size = 0;
    bool changed = false;
    TimePoint at;
  };
  std::vector<Told> told;
};

struct SimFile {
  FileHandle handle;
  bool linked = true;
  std::string bytes;
  std::vector<bool> stable;  // by byte: has to outlive the loss of power
  std::uint64_t change = 0;  // as it was last seen in this life of the server
  std::map<SimOwner, SimOpen> opens;

  bool has_state(std::size_t client) const {
    return std::ranges::any_of(opens,
                               [&](const auto& open) { return open.first.client == client; });
  }
  void set(std::size_t offset, const std::string& data, bool is_stable) {
    const std::size_t end = offset + data.size();
    if (bytes.size() < end) {
      bytes.resize(end);
      stable.resize(end, false);
    }
    bytes.replace(offset, data.size(), data);
    std::fill(stable.begin() + static_cast<std::ptrdiff_t>(offset),
              stable.begin() + static_cast<std::ptrdiff_t>(end), false);
    if (is_stable) all_stable();
  }
  void all_stable() { stable.assign(bytes.size(), true); }
  /// Clients whose opens stand against it, be it the very owner's (RFC 8881 9.7).
  std::set<std::size_t> against(const SimShare& share) const {
    std::set<std::size_t> out;
    for (const auto& [owner, open] : opens) {
      if (open.share.conflicts(share)) out.insert(owner.client);
    }
    return out;
  }
  /// Clients whose locks do.
  std::set<std::size_t> against(const SimOwner& owner, char kind, const SimRange& range) const {
    std::set<std::size_t> out;
    for (const auto& [opener, open] : opens) {
      for (const auto& [other, locks] : open.locks) {
        if (other == owner) continue;
        for (std::size_t at = range.first; at < range.end; ++at) {
          if (locks[at] == 'w' || (locks[at] == 'r' && kind == 'w')) out.insert(other.client);
        }
      }
    }
    return out;
  }
};

/// What a client may claim after a restart, by file, open-owner and lock-owner.
struct SimClaims {
  struct Promise {
    bool write = false;
    bool revoked = false;  // which the client may not know
  };
  std::map<std::size_t, Promise> delegations;
  std::set<std::pair<std::size_t, SimOwner>> opens;
  std::map<std::pair<std::size_t, SimOwner>, SimLocks> locks;
};

/// What SETCLIENTID has answered: SETCLIENTID_CONFIRM makes it count.
struct SimOffer {
  std::uint64_t id = 0;
  xdr::verifier4 confirm{};
  unsigned incarnation = 0;
  TimePoint made;
};

struct SimTrueClient {
  /// It has a confirmed record at the server.
  bool known = false;
  /// It may have been ended: its lease was over while somebody looked.
  bool unsure = false;
  /// RECLAIM_COMPLETE in this life of the server; in minor version 0: an OPEN.
  bool completed = false;
  /// Of minor version 0: nobody knows when it has reclaimed everything.
  bool never_completes = false;
  std::uint64_t id = 0;
  SimOffer offer;      // of minor version 0, not confirmed yet
  SimOffer confirmed;  // as which it was
  TimePoint renewed;
  /// Since the restart; of those that had something then and have not lost it since.
  bool may_reclaim = false;
  /// And nobody could doubt that.
  bool must_reclaim = false;
  SimClaims claims;
};

class SimModel {
 public:
  SimModel(std::size_t client_count, Duration lease) : clients(client_count), lease_(lease) {}

  std::vector<std::unique_ptr<SimFile>> files;  // never fewer: by number
  std::map<std::string, std::size_t> names;
  std::vector<SimTrueClient> clients;
  using Other = std::array<std::byte, xdr::kNfs4OtherBytes>;  // of a stateid
  std::map<Other, SimDelegation> delegations;
  std::size_t delegations_given = 0;  // in the whole run
  std::size_t delegations_reclaimed = 0;
  /// OPENs by delegation: how they ended.
  struct ByDelegation {
    std::size_t done = 0;
    std::size_t recalled = 0, in_grace = 0, by_name = 0;  // of those that were done
    std::size_t revoked = 0, foreign = 0, ended = 0, other_file = 0, only_read = 0, denied = 0;
  } by_delegation;
  /// Delegations of clients of minor version 0.
  struct Old {
    std::size_t given = 0, recalled = 0, returned = 0, lost = 0, reclaimed = 0;
    std::size_t kept_from_it = 0;  // which it had lost before the restart
  } old;
  TimePoint now;
  TimePoint grace_end;
  /// An open or a lock that was not reclaimed, in this life of the server.
  bool new_state_given = false;

  bool is_past_lease(TimePoint since) const { return now - since > lease_; }
  bool expired(std::size_t client) const { return is_past_lease(clients[client].renewed); }
  bool all_expired(const std::set<std::size_t>& some) const {
    return std::ranges::all_of(some, [this](std::size_t client) { return expired(client); });
  }
  /// Does anybody still have to be waited for?
  bool is_grace() const {
    return now < grace_end && std::ranges::any_of(clients, [](const SimTrueClient& client) {
             return client.may_reclaim && client.must_reclaim && !client.unsure &&
                    (!client.completed || client.never_completes);
           });
  }

  SimFile* find(const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? nullptr : files[found->second].get();
  }
  std::size_t number_of(const FileHandle& handle) const {
    const auto found = std::ranges::find_if(files, [&](const auto& file) {
      return std::ranges::equal(file->handle.bytes(), handle.bytes());
    });
    return static_cast<std::size_t>(found - files.begin());
  }
  void add_file(const std::string& name, const FileHandle& handle) {
    names[name] = files.size();
    files.push_back(std::make_unique<SimFile>());
    files.back()->handle = handle;
  }
  void unlink(const std::string& name) {
    if (SimFile* file = find(name)) file->linked = false;
    names.erase(name);
  }

  /// All that it held is gone, and it cannot claim it either.
  void end(std::size_t client) {
    for (const auto& file : files)
      std::erase_if(file->opens, [&](const auto& open) { return open.first.client == client; });
    std::erase_if(delegations, [&](const auto& one) { return one.second.client == client; });
    ended_.insert(client);
    const SimTrueClient before = clients[client];
    clients[client] = SimTrueClient();
    clients[client].never_completes = before.never_completes;
    clients[client].offer = before.offer;
  }
  /// Of minor version 0.
  bool is_old(std::size_t client) const { return clients[client].never_completes; }
  /// Somebody needed what they had, whose leases are over.
  void end(const std::set<std::size_t>& some) {
    for (std::size_t client : some)
      end(client);
  }

  /// The server ends and starts again. Who has not said that it has reclaimed all, before anybody
  /// got something new, may believe in things that are somebody else's by now, and reclaims nothing
  /// the next time (RFC 8881 8.4.3).
  void restart(Duration grace) {
    const bool was_grace = is_grace();
    for (std::size_t client = 0; client < clients.size(); ++client) {
      SimTrueClient& its = clients[client];
      const bool suspect = !its.completed && new_state_given;
      const bool again = its.may_reclaim && !its.completed && !suspect;
      if (!again) its.claims = {};
      if (!suspect) collect(client, &its.claims);
      its.must_reclaim = its.completed || (again && was_grace && its.must_reclaim);
      // Who does not know yet that something was revoked need not be believed (RFC 8881 8.4.3).
      if (lacks_a_delegation(client)) its.must_reclaim = false;
      its.may_reclaim = again || !its.claims.opens.empty() || !its.claims.delegations.empty();
      its.known = its.completed = false;
      its.offer = its.confirmed = SimOffer();
    }
    for (const auto& file : files) {
      file->opens.clear();
      file->change = 0;
    }
    delegations.clear();
    stateids_.clear();
    client_ids_.clear();
    ended_.clear();
    grace_end = now + grace;
    new_state_given = false;
  }

  bool has_state(std::size_t client) const {
    const auto is_its = [client](const auto& one) { return one.second.client == client; };
    return std::ranges::any_of(files, [&](const auto& file) { return file->has_state(client); }) ||
           std::ranges::any_of(delegations, is_its);
  }
  /// A file without a name lives as long as anybody has something of it, for certain.
  bool is_held(std::size_t file) const {
    const auto sure = [this](std::size_t client) { return !clients[client].unsure; };
    const auto keeps = [&](const auto& one) {
      return one.second.file == file && sure(one.second.client) && !may_be_gone(one.second);
    };
    return std::ranges::any_of(delegations, keeps) ||
           std::ranges::any_of(files[file]->opens,
                               [&](const auto& open) { return sure(open.first.client); });
  }
  /// Nobody loses a delegation sooner after it was asked for, and nobody keeps it for longer.
  bool may_be_gone(const SimDelegation& one) const {
    constexpr Duration kLeastPatience = std::chrono::seconds(30);
    return one.revoked || (one.maybe_since && now >= *one.maybe_since + kLeastPatience);
  }
  bool must_be_gone(const SimDelegation& one) const {
    return one.revoked || (one.certain_since && now >= *one.certain_since + lease_ * 2 / 3);
  }
  /// The server looked for clients that hold nothing and whose leases are over.
  void forget_idle() {
    for (std::size_t client = 0; client < clients.size(); ++client) {
      if (expired(client) && !has_state(client)) clients[client].unsure = true;
    }
  }

  /// The server has given it out, in this life.
  void note_stateid(const xdr::stateid4& stateid) { stateids_.insert(stateid.other); }
  bool was_given(const xdr::stateid4& stateid) const { return stateids_.contains(stateid.other); }
  /// A client of minor version 0 has that ID, in this life.
  void note_client_id(std::uint64_t id) { client_ids_.insert(id); }
  /// What is said of it when it is nobody's: of one that is not of this life, that the server was
  /// restarted; of one of this life that there was such a client, once it was confirmed.
  bool may_say(xdr::nfsstat4 status, std::uint64_t of_client_id) const {
    if (status == xdr::nfsstat4::NFS4ERR_STALE_CLIENTID) return true;
    return status == xdr::nfsstat4::NFS4ERR_EXPIRED && client_ids_.contains(of_client_id);
  }
  /// It was ended, with all that it had, in this life of the server.
  bool was_ended(std::size_t client) const { return ended_.contains(client); }
  /// None: it is no more.
  std::optional<SimState> find_state(const xdr::stateid4& stateid) const {
    for (std::size_t number = 0; number < files.size(); ++number) {
      for (const auto& [opener, open] : files[number]->opens) {
        if (open.stateid.other == stateid.other) {
          return SimState{number, opener, opener, false, open.stateid.seqid};
        }
        for (const auto& [locker, its] : open.lock_stateids) {
          if (its.other == stateid.other) return SimState{number, opener, locker, true, its.seqid};
        }
      }
    }
    return std::nullopt;
  }
  std::size_t opens() const {
    std::size_t count = 0;
    for (const auto& file : files)
      count += file->opens.size();
    return count;
  }
  /// Runs of bytes that are locked alike.
  std::size_t locks() const {
    std::size_t count = 0;
    for (const auto& file : files) {
      for (const auto& [owner, open] : file->opens) {
        for (const auto& [locker, locks] : open.locks) {
          for (std::size_t at = 0; at < kLockable; ++at)
            count += locks[at] != ' ' && (at == 0 || locks[at - 1] != locks[at]);
        }
      }
    }
    return count;
  }

 private:
  bool lacks_a_delegation(std::size_t client) const {
    return std::ranges::any_of(delegations, [&](const auto& one) {
      return one.second.client == client && may_be_gone(one.second);
    });
  }
  void collect(std::size_t client, SimClaims* out) const {
    for (const auto& [other, one] : delegations) {
      if (one.client != client) continue;
      // One that was revoked may have been followed by another.
      const SimClaims::Promise promise{one.write, must_be_gone(one)};
      const auto [claim, fresh] = out->delegations.try_emplace(one.file, promise);
      if (!fresh && !promise.revoked) claim->second = promise;
    }
    for (std::size_t number = 0; number < files.size(); ++number) {
      for (const auto& [owner, open] : files[number]->opens) {
        if (owner.client != client) continue;
        out->opens.insert({number, owner});
        for (const auto& [locker, locks] : open.locks) {
          SimLocks& claim = out->locks.try_emplace({number, locker}, no_locks()).first->second;
          for (std::size_t at = 0; at < kLockable; ++at)
            claim[at] = locks[at] == ' ' ? claim[at] : locks[at];
        }
      }
    }
  }

  const Duration lease_;
  std::set<Other> stateids_;
  std::set<std::uint64_t> client_ids_;
  std::set<std::size_t> ended_;
};

}  // namespace nfsrdma::test
