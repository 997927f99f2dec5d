// SPDX-License-Identifier: Apache-2.0
// Owners of files as texts, and what is set of a new file and when.
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Stat = xdr::nfsstat4;
using Op = xdr::nfs_opnum4;
using enum xdr::fattr4_number;

class OwnersTest : public SessionTest {
 protected:
  static SetAttributes owned_by_root() {
    SetAttributes set;
    set.uid = set.gid = 0;
    return set;
  }
  bool chown() { return finish(nfs_->setattr(op_, file_, owned_by_root(), nullptr)).ok(); }
  bool make(CreateMode mode, const SetAttributes& set) {
    return finish(nfs_->create(op_, file_, "new", mode, set)).ok();
  }
  std::string owner_sent(std::size_t which) const { return server_->settings.at(which).owner; }
  static bool is_name(const std::string& owner) { return owner.starts_with("root@"); }
};

TEST_F(OwnersTest, NumbersAreSentWhileTheServerTakesThem) {
  ASSERT_TRUE(begin().ok());
  EXPECT_TRUE(chown());
  EXPECT_TRUE(chown());
  ASSERT_EQ(server_->settings.size(), 2u);
  EXPECT_EQ(owner_sent(0), "0");
  EXPECT_EQ(server_->settings[1].owner_group, "0");
}

TEST_F(OwnersTest, NamesAreSentWhenItDoesNotAndFromThenOn) {
  ASSERT_TRUE(begin().ok());
  server_->setattr_errors = {Stat::NFS4ERR_BADOWNER};
  EXPECT_TRUE(chown());
  EXPECT_TRUE(chown());
  ASSERT_EQ(server_->settings.size(), 3u);
  EXPECT_EQ(owner_sent(0), "0");
  EXPECT_TRUE(is_name(owner_sent(1))) << owner_sent(1);
  EXPECT_TRUE(is_name(owner_sent(2))) << owner_sent(2);
  EXPECT_TRUE(is_name(server_->settings[1].owner_group));
}

TEST_F(OwnersTest, AnOwnerThatIsUnknownByNameTooIsAnError) {
  ASSERT_TRUE(begin().ok());
  server_->setattr_errors = {Stat::NFS4ERR_BADOWNER, Stat::NFS4ERR_BADOWNER};
  Result<Wcc> done = finish(nfs_->setattr(op_, file_, owned_by_root(), nullptr));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(errno_of(done.error()), EINVAL);
  EXPECT_EQ(server_->settings.size(), 2u);
}

TEST_F(OwnersTest, WhatIsMadeHasItsOwnerByNameToo) {
  ASSERT_TRUE(begin().ok());
  server_->mkdir_errors = {Stat::NFS4ERR_BADOWNER};
  EXPECT_TRUE(finish(nfs_->mkdir(op_, file_, "d", owned_by_root())).ok());
  ASSERT_EQ(server_->settings.size(), 2u);
  EXPECT_EQ(owner_sent(0), "0");
  EXPECT_TRUE(is_name(owner_sent(1)));
}

TEST_F(OwnersTest, AndAFile) {
  ASSERT_TRUE(begin().ok());
  server_->open_errors = {Stat::NFS4ERR_BADOWNER};
  EXPECT_TRUE(make(CreateMode::kGuarded, owned_by_root()));
  ASSERT_EQ(server_->settings.size(), 2u);
  EXPECT_TRUE(is_name(owner_sent(1)));
}

TEST_F(OwnersTest, TheEventLoopDoesNotWaitForTheUserDatabase) {
  ASSERT_TRUE(begin().ok());
  environment_->hold_apart(true);
  server_->file_owner = "root@" + system_idmap_domain();
  // More than there are slots: those are free for others.
  std::array<std::optional<Result<Attributes>>, 6> by_name;
  for (auto& one : by_name)
    ask(&one, op_);
  server_->serve_all();
  EXPECT_EQ(environment_->waiting_apart(), 1u);
  server_->file_owner = "1000";
  std::optional<Result<Attributes>> by_number;
  ask(&by_number, op_);
  server_->serve_all();
  ASSERT_TRUE(by_number.has_value() && by_number->ok());
  EXPECT_EQ((*by_number)->uid, 1000u);
  for (const auto& one : by_name)
    EXPECT_FALSE(one.has_value());
  // The end of the mount is theirs, too.
  nfs_->abort();
  for (const auto& one : by_name) {
    ASSERT_TRUE(one.has_value() && !one->ok());
    EXPECT_EQ(one->error().sys, EIO);
  }
}

TEST_F(OwnersTest, WhoeverWaitsForItHasTheAnswer) {
  ASSERT_TRUE(begin().ok());
  environment_->hold_apart(true);
  server_->file_owner = "root@" + system_idmap_domain();
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  server_->serve_all();
  environment_->hold_apart(false);
  environment_->settle();
  ASSERT_TRUE(got.has_value() && got->ok());
  EXPECT_EQ((*got)->uid, 0u);
}

TEST_F(OwnersTest, AnInterruptEndsThatAndSoDoesTheEnd) {
  ASSERT_TRUE(begin().ok());
  environment_->hold_apart(true);
  server_->file_owner = "root@" + system_idmap_domain();
  CancelToken token;
  OpContext cancellable;
  cancellable.cancel = &token;
  std::optional<Result<Attributes>> one;
  std::optional<Result<Attributes>> other;
  ask(&one, cancellable);
  ask(&other, op_);
  server_->serve_all();
  token.cancel();
  ASSERT_TRUE(one.has_value() && !one->ok());
  EXPECT_EQ(one->error().sys, EINTR);
  EXPECT_FALSE(other.has_value());
  nfs_->abort();
  ASSERT_TRUE(other.has_value() && !other->ok());
  EXPECT_EQ(other->error().sys, EIO);
}

