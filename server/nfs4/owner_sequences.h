// SPDX-License-Identifier: Apache-2.0
// OwnerSequences: the open-owners and lock-owners of minor version 0 with their sequence ids (RFC
// 7530 9.1.7, 9.1.11). An owner is known from its first request on, for longer than its state: the
// retry of its last CLOSE has to be told from a new request.
//
// Pure but for the handles that OPEN's replays bring back. The caller serialises (ServerState's
// mutex).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/nfs4/current_handle.h"
#include "server/nfs4/state/client_table.h"
#include "server/nfs4/state/owner_sequence.h"
#include "server/nfs4/state/stateid_rules.h"

namespace nfsrdma::nfs4 {

enum class OwnerKind : std::uint8_t { kOpen, kLock };

struct OwnerKey {
  ClientId client = 0;
  OwnerKind kind = OwnerKind::kOpen;
  std::string name;
};

/// The same, of a name that somebody else keeps.
struct OwnerKeyView {
  ClientId client = 0;
  OwnerKind kind = OwnerKind::kOpen;
  std::string_view name;
};

struct OwnerKeyOrder {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    if (a.client != b.client) return a.client < b.client;
    if (a.kind != b.kind) return a.kind < b.kind;
    return std::string_view(a.name) < std::string_view(b.name);
  }
};

struct SequencedOwner {
  /// Of two owners of one name, the later one has a greater one.
  std::uint64_t generation = 0;
  OwnerSequence sequence;
  bool running = false;
  /// Open-owners: OPEN_CONFIRM has come. Until then a new OPEN starts over.
  bool confirmed = false;
  /// Open-owners: who has opened by it, as Compound::principal(). kMostOpeners stand for anybody.
  std::vector<std::string> openers;
  /// What the current handle was after the last OPEN, for its replay.
  FileHandle opened;
  /// The stateid that its last CLOSE ended: a retry of that names an owner by nothing else.
  std::array<std::byte, 12> closed{};
};

class OwnerSequences {
 public:
  static constexpr std::size_t kMostOpeners = 4;
  /// Others wait meanwhile.
  static constexpr std::size_t kLookedAt = 1024;

  /// `most`: of all clients, since one host can be many.
  explicit OwnerSequences(std::size_t most_per_client, std::size_t most = SIZE_MAX)
      : most_per_client_(most_per_client), most_(most) {}

  /// Null: the client has too many, or all have (NFS4ERR_RESOURCE).
  SequencedOwner* get(const OwnerKey& key);
  /// As if the owner had not been heard of before.
  void start_over(SequencedOwner& owner);
  /// Owners of the client that run nothing and have no state, for which `in_use` is false, are
  /// forgotten: the server may (RFC 7530 9.1.11), and the next request begins a new sequence.
  void forget_idle(ClientId client, const std::function<bool(const OwnerKey&)>& in_use);
  /// Of any client, those among the next kLookedAt: whoever asks again finds more.
  void forget_idle_of_any(const std::function<bool(const OwnerKey&)>& in_use);
  bool is_full(ClientId client) const;
  bool is_full() const { return owners_.size() >= most_; }
  /// The open-owner has opened a file for that principal.
  static void note_opener(SequencedOwner& owner, const std::string& principal);
  /// Has an open-owner of the client, one for which `in_use` is true, opened for that principal?
  bool has_opener(ClientId client, const std::string& principal,
                  const std::function<bool(const OwnerKey&)>& in_use) const;
  SequencedOwner* find(const OwnerKey& key) { return look({key.client, key.kind, key.name}); }
  SequencedOwner* look(const OwnerKeyView& key);
  /// Whose CLOSE ended the state of that stateid last? Null: nobody's that is known.
  const OwnerKey* closed_by(const Stateid& stateid) const;
  void note_closed(const OwnerKey& key, const Stateid& stateid);
  void forget(const OwnerKey& key);
  void end_client(ClientId client);

 private:
  const std::size_t most_per_client_;
  const std::size_t most_;
  OwnerKey looked_at_;  // by forget_idle_of_any(), last; it may be gone
  std::map<OwnerKey, SequencedOwner, OwnerKeyOrder> owners_;
  std::map<std::array<std::byte, 12>, OwnerKey> closed_;
  std::map<ClientId, std::size_t> counts_;
  std::uint64_t last_generation_ = 0;
};

}  // namespace nfsrdma::nfs4
