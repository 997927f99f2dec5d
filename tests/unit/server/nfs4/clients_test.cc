// SPDX-License-Identifier: Apache-2.0
// Clients that come and go, and what a restart of the server remembers of them.
#include <gtest/gtest.h>

#include <fstream>
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

struct WhoIsThere {
  std::uint64_t minor = 1;
  std::string major, scope;
  bool operator==(const WhoIsThere&) const = default;
};

WhoIsThere who_is_there(Nfs4Harness& nfs) {
  xdr::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = as_bytes(std::string_view("somebody"));
  const Reply4 reply = nfs.run_bare(Operations4().add<OP_EXCHANGE_ID>(who));
  EXPECT_EQ(reply.status, NFS4_OK);
  const auto res = reply.get<OP_EXCHANGE_ID>().resok4;
  return {res.eir_server_owner.so_minor_id, std::string(as_text(res.eir_server_owner.so_major_id)),
          std::string(as_text(res.eir_server_scope))};
}

TEST(ServerOwner, IsTheSameAfterARestart) {
  Nfs4Harness nfs;
  const WhoIsThere before = who_is_there(nfs);
  EXPECT_EQ(before.minor, 0u);
  EXPECT_EQ(before.major, before.scope);
  nfs.restart();
  EXPECT_EQ(who_is_there(nfs), before);
}

// A clone of a machine has its name and its directories: only what was drawn tells them apart.
TEST(ServerOwner, IsAnotherInAnotherStateDirectoryOfThatName) {
  Nfs4Harness nfs;
  const WhoIsThere before = who_is_there(nfs);
  std::filesystem::remove(nfs.state_dir() + "/server-owner");
  nfs.restart();
  EXPECT_NE(who_is_there(nfs).major, before.major);
  EXPECT_NE(who_is_there(nfs).scope, before.scope);
}

// As it was before servers had such a file.
TEST(ServerOwner, IsMadeInAStateDirectoryThatHasNone) {
  Nfs4Harness nfs;
  ASSERT_EQ(nfs.open(nfs.root(), "file").status, NFS4_OK);
  std::filesystem::remove(nfs.state_dir() + "/server-owner");
  nfs.restart();
  EXPECT_EQ(who_is_there(nfs).major.size(), std::string("nfs-rdmad:").size() + 32);
  EXPECT_FALSE(grace_is_over(nfs)) << "the clients' records are as they were";
  struct stat st {};
  ASSERT_EQ(::stat((nfs.state_dir() + "/server-owner").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
}

TEST(ServerOwner, OfAnotherVersionIsNotReplaced) {
  TemporaryDirectory home;
  const std::string text = "nfs-rdma server owner 2\n0123456789abcdef";
  std::ofstream(home.path() + "/server-owner") << text;
  nfs4::ServerState::Options options;
  options.state_dir = home.path();
  std::string why;
  EXPECT_EQ(nfs4::ServerState::create(options, &why), nullptr);
  EXPECT_NE(why.find("server-owner"), why.npos) << why;
  std::ifstream file(home.path() + "/server-owner");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST(ServerOwner, TwoServersCannotHaveOne) {
  Nfs4Harness nfs;
  nfs4::ServerState::Options options;
  options.state_dir = nfs.state_dir();
  std::string why;
  EXPECT_EQ(nfs4::ServerState::create(options, &why), nullptr);
  EXPECT_NE(why.find("another server"), why.npos) << why;
}

}  // namespace
}  // namespace nfsrdma::test
