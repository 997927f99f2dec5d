// SPDX-License-Identifier: Apache-2.0
// Stateids, all of small cases (RFC 8881 8.2.2 to 8.2.4, RFC 7530 9.1.4): every sequence of up to
// six opens, downgrades, locks, unlocks and closes of two owners of a file, and of its revocation
// by an administrator (RFC 8881 8.5), and behind each of them every stateid that was ever given,
// with each sequence number that it had, the one behind, and 0, in both minor versions, against a
// model of a few lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {
namespace {

using Status = OpenStates::Status;

constexpr std::size_t kDepth = 6;
constexpr std::size_t kOwners = 2;
constexpr Share kRead{kShareRead, 0}, kBoth{kShareRead | kShareWrite, 0};
constexpr ByteRange kBytes{0, 9};
constexpr OpenStates::Asker kNew{1, 1}, kOld{1, 0}, kForeign{2, 1}, kForeignOld{2, 0};

enum class Act : std::uint8_t { kOpenRead, kOpenBoth, kDowngrade, kLock, kUnlock, kClose, kRevoke };
constexpr std::array kActs{Act::kOpenRead, Act::kOpenBoth, Act::kDowngrade, Act::kLock,
                           Act::kUnlock,   Act::kClose,    Act::kRevoke};
struct Step {
  std::size_t owner;
  Act act;
};
using Sequence = std::vector<Step>;

/// One state, of an open or of a lock-owner, and what the rules say of it.
struct Given {
  Stateid last;
  bool live = true;
  bool of_lock = false;
  bool revoked = false;    // by an administrator; then it does not live
  bool may_write = false;  // of an open; a lock may what its open may
  bool locked = false;

  /// A stateid of it with that sequence number, in either minor version.
  Status judge(std::uint32_t seqid, std::uint32_t minor_version) const {
    if (revoked) return Status::kAdminRevoked;  // whatever the number is (RFC 8881 8.2.4)
    if (!live) return Status::kBadStateid;
    if (seqid == 0 && minor_version > 0) return Status::kOk;
    if (seqid > last.seqid) return Status::kBadStateid;  // never given out
    return seqid == last.seqid ? Status::kOk : Status::kOldStateid;
  }
};

/// Both sides of one sequence.
class World {
 public:
  /// May it come now? Others would be the same as without them.
  bool fits(const Step& step) const {
    const Owner& owner = owners_[step.owner];
    switch (step.act) {
      case Act::kOpenRead:
      case Act::kOpenBoth:
        return true;
      case Act::kDowngrade:
        return owner.open && all_[*owner.open].may_write;
      case Act::kLock:
      case Act::kClose:
        return owner.open.has_value();
      case Act::kUnlock:
        return owner.lock.has_value();
      case Act::kRevoke:  // that of the file, and no owner's
        return step.owner == 0 && (owners_[0].open || owners_[1].open);
    }
    return false;
  }

  void take(const Step& step) {
    Owner& owner = owners_[step.owner];
    const std::string name = step.owner == 0 ? "one" : "other";
    std::optional<OpenStates::Holder> denied;
    switch (step.act) {
      case Act::kOpenRead:
        owner.asked_to_read = true;
        return given(&owner.open, false, states_.open(kNew, name, "f", kRead));
      case Act::kOpenBoth:
        given(&owner.open, false, states_.open(kNew, name, "f", kBoth));
        all_[*owner.open].may_write = true;
        return;
      case Act::kDowngrade: {
        const auto answer = states_.open_downgrade(kNew, all_[*owner.open].last, kRead);
        // Not to what was never asked for (RFC 8881 18.18.3).
        if (!owner.asked_to_read) return expect(answer.status, Status::kInvalid);
        given(&owner.open, false, answer);
        all_[*owner.open].may_write = false;
        return;
      }
      case Act::kLock:
        given(&owner.lock, true,
              owner.lock
                  ? states_.lock(kNew, all_[*owner.lock].last, LockKind::kRead, kBytes, &denied)
                  : states_.lock(kNew, all_[*owner.open].last, name, LockKind::kRead, kBytes,
                                 &denied));
        all_[*owner.lock].locked = true;
        return;
      case Act::kUnlock:
        given(&owner.lock, true, states_.unlock(kNew, all_[*owner.lock].last, kBytes));
        all_[*owner.lock].locked = false;
        return;
      case Act::kClose:
        // None to be used any more (RFC 8881 18.2.4).
        EXPECT_EQ(states_.close(kNew, all_[*owner.open].last).stateid, (Stateid{UINT32_MAX, {}}));
        all_[*owner.open].live = false;
        if (owner.lock) all_[*owner.lock].live = false;
        owner = Owner();
        return;
      case Act::kRevoke:
        return revoke();
    }
  }

  void check() {
    for (const Given& one : all_) {
      const bool may_write = one.of_lock ? open_of(one).may_write : one.may_write;
      for (std::uint32_t seqid = 0; seqid <= one.last.seqid + 1; ++seqid) {
        const Stateid stateid{seqid, one.last.other};
        for (const auto& asker : {kNew, kOld}) {
          const Status want = one.judge(seqid, asker.minor_version);
          expect(states_.test(asker, stateid), want);
          expect(states_.may_access(asker, stateid, "f", kShareRead), want);
          expect(states_.may_access(asker, stateid, "f", kShareWrite),
                 want == Status::kOk && !may_write ? Status::kOpenMode : want);
          expect(states_.may_access(asker, stateid, "another", kShareRead),
                 want == Status::kOk || one.revoked ? Status::kBadStateid : want);
          EXPECT_EQ(states_.is_of_another(stateid, "another"), one.live || one.revoked);
          EXPECT_FALSE(states_.is_of_another(stateid, "f"));
          EXPECT_EQ(states_.client_of(stateid), one.live || one.revoked ? 1u : 0u);
          refuse_the_other_kind(one, asker, stateid, want);
        }
        for (const auto& asker : {kForeign, kForeignOld})
          expect(states_.test(asker, stateid), Status::kBadStateid);
      }
    }
    EXPECT_EQ(states_.held_by_all().opens, count(false));
    EXPECT_EQ(states_.held_by_all().lock_states, count(true));
    EXPECT_EQ(states_.empty(), count(false) == 0);
    const auto is_revoked = [](const Given& one) { return one.revoked; };
    EXPECT_EQ(states_.revoked().of_client(1),
              static_cast<std::size_t>(std::ranges::count_if(all_, is_revoked)));
  }

