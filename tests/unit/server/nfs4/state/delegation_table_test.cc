// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/delegation_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace nfsrdma::nfs4 {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Delegation::Kind;
using Status = DelegationTable::Status;
using Wanted = DelegationTable::Wanted;

constexpr ClientId kA = 1, kB = 2, kC = 3;
const TimePoint kStart{std::chrono::hours(1)};

class DelegationTableTest : public testing::Test {
 protected:
  Stateid grant(ClientId client, const FileKey& file = "file", Kind kind = Kind::kRead) {
    EXPECT_TRUE(table_.may_grant(client, file, kind, now_));
    return table_.stateid_of(table_.grant(client, file, kind, {}));
  }
  std::vector<DelegationNumber> recall(ClientId by, const FileKey& file = "file",
                                       Wanted wanted = Wanted::kToChange) {
    std::vector<DelegationNumber> fresh;
    in_the_way_ = table_.recall(file, by, wanted, now_ + seconds(40), &fresh);
    return fresh;
  }
  Status give_back(ClientId client, const Stateid& stateid, const FileKey& file = "file") {
    DelegationNumber number = 0;
    return table_.give_back(client, stateid, file, &number);
  }

  TimePoint now_ = kStart;
  DelegationTable table_{7, {6, 3, 2}};
  bool in_the_way_ = false;
};

TEST_F(DelegationTableTest, AWriteDelegationStandsAlone) {
  const Stateid one = grant(kA, "file", Kind::kWrite);
  EXPECT_FALSE(table_.may_grant(kB, "file", Kind::kRead, now_));
  EXPECT_FALSE(table_.may_grant(kA, "file", Kind::kRead, now_)) << "it has one";
  EXPECT_EQ(table_.may_access(kA, one, "file", kShareRead | kShareWrite), Status::kOk);
  EXPECT_EQ(table_.may_access(kB, one, "file", kShareRead), Status::kBadStateid);
  ASSERT_NE(table_.writer("file"), nullptr);
  EXPECT_EQ(table_.writer("file")->client, kA);
  EXPECT_TRUE(table_.has_one(kA, "file"));
  EXPECT_FALSE(table_.has_one(kB, "file"));
  EXPECT_THAT(recall(kA, "file", Wanted::kToRead), IsEmpty()) << "its own";
  EXPECT_FALSE(in_the_way_);
  EXPECT_EQ(recall(kB, "file", Wanted::kToRead).size(), 1u);
  EXPECT_TRUE(in_the_way_);
  EXPECT_EQ(give_back(kA, one), Status::kOk);
  EXPECT_EQ(table_.writer("file"), nullptr);

  grant(kA, "read");
  EXPECT_FALSE(table_.may_grant(kB, "read", Kind::kWrite, now_));
  EXPECT_THAT(recall(kB, "read", Wanted::kToRead), IsEmpty()) << "readers are not in its way";
  EXPECT_EQ(table_.writer("read"), nullptr);
}

TEST_F(DelegationTableTest, ItsStateidsAreItsOwn) {
  const Stateid one = grant(kA);
  EXPECT_TRUE(DelegationTable::is_one(one));
  EXPECT_FALSE(DelegationTable::is_one({}));
  Stateid ones{UINT32_MAX, {}};
  ones.other.fill(std::byte{0xff});
  EXPECT_FALSE(DelegationTable::is_one(ones)) << "a special one";
  OpenStates opens(7, {});
  EXPECT_FALSE(DelegationTable::is_one(opens.open({kA, 1}, "owner", "file", {1, 0}).stateid));

  EXPECT_EQ(table_.test(kA, one), Status::kOk);
  EXPECT_EQ(table_.test(kB, one), Status::kBadStateid) << "another client's";
  Stateid other = one;
  other.seqid = 0;
  EXPECT_EQ(table_.test(kA, other), Status::kOk) << "whichever is current";
  other.seqid = 2;
  EXPECT_EQ(table_.test(kA, other), Status::kBadStateid) << "never given out";
  EXPECT_EQ(DelegationTable(8, {}).test(kA, one), Status::kStaleStateid);
}

