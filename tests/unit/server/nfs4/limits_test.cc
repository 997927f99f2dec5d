// SPDX-License-Identifier: Apache-2.0
// Limits: each with its error, and whoever meets one harms only itself.
#include "server/nfs4/limits.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using nfs4::Limits;

Limits some(std::size_t files) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.files.all = files;
  return limits;
}

std::size_t descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// Opens new files until one is refused: how many were not, and the error.
std::pair<int, nfsstat4> open_without_end(Nfs4Harness& nfs) {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "file" + std::to_string(nfs.session.client) + "-" + std::to_string(i);
    const nfsstat4 status = nfs.open(nfs.root(), name).status;
    if (status == NFS4_OK) continue;
    EXPECT_FALSE(std::filesystem::exists(nfs.path(name))) << "made, and then not opened";
    return {i, status};
  }
  return {1000, NFS4_OK};
}

TEST(Nfs4Limits, WhoOpensWithoutEndLeavesDescriptorsToOthers) {
  Nfs4Harness nfs({}, some(200));
  const std::size_t before = descriptors();
  EXPECT_EQ(open_without_end(nfs), std::pair(150, NFS4ERR_DELAY));
  EXPECT_LE(descriptors(), before + 3 * 150);
  const Session4 greedy = nfs.session;
  nfs.session = nfs.connect("itself by another name");
  EXPECT_EQ(open_without_end(nfs), std::pair(0, NFS4ERR_DELAY));
  nfs.set_peer("192.0.2.8");
  nfs.session = nfs.connect("another");
  const Open4 mine = nfs.open(nfs.root(), "mine");
  ASSERT_EQ(mine.status, NFS4_OK);
  EXPECT_EQ(nfs.write(mine, 0, "data"), NFS4_OK);
  EXPECT_EQ(nfs.read(mine, 0, 10), "data");
  EXPECT_EQ(nfs.close(mine), NFS4_OK);
  // What the other one has stays usable, too.
  nfs.session = greedy;
  const Open4 again = nfs.open(nfs.root(), "file" + std::to_string(greedy.client) + "-0",
                               xdr::OPEN4_SHARE_ACCESS_BOTH, false);
  EXPECT_EQ(again.status, NFS4_OK);
  EXPECT_EQ(nfs.close(again), NFS4_OK);
  EXPECT_EQ(nfs.open(nfs.root(), "one more").status, NFS4_OK);
}

// Who has a file open needs no more room to open it once more, be it by OPEN4_CREATE.
TEST(Nfs4Limits, WhatIsOpenIsOpenedAgainAtTheLimit) {
  Limits limits = some(100);
  limits.opens.opens.per_client = 2;
  Nfs4Harness nfs({}, limits);
  const Open4 first = nfs.open(nfs.root(), "first", xdr::OPEN4_SHARE_ACCESS_READ);
  ASSERT_EQ(first.status, NFS4_OK);
  ASSERT_EQ(nfs.open(nfs.root(), "second").status, NFS4_OK);
  const Open4 again = nfs.open(nfs.root(), "first", xdr::OPEN4_SHARE_ACCESS_BOTH);
  ASSERT_EQ(again.status, NFS4_OK);
  EXPECT_EQ(again.stateid.other, first.stateid.other);
  EXPECT_EQ(nfs.write(again, 0, "data"), NFS4_OK);
  EXPECT_EQ(nfs.open(nfs.root(), "third").status, NFS4ERR_DELAY);
  EXPECT_FALSE(std::filesystem::exists(nfs.path("third"))) << "made, and then not opened";
  // What is there and not open needs room as well.
  std::ofstream(nfs.path("fourth")) << "here";
  EXPECT_EQ(nfs.open(nfs.root(), "fourth").status, NFS4ERR_DELAY);
}

TEST(Nfs4Limits, MinorVersion0IsToldResource) {
  Nfs4Harness nfs({}, some(4));
  xdr::SETCLIENTID4args who;
  who.client.id = as_bytes(std::string_view("old client"));
  const auto known =
      nfs.run_bare(Operations4().add<OP_SETCLIENTID>(who), 0).get<OP_SETCLIENTID>().resok4;
  ASSERT_EQ(nfs.run_bare(Operations4().add<OP_SETCLIENTID_CONFIRM>(
                             {known.clientid, known.setclientid_confirm}),
                         0)
                .status,
            NFS4_OK);
  nfsstat4 last = NFS4_OK;
  for (int i = 0; i < 5 && last == NFS4_OK; ++i) {
    const std::string owner = "owner" + std::to_string(i);
    const std::string name = "file" + std::to_string(i);
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {known.clientid, as_bytes(owner)};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = name;
    last = nfs.run_bare(Operations4().putfh(nfs.root()).add<OP_OPEN>(args), 0).status;
  }
  EXPECT_EQ(last, NFS4ERR_RESOURCE);
}

