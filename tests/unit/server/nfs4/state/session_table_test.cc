// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nfsrdma::nfs4 {
namespace {

using Status = SessionTable::Status;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr ChannelAttributes kMost{0, 1 << 20, 1 << 20, 8192, 64, 128};

TEST(Negotiate, GrantsTheLesser) {
  ChannelAttributes asked{16, 2 << 20, 4096, 1 << 20, 8, 1000};
  EXPECT_TRUE(negotiate(kMost, &asked));
  EXPECT_EQ(asked, (ChannelAttributes{0, 1 << 20, 4096, 4096, 8, 128}));
}

TEST(Negotiate, RefusesWhatIsOfNoUse) {
  const ChannelAttributes good{0, kSmallestMessage, kSmallestMessage, 0, 1, 1};
  ChannelAttributes asked = good;
  EXPECT_TRUE(negotiate(kMost, &asked));
  EXPECT_EQ(asked, good);
  for (std::uint32_t ChannelAttributes::*member :
       {&ChannelAttributes::max_request, &ChannelAttributes::max_response,
        &ChannelAttributes::max_operations, &ChannelAttributes::max_requests}) {
    asked = good;
    --(asked.*member);
    EXPECT_FALSE(negotiate(kMost, &asked));
  }
}

class SessionTableTest : public testing::Test {
 protected:
  SessionTableTest() { client_.id = 5; }
  Session* create(ConnectionId connection, bool back = true) {
    return table_.create(client_, kMost, kMost, connection, back, back_channel());
  }

  static BackChannel back_channel() { return {{}, CallbackSlots(2)}; }
  Client client_;
  SessionTable table_{7, {3}};
};

TEST_F(SessionTableTest, SessionsAreFoundByTheirIds) {
  Session* first = create(1);
  Session* second = create(1);
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(table_.find(first->id), first);
  EXPECT_EQ(table_.find(second->id), second);
  EXPECT_EQ(table_.find({}), nullptr);
  EXPECT_EQ(client_.holds, 2u);
  EXPECT_EQ(first->slots.size(), 128u);
  // After a restart none of them is known, nor made again.
  SessionTable later(8, {3});
  Client again;
  again.id = 5;
  EXPECT_EQ(later.find(first->id), nullptr);
  EXPECT_NE(later.create(again, kMost, kMost, 1, true, {})->id, first->id);
}

TEST_F(SessionTableTest, AClientHasNoMoreThanItMay) {
  for (int i = 0; i < 3; ++i)
    EXPECT_NE(create(1), nullptr);
  EXPECT_EQ(create(1), nullptr);
  Client other;
  other.id = 6;
  EXPECT_NE(table_.create(other, kMost, kMost, 1, true, {}), nullptr) << "another one's own limit";
  table_.end_client(client_);
  EXPECT_EQ(client_.holds, 0u);
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_NE(create(1), nullptr);
}

TEST_F(SessionTableTest, AllSlotsTogetherAreBounded) {
  SessionTable table(7, {.sessions_per_client = 1000, .slots = 100});
  std::size_t sum = 0;
  for (std::uint32_t granted = 0; (granted = table.slots_for(64)) != 0; sum += granted) {
    ChannelAttributes fore = kMost;
    fore.max_requests = granted;
    ASSERT_NE(table.create(client_, fore, kMost, 1, false, {}), nullptr);
  }
  EXPECT_EQ(sum, 100u);
  ChannelAttributes one = kMost;
  one.max_requests = 1;
  EXPECT_EQ(table.create(client_, one, kMost, 1, false, {}), nullptr);
  table.end_client(client_);
  EXPECT_EQ(table.slots_for(64), 13u) << "an eighth";
}

TEST_F(SessionTableTest, AsManySessionsAsThereMayBeClientsFindASlot) {
  SessionTable table(7, {.sessions_per_client = 1000, .slots = 1000, .sessions = 300});
  EXPECT_EQ(table.slots_for(64), 64u);
  for (int i = 0; i < 300; ++i) {
    ChannelAttributes fore = kMost;
    fore.max_requests = table.slots_for(64);
    ASSERT_GE(fore.max_requests, 1u) << i;
    ASSERT_NE(table.create(client_, fore, kMost, 1, false, {}), nullptr) << i;
  }
  EXPECT_LE(table.slots(), 1000u);
  EXPECT_EQ(table.most_slots_for(64), 64u);
}

TEST_F(SessionTableTest, ConnectionsComeAndGo) {
  Session* session = create(1);
  EXPECT_THAT(session->connections, ElementsAre(1u));
  EXPECT_THAT(session->backchannel, ElementsAre(1u));
  table_.bind(*session, 2, true, false);
  table_.bind(*session, 3, false, true);
  table_.bind(*session, 1, true, true);
  EXPECT_THAT(session->connections, ElementsAre(1u, 2u));
  EXPECT_THAT(session->backchannel, ElementsAre(3u, 1u)) << "the one used last at the end";
  table_.connection_lost(1);
  table_.connection_lost(9);
  EXPECT_THAT(session->connections, ElementsAre(2u));
  EXPECT_THAT(session->backchannel, ElementsAre(3u));
  table_.connection_lost(2);
  table_.connection_lost(3);
  EXPECT_THAT(session->connections, IsEmpty());
  EXPECT_EQ(table_.find(session->id), session) << "it waits for others";
}

TEST_F(SessionTableTest, DestroyedByItsOwnWhenNothingRuns) {
  Session* session = create(1);
  const SessionId id = session->id;
  EXPECT_EQ(table_.destroy({}, 1, false), Status::kBadSession);
  EXPECT_EQ(table_.destroy(id, 2, false), Status::kNotBound);
  EXPECT_EQ(session->slots.begin(0, 1, 0), SlotTable::Verdict::kNew);
  EXPECT_EQ(table_.destroy(id, 1, false), Status::kDelay);
  EXPECT_EQ(session->slots.begin(1, 1, 0), SlotTable::Verdict::kNew);
  EXPECT_EQ(table_.destroy(id, 1, true), Status::kDelay) << "not only the one that asks";
  session->slots.finish_uncached(0);
  EXPECT_EQ(table_.destroy(id, 1, true), Status::kOk);
  EXPECT_EQ(table_.find(id), nullptr);
  EXPECT_EQ(client_.holds, 0u);
  table_.connection_lost(1);
}

}  // namespace
}  // namespace nfsrdma::nfs4
