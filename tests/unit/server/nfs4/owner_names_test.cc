// SPDX-License-Identifier: Apache-2.0
// RFC 7530 5.9 and RFC 8881 5.9 on owner and owner_group, with a user database of our own.
#include "server/nfs4/owner_names.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace nfsrdma::nfs4 {
namespace {

using Answer = OwnerNames::Answer;

struct Database {
  std::map<std::string, std::uint32_t> users{{"alice", 1000}, {"bob@home", 1001}, {"nobody", 99}};
  std::map<std::string, std::uint32_t> groups{{"staff", 50}, {"alice", 2000}};
  int asked = 0;
};

class FakeNames final : public NameService {
 public:
  explicit FakeNames(Database& database) : database_(database) {}
  std::optional<std::uint32_t> uid_of(const std::string& user) override {
    return find(database_.users, user);
  }
  std::optional<std::uint32_t> gid_of(const std::string& group) override {
    return find(database_.groups, group);
  }
  std::optional<std::string> user_of(std::uint32_t uid) override {
    return find_name(database_.users, uid);
  }
  std::optional<std::string> group_of(std::uint32_t gid) override {
    return find_name(database_.groups, gid);
  }

 private:
  using Table = std::map<std::string, std::uint32_t>;
  std::optional<std::uint32_t> find(const Table& table, const std::string& name) {
    ++database_.asked;
    auto found = table.find(name);
    if (found == table.end()) return std::nullopt;
    return found->second;
  }
  std::optional<std::string> find_name(const Table& table, std::uint32_t id) {
    ++database_.asked;
    for (const auto& [name, its] : table) {
      if (its == id) return name;
    }
    return std::nullopt;
  }
  Database& database_;
};

class OwnerNamesTest : public ::testing::Test {
 protected:
  OwnerNames make(bool send_names, std::string domain = "example.org") {
    OwnerNames::Options options;
    options.domain = std::move(domain);
    options.send_names = send_names;
    options.seconds = [this] { return now; };
    return OwnerNames(std::move(options), std::make_unique<FakeNames>(database));
  }
  /// "?" for kWouldBlock.
  std::string user_text(OwnerNames& names, std::uint32_t uid, bool may_block = true) {
    std::string_view text;
    return names.user_text(uid, may_block, room, &text) == Answer::kKnown ? std::string(text) : "?";
  }
  std::string group_text(OwnerNames& names, std::uint32_t gid, bool may_block = true) {
    std::string_view text;
    return names.group_text(gid, may_block, room, &text) == Answer::kKnown ? std::string(text)
                                                                           : "?";
  }

