// SPDX-License-Identifier: Apache-2.0
// Clients that are gone, and whose state is kept: they keep nobody from having some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using nfs4::Limit;
using nfs4::Limits;
using ::testing::HasSubstr;

constexpr auto kLeaseAndMore = std::chrono::seconds(91);

class GoneClients : public ::testing::Test {
 protected:
  void start(const Limits& limits) {
    HarnessOptions options;
    nfs_ = std::make_unique<Nfs4Harness>(options, limits);
  }
  /// A client from a host of its own, which calls from then on.
  void come(const std::string& name) {
    nfs_->set_peer("192.0.2." + std::to_string(++hosts_));
    nfs_->session = nfs_->connect(name);
  }
  bool is_known(const Session4& session) {
    std::lock_guard lock(nfs_->state().mutex);
    return nfs_->state().clients.find(session.client) != nullptr;
  }
  int open_many(int how_many) {
    int opened = 0;
    while (opened < how_many && nfs_->open(nfs_->root(), std::to_string(nfs_->session.client) +
                                                             "-" + std::to_string(opened))
                                        .status == NFS4_OK)
      ++opened;
    return opened;
  }
  nfsstat4 lock(const Open4& file, std::uint64_t offset) {
    xdr::LOCK4args args;
    args.locktype = xdr::nfs_lock_type4::READ_LT;
    args.offset = offset;
    args.length = 1;
    args.locker.new_lock_owner = true;
    args.locker.open_owner = {0, file.stateid, 0, {0, as_bytes(std::string_view("locker"))}};
    return nfs_->on<OP_LOCK>(file.handle, args).status;
  }
  std::uint64_t refused(Limit limit) {
    std::lock_guard lock(nfs_->state().mutex);
    return nfs_->state().refusals.count(limit);
  }

  std::unique_ptr<Nfs4Harness> nfs_;
  int hosts_ = 10;
};

TEST_F(GoneClients, GiveUpFilesToThoseWhoWantSome) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.files.all = 8;
  start(limits);
  ASSERT_EQ(open_many(100), 6);
  const Session4 gone = nfs_->session;
  come("there");
  EXPECT_EQ(open_many(100), 2) << "the other one is there as well";
  EXPECT_TRUE(is_known(gone));
  nfs_->clock.move(kLeaseAndMore);
  come("later");
  // Two are gone: the one of the longest silence goes first, and that is enough here.
  EXPECT_EQ(open_many(4), 4);
  EXPECT_FALSE(is_known(gone));
  EXPECT_EQ(refused(Limit::kFiles), 2u);
}

TEST_F(GoneClients, AreKeptWhileThereIsRoom) {
  start(Limits::of(Config(), 1 << 20));
  const Open4 file = nfs_->open(nfs_->root(), "file");
  const Session4 gone = nfs_->session;
  nfs_->clock.move(kLeaseAndMore);
  come("there");
  EXPECT_EQ(open_many(10), 10);
  EXPECT_TRUE(is_known(gone));
  nfs_->session = gone;
  EXPECT_EQ(nfs_->close(file), NFS4_OK);
}

TEST_F(GoneClients, GiveUpOpens) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.opens.all = 8;
  start(limits);
  ASSERT_EQ(open_many(100), 6);
  nfs_->clock.move(kLeaseAndMore);
  come("there");
  EXPECT_EQ(open_many(6), 6);
  EXPECT_EQ(refused(Limit::kOpens), 1u) << "of the first one, at the end of its share";
}

TEST_F(GoneClients, GiveUpLocks) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.locks.all = 8;
  start(limits);
  const Open4 file = nfs_->open(nfs_->root(), "file");
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_EQ(lock(file, 10 * i), NFS4_OK);
  ASSERT_EQ(lock(file, 100), NFS4ERR_DELAY);
  nfs_->clock.move(kLeaseAndMore);
  come("there");
  const Open4 mine = nfs_->open(nfs_->root(), "file");
  for (std::uint64_t i = 0; i < 6; ++i)
    EXPECT_EQ(lock(mine, 10 * i), NFS4_OK);
}

TEST_F(GoneClients, GiveUpSlots) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.sessions.slots = 25;
  limits.sessions.sessions = 0;
  start(limits);  // with a session of four
  ASSERT_EQ(nfs_->open(nfs_->root(), "file").status, NFS4_OK);
  const Session4 gone = nfs_->session;
  const auto slots = [this](const Session4& session) {
    std::lock_guard lock(nfs_->state().mutex);
    std::size_t out = 0;
    nfs_->state().sessions.each_of(session.client,
                                   [&out](const nfs4::Session& its) { out += its.slots.size(); });
    return out;
  };
  ASSERT_EQ(slots(gone), 4u);
  come("while the other one is there");
  EXPECT_EQ(slots(nfs_->session), 3u) << "as it gets tight, less";
  nfs_->clock.move(kLeaseAndMore);
  come("there");
  EXPECT_EQ(slots(nfs_->session), 4u);
  EXPECT_FALSE(is_known(gone));
}

