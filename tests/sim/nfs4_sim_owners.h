// SPDX-License-Identifier: Apache-2.0
// SimOwners: exactly once in minor version 0, by the sequences of open-owners and lock-owners (RFC
// 7530 9.1.7 to 9.1.11, 16.18). Each arrival of a request, the first one or a duplicate, has one
// answer that it may get: the kept one when it was its owner's last, NFS4ERR_BAD_SEQID when it is
// not the next, and else what running it comes to, which is for SimRules to judge. What has no
// owner is run each time it comes.
#pragma once

#include "tests/sim/nfs4_sim_rules.h"

namespace nfsrdma::test {

class SimOwners {
 public:
  explicit SimOwners(SimWorld& world) : world_(world), model_(world.model) {}

  void end_client(std::size_t client) {
    std::erase_if(sequences_,
                  [client](const auto& one) { return one.first.first.client == client; });
  }
  void restart() { sequences_.clear(); }

  /// True: the server ran it.
  bool judge(const SimRequest& request, const Reply4& reply) {
    if (is_gone(request, reply)) world_.evict({request.client});
    if (reply.results[0].number == OP_PUTFH && reply.status != NFS4_OK &&
        reply.results.size() == 1) {
      judge_stale(request, reply);
      return false;
    }
    SimTrueClient& client = model_.clients[request.client];
    if (request.client_id != 0 && !(client.known && client.id == request.client_id)) {
      if (!model_.may_say(reply.status, request.client_id)) {
        expect(request, reply, NFS4ERR_STALE_CLIENTID);
      }
      return false;
    }
    const auto state = request.stateid ? model_.find_state(*request.stateid) : std::nullopt;
    Sequence* sequence = request.turn ? sequence_of(request, state) : nullptr;
    if (sequence != nullptr && !is_new(request, *sequence, reply)) return false;
    if (request.client_id != 0 || state || was_by_delegation(request, reply)) {
      client.renewed = model_.now;
      client.unsure &= !client.completed;
    }
    const nfsstat4 bad = stateid_error(request, state);
    // What a client lost with its lease is told from what never was.
    const bool expired = bad == NFS4ERR_BAD_STATEID && reply.status == NFS4ERR_EXPIRED &&
                         model_.was_ended(request.client);
    if (bad != NFS4_OK) {
      expect(request, reply, expired ? NFS4ERR_EXPIRED : bad);
    } else {
      request.happens(reply);
    }
    if (sequence != nullptr && counts(reply.status)) finish(request, *sequence, reply);
    return bad == NFS4_OK;
  }

  /// All but these use up a sequence id (RFC 7530 9.1.7).
  static bool counts(nfsstat4 status) {
    switch (status) {
      case NFS4ERR_STALE_CLIENTID:
      case NFS4ERR_STALE_STATEID:
      case NFS4ERR_BAD_STATEID:
      case NFS4ERR_BAD_SEQID:
      case NFS4ERR_BADXDR:
      case NFS4ERR_RESOURCE:
      case NFS4ERR_NOFILEHANDLE:
      case NFS4ERR_MOVED:
        return false;
      default:
        return true;
    }
  }

 private:
  struct Sequence {
    bool used = false;
    bool confirmed = false;
    std::uint32_t last = 0;
    nfs_opnum4 operation{};
    std::vector<std::byte> reply;  // to `last`; empty: there is none to be had
    /// What its last CLOSE ended: a duplicate of that names the owner by nothing else.
    std::optional<xdr::stateid4> closed;
  };
  using Key = std::pair<SimOwner, bool>;  // true: of locks

  void expect(const SimRequest& request, const Reply4& reply, nfsstat4 wanted) {
    if (reply.status == wanted) return;
    world_.fail(request.what + ": " + number_text(reply.status) + " instead of " +
                number_text(wanted));
  }

