// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/client_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace nfsrdma::nfs4 {
namespace {

using Status = ClientTable::Status;
using Verdict = SlotTable::Verdict;
using std::chrono::seconds;

Verifier verifier(int n) {
  Verifier out{};
  out[0] = static_cast<std::byte>(n);
  return out;
}

class ClientTableTest : public testing::Test {
 protected:
  ClientTable::Answer exchange(const std::string& owner, int life, const std::string& who = "sys:0",
                               bool update = false) {
    return table_.exchange_id({owner, verifier(life)}, who, update, now_);
  }
  ClientTable::Answer create(ClientId id, SequenceId sequence, const std::string& who = "sys:0") {
    auto answer = table_.create_session(id, sequence, sequence, who, now_);
    if (answer.status == Status::kOk) answer.client->create_session.finish(0, {});
    return answer;
  }
  /// A client that is confirmed, with so many sessions and opens.
  Client& confirmed(const std::string& owner, int life, std::size_t holds = 1) {
    Client* client = exchange(owner, life).client;
    client = create(client->id, client->create_session.next(0)).client;
    client->holds = holds;
    return *client;
  }
  ClientTable::Answer set(const std::string& owner, int life, const std::string& who = "sys:0",
                          const std::string& callback = "here") {
    return table_.set_client_id({owner, verifier(life)}, who, callback, now_);
  }
  ClientTable::Answer set_confirm(ClientId id, const Verifier& confirm,
                                  const std::string& who = "sys:0") {
    return table_.set_client_id_confirm(id, confirm, who, now_);
  }
  Client& confirmed_4_0(const std::string& owner, int life, std::size_t holds = 1) {
    const Client* client = set(owner, life).client;
    Client* made = set_confirm(client->id, client->confirm).client;
    made->holds = holds;
    return *made;
  }