  Database database;
  std::int64_t now = 100;
  std::array<char, OwnerNames::kTextBytes> room;
  std::uint32_t id = 7;
};

TEST_F(OwnerNamesTest, NumbersAreSentByDefaultWithoutAskingAnybody) {
  OwnerNames names = make(false);
  EXPECT_EQ(user_text(names, 0, false), "0");
  EXPECT_EQ(user_text(names, 1000, false), "1000");
  EXPECT_EQ(group_text(names, 4294967294u, false), "4294967294");
  EXPECT_EQ(database.asked, 0);
}

TEST_F(OwnerNamesTest, NumbersAreTakenWithoutAskingAnybody) {
  OwnerNames names = make(false);
  EXPECT_EQ(names.uid_of("0", false, &id), Answer::kKnown);
  EXPECT_EQ(id, 0u);
  EXPECT_EQ(names.gid_of("4294967294", false, &id), Answer::kKnown);
  EXPECT_EQ(id, 4294967294u);
  EXPECT_EQ(database.asked, 0);
}

TEST_F(OwnerNamesTest, WhatIsNoOwnerIsUnknown) {
  OwnerNames names = make(false);
  for (std::string_view bad :
       {"", "00", "01000", "+1", "-1", " 1", "1 ", "0x10", "4294967295", "4294967296",
        "99999999999999999999", "alice", "@", "@example.org", "alice@", "alice@example.com",
        "alice@example.org.", "1.5", "carol@example.org"}) {
    EXPECT_EQ(names.uid_of(bad, true, &id), Answer::kUnknown) << bad;
    EXPECT_EQ(names.gid_of(bad, true, &id), Answer::kUnknown) << bad;
  }
  using std::literals::operator""sv;
  EXPECT_EQ(names.uid_of("ali\0ce@example.org"sv, true, &id), Answer::kUnknown);
}

TEST_F(OwnerNamesTest, NamesOfOurDomainAreTaken) {
  OwnerNames names = make(false);
  EXPECT_EQ(names.uid_of("alice@example.org", true, &id), Answer::kKnown);
  EXPECT_EQ(id, 1000u);
  EXPECT_EQ(names.gid_of("alice@EXAMPLE.org", true, &id), Answer::kKnown);
  EXPECT_EQ(id, 2000u);
  EXPECT_EQ(names.uid_of("bob@home@example.org", true, &id), Answer::kKnown);
  EXPECT_EQ(id, 1001u);
}

TEST_F(OwnerNamesTest, NobodyWithoutDomainIsWhoHasNoIdentity) {
  OwnerNames names = make(false);
  EXPECT_EQ(names.uid_of("nobody", false, &id), Answer::kKnown);
  EXPECT_EQ(id, 65534u);
  EXPECT_EQ(names.gid_of("nobody", false, &id), Answer::kKnown);
  EXPECT_EQ(id, 65534u);
  // With our domain it is a user like others.
  EXPECT_EQ(names.uid_of("nobody@example.org", true, &id), Answer::kKnown);
  EXPECT_EQ(id, 99u);
}

TEST_F(OwnerNamesTest, WithoutADomainNoNameIsOurs) {
  OwnerNames names = make(true, "");
  EXPECT_EQ(names.uid_of("alice@", true, &id), Answer::kUnknown);
  EXPECT_EQ(names.uid_of("alice@example.org", true, &id), Answer::kUnknown);
  EXPECT_EQ(user_text(names, 1000), "1000");
}

TEST_F(OwnerNamesTest, WhoMayNotBlockIsToldSoUntilTheAnswerIsKnown) {
  OwnerNames names = make(true);
  EXPECT_EQ(names.uid_of("alice@example.org", false, &id), Answer::kWouldBlock);
  EXPECT_EQ(user_text(names, 1000, false), "?");
  EXPECT_EQ(database.asked, 0);
  EXPECT_EQ(names.uid_of("alice@example.org", true, &id), Answer::kKnown);
  EXPECT_EQ(names.uid_of("alice@example.org", false, &id), Answer::kKnown);
  EXPECT_EQ(id, 1000u);
  EXPECT_EQ(user_text(names, 1000, true), "alice@example.org");
  EXPECT_EQ(user_text(names, 1000, false), "alice@example.org");
  EXPECT_EQ(database.asked, 2);
  // Users and groups are kept apart.
  EXPECT_EQ(names.gid_of("alice@example.org", false, &id), Answer::kWouldBlock);
  EXPECT_EQ(group_text(names, 1000, false), "?");
}

TEST_F(OwnerNamesTest, AnswersExpire) {
  OwnerNames names = make(true);
  EXPECT_EQ(names.uid_of("alice@example.org", true, &id), Answer::kKnown);
  database.users["alice"] = 1234;
  now += 300;
  EXPECT_EQ(names.uid_of("alice@example.org", false, &id), Answer::kKnown);
  EXPECT_EQ(id, 1000u);
  now += 1;
  EXPECT_EQ(names.uid_of("alice@example.org", false, &id), Answer::kWouldBlock);
  EXPECT_EQ(names.uid_of("alice@example.org", true, &id), Answer::kKnown);
  EXPECT_EQ(id, 1234u);
}

TEST_F(OwnerNamesTest, ThatThereIsNoSuchUserIsKeptForLess) {
  OwnerNames names = make(true);
  EXPECT_EQ(names.uid_of("carol@example.org", true, &id), Answer::kUnknown);
  EXPECT_EQ(user_text(names, 3000), "3000");
  database.users["carol"] = 3000;
  EXPECT_EQ(names.uid_of("carol@example.org", false, &id), Answer::kUnknown);
  EXPECT_EQ(user_text(names, 3000, false), "3000");
  now += 61;
  EXPECT_EQ(names.uid_of("carol@example.org", true, &id), Answer::kKnown);
  EXPECT_EQ(id, 3000u);
  EXPECT_EQ(user_text(names, 3000), "carol@example.org");
}

TEST_F(OwnerNamesTest, NamesThatCannotBeSentAreNumbers) {
  database.users = {{std::string(300, 'x'), 1}, {"1000", 2}, {"", 3}};
  OwnerNames names = make(true);
  EXPECT_EQ(user_text(names, 1), "1");
  EXPECT_EQ(user_text(names, 2), "2");
  EXPECT_EQ(user_text(names, 3), "3");
  // One that just fits.
  const std::string longest(OwnerNames::kTextBytes - std::string_view("@example.org").size(), 'y');
  database.users[longest] = 4;
  EXPECT_EQ(user_text(names, 4), longest + "@example.org");
}

}  // namespace
}  // namespace nfsrdma::nfs4