TEST_F(DelegationTableTest, ReadersShareAFileAndWritersRecallAll) {
  const Stateid a = grant(kA), b = grant(kB);
  EXPECT_NE(a, b);
  EXPECT_FALSE(table_.may_grant(kA, "file", Kind::kRead, now_)) << "it has one";
  EXPECT_EQ(table_.may_access(kA, a, "file", kShareRead), Status::kOk);
  EXPECT_EQ(table_.may_access(kA, a, "file", kShareWrite), Status::kOpenMode);
  EXPECT_EQ(table_.may_access(kA, a, "other", kShareRead), Status::kBadStateid);

  EXPECT_EQ(recall(kC).size(), 2u);
  EXPECT_TRUE(in_the_way_);
  EXPECT_THAT(recall(kC), IsEmpty()) << "both have been asked";
  EXPECT_TRUE(in_the_way_);
  EXPECT_THAT(table_.holders("file", kA, Wanted::kToChange), ElementsAre(kB));
  EXPECT_EQ(give_back(kA, a, "other"), Status::kBadStateid);
  EXPECT_EQ(give_back(kA, a), Status::kOk);
  EXPECT_EQ(give_back(kA, a), Status::kBadStateid);
  EXPECT_TRUE(table_.has_file("file"));
  EXPECT_EQ(give_back(kB, b), Status::kOk);
  EXPECT_FALSE(table_.has_file("file"));
  recall(kC);
  EXPECT_FALSE(in_the_way_);
}

TEST_F(DelegationTableTest, OnesOwnAreNotInTheWay) {
  grant(kA);
  EXPECT_THAT(recall(kA), IsEmpty());
  EXPECT_FALSE(in_the_way_);
  EXPECT_EQ(recall(0).size(), 1u) << "somebody without a client id";
}

TEST_F(DelegationTableTest, WhatTheHolderChangesIsNotedOfItsOwn) {
  const Stateid a = grant(kA), b = grant(kB), another = grant(kA, "another");
  table_.note_own_change(kA, "file", now_ + seconds(1));
  table_.note_own_change(kC, "file", now_ + seconds(9));
  table_.note_own_change(kA, "no such file", now_);
  const auto until = [this](const Stateid& one) {
    return table_.find(number_in(one))->own_change_until;
  };
  EXPECT_EQ(until(a), now_ + seconds(1));
  EXPECT_EQ(until(b), TimePoint{});
  EXPECT_EQ(until(another), TimePoint{});
}

TEST_F(DelegationTableTest, WhatOthersWantIsNotGivenAgainSoon) {
  const Stateid a = grant(kA);
  recall(kB);
  EXPECT_FALSE(table_.may_grant(kC, "file", Kind::kRead, now_)) << "while it is recalled";
  give_back(kA, a);
  EXPECT_FALSE(table_.may_grant(kC, "file", Kind::kRead, now_));
  EXPECT_TRUE(table_.may_grant(kC, "another", Kind::kRead, now_));
  EXPECT_TRUE(table_.may_grant(kC, "file", Kind::kRead, now_ + seconds(40)));
}

TEST_F(DelegationTableTest, WhatIsNotGivenBackIsRevoked) {
  const Stateid a = grant(kA), kept = grant(kA, "kept");
  recall(kB);
  EXPECT_THAT(table_.revoke_due(now_ + seconds(39)), IsEmpty());
  EXPECT_EQ(table_.revoke_due(now_ + seconds(40)).size(), 1u);
  EXPECT_THAT(table_.revoke_due(now_ + seconds(99)), IsEmpty());
  recall(kB);
  EXPECT_FALSE(in_the_way_);
  EXPECT_TRUE(table_.has_revoked(kA, now_ + seconds(50)));
  EXPECT_FALSE(table_.has_revoked(kA, now_ + seconds(7000))) << "told long enough";
  EXPECT_EQ(table_.test(kA, a), Status::kRevoked);
  EXPECT_EQ(table_.may_access(kA, a, "file", kShareRead), Status::kRevoked);
  EXPECT_EQ(give_back(kA, a), Status::kRevoked);
  EXPECT_EQ(table_.free(kB, a), Status::kBadStateid);
  EXPECT_EQ(table_.free(kA, kept), Status::kLocksHeld) << "not revoked";
  EXPECT_EQ(table_.free(kA, a), Status::kOk);
  EXPECT_EQ(table_.free(kA, a), Status::kBadStateid);
  EXPECT_FALSE(table_.has_revoked(kA, now_ + seconds(50)));
  EXPECT_EQ(table_.holds(kA), 1u);
}

