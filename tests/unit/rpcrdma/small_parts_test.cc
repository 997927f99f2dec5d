// SPDX-License-Identifier: Apache-2.0
// Private data, credits, poison table, work table, record marks, places of results.
#include <gtest/gtest.h>

#include "rpcrdma/credits.h"
#include "rpcrdma/nfs_binding.h"
#include "rpcrdma/poison_table.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/record_mark.h"
#include "rpcrdma/work_table.h"

namespace nfsrdma {
namespace {

std::vector<std::byte> hex(std::initializer_list<int> bytes) {
  std::vector<std::byte> out;
  for (int b : bytes)
    out.push_back(static_cast<std::byte>(b));
  return out;
}

TEST(PrivateData, EncodesAsInTheRfc) {
  const auto bytes = PrivateData{4096, 65536, true}.encode();
  EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()),
            hex({0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 0x3f}));
}
TEST(PrivateData, IsFoundAtAnyFourByteOffset) {
  const auto bytes = hex({9, 9, 9, 9, 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 7, 1, 2, 3});
  const PrivateData data = PrivateData::parse(bytes);
  EXPECT_EQ(data.send_size, 4096u);
  EXPECT_EQ(data.receive_size, 8192u);
  EXPECT_TRUE(data.remote_invalidation);
}
TEST(PrivateData, AbsentMeans1024AndNoInvalidation) {
  for (const auto& bytes :
       {hex({}), hex({1, 2, 3, 4, 5, 6, 7, 8}), hex({0, 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}),
        hex({0xf6, 0xab, 0x0e, 0x18, 1, 1, 3})}) {
    const PrivateData data = PrivateData::parse(bytes);
    EXPECT_EQ(data.send_size, 1024u);
    EXPECT_FALSE(data.remote_invalidation);
  }
}
TEST(PrivateData, UnknownVersionIsIgnored) {
  EXPECT_EQ(PrivateData::parse(hex({0xf6, 0xab, 0x0e, 0x18, 2, 1, 3, 3})).send_size, 1024u);
}
TEST(PrivateData, ThresholdsAreTheSmallerOfSenderAndReceiver) {
  const auto t = InlineThresholds::negotiate({4096, 8192, true}, {2048, 16384, true});
  EXPECT_EQ(t.send, 4096u);
  EXPECT_EQ(t.receive, 2048u);
}
TEST(PrivateData, SizesAreRoundedIntoRange) {
  EXPECT_EQ(valid_inline_size(0), 1024u);
  EXPECT_EQ(valid_inline_size(5000), 4096u);
  EXPECT_EQ(valid_inline_size(1 << 20), 65536u);
}

CreditLimits limits(std::uint32_t receives, std::uint32_t reserve = 4) {
  return {receives, reserve, 8, 128};
}