  TimePoint now_{};
  ClientTable table_{7, {4, seconds(90)}};
};

// --- EXCHANGE_ID, by the cases of RFC 8881 18.35.5 ---

TEST_F(ClientTableTest, Case1NewClient) {
  const auto answer = exchange("a", 1);
  ASSERT_EQ(answer.status, Status::kOk);
  EXPECT_FALSE(answer.client->confirmed);
  EXPECT_EQ(answer.client->create_session.next(0), 1u);
  EXPECT_EQ(answer.client->id >> 32, 7u) << "of this boot";
  EXPECT_EQ(table_.find(answer.client->id), nullptr) << "not before CREATE_SESSION";
}

TEST_F(ClientTableTest, Case2ARetryOrALookForTrunks) {
  Client& client = confirmed("a", 1);
  const auto answer = exchange("a", 1);
  EXPECT_EQ(answer.client, &client);
  EXPECT_TRUE(answer.client->confirmed);
  EXPECT_EQ(answer.client->create_session.next(0), 2u);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(ClientTableTest, Case3SomebodyElseUnderTheSameName) {
  Client& client = confirmed("a", 1);
  const ClientId id = client.id;
  EXPECT_EQ(exchange("a", 1, "sys:9").status, Status::kInUse);
  client.holds = 0;
  auto answer = exchange("a", 1, "sys:9");
  EXPECT_EQ(answer.status, Status::kOk);
  ASSERT_EQ(answer.ended.size(), 1u);
  EXPECT_EQ(answer.ended[0]->id, id);
  EXPECT_EQ(table_.find(id), nullptr);
  // One whose lease is over does not stand in the way with what it holds, either.
  Client& late = confirmed("b", 1, 5);
  now_ += seconds(91);
  answer = exchange("b", 1, "sys:9");
  EXPECT_EQ(answer.status, Status::kOk);
  ASSERT_EQ(answer.ended.size(), 1u);
  EXPECT_EQ(answer.ended[0].get(), &late);
}

TEST_F(ClientTableTest, Case4OneThatNobodyConfirmedIsReplaced) {
  const ClientId first = exchange("a", 1).client->id;
  const ClientId second = exchange("a", 1).client->id;
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_EQ(create(first, 1).status, Status::kStale);
  EXPECT_EQ(create(second, 1).status, Status::kOk);
}

TEST_F(ClientTableTest, Case5ARestartedClientLosesItsStateWhenItIsConfirmed) {
  Client& before = confirmed("a", 1, 3);
  const ClientId id = before.id;
  const auto answer = exchange("a", 2);
  EXPECT_TRUE(answer.ended.empty());
  EXPECT_EQ(table_.find(id), &before) << "it might be an old packet";
  auto confirmed = create(answer.client->id, 1);
  ASSERT_EQ(confirmed.ended.size(), 1u);
  EXPECT_EQ(confirmed.ended[0].get(), &before);
  EXPECT_EQ(table_.find(id), nullptr);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(ClientTableTest, Cases6To9Updates) {
  EXPECT_EQ(exchange("a", 1, "sys:0", true).status, Status::kNoEnt) << "7";
  exchange("a", 1);
  EXPECT_EQ(exchange("a", 1, "sys:0", true).status, Status::kNoEnt) << "7, not confirmed";
  Client& client = confirmed("a", 1);
  EXPECT_EQ(exchange("a", 1, "sys:0", true).client, &client) << "6";
  EXPECT_EQ(exchange("a", 2, "sys:0", true).status, Status::kNotSame) << "8";
  EXPECT_EQ(exchange("a", 1, "sys:9", true).status, Status::kPerm) << "9";
  EXPECT_EQ(exchange("a", 2, "sys:9", true).status, Status::kPerm) << "9 before 8";
  EXPECT_EQ(client.holds, 1u);
}

// --- CREATE_SESSION and DESTROY_CLIENTID ---

TEST_F(ClientTableTest, CreateSessionHappensOnce) {
  const ClientId id = exchange("a", 1).client->id;
  EXPECT_EQ(create(id, 2).verdict, Verdict::kMisordered);
  EXPECT_EQ(create(id, 1, "sys:9").status, Status::kInUse) << "somebody else cannot confirm it";
  EXPECT_EQ(create(id, 1).status, Status::kOk);
  const auto again = create(id, 1);
  EXPECT_EQ(again.status, Status::kRetry);
  EXPECT_EQ(again.verdict, Verdict::kReplay);
  EXPECT_EQ(create(id, 2).status, Status::kOk) << "a second session";
  EXPECT_EQ(create(id + 1, 1).status, Status::kStale);
}

TEST_F(ClientTableTest, DestroyOnlyWhatHoldsNothing) {
  Client& client = confirmed("a", 1);
  const ClientId id = client.id;
  EXPECT_EQ(table_.destroy_client_id(id).status, Status::kBusy);
  client.holds = 0;
  EXPECT_EQ(table_.destroy_client_id(id).ended.size(), 1u);
  EXPECT_EQ(table_.destroy_client_id(id).status, Status::kStale);
  const ClientId unconfirmed = exchange("b", 1).client->id;
  EXPECT_EQ(table_.destroy_client_id(unconfirmed).status, Status::kOk);
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(ClientTableTest, WhoHasNoSessionsIsNotDestroyedByOthers) {
  const ClientId host = table_.add_host("192.0.2.7 a", now_).client->id;
  EXPECT_EQ(table_.destroy_client_id(host).status, Status::kStale);
  EXPECT_NE(table_.find(host), nullptr);
}

// --- SETCLIENTID and SETCLIENTID_CONFIRM, RFC 7530 16.33.5 and 16.34.5 ---

TEST_F(ClientTableTest, Version40AnotherCallbackKeepsIdAndState) {
  Client& client = confirmed_4_0("a", 1);
  const auto answer = set("a", 1, "sys:0", "there");
  EXPECT_EQ(answer.client->id, client.id);
  EXPECT_NE(answer.client->confirm, client.confirm);
  EXPECT_EQ(client.callback, "here") << "not before it is confirmed";
  const auto confirmed = set_confirm(client.id, answer.client->confirm);
  EXPECT_EQ(confirmed.client, &client);
  EXPECT_TRUE(confirmed.ended.empty());
  EXPECT_EQ(client.callback, "there");
  EXPECT_EQ(client.holds, 1u);
}

TEST_F(ClientTableTest, Version40ARestartedClientLosesItsStateWhenItIsConfirmed) {
  const ClientId before = confirmed_4_0("a", 1).id;
  const auto answer = set("a", 2);
  EXPECT_NE(answer.client->id, before);
  EXPECT_NE(table_.find(before), nullptr);
  const ClientId id = answer.client->id;
  const Verifier confirm = answer.client->confirm;
  EXPECT_EQ(set_confirm(id, confirm).ended.size(), 1u);
  EXPECT_EQ(table_.find(before), nullptr);
  EXPECT_EQ(set_confirm(id, confirm).status, Status::kOk) << "a retry";
  EXPECT_EQ(set_confirm(id, verifier(99)).status, Status::kStale);
  EXPECT_EQ(set_confirm(before, confirm).status, Status::kStale);
}

TEST_F(ClientTableTest, Version40SomebodyElseUnderTheSameName) {
  Client& client = confirmed_4_0("a", 1);
  EXPECT_EQ(set("a", 1, "sys:9").status, Status::kInUse);
  EXPECT_EQ(set_confirm(client.id, client.confirm, "sys:9").status, Status::kInUse);
  client.holds = 0;
  const auto other = set("a", 1, "sys:9");
  ASSERT_EQ(other.status, Status::kOk);
  EXPECT_NE(other.client->id, client.id);
  // It comes to hold something before the other one confirms.
  client.holds = 1;
  EXPECT_EQ(set_confirm(other.client->id, other.client->confirm, "sys:9").status, Status::kInUse);
  EXPECT_EQ(set_confirm(other.client->id, other.client->confirm, "sys:0").status, Status::kInUse);
  client.holds = 0;
  EXPECT_EQ(set_confirm(other.client->id, other.client->confirm, "sys:9").ended.size(), 1u);
}

TEST_F(ClientTableTest, TheVersionsShareTheNamesAndNothingElse) {
  Client& client = confirmed("a", 1);
  EXPECT_EQ(set("a", 1).status, Status::kInUse);
  EXPECT_EQ(set_confirm(client.id, client.confirm).status, Status::kStale);
  const ClientId other = confirmed_4_0("b", 1, 0).id;
  EXPECT_EQ(create(other, 1).status, Status::kStale);
  EXPECT_EQ(exchange("b", 1, "sys:0", true).status, Status::kInvalid);
  const auto upgraded = exchange("b", 1);
  EXPECT_FALSE(upgraded.client->confirmed);
  EXPECT_EQ(create(upgraded.client->id, 1).ended.size(), 1u);
}

// --- leases and limits ---

TEST_F(ClientTableTest, AClientStaysUntilItsLeaseIsOver) {
  Client& client = confirmed("a", 1);
  now_ += seconds(90);
  EXPECT_FALSE(table_.expired(client, now_));
  table_.renew(client, now_);
  now_ += seconds(91);
  EXPECT_TRUE(table_.expired(client, now_));
  EXPECT_TRUE(table_.sweep(now_).empty()) << "it holds something that nobody needs";
  client.holds = 0;
  exchange("b", 1);
  now_ += seconds(91);
  EXPECT_EQ(table_.sweep(now_).size(), 1u);
  EXPECT_EQ(table_.size(), 0u) << "what nobody confirmed is gone as well";
}

TEST_F(ClientTableTest, AFullTableTakesNewOnesForExpiredOnes) {
  for (const char* name : {"a", "b", "c"})
    confirmed(name, 1);
  confirmed_4_0("d", 1);
  EXPECT_EQ(exchange("e", 1).status, Status::kFull);
  EXPECT_EQ(set("e", 1).status, Status::kFull);
  EXPECT_EQ(exchange("a", 1).status, Status::kOk) << "no new one";
  now_ += seconds(91);
  for (const char* name : {"a", "b", "c"})
    table_.renew(*exchange(name, 1).client, now_);
  const auto answer = exchange("e", 1);
  EXPECT_EQ(answer.status, Status::kOk);
  ASSERT_EQ(answer.ended.size(), 1u);
  EXPECT_EQ(answer.ended[0]->owner.id, "d");
}

/// RFC 8881 8.3.
TEST_F(ClientTableTest, NoLeaseEndsWhileARequestRuns) {
  for (const char* name : {"a", "b", "c", "d"})
    confirmed(name, 1, 0);
  Client& busy = *exchange("a", 1).client;
  busy.running = 1;
  now_ += seconds(91);
  EXPECT_FALSE(table_.expired(busy, now_));
  EXPECT_EQ(table_.longest_expired(10, now_).size(), 3u);
  const auto answer = exchange("e", 1);
  EXPECT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.ended.size(), 3u) << "they held nothing";
  EXPECT_NE(table_.find(busy.id), nullptr);
  busy.running = 0;
  EXPECT_EQ(table_.sweep(now_).size(), 1u);
}

TEST_F(ClientTableTest, WhoIsGoneTheLongestGivesWayFirst) {
  for (const char* name : {"a", "b", "c", "d"}) {
    now_ += seconds(1);
    confirmed(name, 1);
  }
  table_.renew(*exchange("a", 1).client, now_ += seconds(1));
  EXPECT_TRUE(table_.longest_expired(10, now_).empty());
  now_ += seconds(91);
  std::vector<std::string> names;
  for (const ClientId id : table_.longest_expired(3, now_))
    names.push_back(table_.find(id)->owner.id);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "c", "d"}));
  const auto answer = exchange("e", 1);
  EXPECT_TRUE(answer.gave_way);
  ASSERT_EQ(answer.ended.size(), 1u);
  EXPECT_EQ(answer.ended[0]->owner.id, "b");
}

