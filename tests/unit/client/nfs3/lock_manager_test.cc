// SPDX-License-Identifier: Apache-2.0
// Where the lock manager of an NFSv3 server is, also when it moves, and who we are to it.
#include "client/nfs3/lock_manager.h"

#include <gtest/gtest.h>

#include "tests/unit/client/nfs3/file_locks_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;

// --- where NLM is ---

class Nfs3LocksElsewhereTest : public Nfs3LocksTest {
 protected:
  Nfs3LocksElsewhereTest() {
    nlm_on_nfs_ = false;
    ways_->registered = SocketAddress::parse("192.0.2.1", 32803).value();
  }
};

TEST_F(Nfs3LocksElsewhereTest, ALockManagerThatIsNotOnTheNfsConnectionIsWhereRpcbindSays) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(nfs_->lock_manager(), "192.0.2.1:32803");
  EXPECT_EQ(ways_->asked, 1u);
  EXPECT_EQ(lock({2, LockKind::kWrite, {10, 19}}), 0);
  EXPECT_EQ(ways_->asked, 1u);
}

TEST_F(Nfs3LocksElsewhereTest, AServerWithoutOneHasNoLocksAndIsAskedAgainNowAndThen) {
  ways_->registered.reset();
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), ENOLCK);
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), ENOLCK);
  EXPECT_EQ(ways_->asked, 1u);
  EXPECT_EQ(nfs_->lock_manager(), "");
  EXPECT_FALSE(nfs_->holds(file_));
  serve_for(seconds(60));
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), ENOLCK);
  EXPECT_EQ(ways_->asked, 2u);
  ways_->registered = SocketAddress::parse("192.0.2.1", 32803).value();
  serve_for(seconds(60));
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
}

TEST_F(Nfs3LocksElsewhereTest, SoHasOneWhoseRpcbindDoesNotAnswer) {
  ways_->answers = false;
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), ENOLCK);
}

TEST_F(Nfs3LocksElsewhereTest, ManyWhoAskAtOnceLookForItOnce) {
  Outcome done[3];
  for (LockOwnerId owner = 0; owner < 3; ++owner)
    start_lock(&done[owner], {owner + 1, LockKind::kRead, {0, 9}});
  serve_for(seconds(1));
  for (const Outcome& one : done)
    EXPECT_EQ(number(one), 0);
  EXPECT_EQ(ways_->asked, 1u);
}

TEST_F(Nfs3LocksElsewhereTest, ALockManagerThatComesBackAtAnotherPortIsFoundAndToldWhatIsHeld) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.locks = {};
  manager_.in_grace = true;
  ways_->registered = SocketAddress::parse("192.0.2.1", 40001).value();
  lose_own();
  // Nobody listens at the old one.
  ASSERT_NE(ways_->environment->transport(), nullptr);
  EXPECT_EQ(ways_->environment->transport()->candidate().address.port(), 32803);
  ways_->environment->transport()->refuse(ECONNREFUSED);
  serve_for(seconds(10));
  EXPECT_EQ(nfs_->lock_manager(), "192.0.2.1:40001");
  EXPECT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(read(), 0);
}

TEST_F(Nfs3LocksElsewhereTest, OneThatIsNotThereYetAfterARestartIsWaitedFor) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.locks = {};
  manager_.in_grace = true;
  ways_->registered.reset();
  lose_own();
  ways_->environment->transport()->refuse(ECONNREFUSED);
  serve_for(seconds(30));
  EXPECT_EQ(nfs_->locks_held(), 1u);
  ways_->registered = SocketAddress::parse("192.0.2.1", 40001).value();
  serve_for(seconds(20));
  EXPECT_EQ(manager_.locks.held().size(), 1u);
}

TEST_F(Nfs3LocksElsewhereTest, OneThatDoesNotAnswerAnyMoreIsLookedForAgain) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  served_own_ = false;
  Outcome done;
  start_lock(&done, {2, LockKind::kWrite, {10, 19}});
  serve_for(seconds(20));
  EXPECT_EQ(number(done), -1);  // a hard mount
  EXPECT_GE(ways_->asked, 2u);
  served_own_ = true;
  serve_for(seconds(20));
  EXPECT_EQ(number(done), 0);
}

TEST_F(Nfs3LocksElsewhereTest, AServerThatIsUpgradedMayHaveItOnTheNfsConnectionByThen) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.locks = {};
  manager_.in_grace = true;
  nlm_on_nfs_ = true;
  ways_->registered.reset();
  lose_own();
  ways_->environment->transport()->refuse(ECONNREFUSED);
  served_own_ = false;
  serve_for(seconds(10));
  EXPECT_EQ(nfs_->lock_manager(), "NFS connection");
  EXPECT_EQ(manager_.locks.held().size(), 1u);
}

// --- who locks ---

TEST(LockCaller, NumbersOfOwnersArePositiveAndTheMountsOwn) {
  nfs3::LockCaller one, other;
  one.id = 1;
  other.id = 0xdeadbeef12345678;
  for (LockOwnerId owner : {LockOwnerId{0}, LockOwnerId{1}, LockOwnerId{1} << 40}) {
    EXPECT_GE(one.svid(owner), 1u << 24);
    EXPECT_LT(one.svid(owner), 1u << 31);
    EXPECT_GE(other.svid(owner), 1u << 24);
    EXPECT_LT(other.svid(owner), 1u << 31);
    EXPECT_NE(one.svid(owner), other.svid(owner));
  }
  EXPECT_NE(one.svid(1), one.svid(2));
}

TEST(LockCaller, NamesAreOfThisProcessAndNotTwiceTheSame) {
  const nfs3::LockCaller one = nfs3::LockCaller::make(), other = nfs3::LockCaller::make();
  EXPECT_NE(one.name, other.name);
  EXPECT_LE(one.name.size(), 255u);
  // A status monitor may make a file of it, or look it up.
  EXPECT_EQ(one.name.find('/'), std::string::npos);
  EXPECT_NE(one.name[0], '.');
}

}  // namespace
}  // namespace nfsrdma
