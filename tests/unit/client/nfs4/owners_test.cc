// SPDX-License-Identifier: Apache-2.0
// Owners of files as texts, and what is set of a new file and when.
#include <map>

#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Stat = xdr::nfsstat4;
using Op = xdr::nfs_opnum4;
using enum xdr::fattr4_number;

class FakeNames final : public NameService {
 public:
  std::optional<std::uint32_t> uid_of(const std::string& user) override {
    ++asked;
    if (user == "alice") return 1000;
    return std::nullopt;
  }
  std::optional<std::uint32_t> gid_of(const std::string& group) override { return uid_of(group); }
  std::optional<std::string> user_of(std::uint32_t uid) override {
    ++asked;
    const auto found = users.find(uid);
    if (found == users.end()) return std::nullopt;
    return found->second;
  }
  std::optional<std::string> group_of(std::uint32_t gid) override { return user_of(gid); }

  int asked = 0;
  std::map<std::uint32_t, std::string> users{{1000, "alice"}, {1, "12"}, {2, ""}};
};

struct IdNamesTest : testing::Test {
  IdNamesTest() {
    auto service = std::make_unique<FakeNames>();
    database = service.get();
    names = std::make_unique<nfs4::IdNames>(std::move(service), [] { return "example.org"; });
  }
  FakeNames* database = nullptr;
  std::unique_ptr<nfs4::IdNames> names;
};

TEST_F(IdNamesTest, NumbersNeedNobody) {
  EXPECT_EQ(names->uid("4711"), 4711u);
  EXPECT_EQ(names->owner(1000), "1000");
  EXPECT_EQ(names->group(1000), "1000");
  EXPECT_EQ(database->asked, 0);
}

TEST_F(IdNamesTest, NamesAreLookedUpOnce) {
  EXPECT_EQ(names->uid("alice@elsewhere"), 1000u);
  EXPECT_EQ(names->uid("alice@elsewhere"), 1000u);
  EXPECT_EQ(names->gid("bob@elsewhere"), nfs4::IdNames::kNobody);
  EXPECT_EQ(names->gid("bob@elsewhere"), nfs4::IdNames::kNobody);
  EXPECT_EQ(database->asked, 2);
}

TEST_F(IdNamesTest, NamesAreSentOnceNumbersWereRefused) {
  EXPECT_TRUE(names->refused(false));
  EXPECT_TRUE(names->sends_names());
  EXPECT_EQ(names->owner(1000), "alice@example.org");
  EXPECT_EQ(names->owner(1000), "alice@example.org");
  EXPECT_EQ(database->asked, 1);
  EXPECT_EQ(names->group(1000), "alice@example.org");
  EXPECT_TRUE(names->refused(false)) << "of a request from before";
  EXPECT_FALSE(names->refused(true)) << "nothing more can be done";
}

TEST_F(IdNamesTest, WhoHasNoNameThatCouldBeSentStaysANumber) {
  database->users[3] = std::string(nfs4::IdNames::kTextBytes, 'x');
  EXPECT_TRUE(names->refused(false));
  for (const std::uint32_t id : {1u, 2u, 3u, 4711u})
    EXPECT_EQ(names->owner(id), std::to_string(id));
}

class OwnersTest : public SessionTest {
 protected:
  template <typename T>
  Result<T> finish(Task<Result<T>> task) {
    std::optional<Result<T>> done;
    group_.spawn(keep(std::move(task), &done));
    server_->serve_for(std::chrono::seconds(2));
    EXPECT_TRUE(done.has_value());
    return done ? std::move(*done) : Result<T>(Error{Errc::kTimedOut, 0, "test"});
  }
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