  /// Its client may have been ended, and this says so.
  bool is_gone(const SimRequest& request, const Reply4& reply) const {
    const SimTrueClient& client = model_.clients[request.client];
    if (!client.known || !client.unsure) return false;
    if (request.client_id != 0) {
      return request.client_id == client.id && model_.may_say(reply.status, request.client_id);
    }
    if (request.by_delegation) {
      const auto one = model_.delegations.find(request.stateid->other);
      return one != model_.delegations.end() &&
             (reply.status == NFS4ERR_EXPIRED ||
              (reply.status == NFS4ERR_BAD_STATEID && !model_.may_be_gone(one->second)));
    }
    return request.stateid && model_.find_state(*request.stateid) &&
           (reply.status == NFS4ERR_BAD_STATEID || reply.status == NFS4ERR_EXPIRED);
  }
  /// By one that is still known: that says whose the request is.
  bool was_by_delegation(const SimRequest& request, const Reply4& reply) const {
    return request.by_delegation && model_.delegations.contains(request.stateid->other) &&
           reply.status != NFS4ERR_BAD_STATEID;
  }
  /// A file without a name lives as long as anybody has it open.
  void judge_stale(const SimRequest& request, const Reply4& reply) {
    const bool may_be =
        request.file && !model_.files[*request.file]->linked && !model_.is_held(*request.file);
    expect(request, reply, may_be ? NFS4ERR_STALE : NFS4_OK);
  }
  nfsstat4 stateid_error(const SimRequest& request, const std::optional<SimState>& state) const {
    if (!request.stateid) return NFS4_OK;
    // Whether it is good, SimPromises says.
    if (request.by_delegation && model_.delegations.contains(request.stateid->other)) {
      return NFS4_OK;
    }
    if (!state) {
      return model_.was_given(*request.stateid) ? NFS4ERR_BAD_STATEID : NFS4ERR_STALE_STATEID;
    }
    if (request.stateid->seqid < state->seqid) return NFS4ERR_OLD_STATEID;
    return request.stateid->seqid > state->seqid ? NFS4ERR_BAD_STATEID : NFS4_OK;
  }

  /// Null: the stateid says nothing of an owner.
  Sequence* sequence_of(const SimRequest& request, const std::optional<SimState>& state) {
    const SimTurn& turn = *request.turn;
    if (!request.stateid) return &sequences_[Key{turn.owner, turn.locks}];
    if (state) return &sequences_[Key{state->owner, state->locks}];
    for (auto& [key, sequence] : sequences_) {
      if (sequence.closed && sequence.closed->other == request.stateid->other) return &sequence;
    }
    return nullptr;
  }
  /// And to be run; else it has been answered as it should be, or not.
  bool is_new(const SimRequest& request, Sequence& sequence, const Reply4& reply) {
    const SimTurn& turn = *request.turn;
    const bool last = sequence.used && turn.seqid == sequence.last;
    if (last && turn.operation == sequence.operation && !sequence.reply.empty()) {
      if (reply.bytes != sequence.reply) world_.fail(request.what + ": a retry has another answer");
      return false;
    }
    // An open-owner that was never confirmed starts over.
    if (turn.operation == OP_OPEN && !sequence.confirmed && sequence.used) {
      for (const auto& file : model_.files)
        file->opens.erase(turn.owner);
      sequence = Sequence();
    }
    if (!sequence.used || turn.seqid == sequence.last + 1) return true;
    expect(request, reply, NFS4ERR_BAD_SEQID);
    return false;
  }
  void finish(const SimRequest& request, Sequence& sequence, const Reply4& reply) {
    const SimTurn& turn = *request.turn;
    sequence.used = true;
    sequence.last = turn.seqid;
    sequence.operation = turn.operation;
    sequence.reply = reply.bytes;
    if (reply.status != NFS4_OK) return;
    if (turn.operation == OP_CLOSE) sequence.closed = request.stateid;
    if (turn.operation == OP_OPEN_CONFIRM) sequence.confirmed = true;
    if (turn.begins) {
      Sequence& begun = sequences_[Key{turn.begins->first, true}];
      begun.used = true;
      begun.last = turn.begins->second;
      begun.reply.clear();
    }
    if (turn.operation != OP_OPEN) return;
    // Who reclaims was confirmed before the restart.
    if (request.reclaims) sequence.confirmed = true;
    const std::uint32_t flags = reply.get<OP_OPEN>().resok4.rflags;
    const bool asks = (flags & xdr::OPEN4_RESULT_CONFIRM) != 0;
    if (asks == sequence.confirmed) world_.fail("OPEN4_RESULT_CONFIRM is not what it should be");
  }

  SimWorld& world_;
  SimModel& model_;
  std::map<Key, Sequence> sequences_;
};

}  // namespace nfsrdma::test