TEST_F(DelegationTableTest, AnAdministratorRevokesThoseOfAFileAtOnce) {
  const Stateid a = grant(kA), b = grant(kB), kept = grant(kA, "kept");
  EXPECT_EQ(table_.revoke_file("file", now_).size(), 2u);
  EXPECT_THAT(table_.revoke_file("file", now_), IsEmpty());
  EXPECT_FALSE(table_.has_file("file"));
  recall(kC);
  EXPECT_FALSE(in_the_way_);
  for (const auto& [client, stateid] : {std::pair(kA, a), std::pair(kB, b)}) {
    EXPECT_EQ(table_.test(client, stateid), Status::kAdminRevoked);
    EXPECT_EQ(table_.may_access(client, stateid, "file", kShareRead), Status::kAdminRevoked);
    EXPECT_EQ(give_back(client, stateid), Status::kAdminRevoked);
    EXPECT_TRUE(table_.has_revoked_by_administrator(client, now_ + seconds(50)));
    EXPECT_FALSE(table_.has_revoked_by_administrator(client, now_ + seconds(7000)));
  }
  EXPECT_EQ(table_.test(kA, kept), Status::kOk);
  EXPECT_EQ(table_.free(kA, a), Status::kOk);
  EXPECT_FALSE(table_.has_revoked_by_administrator(kA, now_));
  EXPECT_TRUE(table_.has_revoked_by_administrator(kB, now_));
  table_.forget_revoked_but(kB, 0);
  EXPECT_EQ(table_.test(kB, b), Status::kBadStateid);
  EXPECT_FALSE(table_.has_revoked(kB, now_));
  EXPECT_EQ(table_.holds(kA), 1u);
}

TEST_F(DelegationTableTest, TheKernelsWordRecallsOne) {
  const Stateid a = grant(kA);
  const DelegationNumber number = recall(0).at(0);
  EXPECT_FALSE(table_.recall_one(number, now_)) << "recalled already";
  give_back(kA, a);
  EXPECT_FALSE(table_.recall_one(number, now_)) << "no more";
  const Stateid second = grant(kB, "second");
  EXPECT_TRUE(table_.recall_one(number_in(second), now_ + seconds(1)));
  EXPECT_EQ(table_.recalled(), 1u);
}

TEST_F(DelegationTableTest, AClientThatEndsLeavesNothing) {
  const Stateid a = grant(kA);
  grant(kA, "second");
  grant(kB);
  recall(kC);
  table_.revoke_due(now_ + seconds(40));
  EXPECT_EQ(table_.test(kA, a), Status::kRevoked);
  EXPECT_EQ(table_.end_client(kA).size(), 1u) << "what it still held";
  EXPECT_EQ(table_.holds(kA), 0u);
  EXPECT_EQ(table_.test(kA, a), Status::kBadStateid);
  EXPECT_EQ(table_.test(kB, grant(kB, "third")), Status::kOk);
}

TEST_F(DelegationTableTest, NoMoreThanThereMayBe) {
  for (const char* name : {"1", "2", "3"})
    grant(kA, name);
  EXPECT_FALSE(table_.may_grant(kA, "4", Kind::kRead, now_)) << "the client's own limit";
  for (const char* name : {"1", "2", "3"})
    grant(kB, name);
  EXPECT_FALSE(table_.may_grant(kC, "4", Kind::kRead, now_)) << "that of all";
  // Who does not free what was revoked gets no more.
  recall(0, "1");
  recall(0, "2");
  table_.revoke_due(now_ + seconds(40));
  EXPECT_FALSE(table_.may_grant(kA, "4", Kind::kRead, now_));
  EXPECT_TRUE(table_.may_grant(kC, "4", Kind::kRead, now_)) << "nobody else suffers for that";
}