TEST(Credits, SumOfGrantsNeverExceedsTheReceives) {
  CreditLedger ledger(limits(100));
  ledger.set_posted(100);
  std::vector<std::unique_ptr<ConnectionCredits>> connections;
  for (int i = 0; i < 200; ++i) {
    auto credits = std::make_unique<ConnectionCredits>(ledger);
    if (!credits->open()) break;
    for (int calls = 0; calls < 20; ++calls) {
      credits->on_call(128, credits->granted());
      credits->on_reply();
    }
    connections.push_back(std::move(credits));
    EXPECT_LE(ledger.granted(), 96u);
  }
  std::uint32_t sum = 0;
  for (auto& credits : connections)
    sum += credits->granted();
  EXPECT_EQ(sum, 96u);
}
TEST(Credits, NothingIsGrantedBeyondWhatIsPosted) {
  CreditLedger ledger(limits(1000));
  ledger.set_posted(10);
  ConnectionCredits credits(ledger);
  ASSERT_TRUE(credits.open());
  EXPECT_LE(credits.granted(), 6u);
}
TEST(Credits, FullLedgerRefusesConnections) {
  CreditLedger ledger(limits(12));
  ledger.set_posted(12);
  ConnectionCredits first(ledger), second(ledger);
  EXPECT_TRUE(first.open());
  EXPECT_FALSE(second.open());
}
TEST(Credits, UnusedGrantStaysSmall) {
  CreditLedger ledger(limits(1000));
  ledger.set_posted(1000);
  ConnectionCredits credits(ledger);
  ASSERT_TRUE(credits.open());
  for (int i = 0; i < 100; ++i) {
    credits.on_call(128, 1);
    credits.on_reply();
  }
  EXPECT_EQ(credits.granted(), 8u);
}
TEST(Credits, UseLetsItGrowToTheRequest) {
  CreditLedger ledger(limits(1000));
  ledger.set_posted(1000);
  ConnectionCredits credits(ledger);
  ASSERT_TRUE(credits.open());
  for (int i = 0; i < 100; ++i) {
    credits.on_call(50, credits.granted());
    credits.on_reply();
  }
  EXPECT_EQ(credits.granted(), 50u);
}
TEST(Credits, IdleGrantShrinksWhenOthersNeedItAndIsFreedOneReplyLater) {
  CreditLedger ledger(limits(68));
  ledger.set_posted(68);
  ConnectionCredits credits(ledger);
  ASSERT_TRUE(credits.open());
  for (int i = 0; i < 10; ++i) {
    credits.on_call(64, credits.granted());
    credits.on_reply();
  }
  ASSERT_EQ(credits.granted(), 64u);
  std::uint32_t granted = 64;
  for (int i = 0; i < 200 && granted == 64; ++i) {
    credits.on_call(64, 1);
    granted = credits.on_reply();
  }
  EXPECT_LT(granted, 64u);
  EXPECT_EQ(ledger.granted(), 64u);  // still reserved for calls under way
  credits.on_reply();
  EXPECT_LT(ledger.granted(), 64u);
}

/// Uses 512 credits and then so few that the grant is lowered.
void lower_from_512(ConnectionCredits& credits) {
  ASSERT_TRUE(credits.open());
  while (credits.granted() < 512) {
    credits.on_call(512, credits.granted());
    credits.on_reply();
  }
  for (int i = 0; i < 200 && credits.granted() == 512; ++i) {
    credits.on_call(512, 1);
    credits.on_reply();
  }
  ASSERT_LT(credits.granted(), 8u);
}

TEST(Credits, CallsSentUnderAGrantThatWasLoweredMeanwhileAreTolerated) {
  CreditLedger ledger({.receives = 1100, .reserve = 0, .initial = 8, .maximum = 512});
  ledger.set_posted(1100);
  ConnectionCredits credits(ledger);
  lower_from_512(credits);
  // The client, to whom that reply is still under way, sends all that it may. One is answered
  // meanwhile.
  std::uint32_t open = 0;
  for (int i = 0; i < 511; ++i) {
    credits.on_call(512, ++open);
    ASSERT_LE(open, credits.tolerated()) << i;
    if (i != 8) continue;
    credits.on_reply();
    --open;
  }
}

TEST(Credits, AGrantThatWasLoweredIsForgottenWhenTheClientMustKnow) {
  CreditLedger ledger({.receives = 1100, .reserve = 0, .initial = 8, .maximum = 512});
  ledger.set_posted(1100);
  ConnectionCredits credits(ledger);
  lower_from_512(credits);
  for (int i = 0; i < 512; ++i) {
    credits.on_call(512, 1);
    credits.on_reply();
  }
  EXPECT_LT(credits.tolerated(), 64u);
}

