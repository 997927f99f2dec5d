// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/id_names.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/client/fake_environment.h"

namespace nfsrdma {
namespace {

using nfs4::IdNames;
using nfs4::OwnerTexts;
using std::chrono::seconds;

class FakeNames final : public NameService {
 public:
  std::optional<std::uint32_t> uid_of(const std::string& user) override {
    ++asked;
    const auto found = ids.find(user);
    if (found == ids.end()) return std::nullopt;
    return found->second;
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
  std::map<std::string, std::uint32_t> ids{{"alice", 1000}, {"alice@corp", 2000}};
  std::map<std::uint32_t, std::string> users{{1000, "alice"}, {1, "12"}, {2, ""}};
};

class IdNamesTest : public testing::Test {
 protected:
  IdNamesTest() {
    auto service = std::make_unique<FakeNames>();
    database_ = service.get();
    names_ = std::make_unique<IdNames>(environment_, std::move(service), [this] {
      ++domain_asked_;
      return std::string("example.org");
    });
  }
  ~IdNamesTest() override {
    names_->stop();
    EXPECT_EQ(group_.running(), 0u);
  }

  struct Settled {
    std::uint32_t uid = 4711;
    IdNames::OpenIds open;
    std::optional<Result<void>> done;
  };
  static Task<void> settle(IdNames& names, Settled& out, bool old_will_do, CancelToken* cancel) {
    out.done.emplace(co_await names.settle(out.open, old_will_do, cancel));
  }
  /// As call() does; what waits is over in *out later.
  void read(std::string_view owner, Settled* out, bool old_will_do = false,
            CancelToken* cancel = nullptr) {
    names_->uid(owner, &out->uid);
    out->open = names_->take_open();
    group_.spawn(settle(*names_, *out, old_will_do, cancel));
    environment_.settle();
  }
  std::uint32_t uid(std::string_view owner) {
    Settled got;
    read(owner, &got);
    EXPECT_TRUE(got.done.has_value() && got.done->ok());
    return got.uid;
  }
  std::uint32_t gid(std::string_view group) {
    Settled got;
    names_->gid(group, &got.uid);
    got.open = names_->take_open();
    group_.spawn(settle(*names_, got, false, nullptr));
    environment_.settle();
    return got.uid;
  }

  using Texts = std::optional<Result<OwnerTexts>>;
  static Task<void> encode(IdNames& names, SetAttributes set, Texts& out) {
    out.emplace(co_await names.texts(set, nullptr));
  }
  void write(std::uint32_t uid, Texts* out) {
    SetAttributes set;
    set.uid = uid;
    group_.spawn(encode(*names_, set, *out));
    environment_.settle();
  }
  std::string owner(std::uint32_t uid) {
    Texts got;
    write(uid, &got);
    return got && got->ok() ? (*got)->owner : "nothing";
  }

