// SPDX-License-Identifier: Apache-2.0
// SimRequest: one COMPOUND of a simulated client on its way, and SimWorld: what clients of the
// simulation see of it.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/nfs4_sim_model.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {

/// A request's place in the sequence of an open-owner or lock-owner of minor version 0.
struct SimTurn {
  SimOwner owner;
  bool locks = false;
  std::uint32_t seqid = 0;
  nfs_opnum4 operation{};
  /// A lock-owner's own sequence, which this first LOCK begins there.
  std::optional<std::pair<SimOwner, std::uint32_t>> begins;
};

struct SimRequest {
  std::size_t client = 0;
  std::string what;
  Operations4 operations;  // with SEQUENCE
  std::uint32_t minor_version = 1;
  /// In a session: which, and where.
  bool in_session = false;
  xdr::sessionid4 session{};
  std::uint32_t slot = 0;
  std::uint32_t sequence = 0;
  bool cached = false;
  /// What it goes by: the file of its handle, a stateid, a client ID that it names, an owner's
  /// turn.
  std::optional<std::size_t> file;
  std::optional<xdr::stateid4> stateid;
  std::uint64_t client_id = 0;
  std::optional<SimTurn> turn;
  bool by_delegation = false;  // `stateid`
  /// Its answer used up no sequence id: a copy that comes later cannot be told from the next
  /// request (RFC 7530 9.1.7).
  bool same_turn_again = false;
  bool reclaims = false;
  bool looks = false;  // at the attributes of `file`, so that a holder may be asked
  bool binds = false;  // BIND_CONN_TO_SESSION
  /// The server has run it, now, for the first and only time (but for those of minor version 0 that
  /// have no turn): what that means for the model.
  std::function<void(const Reply4&)> happens;
  /// The client hears that.
  std::function<void(const Reply4&)> learn;
  /// What it was answered when it ran; empty before.
  std::vector<std::byte> answer;
};
using SimRequestPtr = std::shared_ptr<SimRequest>;

class SimWorld {
 public:
  SimWorld(std::uint64_t seed, std::size_t clients, Duration lease)
      : model(clients, lease), random(seed) {}
  virtual ~SimWorld() = default;

  SimModel model;
  std::mt19937_64 random;
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random() % bound); }
  bool chance(std::size_t in_hundred) { return below(100) < in_hundred; }

  /// The first thing that was wrong.
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  const std::string& problem() const { return problem_; }

  /// Of WRITE and COMMIT: the same through a life of the server, and no other life's.
  void verifier_seen(const xdr::verifier4& verifier) {
    if (verifiers_.empty() || new_life_) {
      if (std::ranges::find(verifiers_, verifier) != verifiers_.end()) {
        fail("a write verifier from before a restart");
      }
      verifiers_.push_back(verifier);
      new_life_ = false;
    } else if (verifiers_.back() != verifier) {
      fail("another write verifier without a restart");
    }
  }
  void life_begins() { new_life_ = true; }

  virtual const FileHandle& root() const = 0;
  virtual void session_made(std::size_t client, const xdr::sessionid4& session) = 0;
  virtual void session_ended(const xdr::sessionid4& session) = 0;
  virtual void sessions_ended(std::size_t client) = 0;
  /// By the server's own report, where nothing else tells.
  virtual bool still_holds(std::uint64_t client_id) = 0;

  /// Somebody needed what these had.
  void evict(const std::set<std::size_t>& clients) {
    for (std::size_t client : clients) {
      model.end(client);
      sessions_ended(client);
    }
  }

 private:
  std::string problem_;
  std::vector<xdr::verifier4> verifiers_;
  bool new_life_ = false;
};

inline std::string number_text(nfsstat4 status) {
  return std::to_string(static_cast<unsigned>(status));
}

/// Of the first result of that operation; none when the COMPOUND ended before.
template <nfs_opnum4 kNumber>
std::optional<nfsstat4> status_in(const Reply4& reply) {
  for (const Reply4::Result& result : reply.results) {
    if (result.number == kNumber) return result.status;
  }
  return std::nullopt;
}

}  // namespace nfsrdma::test