/// What NFSoRDMA_MEMORY's default has room for. Each has mounted, read and written, one call at a
/// time.
TEST(Credits, TenThousandIdleConnectionsFit) {
  CreditLedger ledger({24'576, 64, 8, 128});
  ledger.set_posted(24'576);
  std::vector<std::unique_ptr<ConnectionCredits>> connections;
  for (int i = 0; i < 10'000; ++i) {
    connections.push_back(std::make_unique<ConnectionCredits>(ledger));
    ASSERT_TRUE(connections.back()->open()) << i;
    for (int calls = 0; calls < 20; ++calls) {
      connections.back()->on_call(64, 1);
      connections.back()->on_reply();
    }
  }
  EXPECT_EQ(connections.front()->granted(), 8u);
  EXPECT_LE(connections.back()->granted(), 2u);
}
/// What a device cannot hold is not counted as room: newcomers would be refused, not given less.
TEST(Credits, ADeviceWithFewReceivesHasRoomForManyAllTheSame) {
  CreditLedger ledger({24'576, 64, 8, 128});
  ledger.limit_receives(128);
  ledger.set_posted(128);
  EXPECT_EQ(ledger.capacity(), 96u);
  std::vector<std::unique_ptr<ConnectionCredits>> connections;
  for (int i = 0; i < 60; ++i) {
    connections.push_back(std::make_unique<ConnectionCredits>(ledger));
    ASSERT_TRUE(connections.back()->open()) << i;
  }
  EXPECT_EQ(connections.back()->granted(), 1u);
}
TEST(Credits, WhoUsesAllOfASmallGrantGetsMoreAlsoWhenRoomIsShort) {
  CreditLedger ledger(limits(132));
  ledger.set_posted(132);
  ConnectionCredits large(ledger), small(ledger);
  ASSERT_TRUE(large.open());
  for (int i = 0; i < 10; ++i) {
    large.on_call(64, large.granted());
    large.on_reply();
  }
  ASSERT_EQ(large.granted(), 64u);  // half of all
  ASSERT_TRUE(small.open());
  EXPECT_EQ(small.granted(), 1u);
  for (int i = 0; i < 10; ++i) {
    small.on_call(64, small.granted());
    small.on_reply();
  }
  EXPECT_EQ(small.granted(), 64u);
}
TEST(Credits, ClosingGivesEverythingBack) {
  CreditLedger ledger(limits(100));
  ledger.set_posted(100);
  {
    ConnectionCredits credits(ledger);
    ASSERT_TRUE(credits.open());
  }
  EXPECT_EQ(ledger.granted(), 0u);
}
TEST(Credits, RequestOfZeroStillGetsOne) {
  CreditLedger ledger(limits(100));
  ledger.set_posted(100);
  ConnectionCredits credits(ledger);
  ASSERT_TRUE(credits.open());
  for (int i = 0; i < 5; ++i) {
    credits.on_call(0, 1);
    EXPECT_GE(credits.on_reply(), 1u);
  }
}

TEST(PoisonTable, OneFailureProvesNothing) {
  PoisonTable table;
  const auto peer = SocketAddress::any_v4(1);
  table.record_failure(peer, 5, TimePoint{});
  EXPECT_FALSE(table.poisoned(peer, 5, TimePoint{}));
}
TEST(PoisonTable, PortDoesNotMatterAndSuccessClears) {
  PoisonTable table;
  for (std::uint16_t port = 1; port <= PoisonTable::kPoisonAfter; ++port) {
    table.record_failure(SocketAddress::any_v4(port), 5, TimePoint{});
  }
  EXPECT_TRUE(table.poisoned(SocketAddress::any_v4(99), 5, TimePoint{}));
  EXPECT_FALSE(table.poisoned(SocketAddress::any_v4(99), 6, TimePoint{}));
  table.record_success(SocketAddress::any_v4(7), 5);
  EXPECT_FALSE(table.poisoned(SocketAddress::any_v4(99), 5, TimePoint{}));
}
TEST(PoisonTable, AnotherCallMayHaveTheXidLater) {
  PoisonTable table;
  const auto peer = SocketAddress::any_v4(1);
  TimePoint now{};
  for (std::uint32_t i = 0; i < PoisonTable::kPoisonAfter; ++i)
    table.record_failure(peer, 5, now);
  now += PoisonTable::kForgottenAfter - std::chrono::seconds(1);
  EXPECT_TRUE(table.poisoned(peer, 5, now));
  now += std::chrono::seconds(1);
  EXPECT_FALSE(table.poisoned(peer, 5, now));
  table.record_failure(peer, 5, now);
  EXPECT_FALSE(table.poisoned(peer, 5, now)) << "counted anew";
}

struct Owner : WorkOwner {
  int done = 0;
  std::uint32_t tag = 0;
  void on_work_done(std::uint32_t t, WorkStatus) override {
    ++done;
    tag = t;
  }
};
TEST(WorkTable, CompletionReachesItsOwnerOnce) {
  WorkTable table;
  Owner owner;
  const auto id = table.add(owner, 7);
  EXPECT_TRUE(table.complete(id, WorkStatus::kSuccess));
  EXPECT_FALSE(table.complete(id, WorkStatus::kSuccess));
  EXPECT_EQ(owner.done, 1);
  EXPECT_EQ(owner.tag, 7u);
}
TEST(WorkTable, ReusedSlotRejectsTheOldId) {
  WorkTable table;
  Owner first, second;
  const auto old_id = table.add(first, 0);
  table.complete(old_id, WorkStatus::kSuccess);
  table.add(second, 0);
  EXPECT_FALSE(table.complete(old_id, WorkStatus::kSuccess));
  EXPECT_EQ(second.done, 0);
}
TEST(WorkTable, ForgottenWorkReachesNobody) {
  WorkTable table;
  Owner owner;
  const auto id = table.add(owner, 0);
  table.forget(owner);
  EXPECT_FALSE(table.complete(id, WorkStatus::kFlushed));
  EXPECT_EQ(table.outstanding(), 0u);
}
TEST(WorkTable, WildIdsAreRefused) {
  WorkTable table;
  EXPECT_FALSE(table.complete(~0ull, WorkStatus::kSuccess));
}
TEST(SendQueue, ReservesUpToItsDepth) {
  SendQueue queue(4);
  EXPECT_TRUE(queue.reserve(3));
  EXPECT_FALSE(queue.reserve(2));
  queue.release(3);
  EXPECT_TRUE(queue.reserve(4));
}

TEST(RecordCursor, SingleFragment) {
  RecordCursor cursor(100);
  EXPECT_TRUE(cursor.at_mark());
  EXPECT_TRUE(cursor.take_mark(0x80000000 | 10));
  cursor.take(10);
  EXPECT_TRUE(cursor.complete());
}
TEST(RecordCursor, FragmentsAddUpToTheLimit) {
  RecordCursor cursor(100);
  EXPECT_TRUE(cursor.take_mark(60));
  cursor.take(60);
  EXPECT_TRUE(cursor.at_mark());
  EXPECT_FALSE(cursor.take_mark(41));
}
TEST(RecordCursor, EmptyLastFragmentCompletes) {
  RecordCursor cursor(100);
  EXPECT_TRUE(cursor.take_mark(4));
  cursor.take(4);
  EXPECT_TRUE(cursor.take_mark(0x80000000));
  EXPECT_TRUE(cursor.complete());
}
TEST(RecordCursor, NumberOfFragmentsIsLimited) {
  RecordCursor cursor(100);
  for (std::uint32_t i = 0; i < kMaxFragments; ++i)
    ASSERT_TRUE(cursor.take_mark(0));
  EXPECT_FALSE(cursor.take_mark(0));
}

TEST(RecordCursor, TheLargestWriteMayComeInPiecesOfFourKiB) {
  constexpr std::size_t kRecord = (std::size_t{4} << 20) + 300;
  RecordCursor cursor(kRecord);
  std::size_t left = kRecord;
  for (; left > 4096; left -= 4096) {
    ASSERT_TRUE(cursor.take_mark(4096));
    cursor.take(4096);
  }
  EXPECT_TRUE(cursor.take_mark(kLastFragment | static_cast<std::uint32_t>(left)));
}

std::vector<std::byte> words(std::initializer_list<std::uint32_t> list) {
  std::vector<std::byte> out(list.size() * 4);
  std::size_t at = 0;
  for (std::uint32_t v : list)
    store_be32(out.data() + 4 * at++, v);
  return out;
}
const auto kReadCall = words({1, 0, 2, 100003, 3, 6});

TEST(NfsBinding, FindsReadDataWithoutAttributes) {
  const auto place = find_result(kReadCall, words({1, 1, 0, 0, 0, 0, 0, 0, 5, 1, 5}));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->position, 44u);
  EXPECT_EQ(place->length, 5u);
}
TEST(NfsBinding, SkipsAttributesAndVerifier) {
  std::vector<std::byte> reply = words({1, 1, 0, 6, 5, 0, 0, 0, 0, 1});
  reply.resize(reply.size() + 84);
  const auto end = words({9, 0, 9});
  reply.insert(reply.end(), end.begin(), end.end());
  const auto place = find_result(kReadCall, reply);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->position, reply.size());
}
TEST(NfsBinding, ErrorsHaveNoData) {
  EXPECT_FALSE(find_result(kReadCall, words({1, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0})).has_value());
}
TEST(NfsBinding, OtherProceduresHaveNoData) {
  EXPECT_FALSE(find_result(words({1, 0, 2, 100003, 3, 7}), words({1, 1, 0, 0, 0, 0, 0, 0, 5, 1, 5}))
                   .has_value());
}
const auto kCompound = words({1, 0, 2, 100003, 4, 1});
/// A reply up to the results: NFS4_OK, an empty tag, `results` of them.
std::vector<std::byte> compound_reply(std::uint32_t results,
                                      std::initializer_list<std::uint32_t> list) {
  std::vector<std::byte> reply = words({1, 1, 0, 0, 0, 0, 0, 0, results});
  const std::vector<std::byte> rest = words(list);
  reply.insert(reply.end(), rest.begin(), rest.end());
  return reply;
}
TEST(NfsBinding, FindsTheDataOfACompoundBehindSequenceHandleAndAttributes) {
  const auto reply = compound_reply(4, {53, 0, 1, 2,  3,  4, 5,  6,  7, 8, 9,  // SEQUENCE
                                        22, 0,                                 // PUTFH
                                        9,  0, 2, 10, 11, 5, 12, 13,           // GETATTR
                                        25, 0, 1, 7});                         // READ: eof, length
  const auto place = find_result(kCompound, reply);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->position, reply.size());
  EXPECT_EQ(place->length, 7u);
  for (std::size_t cut = 0; cut < reply.size(); cut += 4) {
    EXPECT_FALSE(find_result(kCompound, ByteSpan(reply).first(cut)).has_value()) << cut;
  }
}
TEST(NfsBinding, FindsALinksText) {
  const auto reply = compound_reply(2, {22, 0, 27, 0, 3});
  const auto place = find_result(kCompound, reply);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->position, reply.size());
  EXPECT_EQ(place->length, 3u);
}
TEST(NfsBinding, CompoundsWithoutDataAndWithErrorsHaveNone) {
  EXPECT_FALSE(find_result(kCompound, compound_reply(2, {22, 0, 9, 0, 0, 0})).has_value());
  EXPECT_FALSE(find_result(kCompound, compound_reply(2, {22, 70, 25, 0, 0, 0})).has_value());
  EXPECT_FALSE(find_result(kCompound, compound_reply(1, {3, 0, 25, 0, 0, 0})).has_value());
  EXPECT_FALSE(find_result(kCompound, words({1, 1, 0, 0, 0, 0, 10018, 0, 0})).has_value());
}
TEST(NfsBinding, ShortPrefixIsUndecided) {
  EXPECT_FALSE(find_result(kReadCall, words({1, 1, 0, 0, 0, 0, 0, 0, 5, 1})).has_value());
}

}  // namespace
}  // namespace nfsrdma
