// SPDX-License-Identifier: Apache-2.0
// TEST_STATEID of as many stateids as are taken (RFC 8881 18.48).
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/nfs4_harness.h"
#include "xdr/nfs4_limits.h"

namespace nfsrdma::test {
namespace {

constexpr std::size_t kMany = xdr::kNfs4MaxStateids;

class TestStateid : public ::testing::Test {
 protected:
  /// Of `count`, those at `places` are the file's.
  Reply4 test(std::size_t count, const std::set<std::size_t>& places = {}) {
    std::vector<xdr::stateid4> stateids(count);
    for (xdr::stateid4& one : stateids)
      one.seqid = 1;
    for (const std::size_t place : places)
      stateids.at(place) = file_.stateid;
    std::vector<std::byte> room(16 * count);
    xdr::Encoder scratch(room);
    return nfs_.run(Operations4().add<OP_TEST_STATEID>(
        {xdr::encode_array(scratch, std::span<const xdr::stateid4>(stateids))}));
  }

  Nfs4Harness nfs_;
  Open4 file_ = nfs_.open(nfs_.root(), "file");
};

TEST_F(TestStateid, ManyAreAnsweredInTheirOrder) {
  const std::set<std::size_t> good{0, 254, 255, 256, 257, 511, 512, 4094, kMany - 1};
  const Reply4 reply = test(kMany, good);
  ASSERT_EQ(reply.status, NFS4_OK);
  const auto codes = reply.get<OP_TEST_STATEID>().resok4.tsr_status_codes;
  ASSERT_EQ(codes.count, kMany);
  std::set<std::size_t> found;
  std::size_t place = 0;
  for (const nfsstat4 code : codes) {
    if (code == NFS4_OK) found.insert(place);
    ++place;
  }
  EXPECT_EQ(found, good);
}

/// Everybody else's state waits while they are looked up.
TEST_F(TestStateid, TheRoomForTheAnswerIsThereBeforeTheyAreLookedUp) {
  const Reply4 many = test(kMany);
  EXPECT_EQ(many.status, NFS4_OK);
  EXPECT_EQ(many.grew, 1) << "as much as it takes, and not four times what was too little";
  const Reply4 few = test(100);
  EXPECT_EQ(few.status, NFS4_OK);
  EXPECT_EQ(few.grew, 0);
}

TEST_F(TestStateid, NoneIsLookedUpWhereTheAnswerCannotBeSent) {
  nfs_.session.cache_this = true;
  const Reply4 kept = test(3'000);
  EXPECT_EQ(kept.status, NFS4ERR_REP_TOO_BIG_TO_CACHE);
  EXPECT_EQ(kept.grew, 0);
}

}  // namespace
}  // namespace nfsrdma::test