  /// FREE_STATEID of all that was revoked: each is forgotten, and nothing else is.
  void free_revoked() {
    for (Given& one : all_) {
      if (!one.revoked) continue;
      expect(states_.free(kForeign, one.last), Status::kBadStateid);
      EXPECT_TRUE(states_.revoked().any_unknown(1));
      expect(states_.free(kNew, one.last), Status::kOk);
      one.revoked = false;
    }
    EXPECT_FALSE(states_.revoked().any_unknown(1));
    EXPECT_FALSE(states_.revoked().to_be_told(1, TimePoint()));
  }

 private:
  struct Owner {
    std::optional<std::size_t> open, lock;  // in all_
    bool asked_to_read = false;             // and not only to do both
  };

  static void expect(Status is, Status want) { EXPECT_EQ(is, want); }

  /// The next stateid of `*state`, or the first.
  void given(std::optional<std::size_t>* state, bool of_lock, const OpenStates::Answer& answer) {
    ASSERT_EQ(answer.status, Status::kOk);
    if (*state) {
      Given& known = all_[**state];
      EXPECT_EQ(answer.stateid.other, known.last.other);
      EXPECT_EQ(answer.stateid.seqid, known.last.seqid + 1);
      known.last = answer.stateid;
      return;
    }
    EXPECT_EQ(answer.stateid.seqid, 1u);
    EXPECT_TRUE(others_.insert(answer.stateid.other).second) << "it was given out before";
    *state = all_.size();
    all_.push_back({answer.stateid, true, of_lock});
  }

  void revoke() {
    OpenStates::Lost wanted{count(false), 0};
    for (Given& one : all_) {
      wanted.locks += one.live && one.of_lock && one.locked;
      one.revoked |= std::exchange(one.live, false);
    }
    owners_ = {};
    const auto lost = states_.revoke_file(
        "f", [](ClientId) { return true; }, TimePoint());
    EXPECT_EQ(lost, (std::map<ClientId, OpenStates::Lost>{{1, wanted}}));
    EXPECT_FALSE(states_.is_open("f"));
    EXPECT_TRUE(states_.revoked().to_be_told(1, TimePoint()));
  }

  /// What an open's stateid is good for is not what a lock's is. Nothing is changed by it.
  void refuse_the_other_kind(const Given& one, const OpenStates::Asker& asker,
                             const Stateid& stateid, Status want) {
    const Status refused = want == Status::kOk ? Status::kBadStateid : want;
    std::optional<OpenStates::Holder> denied;
    if (one.of_lock) {
      expect(states_.close(asker, stateid).status, refused);
      expect(states_.open_downgrade(asker, stateid, kRead).status, refused);
      expect(states_.lock(asker, stateid, "third", LockKind::kRead, kBytes, &denied).status,
             refused);
    } else {
      expect(states_.unlock(asker, stateid, kBytes).status, refused);
      expect(states_.lock(asker, stateid, LockKind::kRead, kBytes, &denied).status, refused);
    }
    if (one.revoked) return;  // free_revoked()
    if (!one.of_lock || one.locked || want != Status::kOk) {
      expect(states_.free(asker, stateid), want == Status::kOk ? Status::kLocksHeld : want);
    }
  }

  const Given& open_of(const Given& lock) const {
    for (const Owner& owner : owners_) {
      if (owner.lock && &all_[*owner.lock] == &lock) return all_[*owner.open];
    }
    return lock;  // it is gone
  }
  std::size_t count(bool of_lock) const {
    std::size_t out = 0;
    for (const Given& one : all_)
      out += one.live && one.of_lock == of_lock;
    return out;
  }

  OpenStates states_{7, {}};
  std::array<Owner, kOwners> owners_;
  std::vector<Given> all_;
  std::set<std::array<std::byte, 12>> others_;
};

/// `sequence`, and all that begin with it.
void run_all(Sequence& sequence, std::size_t* ran) {
  World world;
  for (const Step& step : sequence)
    world.take(step);
  world.check();
  world.free_revoked();
  world.check();
  ++*ran;
  if (testing::Test::HasFailure()) {
    std::string text;
    for (const Step& step : sequence)
      text += std::to_string(step.owner) + ":" + std::to_string(static_cast<int>(step.act)) + " ";
    FAIL() << "after " << text;
  }
  if (sequence.size() == kDepth) return;
  // The two are alike: the first step is the first one's.
  for (std::size_t owner = 0; owner < (sequence.empty() ? 1 : kOwners); ++owner) {
    for (const Act act : kActs) {
      if (!world.fits({owner, act})) continue;
      sequence.push_back({owner, act});
      run_all(sequence, ran);
      sequence.pop_back();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(StateidSequences, EachStateidIsJudgedByTheRulesBehindEachSequence) {
  Sequence sequence;
  std::size_t ran = 0;
  run_all(sequence, &ran);
  RecordProperty("sequences", static_cast<int>(ran));
  EXPECT_GT(ran, 20000u);
}

}  // namespace
}  // namespace nfsrdma::nfs4
