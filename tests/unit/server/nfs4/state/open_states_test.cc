// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/open_states.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/unit/server/nfs4/state/open_states_fixture.h"

namespace nfsrdma::nfs4 {
namespace {

class OpenStatesTest : public OpenStatesFixture {
 protected:
  OpenStatesTest() : OpenStatesFixture({.opens = {5}, .locks_per_file = 4}) {}
};

TEST_F(OpenStatesTest, AnotherOpenOfTheSameOwnerAddsToTheFirst) {
  const Stateid first = open(kOne, "o", "f", kRead);
  EXPECT_EQ(first.seqid, 1u);
  const Stateid second = open(kOne, "o", "f", kWrite);
  EXPECT_EQ(second.other, first.other);
  EXPECT_EQ(second.seqid, 2u);
  EXPECT_EQ(states_.holds(1), 1u);
  EXPECT_NE(open(kOne, "other", "f", kRead).other, first.other);
  EXPECT_NE(open(kOne, "o", "g", kRead).other, first.other);
  EXPECT_NE(open(kTwo, "o", "f", kRead).other, first.other) << "owners are a client's own";
}

TEST_F(OpenStatesTest, UndoLeavesWhatWasOpenBefore) {
  const Stateid first = open(kOne, "o", "f", kRead);
  const auto more = states_.open(kOne, "o", "f", {kShareWrite, kShareWrite});
  ASSERT_EQ(more.status, Status::kOk);
  states_.undo(more, {kShareWrite, kShareWrite});
  EXPECT_EQ(states_.test(kOne, first), Status::kOk) << "the stateid that the client has";
  EXPECT_EQ(states_.may_access(kOne, first, "f", kShareWrite), Status::kOpenMode);
  open(kTwo, "o", "f", kWrite);  // denied to nobody
  // Another OPEN of that owner in between: it was told of both, and stays.
  const auto failed = states_.open(kOne, "o", "f", kBoth);
  const Stateid last = open(kOne, "o", "f", kWrite);
  states_.undo(failed, kBoth);
  EXPECT_EQ(states_.test(kOne, last), Status::kOk);
  EXPECT_EQ(states_.may_access(kOne, last, "f", kShareWrite), Status::kOk);
  // A first one leaves nothing.
  const auto alone = states_.open(kOne, "o", "g", kBoth);
  states_.undo(alone, kBoth);
  EXPECT_FALSE(states_.is_open("g"));
  EXPECT_EQ(states_.holds(1), 1u);
}

TEST_F(OpenStatesTest, StateidsAreTheirClientsAndCurrent) {
  const Stateid old = open(kOne, "o", "f", kRead);
  const Stateid now = open(kOne, "o", "f", kWrite);
  EXPECT_EQ(states_.test(kOne, now), Status::kOk);
  EXPECT_EQ(states_.test(kOne, old), Status::kOldStateid);
  EXPECT_EQ(states_.test(kTwo, now), Status::kBadStateid);
  Stateid any = now;
  any.seqid = 0;
  EXPECT_EQ(states_.test(kOne, any), Status::kOk) << "whichever is current";
  EXPECT_EQ(states_.test(kOld, any), Status::kOldStateid) << "not in minor version 0";
  Stateid future = now;
  ++future.seqid;
  EXPECT_EQ(states_.test(kOne, future), Status::kBadStateid);
  Stateid wrong = now;
  wrong.other[11] ^= std::byte{1};
  EXPECT_EQ(states_.test(kOne, wrong), Status::kBadStateid);
  Stateid before_restart = now;
  before_restart.other[0] ^= std::byte{1};
  EXPECT_EQ(states_.test(kOne, before_restart), Status::kStaleStateid);
  EXPECT_EQ(states_.test(kOne, {}), Status::kBadStateid);
}

TEST_F(OpenStatesTest, SharesOfOthersAreInTheWay) {
  open(kOne, "o", "f", {kShareRead, kShareWrite});
  EXPECT_EQ(states_.open(kTwo, "o", "f", kWrite).status, Status::kShareDenied);
  EXPECT_EQ(states_.holds(2), 0u);
  EXPECT_EQ(states_.in_the_way(kTwo, "f", kWrite), std::set<ClientId>{1});
  EXPECT_TRUE(states_.in_the_way(kTwo, "f", kRead).empty());
  EXPECT_TRUE(states_.in_the_way(kTwo, "g", kWrite).empty());
  states_.end_client(1);
  open(kTwo, "o", "f", kWrite);
  EXPECT_EQ(states_.open(kTwo, "o", "f", {0, 0}).status, Status::kInvalid);
}

TEST_F(OpenStatesTest, OnlyOpensThatHadLocksUnlock) {
  const Stateid with = open(kOne, "with", "f"), without = open(kOne, "without", "f");
  ASSERT_EQ(lock(kOne, with, "l", LockKind::kWrite, {0, 9}).status, Status::kOk);
  ASSERT_EQ(states_.close(kOne, without).status, Status::kOk);
  EXPECT_FALSE(states_.take_unlocked("f"));
  ASSERT_EQ(states_.close(kOne, with).status, Status::kOk);
  EXPECT_FALSE(states_.take_unlocked("g"));
  EXPECT_TRUE(states_.take_unlocked("f"));
  EXPECT_FALSE(states_.take_unlocked("f")) << "once";
  // What was unlocked before is not the open's.
  const Stateid again = open(kOne, "with", "f");
  const auto locked = lock(kOne, again, "l", LockKind::kWrite, {0, 9});
  ASSERT_EQ(states_.unlock(kOne, locked.stateid, {0, 9}).status, Status::kOk);
  ASSERT_EQ(states_.close(kOne, again).status, Status::kOk);
  EXPECT_FALSE(states_.take_unlocked("f"));
}

TEST_F(OpenStatesTest, AClientThatEndsNamesEachOfItsFilesOnce) {
  for (const char* owner : {"a", "b", "c"})
    open(kOne, owner, "f");
  const Stateid other = open(kOne, "a", "g");
  ASSERT_EQ(lock(kOne, other, "l", LockKind::kRead, {0, 9}).status, Status::kOk);
  EXPECT_EQ(states_.end_client(1), (std::set<FileKey>{"f", "g"}));
  EXPECT_FALSE(states_.take_unlocked("f"));
  EXPECT_TRUE(states_.take_unlocked("g"));
}

TEST_F(OpenStatesTest, ThatOthersDenyWritingIsToldFromTheOwnersDenial) {
  EXPECT_FALSE(states_.is_writing_denied(kOne, "o", "f"));
  open(kOne, "o", "f", {kShareRead, kShareWrite});
  EXPECT_FALSE(states_.is_writing_denied(kOne, "o", "f"));
  EXPECT_TRUE(states_.is_writing_denied(kOne, "other", "f"));
  EXPECT_TRUE(states_.is_writing_denied(kTwo, "o", "f"));
  EXPECT_FALSE(states_.is_writing_denied(kTwo, "o", "g"));
}

/// One client with very many open-owners must not hold up the others: this does not end if each
/// question walks all opens.
TEST(ManyOpens, OfOneFileAreNotWalkedForEachQuestion) {
  constexpr int kMany = 20'000;
  OpenStates states(7, {});
  std::vector<Stateid> opens;
  for (int i = 0; i < kMany; ++i) {
    const auto answer = states.open(kOne, "o" + std::to_string(i), "f", kRead);
    ASSERT_EQ(answer.status, Status::kOk);
    opens.push_back(answer.stateid);
    for (int question = 0; question < 10; ++question) {
      ASSERT_FALSE(states.is_written("f"));
      ASSERT_TRUE(states.in_the_way(kTwo, "f", kBoth).empty());
      ASSERT_EQ(states.may_access(kOne, opens[i / 2], "f", kShareRead), Status::kOk);
    }
  }
  EXPECT_EQ(states.in_the_way(kTwo, "f", {kShareRead, kShareRead}), std::set<ClientId>{1});
  EXPECT_TRUE(states.in_the_way(kOne, "f", {kShareRead, kShareRead}).empty());
  const Stateid writes = states.open(kTwo, "o", "f", kWrite).stateid;
  EXPECT_TRUE(states.is_written("f"));
  EXPECT_EQ(states.close(kTwo, writes).status, Status::kOk);
  EXPECT_FALSE(states.is_written("f"));
  for (const Stateid& open : opens)
    ASSERT_EQ(states.close(kOne, open).status, Status::kOk);
  EXPECT_TRUE(states.empty());
}

TEST_F(OpenStatesTest, DowngradeAndCloseMoveOn) {
  open(kOne, "o", "f", kRead);
  const Stateid both = open(kOne, "o", "f", kBoth);
  EXPECT_EQ(states_.open_downgrade(kOne, both, kWrite).status, Status::kInvalid);
  const auto down = states_.open_downgrade(kOne, both, kRead);
  EXPECT_EQ(down.stateid.seqid, 3u);
  EXPECT_EQ(states_.close(kOne, both).status, Status::kOldStateid);
  const auto closed = states_.close(kOne, down.stateid);
  EXPECT_EQ(closed.stateid, (Stateid{UINT32_MAX, {}})) << "none that can be used";
  EXPECT_EQ(states_.close(kOne, down.stateid).status, Status::kBadStateid);
  EXPECT_TRUE(states_.empty());
  // Minor version 0 counts on.
  const Stateid old = open(kOld, "o", "f");
  EXPECT_EQ(states_.close(kOld, old).stateid.seqid, 2u);
}

TEST_F(OpenStatesTest, LocksNeedAnOpenThatMay) {
  const Stateid reads = open(kOne, "o", "f", kRead);
  EXPECT_EQ(lock(kOne, reads, "l", LockKind::kWrite, {0, 9}).status, Status::kOpenMode);
  EXPECT_EQ(states_.holds(1), 1u) << "a failed lock leaves nothing";
  const auto locked = lock(kOne, reads, "l", LockKind::kRead, {0, 9});
  EXPECT_EQ(locked.status, Status::kOk);
  EXPECT_EQ(locked.stateid.seqid, 1u);
  // By way of an open that may write, the same owner's locks may be for writing as well.
  const Stateid writes = open(kOne, "p", "f", kWrite);
  const auto more = lock(kOne, writes, "l", LockKind::kWrite, {20, 29});
  EXPECT_EQ(more.status, Status::kOk);
  EXPECT_EQ(more.stateid.other, locked.stateid.other) << "one state for an owner and a file";
  EXPECT_EQ(states_.lock(kOne, more.stateid, LockKind::kWrite, {0, 9}, &denied_).status,
            Status::kOk);
}

TEST_F(OpenStatesTest, ADeniedLockTellsWhoseItIs) {
  lock(kOne, open(kOne, "o", "f"), "mine", LockKind::kWrite, {10, 19});
  const Stateid other = open(kTwo, "o", "f");
  EXPECT_EQ(lock(kTwo, other, "l", LockKind::kRead, {0, UINT64_MAX}).status, Status::kDenied);
  ASSERT_TRUE(denied_);
  EXPECT_EQ(denied_->client, 1u);
  EXPECT_EQ(denied_->owner, "mine");
  EXPECT_EQ(denied_->held.range, (ByteRange{10, 19}));
  EXPECT_EQ(denied_->held.kind, LockKind::kWrite);
  EXPECT_FALSE(states_.test_lock(kOne, "mine", "f", LockKind::kWrite, {10, 19})) << "one's own";
  EXPECT_TRUE(states_.test_lock(kOne, "else", "f", LockKind::kRead, {19, 30}));
  EXPECT_FALSE(states_.test_lock(kOne, "else", "f", LockKind::kRead, {20, 30}));
  EXPECT_FALSE(states_.test_lock(kOne, "else", "g", LockKind::kRead, {10, 19}));
}

TEST_F(OpenStatesTest, WhatALockWouldBeTold) {
  const auto file = open(kOne, "o", "f");
  const std::string mine = "mine", theirs = "theirs";
  const auto ask = [&](const OpenStates::Asker& asker, const Stateid& stateid,
                       const std::string* owner, LockKind kind, const ByteRange& range) {
    return states_.may_lock(asker, stateid, owner, kind, range, &denied_);
  };
  EXPECT_EQ(ask(kOne, file, &mine, LockKind::kWrite, {10, 19}), Status::kOk);
  EXPECT_EQ(states_.holds(1), 1u) << "nothing was made";
  const auto locked = lock(kOne, file, mine, LockKind::kWrite, {10, 19});
  const auto other = open(kTwo, "o", "f");
  EXPECT_EQ(ask(kTwo, other, &theirs, LockKind::kRead, {0, 10}), Status::kDenied);
  EXPECT_EQ(denied_->owner, mine);
  EXPECT_EQ(ask(kTwo, other, &theirs, LockKind::kRead, {0, 9}), Status::kOk);
  EXPECT_EQ(ask(kOne, file, &mine, LockKind::kRead, {0, 99}), Status::kOk) << "its own";
  EXPECT_EQ(ask(kOne, locked.stateid, nullptr, LockKind::kRead, {0, 99}), Status::kOk);
  EXPECT_EQ(ask(kOne, locked.stateid, &mine, LockKind::kRead, {0, 99}), Status::kBadStateid);
  EXPECT_EQ(ask(kOne, file, nullptr, LockKind::kRead, {0, 99}), Status::kBadStateid);
  EXPECT_EQ(ask(kTwo, locked.stateid, nullptr, LockKind::kRead, {0, 9}), Status::kBadStateid);

  EXPECT_TRUE(states_.is_locked("f"));
  EXPECT_EQ(states_.locks_in("f", {19, 30}).size(), 1u);
  EXPECT_TRUE(states_.locks_in("f", {20, 30}).empty());
  EXPECT_EQ(states_.unlock(kOne, locked.stateid, {0, 99}).status, Status::kOk);
  EXPECT_FALSE(states_.is_locked("f"));
  EXPECT_FALSE(states_.is_locked("g"));
}

TEST_F(OpenStatesTest, UnlockAndWhatMayBeFreed) {
  const Stateid file = open(kOne, "o", "f");
  const auto locked = lock(kOne, file, "l", LockKind::kWrite, {10, 19});
  EXPECT_EQ(states_.free(kOne, locked.stateid), Status::kLocksHeld);
  EXPECT_EQ(states_.release_lock_owner(kOne, "l"), Status::kLocksHeld);
  EXPECT_EQ(states_.free(kOne, file), Status::kLocksHeld) << "an open is not freed";
  const auto unlocked = states_.unlock(kOne, locked.stateid, {0, UINT64_MAX});
  EXPECT_EQ(unlocked.stateid.seqid, 2u);
  EXPECT_EQ(states_.unlock(kOne, file, {0, 9}).status, Status::kBadStateid);
  EXPECT_EQ(states_.free(kOne, unlocked.stateid), Status::kOk);
  EXPECT_EQ(states_.test(kOne, unlocked.stateid), Status::kBadStateid);
  EXPECT_EQ(states_.release_lock_owner(kOne, "l"), Status::kOk) << "there is none";
  // Released in one go.
  const auto again = lock(kOne, file, "l", LockKind::kWrite, {10, 19});
  states_.unlock(kOne, again.stateid, {10, 19});
  EXPECT_EQ(states_.release_lock_owner(kOne, "l"), Status::kOk);
  EXPECT_EQ(states_.holds(1), 1u);
}

TEST_F(OpenStatesTest, CloseTakesTheLocksThatCameByIt) {
  const Stateid first = open(kOne, "o", "f"), second = open(kOne, "p", "f");
  const auto by_first = lock(kOne, first, "l", LockKind::kWrite, {0, 9});
  const auto by_second = lock(kOne, second, "m", LockKind::kWrite, {20, 29});
  EXPECT_EQ(states_.close(kOne, first).status, Status::kOk);
  EXPECT_EQ(states_.test(kOne, by_first.stateid), Status::kBadStateid);
  EXPECT_EQ(states_.test(kOne, by_second.stateid), Status::kOk);
  EXPECT_FALSE(states_.test_lock(kTwo, "x", "f", LockKind::kWrite, {0, 9}));
  EXPECT_TRUE(states_.test_lock(kTwo, "x", "f", LockKind::kWrite, {20, 29}));
}

TEST_F(OpenStatesTest, AccessByStateid) {
  const Stateid anonymous{};
  Stateid bypass{UINT32_MAX, {}};
  bypass.other.fill(std::byte{0xff});
  EXPECT_EQ(states_.may_access(kOne, anonymous, "f", kShareWrite), Status::kOk);
  const Stateid reads = open(kOne, "o", "f", {kShareRead, 3});
  EXPECT_EQ(states_.may_access(kTwo, anonymous, "f", kShareRead), Status::kLocked);
  EXPECT_EQ(states_.may_access(kTwo, bypass, "f", kShareRead), Status::kOk);
  EXPECT_EQ(states_.may_access(kTwo, bypass, "f", kShareWrite), Status::kLocked);
  EXPECT_EQ(states_.may_access(kOne, reads, "f", kShareRead), Status::kOk);
  EXPECT_EQ(states_.may_access(kOne, reads, "f", kShareWrite), Status::kOpenMode);
  EXPECT_EQ(states_.may_access(kOne, reads, "g", kShareRead), Status::kBadStateid);
  const Stateid writes = open(kOne, "o", "g", kWrite);
  EXPECT_EQ(states_.may_access(kOne, writes, "g", kShareRead), Status::kOk) << "to fill a page";
  const Stateid denies = open(kTwo, "p", "g", {kShareWrite, kShareRead});
  EXPECT_EQ(states_.may_access(kOne, writes, "g", kShareRead), Status::kLocked)
      << "denied by another";
  EXPECT_EQ(states_.may_access(kOne, writes, "g", kShareWrite), Status::kOk);
  EXPECT_EQ(states_.may_access(kTwo, denies, "g", kShareRead), Status::kOk) << "by nobody else";
  const auto locked = lock(kOne, reads, "l", LockKind::kRead, {0, 9});
  EXPECT_EQ(states_.may_access(kOne, locked.stateid, "f", kShareRead), Status::kOk);
  EXPECT_EQ(states_.may_access(kOne, locked.stateid, "f", kShareWrite), Status::kOpenMode);
}

TEST_F(OpenStatesTest, WhatIsOpenAlreadyTakesNoMoreRoom) {
  for (int i = 0; i < 5; ++i)
    open(kOne, "o" + std::to_string(i), "f", kRead);
  open(kOne, "o0", "f", kWrite);
  const auto refused = states_.open(kOne, "o0", "g", kRead);
  EXPECT_EQ(refused.status, Status::kResource);
  EXPECT_EQ(refused.limit, Limit::kOpensOfClient);
  EXPECT_EQ(states_.check_room(1), Limit::kOpensOfClient);
  EXPECT_EQ(states_.check_room(2), Limit::kNone);
  EXPECT_FALSE(states_.is_open("g"));
}

TEST(OpenStatesLimits, AClientThatOpensWithoutEndLeavesFilesToOthers) {
  OpenStates states(7, {.files = {.all = 100}});
  int files = 0;
  const auto more = [&](const OpenStates::Asker& asker) {
    return states.open(asker, "o", "f" + std::to_string(++files), kRead).status;
  };
  int its = 0;
  while (more(kOne) == Status::kOk)
    ASSERT_LT(++its, 100);
  EXPECT_EQ(its, 75);
  EXPECT_EQ(states.open(kOne, "o", "one more", kRead).limit, Limit::kFiles);
  EXPECT_EQ(states.check_room(1), Limit::kFiles);
  int others = 0;
  while (more(kTwo) == Status::kOk)
    ASSERT_LT(++others, 26);
  EXPECT_GE(others, 18);
  EXPECT_EQ(more({3, 1}), Status::kOk) << "whoever has nothing yet";
  // A file that is open costs nothing to have open once more.
  EXPECT_EQ(states.open(kOne, "another", "f1", kRead).status, Status::kOk);
  EXPECT_EQ(states.held(1).files, 75u);
  EXPECT_EQ(states.held(1).opens, 76u);
  states.end_client(1);
  EXPECT_EQ(states.held(1), OpenStates::Held());
  EXPECT_EQ(more(kTwo), Status::kOk);
}

TEST(OpenStatesLimits, LocksOfAClientAreCounted) {
  OpenStates states(7, {.locks = {.per_client = 2, .all = 1000}});
  std::optional<OpenStates::Holder> denied;
  const Stateid file = states.open(kOne, "o", "f", kBoth).stateid;
  const Stateid other = states.open(kOne, "o", "g", kBoth).stateid;
  const auto first = states.lock(kOne, file, "l", LockKind::kWrite, {0, 99}, &denied);
  ASSERT_EQ(first.status, Status::kOk);
  EXPECT_EQ(states.lock(kOne, other, "l", LockKind::kRead, {0, 9}, &denied).status, Status::kOk);
  // Unlocking the middle leaves two, and there is a reserve for that.
  const auto split = states.unlock(kOne, first.stateid, {10, 19});
  ASSERT_EQ(split.status, Status::kOk);
  EXPECT_EQ(states.held(1).locks, 3u);
  EXPECT_EQ(states.unlock(kOne, split.stateid, {30, 39}).limit, Limit::kLocksOfClient);
  EXPECT_EQ(states.lock(kOne, split.stateid, LockKind::kRead, {200, 209}, &denied).limit,
            Limit::kLocksOfClient);
  // What makes no more of them is done.
  const auto joined = states.lock(kOne, split.stateid, LockKind::kWrite, {10, 19}, &denied);
  ASSERT_EQ(joined.status, Status::kOk);
  EXPECT_EQ(states.held(1).locks, 2u);
  EXPECT_EQ(states.close(kOne, other).status, Status::kOk);
  EXPECT_EQ(states.held(1).locks, 1u);
  EXPECT_EQ(states.held_by_all().locks, 1u);
  states.end_client(1);
  EXPECT_EQ(states.held_by_all(), OpenStates::Held());
}

TEST(FairShareRoom, EndsWhereItSays) {
  constexpr FairShare share{.per_client = 10, .all = 12};
  EXPECT_EQ(share.room(0, 0, 0), 9u) << "three quarters";
  EXPECT_EQ(share.room(9, 9, 9), 0u);
  EXPECT_EQ(share.room(0, 9, 9), 0u) << "another client of that host";
  EXPECT_EQ(share.room(0, 0, 11), 1u) << "the last one";
  EXPECT_EQ(share.room(0, 0, 12), 0u);
  EXPECT_EQ(FairShare{.per_client = 4}.room(3, 3, 1000), 1u);
  EXPECT_EQ(FairShare{.per_client = 4}.room(4, 4, 4), 0u);
  EXPECT_EQ(FairShare{}.room(7, 7, 8), SIZE_MAX - 8);
  // However many take what they can, the next one still gets something.
  constexpr FairShare files{.all = 1000};
  std::size_t everybody = 0;
  for (int client = 0; client < 4; ++client) {
    std::size_t own = 0;
    while (files.room(own, own, everybody) > 0)
      ++own, ++everybody;
    EXPECT_GT(own, 0u);
  }
  EXPECT_GT(files.room(0, 0, everybody), 0u);
}

TEST(FairShareRoom, WhatIsHeldAlreadyHasNoShareButABound) {
  constexpr FairShare share{.per_client = 8, .all = 16};
  EXPECT_EQ(share.room(7, 12, 16, Claim::kHeld), 3u) << "a quarter more than 8";
  EXPECT_EQ(share.room(10, 10, 10, Claim::kHeld), 0u);
  EXPECT_EQ(share.room(0, 14, 14, Claim::kHeld), 1u) << "a quarter more than three quarters";
  EXPECT_EQ(share.room(0, 15, 15, Claim::kHeld), 0u);
  EXPECT_EQ(share.room(0, 0, 19, Claim::kHeld), 1u);
  EXPECT_EQ(share.room(0, 0, 20, Claim::kHeld), 0u);
  EXPECT_EQ(FairShare{}.room(0, 0, 0, Claim::kHeld), SIZE_MAX);
}

TEST(OpenStatesLimits, ClientsOfOneHostHaveOneShare) {
  OpenStates states(7, {.opens = {.all = 100}, .files = {.all = 100}});
  for (const ClientId client : {1, 2})
    states.set_host(client, "one host");
  states.set_host(3, "another");
  int files = 0;
  const auto all_it_gets = [&](const OpenStates::Asker& asker) {
    int its = 0;
    while (states.open(asker, "o", "f" + std::to_string(++files), kRead).status == Status::kOk)
      ++its;
    return its;
  };
  EXPECT_EQ(all_it_gets(kOne), 75);
  EXPECT_EQ(all_it_gets(kTwo), 0) << "by another name";
  EXPECT_GE(all_it_gets({3, 1}), 18);
  // Who goes to another host takes along what it holds.
  states.set_host(1, "elsewhere");
  EXPECT_GT(all_it_gets(kTwo), 0);
  EXPECT_EQ(all_it_gets(kOne), 0);
  for (const ClientId client : {1, 2, 3})
    states.end_client(client);
  EXPECT_EQ(all_it_gets(kTwo), 75) << "alone again, and all counts are back at nothing";
}

// After a restart nobody's share may stand against what it had before.
TEST(OpenStatesLimits, ReclaimsHaveNoShare) {
  OpenStates states(7, {.opens = {.all = 100}, .locks = {.all = 100}});
  int opened = 0;
  const auto more = [&](const OpenStates::Asker& asker, Claim claim) {
    return states.open(asker, "o" + std::to_string(++opened), "f", kBoth, claim).status;
  };
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(more(kTwo, Claim::kNew), Status::kOk);
  int its = 0;
  while (more(kOne, Claim::kNew) == Status::kOk)
    ++its;
  EXPECT_LT(its, 50);
  ASSERT_EQ(more(kOne, Claim::kHeld), Status::kOk);
  // The bounds stand all the same.
  while (more(kOne, Claim::kHeld) == Status::kOk)
    ++its;
  EXPECT_EQ(states.held_by_all().opens, 125u);
  EXPECT_EQ(states.held(1).opens, 75u);
  std::optional<OpenStates::Holder> denied;
  const Stateid file = states.open(kTwo, "o1", "f", kBoth).stateid;
  const auto refused = states.lock(kTwo, file, "l", LockKind::kRead, {0, 0}, &denied);
  EXPECT_EQ(refused.limit, Limit::kOpens) << "a lock-owner counts as an open";
}

TEST(OpenStatesLimits, LocksThatAreReclaimedHaveNoShare) {
  OpenStates states(7, {.locks = {.all = 8}});
  std::optional<OpenStates::Holder> denied;
  const Stateid file = states.open(kOne, "o", "f", kBoth).stateid;
  const auto locked = states.lock(kOne, file, "l", LockKind::kRead, {0, 0}, &denied);
  ASSERT_EQ(locked.status, Status::kOk);
  Stateid last = locked.stateid;
  const auto more = [&](std::uint64_t at, Claim claim) {
    const auto answer = states.lock(kOne, last, LockKind::kRead, {at, at}, &denied, claim);
    if (answer.status == Status::kOk) last = answer.stateid;
    return answer;
  };
  std::uint64_t at = 0;
  while (more(at += 10, Claim::kNew).status == Status::kOk)
    ASSERT_LT(at, 100u);
  EXPECT_EQ(states.held(1).locks, 6u);
  EXPECT_EQ(more(at, Claim::kNew).limit, Limit::kLocks);
  EXPECT_EQ(more(at, Claim::kHeld).status, Status::kOk);
}

// LOCKU in the middle asks for one more than there is: unlocking has to be possible.
TEST(OpenStatesLimits, UnlockingCutsALockWhereNobodyMayLock) {
  for (const auto& limits :
       {OpenStates::Limits{.locks = {.per_client = 4}}, OpenStates::Limits{.locks = {.all = 4}},
        OpenStates::Limits{.locks_per_file = 4}}) {
    OpenStates states(7, limits);
    std::optional<OpenStates::Holder> denied;
    const Stateid file = states.open(kOne, "o", "f", kBoth).stateid;
    Stateid last = states.lock(kOne, file, "l", LockKind::kRead, {0, 99}, &denied).stateid;
    std::uint64_t at = 100;
    const auto lock_more = [&] {
      at += 10;
      return states.lock(kOne, last, LockKind::kRead, {at, at}, &denied);
    };
    OpenStates::Answer answer;
    while ((answer = lock_more()).status == Status::kOk)
      last = answer.stateid;
    ASSERT_EQ(answer.status, Status::kResource);
    EXPECT_EQ(states.unlock(kOne, last, {50, 50}).status, Status::kOk);
  }
}

TEST_F(OpenStatesTest, Limits) {
  for (int i = 0; i < 5; ++i)
    open(kOne, "o" + std::to_string(i), "f");
  EXPECT_EQ(states_.open(kOne, "o5", "f", kRead).status, Status::kResource);
  const Stateid file = open(kTwo, "o", "f");
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(lock(kTwo, file, "l", LockKind::kRead, {10 * i, 10 * i}).status, Status::kOk);
  const auto refused = lock(kTwo, file, "l", LockKind::kRead, {100, 100});
  EXPECT_EQ(refused.status, Status::kResource);
  EXPECT_EQ(refused.limit, Limit::kLocksOfFile);
}

// Three clients that do all of it at random: no operation fails for a reason that a list of opens
// and a map of bytes does not give, and nothing is left when they are gone.
TEST(OpenStatesRandom, AgreesWithAPlainModel) {
  struct Open {
    ClientId client;
    std::string owner;
    FileKey file;
    Share share;  // of the last open(); shares are only added to here
    Stateid stateid;
  };
  constexpr std::uint64_t kBytes = 6;
  std::mt19937 random(2);
  auto pick = [&random](std::size_t below) { return random() % below; };
  OpenStates states(9, {.opens = {1000}, .locks_per_file = 1000});
  std::vector<Open> opens;
  // file, byte -> owner (client and name) -> kind
  std::map<std::pair<FileKey, std::uint64_t>, std::map<std::pair<ClientId, std::string>, LockKind>>
      bytes;
  auto end_locks = [&](const Open& open) {
    // In this test a lock-owner has its open's name.
    for (auto& [where, holders] : bytes) {
      if (where.first == open.file) holders.erase({open.client, open.owner});
    }
  };
  for (int step = 0; step < 100000; ++step) {
    const OpenStates::Asker asker{1 + pick(3), 1};
    const std::string owner(1, static_cast<char>('a' + pick(2)));
    const FileKey file(1, static_cast<char>('f' + pick(2)));
    const auto mine = std::find_if(opens.begin(), opens.end(), [&](const Open& open) {
      return open.client == asker.client && open.owner == owner && open.file == file;
    });
    switch (pick(6)) {
      case 0: {
        const Share share{static_cast<std::uint8_t>(1 + pick(3)),
                          static_cast<std::uint8_t>(pick(8) == 0 ? 1 + pick(3) : 0)};
        bool free = true;
        for (const Open& open : opens) {
          if (open.file != file) continue;
          if ((open.share.deny & share.access) != 0 || (open.share.access & share.deny) != 0)
            free = false;
        }
        const auto answer = states.open(asker, owner, file, share);
        ASSERT_EQ(answer.status, free ? Status::kOk : Status::kShareDenied);
        if (!free) break;
        if (mine != opens.end()) {
          mine->share.access |= share.access;
          mine->share.deny |= share.deny;
          mine->stateid = answer.stateid;
        } else {
          opens.push_back({asker.client, owner, file, share, answer.stateid});
        }
        break;
      }
      case 1:
        if (mine == opens.end()) break;
        ASSERT_EQ(states.close(asker, mine->stateid).status, Status::kOk);
        ASSERT_EQ(states.test(asker, mine->stateid), Status::kBadStateid);
        end_locks(*mine);
        opens.erase(mine);
        break;
      case 2:
      case 3:
      case 4: {
        if (mine == opens.end()) break;
        const std::uint64_t first = pick(kBytes), last = first + pick(kBytes - first);
        const LockKind kind = pick(2) == 0 ? LockKind::kRead : LockKind::kWrite;
        bool free = true;
        for (std::uint64_t i = first; i <= last; ++i) {
          for (const auto& [holder, held] : bytes[{file, i}]) {
            if (holder == std::pair(asker.client, owner)) continue;
            if (kind == LockKind::kWrite || held == LockKind::kWrite) free = false;
          }
        }
        ASSERT_EQ(!states.test_lock(asker, owner, file, kind, {first, last}), free);
        std::optional<OpenStates::Holder> denied;
        const auto locked = states.lock(asker, mine->stateid, owner, kind, {first, last}, &denied);
        const bool may =
            (mine->share.access & (kind == LockKind::kWrite ? kShareWrite : kShareRead)) != 0;
        ASSERT_EQ(locked.status, !may ? Status::kOpenMode : free ? Status::kOk : Status::kDenied);
        if (locked.status == Status::kDenied) {
          const auto& holders = bytes[{file, std::max(first, denied->held.range.first)}];
          ASSERT_EQ(holders.at({denied->client, denied->owner}), denied->held.kind);
        }
        if (locked.status != Status::kOk) break;
        for (std::uint64_t i = first; i <= last; ++i)
          bytes[{file, i}][{asker.client, owner}] = kind;
        if (pick(2) == 0) {
          ASSERT_EQ(states.unlock(asker, locked.stateid, {first, last}).status, Status::kOk);
          for (std::uint64_t i = first; i <= last; ++i)
            bytes[{file, i}].erase({asker.client, owner});
        }
        break;
      }
      default:
        if (pick(10) != 0) break;
        states.end_client(asker.client);
        for (const Open& open : opens) {
          if (open.client == asker.client) end_locks(open);
        }
        std::erase_if(opens, [&](const Open& open) { return open.client == asker.client; });
        ASSERT_EQ(states.holds(asker.client), 0u);
    }
  }
  for (ClientId client = 1; client <= 3; ++client)
    states.end_client(client);
  EXPECT_TRUE(states.empty());
}

}  // namespace
}  // namespace nfsrdma::nfs4