TEST_F(GoneClients, GiveUpDelegations) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.delegations.all = limits.delegations.per_client = 1;
  start(limits);
  const auto is_promised = [this](std::string_view name) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
    args.owner = {nfs_->session.client, as_bytes(std::string_view("owner"))};
    args.claim.file = name;
    const Reply4 reply = nfs_->on<OP_OPEN>(nfs_->root(), args);
    EXPECT_EQ(reply.status, NFS4_OK);
    return reply.get<OP_OPEN>().resok4.delegation.delegation_type ==
           xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  };
  for (const char* name : {"one", "two"})
    put_file(nfs_->path(name), "there");
  nfs_->connection().max_backward = 1000;
  come("gone");
  const Session4 gone = nfs_->session;
  EXPECT_TRUE(is_promised("one"));
  EXPECT_FALSE(is_promised("two"));
  EXPECT_EQ(refused(Limit::kDelegations), 1u);
  come("there");
  EXPECT_FALSE(is_promised("two"));
  EXPECT_TRUE(is_known(gone));
  nfs_->clock.move(kLeaseAndMore);
  come("later");
  EXPECT_TRUE(is_promised("two"));
  EXPECT_FALSE(is_known(gone));
}

TEST_F(GoneClients, DoNotGiveUpWhatHelpsNobody) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.opens.per_client = 2;
  start(limits);
  ASSERT_EQ(open_many(2), 2);
  const Session4 gone = nfs_->session;
  nfs_->clock.move(kLeaseAndMore);
  come("there");
  EXPECT_EQ(open_many(100), 2);
  EXPECT_TRUE(is_known(gone)) << "the limit is a client's own";
}

// What they hold is the very file that somebody who is there holds too: none of them is of any use,
// and no request ends them all.
TEST_F(GoneClients, OneRequestEndsOnlySomeOfThem) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.files.all = 1;
  start(limits);
  for (int i = 0; i < 20; ++i) {
    come("gone" + std::to_string(i));
    ASSERT_EQ(nfs_->open(nfs_->root(), "shared").status, NFS4_OK);
  }
  nfs_->clock.move(kLeaseAndMore);
  come("there");
  ASSERT_EQ(nfs_->open(nfs_->root(), "shared").status, NFS4_OK);
  const auto left = [this] {
    std::lock_guard lock(nfs_->state().mutex);
    return nfs_->state().opens.held_by_all().opens;
  };
  ASSERT_EQ(left(), 21u);
  EXPECT_EQ(nfs_->open(nfs_->root(), "other").status, NFS4ERR_DELAY);
  EXPECT_EQ(left(), 5u);
  EXPECT_EQ(nfs_->open(nfs_->root(), "other").status, NFS4ERR_DELAY);
  EXPECT_EQ(left(), 1u);
}

TEST_F(GoneClients, TheLogNamesTheLimitAndItsOption) {
  Limits limits = Limits::of(Config(), 1 << 20);
  limits.opens.files.all = 8;
  start(limits);
  testing::internal::CaptureStderr();
  EXPECT_EQ(open_many(100), 6);
  EXPECT_EQ(open_many(100), 6) << "those are open already; refused once more";
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("client 'first' at 192.0.2.7 met the limit of open files of all "
                              "clients, 8, or the share of its host in that, and is refused; "
                              "NFSoRDMA_NFS4_FILES raises it"));
  EXPECT_EQ(text.find("met the limit", text.find("met the limit") + 1), text.npos) << text;
  nfs_->clock.move(kLeaseAndMore);
  testing::internal::CaptureStderr();
  come("there");
  EXPECT_EQ(open_many(7), 6);
  text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("what client 'first' at 192.0.2.7 held is given up: it has not been "
                              "heard of for 91 s"));
  EXPECT_THAT(text, HasSubstr("client 'there' at 192.0.2.11 met the limit of open files"));
  EXPECT_THAT(text, HasSubstr("(1 more since the last such line)"));
}

TEST(RefusalLines, AreOneForEachLimitAndMinute) {
  const Limits limits = Limits::of(Config(), 1 << 20);
  nfs4::Refusals refusals(limits);
  nfs4::Client client;
  client.owner.id = "na\nme";
  client.address = "192.0.2.1";
  TimePoint now = TimePoint(std::chrono::hours(1));
  EXPECT_FALSE(refusals.pending());
  for (int limit = 1; limit < static_cast<int>(nfs4::kLimits); ++limit) {
    for (int i = 0; i < 3; ++i)
      refusals.refused(static_cast<Limit>(limit), &client, "", now);
  }
  EXPECT_TRUE(refusals.pending());
  const std::vector<std::string> lines = refusals.take();
  EXPECT_FALSE(refusals.pending());
  EXPECT_EQ(lines.size(), nfs4::kLimits - 1);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, HasSubstr("client 'na?me' at 192.0.2.1 met the limit of "));
    const auto option = line.find("NFSoRDMA_NFS4_");
    ASSERT_NE(option, line.npos) << line;
    std::string problem;
    Config config;
    const std::string key = line.substr(option, line.find(' ', option) - option);
    EXPECT_TRUE(set_option(config, key, "64", &problem)) << problem;
  }
  now += std::chrono::seconds(59);
  refusals.refused(Limit::kOpens, &client, "", now);
  EXPECT_FALSE(refusals.pending());
  now += std::chrono::seconds(1);
  refusals.refused(Limit::kOpens, nullptr, "192.0.2.9", now);
  const std::vector<std::string> later = refusals.take();
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0],
            "NFSv4: a client at 192.0.2.9 met the limit of opens of all clients, 1000000, or the "
            "share of its host in that, and is refused; NFSoRDMA_NFS4_ALL_OPENS raises it (3 more "
            "since the last such line)");
  EXPECT_EQ(refusals.count(Limit::kOpens), 5u);
}

}  // namespace
}  // namespace nfsrdma::test
