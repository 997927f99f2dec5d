// SPDX-License-Identifier: Apache-2.0
// SimPromises: delegations as others have to feel them (RFC 8881 10.2, 10.4): what stands against a
// promise waits (NFS4ERR_DELAY) until it was given back or revoked, or its client is gone. The
// server may ask for one back whenever it likes, and the kernel's word of what the holder did
// itself comes when it comes: so a delegation that may have been asked for a while ago may be gone,
// and the first answer that tells is believed.
#pragma once

#include <string_view>

#include "tests/sim/nfs4_sim_request.h"

namespace nfsrdma::test {

class SimPromises {
 public:
  /// The server takes an answer to CB_GETATTR that came too late for so long.
  static constexpr Duration kLateAnswer = std::chrono::milliseconds(500);
  /// Who is not known: what stands in the way of everybody stands in the way of that one.
  static constexpr std::size_t kNobody = SIZE_MAX;

  explicit SimPromises(SimWorld& world) : world_(world), model_(world.model) {}

  /// As a client that uses, or changes, a file has been answered. `own`: what the client itself was
  /// promised may be in its own way, by the kernel's lease. False: it has to wait, rightly.
  enum class Own : std::uint8_t { kNever, kMaybe };
  bool settle(std::size_t by, std::size_t file, bool changes, nfsstat4 status, const char* what,
              Own own = Own::kNever) {
    if (status == NFS4ERR_DELAY) {
      bool any = is_waited_for(by, file, changes);
      if (own == Own::kMaybe && own_lease_breaks(by, file)) any = true;
      // That a holder lost it with the lease is written down first: OPEN does so itself, for all
      // else the client comes again.
      if (!any && std::string_view(what) != "OPEN")
        any = end_those_against(by, file, changes, what);
      if (!any) world_.fail(std::string(what) + ": NFS4ERR_DELAY for nobody's sake");
      return false;
    }
    end_those_against(by, file, changes, what);
    return true;
  }
  /// Whoever could be in the way has lost what he had. True: there was somebody.
  bool end_those_against(std::size_t by, std::size_t file, bool changes, const char* what) {
    bool any = false;
    std::set<std::size_t> ended;
    for (auto& [other, one] : model_.delegations) {
      if (!stands_against(one, by, file, changes)) continue;
      any = true;
      if (model_.may_be_gone(one)) {
        one.revoked = true;
        model_.clients[one.client].unsure |= model_.expired(one.client);
      } else if (model_.expired(one.client)) {
        ended.insert(one.client);
      } else {
        world_.fail(std::string(what) + " was answered against another client's delegation");
      }
    }
    world_.evict(ended);
    return any;
  }
  /// Somebody has to wait for who holds either of two files.
  void settle_either(std::size_t by, std::size_t first, std::size_t second, const char* what) {
    const bool both = stops(by, first) && first != second && stops(by, second);
    // Where both are in the way, one is asked for.
    const bool any = is_waited_for(by, first, true, !both);
    if (is_waited_for(by, second, true, !both) || any) return;
    // Or one of them has ended somebody whose lease was over.
    bool ended = false;
    for (auto& [other, one] : model_.delegations) {
      const bool stands =
          stands_against(one, by, first, true) || stands_against(one, by, second, true);
      if (!stands || !model_.expired(one.client)) continue;
      ended = model_.clients[one.client].unsure = true;
    }
    if (!ended) world_.fail(std::string(what) + ": NFS4ERR_DELAY for nobody's sake");
  }
  /// The holder changed what it was promised that others do not; the kernel tells the server that
  /// somebody did.
  void changed_by(std::size_t client, std::size_t file) {
    for (auto& [other, one] : model_.delegations) {
      if (one.file == file && one.client == client && !one.maybe_since)
        one.maybe_since = model_.now;
    }
  }