TEST(Nfs4Limits, LocksOfAClient) {
  Limits limits = some(100);
  limits.opens.locks.per_client = 2;
  Nfs4Harness nfs({}, limits);
  const auto lock = [&nfs](const Open4& file, std::uint64_t offset) {
    return nfs.on<OP_LOCK>(file.handle, first_lock(file.stateid, offset, 1)).status;
  };
  const Open4 file = nfs.open(nfs.root(), "file");
  const Open4 other = nfs.open(nfs.root(), "other");
  EXPECT_EQ(lock(file, 0), NFS4_OK);
  EXPECT_EQ(lock(other, 0), NFS4_OK);
  EXPECT_EQ(lock(file, 10), NFS4ERR_DELAY);
  nfs.session = nfs.connect("another");
  EXPECT_EQ(lock(nfs.open(nfs.root(), "file"), 10), NFS4_OK);
}

TEST(Nfs4Limits, SessionsSlotsAndKeptReplies) {
  Limits limits = some(100);
  limits.sessions = {.sessions_per_client = 2, .slots = 24};
  limits.slots = 3;
  limits.reply_bytes = 2048;
  Nfs4Harness nfs({}, limits);
  xdr::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = as_bytes(std::string_view("second"));
  const auto id = nfs.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).get<OP_EXCHANGE_ID>();
  xdr::CREATE_SESSION4args wanted;
  wanted.csa_clientid = id.resok4.eir_clientid;
  wanted.csa_sequence = id.resok4.eir_sequenceid;
  for (xdr::channel_attrs4* channel : {&wanted.csa_fore_chan_attrs, &wanted.csa_back_chan_attrs}) {
    *channel = {0, 65536, 65536, 8192, 16, 100, {}};
  }
  const auto create = [&] {
    const Reply4 reply = nfs.run_bare(Operations4().add<OP_CREATE_SESSION>(wanted));
    ++wanted.csa_sequence;
    return reply;
  };
  const auto first = create().get<OP_CREATE_SESSION>();
  ASSERT_EQ(first.status, NFS4_OK);
  EXPECT_EQ(first.resok4.csr_fore_chan_attrs.ca_maxrequests, 3u);
  EXPECT_EQ(first.resok4.csr_fore_chan_attrs.ca_maxresponsesize_cached, 2048u);
  EXPECT_EQ(create().status, NFS4_OK);
  EXPECT_EQ(create().status, NFS4ERR_NOSPC);
  EXPECT_NE(nfs.connect("third").client, 0u) << "who has none yet";
}

TEST(Nfs4Limits, FollowTheConfiguration) {
  std::string problem;
  Config config;
  const auto set = [&](const char* key, const char* value) {
    return set_option(config, key, value, &problem);
  };
  EXPECT_TRUE(set("NFSoRDMA_NFS4_CLIENTS", "17"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_SESSIONS", "18"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_SLOTS", "19"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_ALL_SLOTS", "101"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_KEPT_REPLY", "2k"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_OPENS", "20"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_ALL_OPENS", "21"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_LOCKS", "22"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_ALL_LOCKS", "23"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_FILE_LOCKS", "24"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_DELEGATIONS", "25"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_ALL_DELEGATIONS", "60"));
  EXPECT_TRUE(set("NFSoRDMA_NFS4_OWNERS", "27"));
  const Limits limits = Limits::of(config, 8000);
  EXPECT_EQ(limits.clients, 17u);
  EXPECT_EQ(limits.sessions.sessions_per_client, 18u);
  EXPECT_EQ(limits.slots, 19u);
  EXPECT_EQ(limits.sessions.slots, 101u);
  EXPECT_EQ(limits.reply_bytes, 2048u);
  EXPECT_EQ(limits.opens.opens.per_client, 20u);
  EXPECT_EQ(limits.opens.opens.all, 21u);
  EXPECT_EQ(limits.opens.locks.per_client, 22u);
  EXPECT_EQ(limits.opens.locks.all, 23u);
  EXPECT_EQ(limits.opens.locks_per_file, 24u);
  EXPECT_EQ(limits.delegations.per_client, 25u);
  EXPECT_EQ(limits.delegations.all, 60u);
  EXPECT_EQ(limits.owners, 27u);
  EXPECT_EQ(limits.opens.files.all, 1000u) << "of the descriptors";
  EXPECT_TRUE(set("NFSoRDMA_NFS4_FILES", "77"));
  EXPECT_EQ(Limits::of(config, 8000).opens.files.all, 77u);
  // Few descriptors: few delegations, and not all of them to one client.
  EXPECT_EQ(Limits::of(config, 320).delegations.all, 20u);
  EXPECT_EQ(Limits::of(config, 320).delegations.per_client, 10u);
  EXPECT_TRUE(set("NFSoRDMA_NFS4_DELEGATIONS", "0"));
  EXPECT_EQ(Limits::of(config, 8000).delegations.all, 0u);
  EXPECT_FALSE(set("NFSoRDMA_NFS4_OPENS", "1"));
  EXPECT_EQ(problem, "NFSoRDMA_NFS4_OPENS: '1' is not a number from 16 to 10000000");
}

}  // namespace
}  // namespace nfsrdma::test
