// SPDX-License-Identifier: Apache-2.0
// Nothing is done to a file by those who believe to have locked it, once the server has given the
// lock up: another may have it. Requests that were made before, and go out behind, included.
#include "tests/unit/client/nfs4/file_locks_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using std::chrono::seconds;

constexpr ByteRange kAll{0, UINT64_MAX};

class LostLocks : public FileLocksTest {
 protected:
  LostLocks() { EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0); }
  /// It restarts, and no time of grace follows; as behind a partition that outlasts the lease.
  void lose() {
    server_->restart();
    environment_->transport()->lose();
    server_->serve_for(seconds(5));
  }
};

TEST_F(LostLocks, AWriteThatWasOnItsWayIsNotMade) {
  std::optional<Result<WriteResult>> done;
  group_.spawn(keep(nfs_->write_once(op_, file_, 0, as_bytes("old"), Stability::kFileSync), &done));
  environment_->settle();
  server_->content = "new";
  lose();
  EXPECT_EQ(number(done), EIO);
  EXPECT_EQ(server_->content, "new");
}

TEST_F(LostLocks, ATruncationThatWasOnItsWayIsNotMade) {
  SetAttributes set;
  set.size = 0;
  std::optional<Result<Wcc>> done;
  group_.spawn(keep(nfs_->setattr(op_, file_, set, nullptr), &done));
  environment_->settle();
  lose();
  EXPECT_EQ(number(done), EIO);
}

TEST_F(LostLocks, NeitherSizeNorSpaceChangesUntilTheyAreUnlocked) {
  lose();
  server_->seen.clear();
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(truncate(), EIO);
  EXPECT_EQ(times(Op::OP_SETATTR), 0u);
  std::optional<Result<Wcc>> space;
  group_.spawn(keep(nfs_->deallocate(op_, file_, 0, 10), &space));
  server_->serve_for(seconds(2));
  EXPECT_EQ(number(space), EIO);
  SetAttributes no_data;
  no_data.mode = 0600;
  EXPECT_EQ(set_attributes(no_data), 0);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(truncate(), 0);
}

TEST_F(LostLocks, WhatAnotherOwnerLosesBehindThatIsLostAsWell) {
  lose();
  EXPECT_EQ(lock({2, LockKind::kWrite, {0, 9}}), 0);
  lose();
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(lock({2, LockKind::kWrite, {20, 29}}), EIO);
  EXPECT_EQ(unlock(2, kAll), 0);
  EXPECT_EQ(read(), 0);
}

}  // namespace
}  // namespace nfsrdma