  /// OPEN gave one, be it to be given back at once.
  void given(std::size_t client, std::size_t number, bool write, const xdr::stateid4& stateid,
             bool recalled) {
    const char* what = write ? "a write delegation" : "a read delegation";
    std::set<std::size_t> ended;
    for (const auto& [opener, open] : model_.files[number]->opens) {
      if (opener.client == client) continue;
      const bool against = write || (open.share.access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0 ||
                           (open.share.deny & xdr::OPEN4_SHARE_DENY_READ) != 0;
      if (against && model_.clients[opener.client].unsure) {
        ended.insert(opener.client);
      } else if (against) {
        world_.fail(std::string(what) + " was given against an open");
      }
    }
    world_.evict(ended);
    for (auto& [other, one] : model_.delegations) {
      if (one.file != number || one.revoked || !(write || one.write || one.client == client))
        continue;
      if (model_.may_be_gone(one)) {
        one.revoked = true;
      } else {
        world_.fail(std::string(what) + " was given against another one");
      }
    }
    if (model_.delegations.contains(stateid.other) || model_.was_given(stateid)) {
      world_.fail(std::string(what) + " has an old stateid");
    }
    model_.note_stateid(stateid);
    ++model_.delegations_given;
    model_.old.given += model_.is_old(client);
    SimDelegation& made = model_.delegations[stateid.other];
    made.client = client;
    made.file = number;
    made.write = write;
    if (recalled) made.maybe_since = model_.now;
  }
  /// CB_RECALL has come, sent at `since` at the earliest.
  void recalled(const xdr::stateid4& stateid, TimePoint since) {
    const auto found = model_.delegations.find(stateid.other);
    if (found == model_.delegations.end()) return;
    if (!found->second.maybe_since) found->second.maybe_since = since;
    if (!found->second.certain_since) found->second.certain_since = model_.now;
  }

  /// The holder used it, gave it back or asked for it, and was answered so. True: it is good. Minor
  /// version 0 has no FREE_STATEID: what was revoked is not known any more.
  bool used(const xdr::stateid4& stateid, nfsstat4 status, const char* what) {
    const auto found = model_.delegations.find(stateid.other);
    if (found == model_.delegations.end()) {
      expect(status, NFS4ERR_BAD_STATEID, what);
      return false;
    }
    SimDelegation& one = found->second;
    const bool old = model_.is_old(one.client);
    const nfsstat4 gone = old ? NFS4ERR_BAD_STATEID : NFS4ERR_DELEG_REVOKED;
    if (status == gone && model_.may_be_gone(one)) one.revoked = true;
    if (one.revoked || model_.must_be_gone(one)) {
      model_.old.lost += old;
      one.revoked = true;
      expect(status, gone, what);
      return false;
    }
    if (status == NFS4ERR_BAD_STATEID || status == NFS4ERR_DELEG_REVOKED) {
      expect(status, NFS4_OK, what);
      return false;
    }
    return true;
  }
  void returned(const xdr::stateid4& stateid, nfsstat4 status) {
    if (!used(stateid, status, "DELEGRETURN")) return;
    expect(status, NFS4_OK, "DELEGRETURN");
    model_.old.returned += model_.is_old(model_.delegations.at(stateid.other).client);
    model_.delegations.erase(stateid.other);
  }
  /// FREE_STATEID.
  void freed(const xdr::stateid4& stateid, nfsstat4 status) {
    const auto found = model_.delegations.find(stateid.other);
    if (found == model_.delegations.end())
      return expect(status, NFS4ERR_BAD_STATEID, "FREE_STATEID");
    if (status == NFS4_OK && model_.may_be_gone(found->second)) found->second.revoked = true;
    expect(status, found->second.revoked ? NFS4_OK : NFS4ERR_LOCKS_HELD, "FREE_STATEID");
    if (found->second.revoked) model_.delegations.erase(found);
  }

  /// RENEW says that the client cannot be called, or that a delegation of its was revoked: the
  /// first RENEW behind that, and those of a lease from then on. False: it has lost none.
  bool renew_tells_of_loss(std::size_t client) {
    bool any = false;
    for (auto& [other, one] : model_.delegations) {
      const bool lost = one.client == client && (one.revoked || model_.must_be_gone(one));
      if (!lost) continue;
      if (!one.renew_told) one.renew_told = model_.now;
      any |= !model_.is_past_lease(*one.renew_told);
    }
    return any;
  }
  /// It has one that nobody has revoked for certain.
  bool has_any(std::size_t client) const {
    return std::ranges::any_of(model_.delegations, [&](const auto& one) {
      return one.second.client == client && !model_.must_be_gone(one.second);
    });
  }

  /// GETATTR of size and change attribute (RFC 8881 10.4.3): of a file with a write delegation they
  /// are the holder's. In minor version 0 the holder itself may be asked, when it has not named
  /// itself on its connection.
  void looked(std::size_t by, std::size_t number, nfsstat4 status, std::uint64_t size,
              std::uint64_t change) {
    SimFile& file = *model_.files[number];
    const std::size_t asks = model_.is_old(by) ? kNobody : by;
    if (status == NFS4ERR_DELAY) {
      bool any = false;
      for (auto& [other, one] : model_.delegations) {
        if (!stands_against(one, asks, number, false) || model_.must_be_gone(one)) continue;
        any = true;
        if (!one.maybe_since) one.maybe_since = model_.now;  // when it could not be asked
      }
      if (!any) world_.fail("GETATTR: NFS4ERR_DELAY for nobody's sake");
      return;
    }
    expect(status, NFS4_OK, "GETATTR");
    if (status != NFS4_OK) return;
    std::set<std::size_t> ended;
    bool told = false, right = false, changed = false, own = false;
    for (auto& [other, one] : model_.delegations) {
      if (!stands_against(one, asks, number, false)) continue;
      for (const SimDelegation::Told& answer : one.told) {
        if (model_.now - answer.at > kLateAnswer) continue;
        own |= one.client == by && answer.size == size;
        if (one.client == by) continue;
        told = true;
        right |= answer.size == size;
        changed = answer.changed;
      }
      if (told || one.client == by) continue;
      if (model_.may_be_gone(one)) {
        one.revoked = true;
      } else if (model_.expired(one.client)) {
        ended.insert(one.client);
      } else {
        world_.fail("GETATTR was answered without a word from who has a write delegation");
      }
    }
    world_.evict(ended);
    if (!right && !own && size != file.bytes.size()) world_.fail("GETATTR has another size");
    if (told && !right && !any_may_be_gone(number)) {
      world_.fail("GETATTR has not the size that the holder told");
    }
    if (change < file.change || (right && changed && change == file.change)) {
      world_.fail("the change attribute did not change");
    }
    file.change = change;
  }

  /// SEQ4_STATUS_RECALLABLE_STATE_REVOKED was there, or not.
  void told_of_revoked(std::size_t client, bool told) {
    constexpr Duration kTold = std::chrono::minutes(10);
    bool maybe = false, must = false;
    for (const auto& [other, one] : model_.delegations) {
      if (one.client != client) continue;
      maybe |= one.revoked || model_.may_be_gone(one);
      // For how long it has been revoked nobody knows exactly.
      must |= (one.revoked || model_.must_be_gone(one)) && one.maybe_since &&
              model_.now - *one.maybe_since < kTold;
    }
    if (told && !maybe) world_.fail("a client is told of a delegation revoked that it has");
    if (!told && must) world_.fail("a client is not told that a delegation was revoked");
  }

 private:
  static bool stands_against(const SimDelegation& one, std::size_t by, std::size_t file,
                             bool changes) {
    return one.file == file && !one.revoked && one.client != by && (changes || one.write);
  }
  bool stops(std::size_t by, std::size_t file) const {
    return std::ranges::any_of(model_.delegations, [&](const auto& one) {
      return stands_against(one.second, by, file, true);
    });
  }
  bool is_waited_for(std::size_t by, std::size_t file, bool changes, bool certain = true) {
    bool any = false;
    for (auto& [other, one] : model_.delegations) {
      if (!stands_against(one, by, file, changes)) continue;
      any |= !model_.must_be_gone(one) && !model_.expired(one.client);
      note_wait(one, certain);
    }
    return any;
  }
  void expect(nfsstat4 status, nfsstat4 wanted, const char* what) {
    if (status == wanted) return;
    world_.fail(std::string(what) + ": " + number_text(status) + " instead of " +
                number_text(wanted));
  }
  bool any_may_be_gone(std::size_t file) const {
    return std::ranges::any_of(model_.delegations, [&](const auto& one) {
      return one.second.file == file && model_.may_be_gone(one.second);
    });
  }
  /// Somebody was told to wait for it.
  void note_wait(SimDelegation& one, bool certain) {
    if (model_.expired(one.client)) {
      model_.clients[one.client].unsure = true;
    } else if (model_.may_be_gone(one)) {
      return;  // or for another one
    } else {
      if (!one.maybe_since) one.maybe_since = model_.now;
      if (certain && !one.certain_since) one.certain_since = model_.now;
    }
  }
  bool own_lease_breaks(std::size_t client, std::size_t file) {
    bool any = false;
    for (auto& [other, one] : model_.delegations) {
      if (one.file != file || one.client != client || one.revoked) continue;
      any = true;
      if (!one.maybe_since) one.maybe_since = model_.now;
    }
    return any;
  }

  SimWorld& world_;
  SimModel& model_;
};

}  // namespace nfsrdma::test
