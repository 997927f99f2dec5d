// SPDX-License-Identifier: Apache-2.0
// Clients that come and go, and what a restart of the server remembers of them.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

nfsstat4 leave(Nfs4Harness& nfs, const Session4& session) {
  const Reply4 ended = nfs.run_bare(Operations4().add<OP_DESTROY_SESSION>({session.id}));
  if (ended.status != NFS4_OK) return ended.status;
  return nfs.run_bare(Operations4().add<OP_DESTROY_CLIENTID>({session.client})).status;
}

bool grace_is_over(Nfs4Harness& nfs) {
  std::lock_guard lock(nfs.state().mutex);
  return nfs.state().grace.over(nfs.clock.now());
}

TEST(Clients, WhoIsThereIsWaitedForAfterARestart) {
  Nfs4Harness nfs;
  nfs.restart();
  EXPECT_FALSE(grace_is_over(nfs));
}

TEST(Clients, WhoLeftIsNotWaitedForAfterARestart) {
  Nfs4Harness nfs;
  ASSERT_EQ(leave(nfs, nfs.session), NFS4_OK);
  nfs.restart();
  EXPECT_TRUE(grace_is_over(nfs));
}

}  // namespace
}  // namespace nfsrdma::test