/// Random steps against a list of what every client has; counts and questions agree after each.
TEST_F(DelegationTableTest, AgreesWithAPlainModelAtRandom) {
  struct Held {
    ClientId client;
    FileKey file;
    Kind kind;
    Stateid stateid;
    Delegation::Phase phase;
    TimePoint deadline;
  };
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&random](std::uint32_t below) { return random() % below; };
    DelegationTable table(7, {1000, 1000, 1000});
    std::vector<Held> model;
    TimePoint now = kStart;
    for (int step = 0; step < 400; ++step) {
      const ClientId client = 1 + pick(3);
      const FileKey file(1, static_cast<char>('a' + pick(3)));
      switch (pick(6)) {
        case 0:
        case 1:
          if (const Kind kind = pick(3) == 0 ? Kind::kWrite : Kind::kRead;
              table.may_grant(client, file, kind, now)) {
            for (const Held& held : model) {
              const bool live = held.phase != Delegation::Phase::kRevoked;
              ASSERT_FALSE(live && held.file == file && held.client == client);
              ASSERT_FALSE(held.file == file && held.phase == Delegation::Phase::kRecalled);
              const bool alone = kind == Kind::kWrite || held.kind == Kind::kWrite;
              ASSERT_FALSE(live && held.file == file && alone);
            }
            model.push_back({client,
                             file,
                             kind,
                             table.stateid_of(table.grant(client, file, kind, {})),
                             Delegation::Phase::kHeld,
                             {}});
          }
          break;
        case 2: {
          const Wanted wanted = pick(2) == 0 ? Wanted::kToRead : Wanted::kToChange;
          std::vector<DelegationNumber> fresh;
          std::size_t expected = 0;
          bool any = false;
          for (Held& held : model) {
            if (held.file != file || held.client == client) continue;
            if (held.phase == Delegation::Phase::kRevoked) continue;
            if (wanted == Wanted::kToRead && held.kind == Kind::kRead) continue;
            any = true;
            if (held.phase == Delegation::Phase::kRecalled) continue;
            held.phase = Delegation::Phase::kRecalled;
            held.deadline = now + seconds(5);
            ++expected;
          }
          ASSERT_EQ(table.recall(file, client, wanted, now + seconds(5), &fresh), any);
          ASSERT_EQ(fresh.size(), expected);
          break;
        }
        case 3: {
          if (model.empty()) break;
          const std::size_t place = pick(static_cast<std::uint32_t>(model.size()));
          const Held held = model[place];
          const bool revoked = held.phase == Delegation::Phase::kRevoked;
          DelegationNumber number = 0;
          ASSERT_EQ(table.give_back(held.client, held.stateid, held.file, &number),
                    revoked ? Status::kRevoked : Status::kOk);
          if (revoked) {
            ASSERT_EQ(table.free(held.client, held.stateid), Status::kOk);
          }
          model.erase(model.begin() + static_cast<std::ptrdiff_t>(place));
          break;
        }
        case 4: {
          now += seconds(pick(4));
          std::size_t due = 0;
          for (Held& held : model) {
            if (held.phase != Delegation::Phase::kRecalled || now < held.deadline) continue;
            held.phase = Delegation::Phase::kRevoked;
            ++due;
          }
          ASSERT_EQ(table.revoke_due(now).size(), due);
          break;
        }
        default:
          if (pick(5) == 0) {
            table.end_client(client);
            std::erase_if(model, [client](const Held& held) { return held.client == client; });
          }
      }
      std::size_t live = 0, recalled = 0, held_by = 0;
      for (const Held& held : model) {
        live += held.phase != Delegation::Phase::kRevoked ? 1 : 0;
        recalled += held.phase == Delegation::Phase::kRecalled ? 1 : 0;
        held_by += held.client == client ? 1 : 0;
        ASSERT_EQ(table.test(held.client, held.stateid),
                  held.phase == Delegation::Phase::kRevoked ? Status::kRevoked : Status::kOk);
      }
      ASSERT_EQ(table.size(), live);
      ASSERT_EQ(table.recalled(), recalled);
      ASSERT_EQ(table.holds(client), held_by);
    }
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4