  FakeEnvironment environment_;
  FakeNames* database_ = nullptr;
  int domain_asked_ = 0;
  std::unique_ptr<IdNames> names_;
  TaskGroup group_;
};

TEST_F(IdNamesTest, NumbersNeedNobody) {
  environment_.hold_apart(true);
  EXPECT_EQ(uid("4711"), 4711u);
  EXPECT_EQ(owner(1000), "1000");
  EXPECT_EQ(environment_.waiting_apart(), 0u);
}

TEST_F(IdNamesTest, NamesOfOurDomainAreLookedUpOnce) {
  EXPECT_EQ(uid("alice@example.org"), 1000u);
  EXPECT_EQ(uid("alice@example.org"), 1000u);
  EXPECT_EQ(gid("bob@example.org"), IdNames::kNobody);
  EXPECT_EQ(gid("bob@example.org"), IdNames::kNobody);
  EXPECT_EQ(database_->asked, 2);
  EXPECT_EQ(domain_asked_, 1);
}

TEST_F(IdNamesTest, CaseMakesNoOtherDomain) {
  EXPECT_EQ(uid("alice@Example.ORG"), 1000u);
}

TEST_F(IdNamesTest, NobodyOfAnotherDomainIsAnybodyHere) {
  for (const char* foreign : {"alice@elsewhere", "alice@sub.example.org", "alice@example.org.uk",
                              "alice", "@example.org", "alice@", "nobody", ""}) {
    EXPECT_EQ(uid(foreign), IdNames::kNobody) << foreign;
  }
  EXPECT_EQ(uid(std::string_view("alice\0x@example.org", 19)), IdNames::kNobody);
  EXPECT_EQ(database_->asked, 0);
}

TEST_F(IdNamesTest, TheDomainIsBehindTheLastAt) {
  EXPECT_EQ(uid("alice@corp@example.org"), 2000u);
  EXPECT_EQ(uid("alice@example.org@corp"), IdNames::kNobody);
}

TEST_F(IdNamesTest, WhoIsNotKnownIsAskedForAgainSoon) {
  EXPECT_EQ(uid("bob@example.org"), IdNames::kNobody);
  database_->ids["bob"] = 1001;
  environment_.advance(IdNames::kKeepUnknown - seconds(1));
  EXPECT_EQ(uid("bob@example.org"), IdNames::kNobody);
  environment_.advance(seconds(1));
  EXPECT_EQ(uid("bob@example.org"), 1001u);
}

TEST_F(IdNamesTest, WhoIsKnownIsAskedForAgainLater) {
  EXPECT_EQ(uid("alice@example.org"), 1000u);
  database_->ids["alice"] = 1002;
  environment_.advance(IdNames::kKeep - seconds(1));
  EXPECT_EQ(uid("alice@example.org"), 1000u);
  environment_.advance(seconds(1));
  EXPECT_EQ(uid("alice@example.org"), 1002u);
}

TEST_F(IdNamesTest, OneQuestionIsForAllThatWaitForIt) {
  environment_.hold_apart(true);
  std::array<Settled, 3> all;
  for (Settled& one : all)
    read("alice@example.org", &one);
  EXPECT_EQ(environment_.waiting_apart(), 1u);
  EXPECT_EQ(database_->asked + domain_asked_, 0) << "not on this thread";
  environment_.hold_apart(false);
  environment_.settle();
  for (const Settled& one : all)
    EXPECT_EQ(one.uid, 1000u);
}

TEST_F(IdNamesTest, ADatabaseThatHangsIsWaitedForSoLong) {
  environment_.hold_apart(true);
  Settled got;
  read("alice@example.org", &got);
  environment_.advance(IdNames::kPatience - seconds(1));
  EXPECT_FALSE(got.done.has_value());
  environment_.advance(seconds(1));
  ASSERT_TRUE(got.done.has_value() && got.done->ok());
  EXPECT_EQ(got.uid, IdNames::kNobody);
  // It has been waited for long enough.
  Settled next;
  read("alice@example.org", &next);
  ASSERT_TRUE(next.done.has_value() && next.done->ok());
  EXPECT_EQ(next.uid, IdNames::kNobody);
  // The answer is for whoever comes next.
  environment_.hold_apart(false);
  environment_.settle();
  EXPECT_EQ(uid("alice@example.org"), 1000u);
  EXPECT_EQ(database_->asked, 1);
}

TEST_F(IdNamesTest, TheLastAnswerIsBetterThanNone) {
  EXPECT_EQ(uid("alice@example.org"), 1000u);
  environment_.advance(IdNames::kKeep);
  environment_.hold_apart(true);
  Settled got;
  read("alice@example.org", &got);
  environment_.advance(IdNames::kPatience);
  ASSERT_TRUE(got.done.has_value() && got.done->ok());
  EXPECT_EQ(got.uid, 1000u);
}

TEST_F(IdNamesTest, DataDoesNotWaitForAnAnswerThatHasGrownOld) {
  environment_.hold_apart(true);
  Settled first;
  read("alice@example.org", &first, true);
  EXPECT_FALSE(first.done.has_value()) << "it does for the first one";
  environment_.hold_apart(false);
  environment_.settle();
  EXPECT_EQ(first.uid, 1000u);
  environment_.advance(IdNames::kKeep);
  environment_.hold_apart(true);
  Settled later;
  read("alice@example.org", &later, true);
  ASSERT_TRUE(later.done.has_value() && later.done->ok());
  EXPECT_EQ(later.uid, 1000u);
  EXPECT_EQ(environment_.waiting_apart(), 1u) << "but has it renewed";
}

TEST_F(IdNamesTest, WaitingEndsByAnInterruptAndByTheEnd) {
  environment_.hold_apart(true);
  CancelToken token;
  Settled one;
  Settled other;
  read("alice@example.org", &one, false, &token);
  read("bob@example.org", &other);
  token.cancel();
  ASSERT_TRUE(one.done.has_value());
  EXPECT_EQ(one.done->error().sys, EINTR);
  EXPECT_FALSE(other.done.has_value());
  names_->stop();
  ASSERT_TRUE(other.done.has_value());
  EXPECT_EQ(other.done->error().sys, EIO);
}

TEST_F(IdNamesTest, AnAnswerMayComeWhenNobodyIsThereAnyMore) {
  environment_.hold_apart(true);
  Settled got;
  read("alice@example.org", &got);
  names_->stop();
  names_ = std::make_unique<IdNames>(environment_, std::make_unique<FakeNames>());
  environment_.hold_apart(false);
  environment_.settle();
  EXPECT_EQ(got.uid, IdNames::kNobody);
}

TEST_F(IdNamesTest, MoreNamesThanAreKeptDoNotGrowWithoutEnd) {
  environment_.hold_apart(true);
  for (int i = 0; i < 10000; ++i) {
    std::uint32_t id = 0;
    names_->uid("user" + std::to_string(i) + "@example.org", &id);
    EXPECT_EQ(id, IdNames::kNobody);
  }
  static_cast<void>(names_->take_open());
  EXPECT_LT(environment_.waiting_apart(), 5000u);
  environment_.hold_apart(false);
  environment_.settle();
  EXPECT_EQ(uid("alice@example.org"), 1000u);
}

TEST_F(IdNamesTest, NamesAreSentOnceNumbersWereRefused) {
  EXPECT_TRUE(names_->refused(false));
  EXPECT_EQ(owner(1000), "alice@example.org");
  EXPECT_EQ(owner(1000), "alice@example.org");
  EXPECT_EQ(database_->asked, 1);
  EXPECT_TRUE(names_->refused(false)) << "of a request from before";
  EXPECT_FALSE(names_->refused(true)) << "nothing more can be done";
}

TEST_F(IdNamesTest, WhatIsSentIsNotAskedForOnThisThreadEither) {
  environment_.hold_apart(true);
  EXPECT_TRUE(names_->refused(false));
  Texts texts;
  write(1000, &texts);
  EXPECT_FALSE(texts.has_value());
  EXPECT_EQ(database_->asked + domain_asked_, 0);
  environment_.hold_apart(false);
  environment_.settle();
  ASSERT_TRUE(texts.has_value() && texts->ok());
  EXPECT_EQ((*texts)->owner, "alice@example.org");
  EXPECT_TRUE((*texts)->by_name);
}

TEST_F(IdNamesTest, ANumberIsSentWhereTheDatabaseHangs) {
  environment_.hold_apart(true);
  EXPECT_TRUE(names_->refused(false));
  Texts texts;
  write(1000, &texts);
  environment_.advance(IdNames::kPatience);
  ASSERT_TRUE(texts.has_value() && texts->ok());
  EXPECT_EQ((*texts)->owner, "1000");
}

TEST_F(IdNamesTest, WhoHasNoNameThatCouldBeSentStaysANumber) {
  database_->users[3] = std::string(IdNames::kTextBytes, 'x');
  EXPECT_TRUE(names_->refused(false));
  for (const std::uint32_t id : {1u, 2u, 3u, 4711u})
    EXPECT_EQ(owner(id), std::to_string(id));
}

}  // namespace
}  // namespace nfsrdma
