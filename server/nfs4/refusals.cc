// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/refusals.h"

#include <fmt/format.h>

#include <utility>

namespace nfsrdma::nfs4 {

namespace {

constexpr Duration kQuiet = std::chrono::minutes(1);
constexpr std::size_t kMostOfAName = 100;
/// More than one of each kind for each limit cannot be waiting for long; should nobody write.
constexpr std::size_t kMostLines = 100;

struct Described {
  const char* what = "";
  std::size_t value = 0;
  const char* option = "";
};

Described describe(Limit limit, const Limits& limits) {
  switch (limit) {
    case Limit::kClients:
      return {"clients", limits.clients, "NFSoRDMA_NFS4_CLIENTS"};
    case Limit::kSessionsOfClient:
      return {"sessions of one client", limits.sessions.sessions_per_client,
              "NFSoRDMA_NFS4_SESSIONS"};
    case Limit::kSlots:
      return {"slots of all sessions", limits.sessions.slots, "NFSoRDMA_NFS4_ALL_SLOTS"};
    case Limit::kOpensOfClient:
      return {"opens of one client", limits.opens.opens.per_client, "NFSoRDMA_NFS4_OPENS"};
    case Limit::kOpens:
      return {"opens of all clients", limits.opens.opens.all, "NFSoRDMA_NFS4_ALL_OPENS"};
    case Limit::kFiles:
      return {"open files of all clients", limits.opens.files.all, "NFSoRDMA_NFS4_FILES"};
    case Limit::kLocksOfClient:
      return {"locks of one client", limits.opens.locks.per_client, "NFSoRDMA_NFS4_LOCKS"};
    case Limit::kLocks:
      return {"locks of all clients", limits.opens.locks.all, "NFSoRDMA_NFS4_ALL_LOCKS"};
    case Limit::kLocksOfFile:
      return {"locks on one file", limits.opens.locks_per_file, "NFSoRDMA_NFS4_FILE_LOCKS"};
    case Limit::kDelegationsOfClient:
      return {"delegations of one client", limits.delegations.per_client,
              "NFSoRDMA_NFS4_DELEGATIONS"};
    case Limit::kDelegations:
      return {"delegations of all clients", limits.delegations.all,
              "NFSoRDMA_NFS4_ALL_DELEGATIONS"};
    case Limit::kOwnersOfClient:
      return {"owners of one client of version 4.0", limits.owners, "NFSoRDMA_NFS4_OWNERS"};
    case Limit::kOwners:
      return {"owners of all clients of version 4.0", limits.all_owners, "NFSoRDMA_NFS4_ALL_OPENS"};
    case Limit::kNone:
      break;
  }
  return {};
}

/// Of those that all clients share, a host may also have met its share.
const char* or_share(Limit limit) {
  switch (limit) {
    case Limit::kOpens:
    case Limit::kFiles:
    case Limit::kLocks:
      return ", or the share of its host in that,";
    default:
      return "";
  }
}

std::string name_of(const Client& client) {
  return fmt::format("client '{}' at {}", printable(client.owner.id), client.address);
}

}  // namespace

std::string printable(const std::string& name) {
  std::string out = name.substr(0, kMostOfAName);
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name.size() > kMostOfAName ? out + "..." : out;
}

bool Refusals::speaks(Quiet& quiet, TimePoint now) {
  if (quiet.spoke && now - quiet.since < kQuiet) {
    ++quiet.unsaid;
    return false;
  }
  quiet.spoke = true;
  quiet.since = now;
  return true;
}

void Refusals::say(std::string line) {
  if (lines_.size() >= kMostLines) return;
  lines_.push_back(std::move(line));
  pending_.store(true, std::memory_order_release);
}

void Refusals::refused(Limit limit, const Client* client, const std::string& address,
                       TimePoint now) {
  ++counts_.at(index(limit));
  Quiet& quiet = of_refusals_.at(index(limit));
  if (!speaks(quiet, now)) return;
  const Described its = describe(limit, limits_);
  std::string line = fmt::format("NFSv4: {} met the limit of {}, {}{} and is refused; {} raises it",
                                 client != nullptr ? name_of(*client) : "a client at " + address,
                                 its.what, its.value, or_share(limit), its.option);
  if (const auto unsaid = std::exchange(quiet.unsaid, 0); unsaid != 0)
    line += fmt::format(" ({} more since the last such line)", unsaid);
  say(std::move(line));
}

void Refusals::gave_way(Limit limit, const Client& client, TimePoint now) {
  ++gave_way_;
  Quiet& quiet = of_giving_way_.at(index(limit));
  if (!speaks(quiet, now)) return;
  const Described its = describe(limit, limits_);
  const auto silent = std::chrono::duration_cast<std::chrono::seconds>(now - client.renewed);
  std::string line = fmt::format(
      "NFSv4: what {} held is given up: it has not been heard of for {} s, and the limit of {} "
      "({}, {}) was met",
      name_of(client), silent.count(), its.what, its.value, its.option);
  if (const auto unsaid = std::exchange(quiet.unsaid, 0); unsaid != 0)
    line += fmt::format(" ({} more since the last such line)", unsaid);
  say(std::move(line));
}

std::vector<std::string> Refusals::take() {
  pending_.store(false, std::memory_order_release);
  return std::exchange(lines_, {});
}

}  // namespace nfsrdma::nfs4