// Nobody is made to give way by many names alone.
TEST_F(ClientTableTest, OldestUnconfirmedOnesGiveWayBeforeWhoHoldsSomething) {
  confirmed("a", 1);
  now_ += seconds(91);
  for (int i = 0; i < 20; ++i) {
    const auto answer = exchange("name" + std::to_string(i), 1);
    EXPECT_EQ(answer.status, Status::kOk);
    EXPECT_TRUE(answer.ended.empty());
  }
  EXPECT_EQ(table_.size(), 4u);
  EXPECT_EQ(table_.longest_expired(10, now_).size(), 1u);
}

// Whatever comes in whatever order: every call gives an answer, nobody that holds something within
// its lease ends but by its own principal, and the books agree.
TEST(ClientTableRandom, TheBooksAgree) {
  std::mt19937 random(1);
  auto pick = [&random](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  TimePoint now{};
  ClientTable table(1, {3, seconds(10)});
  std::set<ClientId> given, over;
  Verifier last_confirm{};
  for (int step = 0; step < 50000; ++step) {
    const ClientOwner owner{std::string(1, static_cast<char>('a' + pick(4))), verifier(pick(2))};
    const std::string who = pick(4) == 0 ? "sys:9" : "sys:0";
    ClientId id = 1;
    if (!given.empty()) id = *std::next(given.begin(), pick(static_cast<int>(given.size())));
    std::vector<const Client*> safe;  // they hold something, and are in time
    for (const ClientId g : given) {
      const Client* client = table.find(g);
      if (client != nullptr && client->holds > 0 && !table.expired(*client, now))
        safe.push_back(client);
    }
    ClientTable::Answer answer;
    switch (pick(8)) {
      case 0:
        answer = table.exchange_id(owner, who, pick(4) == 0, now);
        break;
      case 1:
      case 2: {
        const Client* client = table.find(id);
        const SequenceId next = client == nullptr ? 1 : client->create_session.next(0);
        answer = table.create_session(id, next - static_cast<SequenceId>(pick(2)), 1, who, now);
        if (answer.status == Status::kOk) {
          answer.client->create_session.finish(0, {});
          EXPECT_TRUE(answer.client->confirmed);
        }
        break;
      }
      case 3:
        answer = table.destroy_client_id(id);
        break;
      case 4:
        answer = table.set_client_id(owner, who, "", now);
        if (answer.client != nullptr) last_confirm = answer.client->confirm;
        break;
      case 5:
        answer = table.set_client_id_confirm(id, last_confirm, who, now);
        break;
      case 6:
        now += seconds(pick(3));
        for (auto& client : table.sweep(now))
          answer.ended.push_back(std::move(client));
        break;
      default:
        if (Client* client = table.find(id)) client->holds = static_cast<std::size_t>(pick(2));
    }
    ASSERT_LE(table.size(), 3u);
    if (answer.client != nullptr && given.insert(answer.client->id).second) {
      ASSERT_EQ(over.count(answer.client->id), 0u) << "an id is given out once";
    }
    for (const auto& client : answer.ended) {
      over.insert(client->id);
      given.erase(client->id);
      ASSERT_EQ(table.find(client->id), nullptr);
      for (const Client* other : safe) {
        if (other != client.get() || client->holds == 0) continue;
        ASSERT_NE(answer.client, nullptr);
        ASSERT_EQ(answer.client->owner.id, client->owner.id) << "another life of the same owner";
      }
    }
    if (answer.client != nullptr) {
      // One confirmed client for a name.
      std::size_t of_name = 0;
      for (const ClientId g : given) {
        const Client* client = table.find(g);
        if (client != nullptr && client->owner.id == answer.client->owner.id) ++of_name;
      }
      ASSERT_LE(of_name, 1u);
    }
    if (given.size() > 12) given.erase(given.begin());
  }
}

// --- hosts that lock by NLM ---

TEST_F(ClientTableTest, AHostThatHoldsNothingGivesWayAndIsToldOfWithThoseThatAreSweptBehindIt) {
  ClientTable table(7, {.clients = 6, .lease = seconds(90), .hosts_per_address = 2});
  table.add_host("192.0.2.7 a", now_).client->holds = 1;
  table.add_host("192.0.2.7 b", now_);
  table.add_host("192.0.2.8 c", now_);
  // As many clients as there may be, so that making room sweeps c, too.
  for (const char* name : {"d", "e", "f"})
    table.exchange_id({name, verifier(1)}, "sys:0", false, now_);
  now_ += seconds(80);
  auto answer = table.add_host("192.0.2.7 new", now_);
  ASSERT_EQ(answer.status, Status::kOk);
  ASSERT_EQ(answer.ended.size(), 1u);
  EXPECT_EQ(answer.ended[0]->owner.id, ClientTable::host_owner("192.0.2.7 b"));
  answer.client->holds = 1;
  EXPECT_EQ(table.add_host("192.0.2.7 one more", now_).status, Status::kFull);
  EXPECT_NE(table.find_host("192.0.2.8 c"), nullptr);
}

TEST_F(ClientTableTest, WhoGaveWayIsNotForgottenWhenMoreRoomIsMade) {
  ClientTable table(7, {.clients = 4, .lease = seconds(90), .hosts_per_address = 1});
  table.add_host("192.0.2.7 a", now_);
  Client* four = table.exchange_id({"v4", verifier(1)}, "sys:0", false, now_).client;
  ASSERT_EQ(table.create_session(four->id, 1, 1, "sys:0", now_).status, Status::kOk);
  now_ += seconds(91);
  for (const char* name : {"x", "y"})
    table.exchange_id({name, verifier(1)}, "sys:0", false, now_);
  const auto answer = table.add_host("192.0.2.7 b", now_);
  ASSERT_EQ(answer.status, Status::kOk);
  std::set<std::string> ended;
  for (const auto& client : answer.ended)
    ended.insert(client->owner.id);
  EXPECT_TRUE(ended.contains(ClientTable::host_owner("192.0.2.7 a")));
}

TEST_F(ClientTableTest, HostsHaveHalfOfTheClients) {
  ClientTable table(7, {.clients = 4, .lease = seconds(90)});
  EXPECT_EQ(table.add_host("192.0.2.1 a", now_).status, Status::kOk);
  auto second = table.add_host("192.0.2.2 a", now_);
  ASSERT_EQ(second.status, Status::kOk);
  EXPECT_EQ(table.add_host("192.0.2.3 a", now_).status, Status::kFull);
  table.end(*second.client);
  EXPECT_EQ(table.add_host("192.0.2.3 a", now_).status, Status::kOk);
}

}  // namespace
}  // namespace nfsrdma::nfs4