struct Listing final : DirectoryVisitor {
  bool on_entry(const DirectoryEntry& entry) override {
    if (seen.size() == room) return false;
    const std::uint32_t uid = entry.attributes != nullptr ? entry.attributes->uid : 4711;
    seen.emplace_back(std::string(entry.name), uid);
    return true;
  }
  std::size_t room = 100;
  std::vector<std::pair<std::string, std::uint32_t>> seen;
};

TEST_F(OwnersTest, ADirectoryIsListedWhenTheNamesInItAreKnown) {
  ASSERT_TRUE(begin().ok());
  const std::string root = "root@" + system_idmap_domain();
  environment_->hold_apart(true);
  server_->entries = {{"a", "7"}, {"b", root}, {"c", "8"}, {"d", "who@elsewhere.invalid"}};
  Listing listing;
  std::optional<Result<DirectoryPage>> page;
  group_.spawn(keep(nfs_->readdirplus(op_, file_, 0, 0, 4096, listing), &page));
  server_->serve_all();
  EXPECT_FALSE(page.has_value());
  EXPECT_EQ(listing.seen.size(), 3u) << "up to the first name";
  environment_->hold_apart(false);
  environment_->settle();
  ASSERT_TRUE(page.has_value() && page->ok());
  const std::vector<std::pair<std::string, std::uint32_t>> all{
      {".", 1000}, {"..", 4711}, {"a", 7}, {"b", 0}, {"c", 8}, {"d", 65534}};
  EXPECT_EQ(listing.seen, all);
  EXPECT_TRUE((*page)->eof);
  EXPECT_EQ((*page)->cookie, 6u);
  EXPECT_EQ((*page)->entries, 6u);
}

TEST_F(OwnersTest, AVisitorMayStopAmongThoseThatHadToWait) {
  ASSERT_TRUE(begin().ok());
  server_->file_owner = "root@" + system_idmap_domain();
  server_->entries = {{"a", server_->file_owner}, {"b", "8"}};
  Listing listing;
  listing.room = 3;
  Result<DirectoryPage> page = finish(nfs_->readdirplus(op_, file_, 0, 0, 4096, listing));
  ASSERT_TRUE(page.ok());
  const std::vector<std::pair<std::string, std::uint32_t>> all{{".", 0}, {"..", 4711}, {"a", 0}};
  EXPECT_EQ(listing.seen, all);
  EXPECT_FALSE(page->eof);
  EXPECT_EQ(page->cookie, 3u);
}

class ExclusiveTest : public OwnersTest {
 protected:
  static SetAttributes all() {
    SetAttributes set = owned_by_root();
    set.mode = 0640;
    set.size = 0;
    return set;
  }
  static xdr::bitmap4 of(std::initializer_list<xdr::fattr4_number> numbers) {
    xdr::bitmap4 mask;
    for (const xdr::fattr4_number number : numbers)
      mask.set(number);
    return mask;
  }
  void mounted(const std::optional<xdr::bitmap4>& taken) {
    ASSERT_TRUE(begin().ok());
    server_->exclusive_attributes = taken;
    ASSERT_TRUE(finish(nfs_->fsinfo(op_, file_)).ok());
  }
};

TEST_F(ExclusiveTest, WhatTheServerTakesGoesWithTheVerifierAndTheRestBehindIt) {
  mounted(of({FATTR4_MODE, FATTR4_OWNER}));
  ASSERT_TRUE(make(CreateMode::kExclusive, all()));
  ASSERT_EQ(server_->settings.size(), 2u);
  EXPECT_EQ(server_->settings[0].by, Op::OP_OPEN);
  EXPECT_EQ(server_->settings[0].mask, of({FATTR4_MODE, FATTR4_OWNER}));
  EXPECT_EQ(server_->settings[1].by, Op::OP_SETATTR);
  EXPECT_EQ(server_->settings[1].mask,
            of({FATTR4_SIZE, FATTR4_OWNER_GROUP, FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET}));
}

TEST_F(ExclusiveTest, AServerThatDoesNotSayTakesTheMode) {
  mounted(std::nullopt);
  ASSERT_TRUE(make(CreateMode::kExclusive, all()));
  EXPECT_EQ(server_->settings.at(0).mask, of({FATTR4_MODE}));
}

TEST_F(ExclusiveTest, AServerMayTakeNothing) {
  mounted(xdr::bitmap4());
  ASSERT_TRUE(make(CreateMode::kExclusive, {}));
  EXPECT_EQ(server_->settings.at(0).mask, xdr::bitmap4());
  EXPECT_EQ(server_->settings.at(1).mask,
            of({FATTR4_MODE, FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET}));
}

TEST_F(ExclusiveTest, WhereEverythingGoesAtOnceNothingIsSetBehindIt) {
  mounted(of({FATTR4_SIZE, FATTR4_MODE, FATTR4_OWNER, FATTR4_OWNER_GROUP, FATTR4_TIME_ACCESS_SET,
              FATTR4_TIME_MODIFY_SET}));
  ASSERT_TRUE(make(CreateMode::kExclusive, all()));
  EXPECT_EQ(server_->settings.size(), 1u);
}

TEST_F(ExclusiveTest, AnOwnerGoesByNameThereToo) {
  mounted(of({FATTR4_MODE, FATTR4_OWNER}));
  server_->open_errors = {Stat::NFS4ERR_BADOWNER};
  ASSERT_TRUE(make(CreateMode::kExclusive, all()));
  ASSERT_EQ(server_->settings.size(), 3u);
  EXPECT_TRUE(is_name(owner_sent(1)));
  EXPECT_TRUE(is_name(server_->settings[2].owner_group));
}

}  // namespace
}  // namespace nfsrdma
