// SPDX-License-Identifier: Apache-2.0
// What an administrator took away: RevokedStates by itself, and OpenStates::revoke_file(). (What
// each stateid is worth behind each sequence of requests is in stateid_sequences_test.cc.)
#include "server/nfs4/state/revoked_states.h"

#include <map>

#include "tests/unit/server/nfs4/state/open_states_fixture.h"

namespace nfsrdma::nfs4 {
namespace {

class RevokedOpens : public OpenStatesFixture {};

TEST_F(RevokedOpens, AreFreeForOthersAtOnce) {
  const auto anybody = [](ClientId) { return true; };
  const Stateid mine = open(kOne, "o", "f", {kShareRead | kShareWrite, kShareWrite});
  const Stateid elsewhere = open(kOne, "o", "g");
  const auto locked = lock(kOne, mine, "l", LockKind::kWrite, {0, 9});
  lock(kOne, elsewhere, "l", LockKind::kWrite, {0, 9});
  EXPECT_EQ(states_.open(kTwo, "o", "f", kBoth).status, Status::kShareDenied);
  const auto lost = states_.revoke_file("f", anybody, TimePoint());
  EXPECT_EQ(lost, (std::map<ClientId, OpenStates::Lost>{{1, {1, 1}}}));
  const Stateid theirs = open(kTwo, "o", "f");
  EXPECT_EQ(lock(kTwo, theirs, "l", LockKind::kWrite, {0, 9}).status, Status::kOk);
  EXPECT_EQ(states_.test(kOne, mine), Status::kAdminRevoked);
  EXPECT_EQ(states_.test(kOne, locked.stateid), Status::kAdminRevoked);
  EXPECT_EQ(states_.test(kTwo, mine), Status::kBadStateid) << "another client's";
  EXPECT_EQ(states_.test(kOne, elsewhere), Status::kOk);
  EXPECT_EQ(states_.held(1), (OpenStates::Held{1, 1, 1, 1}));
  // The owner opens it again, by another stateid.
  EXPECT_NE(open(kOne, "o", "f", kRead).other, mine.other);
  EXPECT_EQ(states_.test(kOne, mine), Status::kAdminRevoked);
  states_.end_client(1);
  EXPECT_EQ(states_.test(kOne, mine), Status::kBadStateid);
  EXPECT_EQ(states_.revoked().of_client(1), 0u);
}

TEST_F(RevokedOpens, OfHostsHaveNoStateid) {
  const auto anybody_but_hosts = [](ClientId client) { return client != 9; };
  ASSERT_EQ(states_.lock_file(9, "f", "l", LockKind::kWrite, {0, 4}, &denied_).status, Status::kOk);
  ASSERT_EQ(states_.lock_file(9, "f", "l", LockKind::kWrite, {10, 14}, &denied_).status,
            Status::kOk);
  ASSERT_EQ(states_.share_file(9, "f", "s", kRead).status, Status::kOk);
  const auto lost = states_.revoke_file("f", anybody_but_hosts, TimePoint());
  EXPECT_EQ(lost, (std::map<ClientId, OpenStates::Lost>{{9, {1, 2}}}));
  EXPECT_FALSE(states_.has_locked(9, "f", "l"));
  EXPECT_EQ(states_.revoked().of_client(9), 0u);
  EXPECT_TRUE(states_.empty());
}

TEST_F(RevokedOpens, InMinorVersion0WhoIsToldKnowsAllThatCameOfTheOpen) {
  const auto anybody = [](ClientId) { return true; };
  const Stateid mine = open(kOld, "o", "f");
  const Stateid other = open(kOld, "p", "f");
  const auto locked = lock(kOld, mine, "l", LockKind::kRead, {0, 9});
  states_.revoke_file("f", anybody, TimePoint());
  states_.note_told(locked.stateid);
  EXPECT_TRUE(states_.revoked().any_unknown(1));
  states_.note_told(other);
  EXPECT_FALSE(states_.revoked().any_unknown(1));
  EXPECT_EQ(states_.test(kOld, mine), Status::kAdminRevoked) << "it is said again";
  EXPECT_EQ(states_.owner_of(mine)->name, "o");
  EXPECT_FALSE(states_.owner_of(mine)->locks);
  EXPECT_EQ(states_.owner_of(locked.stateid)->name, "l");
  EXPECT_TRUE(states_.owner_of(locked.stateid)->locks);
}

TEST(RevokedStatesTest, TheOldestOfAClientMakesRoom) {
  RevokedStates revoked;
  constexpr std::size_t kMost = RevokedStates::kMostPerClient;
  revoked.add(1'000'000, {2, "f", "o", false, 1'000'000}, TimePoint());
  for (StateNumber i = 1; i <= kMost + 3; ++i)
    revoked.add(i, {1, "f", "o", false, i}, TimePoint());
  EXPECT_EQ(revoked.of_client(1), kMost);
  EXPECT_FALSE(revoked.contains(3));
  EXPECT_TRUE(revoked.contains(4));
  EXPECT_TRUE(revoked.contains(1'000'000)) << "another client's";
  for (StateNumber i = 1; i <= kMost + 3; ++i)
    revoked.forget(i);
  EXPECT_EQ(revoked.of_client(1), 0u);
  EXPECT_FALSE(revoked.any_unknown(1));
  EXPECT_TRUE(revoked.any_unknown(2));
}

TEST(RevokedStatesTest, AClientIsNotToldForEver) {
  RevokedStates revoked;
  const TimePoint start = TimePoint() + std::chrono::hours(1);
  revoked.add(1, {1, "f", "o", false, 1}, start);
  EXPECT_TRUE(revoked.to_be_told(1, start + kToldOfRevoked - std::chrono::seconds(1)));
  EXPECT_FALSE(revoked.to_be_told(1, start + kToldOfRevoked));
  EXPECT_FALSE(revoked.to_be_told(2, start));
  revoked.add(2, {1, "f", "o", false, 2}, start + kToldOfRevoked);
  EXPECT_TRUE(revoked.to_be_told(1, start + kToldOfRevoked));
  revoked.end_client(1);
  EXPECT_FALSE(revoked.to_be_told(1, start));
  EXPECT_FALSE(revoked.contains(1));
}

}  // namespace
}  // namespace nfsrdma::nfs4
