// SPDX-License-Identifier: Apache-2.0
// OPENs whose results the disk failed: the client hears of an error, and nothing of them is left.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#include "tests/support/callback_client.h"

namespace nfsrdma::test {
namespace {

xdr::OPEN4args opening(const Session4& session, std::string_view name, bool create) {
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.owner = {session.client, as_bytes(std::string_view("owner"))};
  if (create) args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  args.claim.file = name;
  return args;
}

class UnsyncedOpens : public ::testing::Test {
 protected:
  Reply4 run_failing(const Operations4& operations) {
    nfs_.during_commit = [this] {
      std::lock_guard lock(nfs_.state().mutex);
      opens_ = nfs_.state().opens.held_by_all().opens;
      delegations_ = nfs_.state().delegations.table().size();
      return EIO;
    };
    Reply4 reply = nfs_.run(operations);
    nfs_.during_commit = {};
    return reply;
  }
  std::size_t opens() { return nfs_.state().opens.held_by_all().opens; }
  std::size_t holds() {
    std::lock_guard lock(nfs_.state().mutex);
    return nfs_.state().clients.find(nfs_.session.client)->holds;
  }
  /// A change that waits for the disk, and what comes behind it.
  Operations4 synced_write() {
    return Operations4()
        .putfh(written_.handle)
        .add<OP_WRITE>({written_.stateid, 0, xdr::stable_how4::FILE_SYNC4, {as_bytes("x")}});
  }
  Nfs4Harness nfs_;
  Open4 written_;
  CallbackClient client_side_{nfs_};
  // While the disk was waited for:
  std::size_t opens_ = 0, delegations_ = 0;
};

TEST_F(UnsyncedOpens, AreNotOpen) {
  xdr::OPEN4args args = opening(nfs_.session, "new", true);
  args.share_deny = xdr::OPEN4_SHARE_DENY_BOTH;
  const std::size_t before = holds();
  EXPECT_EQ(run_failing(Operations4().putfh(nfs_.root()).add<OP_OPEN>(args)).status, NFS4ERR_IO);
  EXPECT_EQ(opens_, 1u);
  EXPECT_EQ(opens(), 0u);
  EXPECT_EQ(holds(), before);
  nfs_.session = nfs_.connect("second");
  EXPECT_EQ(nfs_.open(nfs_.root(), "new").status, NFS4_OK) << "denied to nobody";
}

TEST_F(UnsyncedOpens, TakeTheirDelegationsAlong) {
  nfs_.connection().max_backward = 1000;
  nfs_.session = nfs_.connect("called");
  written_ = nfs_.open(nfs_.root(), "written");
  Session4 other = nfs_.connect("other");
  for (const std::uint32_t access : {xdr::OPEN4_SHARE_ACCESS_READ, xdr::OPEN4_SHARE_ACCESS_BOTH}) {
    SCOPED_TRACE(access);
    const std::string name = "file" + std::to_string(access);
    put_file(nfs_.path(name), "");
    ::chmod(nfs_.path(name).c_str(), 0666);
    xdr::OPEN4args args = opening(nfs_.session, name, false);
    args.share_access = access;
    const std::size_t before = holds();
    const Reply4 reply = run_failing(synced_write().putfh(nfs_.root()).add<OP_OPEN>(args));
    ASSERT_EQ(reply.status, NFS4ERR_IO);
    EXPECT_EQ(delegations_, 1u) << "it was given";
    EXPECT_EQ(nfs_.state().delegations.table().size(), 0u);
    EXPECT_EQ(holds(), before);
    // Nobody is asked to give it back, nor does the kernel know of it.
    std::swap(other, nfs_.session);
    EXPECT_EQ(nfs_.open(nfs_.root(), name, xdr::OPEN4_SHARE_ACCESS_WRITE, false).status, NFS4_OK);
    std::swap(other, nfs_.session);
    EXPECT_TRUE(client_side_.is_quiet());
  }
}

TEST_F(UnsyncedOpens, ThoseBehindWhatFailedAreUndoneToo) {
  put_file(nfs_.path("file"), "content");
  const Open4 before = nfs_.open(nfs_.root(), "file", xdr::OPEN4_SHARE_ACCESS_READ);
  ASSERT_EQ(before.status, NFS4_OK);
  written_ = nfs_.open(nfs_.root(), "written");
  put_file(nfs_.path("other"), "");
  const Reply4 reply = run_failing(synced_write()
                                       .putfh(nfs_.root())
                                       .add<OP_OPEN>(opening(nfs_.session, "file", false))
                                       .putfh(nfs_.root())
                                       .add<OP_OPEN>(opening(nfs_.session, "other", false)));
  EXPECT_EQ(reply.status, NFS4ERR_IO);
  ASSERT_EQ(reply.results.size(), 3u);
  EXPECT_EQ(opens_, 3u);
  EXPECT_EQ(opens(), 2u);
  EXPECT_EQ(nfs_.write(before, 0, "x"), NFS4ERR_OPENMODE) << "what it was";
  EXPECT_EQ(nfs_.read(before, 0, 7), "content");
}

/// Those in front of it were told of, and stay.
TEST_F(UnsyncedOpens, ThoseBeforeWhatFailedStay) {
  put_file(nfs_.path("file"), "content");
  const Reply4 reply = run_failing(Operations4()
                                       .putfh(nfs_.root())
                                       .add<OP_OPEN>(opening(nfs_.session, "file", false))
                                       .putfh(nfs_.root())
                                       .add<OP_OPEN>(opening(nfs_.session, "new", true)));
  EXPECT_EQ(reply.status, NFS4ERR_IO);
  ASSERT_EQ(reply.results.size(), 5u);
  EXPECT_EQ(opens_, 2u);
  EXPECT_EQ(opens(), 1u);
}

TEST(UnsyncedOpensOnTheWay, AreUndoneAndThoseThatReachedTheDiskStay) {
  static std::atomic<int> calls{0};
  static std::atomic<int> fails_from{INT_MAX};
  HarnessOptions options;
  options.committer_calls = {[](int, bool) {
    if (calls++ < fails_from) return 0;
    errno = EIO;
    return -1;
  }};
  Nfs4Harness nfs(options);
  const auto make = [&](const std::string& prefix) {
    Operations4 operations;
    for (const char* number : {"1", "2", "3", "4"}) {
      const std::string name = prefix + number;
      operations.putfh(nfs.root()).add<OP_OPEN>(opening(nfs.session, name, true));
    }
    return nfs.run(operations);
  };
  // No test knows how many objects are waited for together: so every one fails in its turn.
  ASSERT_EQ(make("all").status, NFS4_OK);
  std::size_t before = nfs.state().opens.held_by_all().opens;
  ASSERT_EQ(before, 4u);
  const int most = calls;
  for (int first = 0; first < most; ++first) {
    SCOPED_TRACE(first);
    calls = 0;
    fails_from = first;
    const Reply4 reply = make("first" + std::to_string(first) + "-");
    fails_from = INT_MAX;
    EXPECT_EQ(reply.status, NFS4ERR_IO);
    const auto answered =
        std::count_if(reply.results.begin(), reply.results.end(),
                      [](const auto& result) { return result.number == OP_OPEN; });
    const std::size_t now = nfs.state().opens.held_by_all().opens;
    EXPECT_EQ(now - before, static_cast<std::size_t>(answered) - 1) << "all but the last";
    before = now;
  }
}

}  // namespace
}  // namespace nfsrdma::test
