// SPDX-License-Identifier: Apache-2.0
// The dispatcher with procedures of its own: what the RPC header leads to, and every Outcome.
#include "server/dispatch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "server/vfs/committer.h"
#include "tests/unit/server/fake_call.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kProgram = 300000;

// Procedures have no state of their own but the ServerContext, which these tests do not use.
alignas(4096) std::byte g_no_context[4096];
std::atomic<int> g_runs{0};
std::atomic<bool> g_blocked_inline{false};
RpcCredentials g_credentials;
int g_durable_fd = -1;

Outcome proc_null(ServerContext&, Request& request, xdr::Decoder&, xdr::Encoder&) {
  g_credentials = request.credentials;
  return Outcome::kReply;
}
Outcome proc_count(ServerContext&, Request&, xdr::Decoder& args, xdr::Encoder& result) {
  result.u32(static_cast<std::uint32_t>(++g_runs));
  result.u32(args.u32());
  return args.ok() ? Outcome::kReply : Outcome::kGarbageArgs;
}
Outcome proc_blocks(ServerContext&, Request& request, xdr::Decoder& args, xdr::Encoder& result) {
  result.u32(args.u32());
  if (!request.may_block) {
    g_blocked_inline = true;
    return Outcome::kWouldBlock;
  }
  return Outcome::kReply;
}
std::atomic<int> g_refusals{0};
/// A worker is told to come again as often as that.
Outcome proc_not_yet(ServerContext&, Request& request, xdr::Decoder& args, xdr::Encoder& result) {
  result.u32(args.u32());
  if (request.may_block && g_refusals-- <= 0) return Outcome::kReply;
  return Outcome::kWouldBlock;
}
Outcome proc_buffer(ServerContext&, Request& request, xdr::Decoder&, xdr::Encoder& result) {
  if (!request.payload) {
    request.buffer_wanted = std::size_t{1} << 20;
    return Outcome::kNeedBuffer;
  }
  result.u32(static_cast<std::uint32_t>(request.payload.size() >> 20));
  return Outcome::kReply;
}
Outcome proc_insatiable(ServerContext&, Request& request, xdr::Decoder&, xdr::Encoder&) {
  request.buffer_wanted = 4096;
  return Outcome::kNeedBuffer;
}
std::function<void()> g_meanwhile;
bool g_durable_own = false;
Outcome proc_durable(ServerContext&, Request& request, xdr::Decoder&, xdr::Encoder& result) {
  if (g_meanwhile) g_meanwhile();
  request.durable_own = g_durable_own;
  request.durable_fd[0] = g_durable_fd;
  request.status_mark = result.mark();
  request.failure_words = 3;
  result.u32(0);
  result.u64(77);
  return Outcome::kReplyDurable;
}
Outcome proc_overflow(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder& result) {
  std::vector<std::byte> much(10000);
  result.opaque(much);
  return Outcome::kReply;
}
Outcome proc_large(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder& result) {
  std::vector<std::byte> much(10000);
  result.opaque(much);
  return Outcome::kReply;
}
Outcome proc_error(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder& result) {
  result.u32(1);
  return Outcome::kSystemError;
}
Outcome proc_drop(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder&) {
  return Outcome::kDrop;
}

enum : std::uint32_t {
  kNull,
  kCountCached,
  kBlocks,
  kBuffer,
  kInsatiable,
  kDurable,
  kOverflow,
  kLarge,
  kError,
  kDropped,
  kHole,
  kBlocksCached,
  kWorkerOnly,
  kDurableOnWorker,
  kNotYet,
  kBrief,
  kOneAtATime,
  kCount
};
const ProcedureRow kRows[] = {
    {"NULL", proc_null},
    {"COUNT", proc_count, Replay::kCached},
    {"BLOCKS", proc_blocks},
    {"BUFFER", proc_buffer},
    {"INSATIABLE", proc_insatiable},
    {"DURABLE", proc_durable, Replay::kCached},
    {"OVERFLOW", proc_overflow},
    {"LARGE", proc_large, Replay::kIdempotent, Placement::kInline,
     [](ServerContext&, xdr::Decoder) { return std::size_t{20000}; }},
    {"ERROR", proc_error, Replay::kCached},
    {"DROP", proc_drop, Replay::kCached},
    {"HOLE", nullptr},
    {"BLOCKSCACHED", proc_blocks, Replay::kCached},
    {"WORKER", proc_count, Replay::kIdempotent, Placement::kWorker},
    {"DURABLEWORKER", proc_durable, Replay::kCached, Placement::kWorker},
    {"NOTYET", proc_not_yet},
    {"BRIEF", proc_count, Replay::kCachedBriefly},
    {"ONEATATIME", proc_count, Replay::kOneAtATime, Placement::kWorker},
};
static_assert(std::size(kRows) == kCount);
const ProgramTable kTables[] = {{kProgram, 2, "two", kRows}, {kProgram, 4, "four", kRows}};

class DispatchTest : public testing::Test {
 protected:
  DispatchTest() {
    g_runs = 0;
    g_blocked_inline = false;
    Dispatcher::Shared shared;
    shared.server = reinterpret_cast<ServerContext*>(g_no_context);  // nobody looks at it
    shared.workers = &workers_;
    shared.committer = &committer_;
    shared.replies = &replies_;
    shared.programs = kTables;
    dispatcher_ = std::make_unique<Dispatcher>(*loop_, shared);
  }
  FakeCall& send(std::vector<std::byte> message, FakeConnection& connection) {
    calls_.push_back(std::make_unique<FakeCall>(connection, std::move(message)));
    dispatcher_->on_call(*calls_.back());
    return *calls_.back();
  }
  FakeCall& send(std::uint32_t procedure, std::uint32_t xid, std::uint32_t argument,
                 FakeConnection& connection) {
    std::byte argument_bytes[4];
    store_be32(argument_bytes, argument);
    return send(call_message(xid, kProgram, 2, procedure, argument_bytes), connection);
  }
  FakeCall& send(std::uint32_t procedure, std::uint32_t xid = 1, std::uint32_t argument = 9) {
    return send(procedure, xid, argument, connection_);
  }
  /// A call, and the same over another connection before it is answered; both are answered then.
  std::pair<FakeCall*, FakeCall*> twice(std::uint32_t procedure) {
    FakeCall& first = send(procedure, 7, 5);
    FakeCall& again = send(procedure, 7, 5, reconnected_);
    EXPECT_FALSE(first.over() || again.over());
    finish(first);
    finish(again);
    return {&first, &again};
  }
  void finish(FakeCall& call) {
    for (int i = 0; i < 2000 && !call.over(); ++i)
      loop_->turn(std::chrono::milliseconds(10));
    EXPECT_TRUE(call.over());
  }
  static xdr::accept_stat stat(const FakeCall& call) {
    const xdr::rpc_msg header = call.header();
    EXPECT_EQ(header.rbody.stat, xdr::reply_stat::MSG_ACCEPTED);
    return header.rbody.areply.stat;
  }
  static std::uint32_t first_word(const FakeCall& call) {
    xdr::Decoder results{ByteSpan()};
    call.header(&results);
    return results.u32();
  }

  static inline std::atomic<int> sync_error{0};
  static int fake_sync(int, bool) {
    if (sync_error == 0) return 0;
    errno = sync_error;
    return -1;
  }

  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  BufferPool pool_{*loop_, std::size_t{8} << 20};
  SteadyClock clock_;
  ReplyCache replies_{1 << 20, clock_};
  WriteVerifier verifier_;
  FileSyncs syncs_{verifier_};
  Committer committer_{syncs_, 1, Committer::Calls{fake_sync}};
  WorkerPool workers_{2};
  FakeConnection connection_{*loop_, pool_, "192.0.2.1", 900};
  FakeConnection reconnected_{*loop_, pool_, "192.0.2.1", 901};  // the same client
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::unique_ptr<FakeCall>> calls_;
};

TEST_F(DispatchTest, NullIsAnsweredAtOnce) {
  FakeCall& call = send(kNull);
  EXPECT_EQ(call.replies, 1);
  EXPECT_EQ(stat(call), xdr::accept_stat::SUCCESS);
  EXPECT_EQ(call.header().xid, 1u);
}

TEST_F(DispatchTest, CredentialsReachTheProcedure) {
  send(kNull);
  EXPECT_EQ(g_credentials.flavor, RpcCredentials::Flavor::kSys);
  EXPECT_EQ(g_credentials.uid, 1000u);
  EXPECT_EQ(g_credentials.gid, 100u);
  ASSERT_EQ(g_credentials.group_count, 1u);
  EXPECT_EQ(g_credentials.groups[0], 27u);
}

/// Keeps what it is told.
class KeepingObserver final : public CallObserver {
 public:
  void on_call_answered(const CallRecord& record) override { records.push_back(record); }
  std::vector<CallRecord> records;
};

TEST_F(DispatchTest, AnsweredCallsAreCounted) {
  send(kNull, 1);
  send(kNull, 2);
  finish(send(kBlocks, 3));
  const std::vector<CallCounts> counts = dispatcher_->counts();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].program, "two");
  EXPECT_EQ(counts[0].name, "NULL");
  EXPECT_EQ(counts[0].transport, TransportKind::kTcp);
  EXPECT_EQ(counts[0].calls, 2u);
  EXPECT_EQ(counts[0].latency.count(), 2u);
  EXPECT_EQ(counts[1].name, "BLOCKS");
  EXPECT_EQ(connection_.latency.count(), 3u);
}

TEST_F(DispatchTest, WhoObservesIsToldOfEachCallWithItsStages) {
  KeepingObserver observer;
  dispatcher_->observe(&observer);
  send(kNull, 1);
  finish(send(kBlocks, 2));
  finish(send(kDurable, 3));
  ASSERT_EQ(observer.records.size(), 3u);
  EXPECT_EQ(observer.records[0].procedure, "NULL");
  EXPECT_EQ(observer.records[0].xid, 1u);
  EXPECT_EQ(observer.records[0].uid, 1000u);
  EXPECT_EQ(observer.records[0].stages.committed, 0u);
  for (const CallRecord& record : observer.records) {
    const CallStages& s = record.stages;
    EXPECT_GT(s.dispatched, 0u);
    EXPECT_LE(s.dispatched, s.begun);
    EXPECT_LE(s.begun, s.ran);
    EXPECT_LE(s.ran, s.replied);
  }
  EXPECT_FALSE(observer.records[0].on_worker);
  EXPECT_TRUE(observer.records[1].on_worker);
  EXPECT_LE(observer.records[2].stages.ran, observer.records[2].stages.committed);
  EXPECT_LE(observer.records[2].stages.committed, observer.records[2].stages.replied);
}

TEST_F(DispatchTest, NobodyIsToldAnyMore) {
  KeepingObserver observer;
  dispatcher_->observe(&observer);
  dispatcher_->observe(nullptr);
  send(kNull);
  EXPECT_TRUE(observer.records.empty());
}

TEST_F(DispatchTest, AnotherRpcVersionIsAMismatch) {
  FakeCall& call = send(call_message(5, kProgram, 2, kNull, {}, 3), connection_);
  const xdr::rpc_msg header = call.header();
  EXPECT_EQ(header.xid, 5u);
  EXPECT_EQ(header.rbody.stat, xdr::reply_stat::MSG_DENIED);
  EXPECT_EQ(header.rbody.rreply.stat, xdr::reject_stat::RPC_MISMATCH);
  EXPECT_EQ(header.rbody.rreply.mismatch.low, 2u);
  EXPECT_EQ(header.rbody.rreply.mismatch.high, 2u);
}

TEST_F(DispatchTest, AnUnknownProgramIsUnavailable) {
  EXPECT_EQ(stat(send(call_message(1, 4711, 2, 0), connection_)), xdr::accept_stat::PROG_UNAVAIL);
}

TEST_F(DispatchTest, AnUnknownVersionIsToldTheKnownOnes) {
  FakeCall& call = send(call_message(1, kProgram, 3, 0), connection_);
  EXPECT_EQ(stat(call), xdr::accept_stat::PROG_MISMATCH);
  EXPECT_EQ(call.header().rbody.areply.mismatch.low, 2u);
  EXPECT_EQ(call.header().rbody.areply.mismatch.high, 4u);
}

TEST_F(DispatchTest, UnknownProceduresAreUnavailable) {
  EXPECT_EQ(stat(send(kCount)), xdr::accept_stat::PROC_UNAVAIL);
  EXPECT_EQ(stat(send(kHole)), xdr::accept_stat::PROC_UNAVAIL);
}

/// The 4-byte word at `at` replaced.
std::vector<std::byte> patched(std::vector<std::byte> message, std::size_t at, std::uint32_t v) {
  store_be32(message.data() + at, v);
  return message;
}

TEST_F(DispatchTest, BadCredentialsAreDenied) {
  const auto good = call_message(1, kProgram, 2, kNull);
  // Unknown flavour; more than 400 bytes; 17 groups; no groups, and a word behind that.
  const std::vector<std::byte> bad[] = {patched(good, 24, 99), patched(good, 28, 404),
                                        patched(good, 24 + 8 + 4 + 4 + 8 + 8, 17),
                                        patched(good, 24 + 8 + 4 + 4 + 8 + 8, 0)};
  for (const auto& message : bad) {
    FakeCall& call = send(message, connection_);
    EXPECT_EQ(call.header().rbody.stat, xdr::reply_stat::MSG_DENIED);
    EXPECT_EQ(call.header().rbody.rreply.stat, xdr::reject_stat::AUTH_ERROR);
    EXPECT_EQ(call.header().rbody.rreply.auth, xdr::auth_stat::AUTH_BADCRED);
  }
  send(call_message(1, kProgram, 77, kNull), connection_);  // no such version
  EXPECT_EQ(dispatcher_->rejected(), std::size(bad) + 1);
  EXPECT_EQ(dispatcher_->rejected_auth(), std::size(bad));
}

TEST_F(DispatchTest, RepliesAndStumpsAreDropped) {
  const auto good = call_message(1, kProgram, 2, kNull);
  EXPECT_EQ(send(patched(good, 4, 1), connection_).drops, 1);
  EXPECT_EQ(send(std::vector<std::byte>(7), connection_).drops, 1);
  EXPECT_EQ(send({}, connection_).drops, 1);
}

TEST_F(DispatchTest, EveryTruncationOfACallIsAnsweredOrDropped) {
  const auto good = call_message(1, kProgram, 2, kNull);
  for (std::size_t n = 0; n < good.size(); ++n) {
    FakeCall& call = send(std::vector<std::byte>(good.begin(), good.begin() + static_cast<long>(n)),
                          connection_);
    EXPECT_EQ(call.replies + call.drops, 1) << n;
  }
}

TEST_F(DispatchTest, GarbageArgumentsAreNamedSo) {
  FakeCall& call = send(call_message(1, kProgram, 2, kCountCached), connection_);
  EXPECT_EQ(stat(call), xdr::accept_stat::GARBAGE_ARGS);
  EXPECT_EQ(call.answer.size(), 24u);
}

TEST_F(DispatchTest, SystemErrorsAreNamedSo) {
  FakeCall& call = send(kError);
  EXPECT_EQ(stat(call), xdr::accept_stat::SYSTEM_ERR);
  EXPECT_EQ(call.answer.size(), 24u);
}

TEST_F(DispatchTest, WhatWouldBlockRunsOnAWorkerFromTheStart) {
  FakeCall& call = send(kBlocks, 1, 42);
  EXPECT_TRUE(g_blocked_inline);
  EXPECT_FALSE(call.over());
  finish(call);
  EXPECT_EQ(first_word(call), 42u);
  EXPECT_EQ(call.answer.size(), 28u);
}

TEST_F(DispatchTest, WhatAWorkerCannotDoNowRunsAgainALittleLater) {
  g_refusals = 2;
  FakeCall& call = send(kNotYet, 1, 77);
  FakeCall& other = send(kNotYet, 2, 78);
  finish(call);
  finish(other);
  EXPECT_EQ(first_word(call), 77u);
  EXPECT_EQ(first_word(other), 78u);
  EXPECT_EQ(g_refusals, -2);
  EXPECT_EQ(dispatcher_->outstanding(), 0u);
}

TEST_F(DispatchTest, WorkerProceduresNeverRunInline) {
  FakeCall& call = send(kWorkerOnly);
  EXPECT_FALSE(call.over());
  finish(call);
  EXPECT_EQ(stat(call), xdr::accept_stat::SUCCESS);
}

TEST_F(DispatchTest, ManyCallsOnWorkersAllComeBack) {
  std::vector<FakeCall*> sent;
  for (std::uint32_t i = 0; i < 200; ++i)
    sent.push_back(&send(kBlocks, i, i));
  for (std::uint32_t i = 0; i < 200; ++i) {
    finish(*sent[i]);
    EXPECT_EQ(first_word(*sent[i]), i);
  }
  EXPECT_EQ(dispatcher_->outstanding(), 0u);
}

TEST_F(DispatchTest, ABufferIsGotWhenThereIsOne) {
  FakeCall& call = send(kBuffer);
  EXPECT_EQ(first_word(call), 1u);
}

TEST_F(DispatchTest, WithoutBuffersACallWaitsForThem) {
  std::vector<Buffer> all;
  while (Buffer buffer = pool_.acquire(std::size_t{1} << 20))
    all.push_back(std::move(buffer));
  FakeCall& call = send(kBuffer);
  loop_->turn(Duration::zero());
  EXPECT_FALSE(call.over());
  all.clear();
  finish(call);
  EXPECT_EQ(first_word(call), 1u);
}

TEST_F(DispatchTest, AskingForABufferForEverEnds) {
  EXPECT_EQ(stat(send(kInsatiable)), xdr::accept_stat::SYSTEM_ERR);
}

TEST_F(DispatchTest, LargeRepliesGetTheirRoom) {
  FakeCall& call = send(kLarge);
  EXPECT_EQ(stat(call), xdr::accept_stat::SUCCESS);
  EXPECT_GT(call.answer.size(), 10000u);
}

TEST_F(DispatchTest, AResultThatDoesNotFitIsASystemError) {
  EXPECT_EQ(stat(send(kOverflow)), xdr::accept_stat::SYSTEM_ERR);
}

TEST_F(DispatchTest, DurableRepliesWaitForTheCommitter) {
  sync_error = 0;
  g_durable_fd = 0;
  FakeCall& call = send(kDurable);
  EXPECT_FALSE(call.over());
  finish(call);
  EXPECT_EQ(first_word(call), 0u);
  EXPECT_EQ(call.answer.size(), 24u + 12);
  EXPECT_EQ(committer_.stats().syncs, 1u);
}

TEST_F(DispatchTest, AWorkerHandsWhatItHasDoneToTheCommitter) {
  sync_error = 0;
  g_durable_fd = 0;
  FakeCall& call = send(kDurableOnWorker);
  // The loop, which does not turn here, is not on the way.
  while (committer_.stats().syncs == 0)
    std::this_thread::yield();
  EXPECT_FALSE(call.over());
  finish(call);
  EXPECT_EQ(first_word(call), 0u);
  EXPECT_EQ(call.answer.size(), 24u + 12);
  EXPECT_EQ(committer_.stats().syncs, 1u);
}

TEST_F(DispatchTest, AFailedCommitFailsTheReply) {
  g_durable_fd = 0;
  std::uint32_t xid = 1;
  for (const std::uint32_t procedure : {kDurable, kDurableOnWorker}) {
    for (auto [error, status] : {std::pair{EIO, 5u}, {ENOSPC, 28u}, {EDQUOT, 69u}, {EROFS, 30u}}) {
      sync_error = error;
      FakeCall& call = send(procedure, ++xid);
      finish(call);
      EXPECT_EQ(first_word(call), status);
      EXPECT_EQ(call.answer.size(), 24u + 4 + 12);  // three words of nothing behind the status
    }
  }
  sync_error = 0;
}

TEST_F(DispatchTest, SoDoesOneThatOthersHadMeanwhileOfItsOwnChanges) {
  g_durable_fd = 0;
  g_meanwhile = [this] {
    sync_error = EIO;
    EXPECT_EQ(committer_.commit_now({g_durable_fd, -1, -1}, false), EIO);
    sync_error = 0;
  };
  std::uint32_t xid = 1;
  for (const std::uint32_t procedure : {kDurable, kDurableOnWorker}) {
    for (const bool own : {false, true}) {
      g_durable_own = own;
      FakeCall& call = send(procedure, ++xid);
      finish(call);
      EXPECT_EQ(first_word(call), own ? 5u : 0u);
    }
  }
  g_meanwhile = {};
  g_durable_own = false;
}

TEST_F(DispatchTest, DroppedCallsGetNoReply) {
  EXPECT_EQ(send(kDropped).drops, 1);
}

TEST_F(DispatchTest, ACachedCallRunsOnce) {
  FakeConnection reconnected(*loop_, pool_, "192.0.2.1", 901);
  std::byte argument[4];
  store_be32(argument, 9);
  int runs = 0;
  for (const std::uint32_t procedure : {kCountCached, kBrief}) {
    FakeCall& first = send(procedure, 7);
    FakeCall& again = send(call_message(7, kProgram, 2, procedure, argument), reconnected);
    EXPECT_EQ(g_runs, ++runs);
    EXPECT_EQ(again.answer, first.answer);
  }
}

TEST_F(DispatchTest, OfBriefOnesOnlyTheLastAreRemembered) {
  for (std::uint32_t xid = 0; xid < 5000; ++xid)
    send(kBrief, xid);
  EXPECT_LE(replies_.stats().entries, ReplyCache::kStripes * ReplyCache::kMostBrief);
  EXPECT_EQ(replies_.stats().evicted, 0u);
}

TEST_F(DispatchTest, AnotherClientWithTheSameXidRuns) {
  send(kCountCached, 7);
  FakeConnection other(*loop_, pool_, "192.0.2.2", 900);
  std::byte argument[4];
  store_be32(argument, 9);
  send(call_message(7, kProgram, 2, kCountCached, argument), other);
  EXPECT_EQ(g_runs, 2);
}

/// A call of COUNT by a client whose credential has this stamp and name.
std::vector<std::byte> count_message(std::uint32_t xid, std::uint32_t stamp,
                                     const std::string& machine, std::uint32_t argument) {
  std::byte credential[400];
  xdr::Encoder body{MutableByteSpan(credential)};
  xdr::authsys_parms parms;
  parms.stamp = stamp;
  parms.machinename = machine;
  xdr::encode(body, parms);
  xdr::rpc_msg message;
  message.xid = xid;
  message.cbody.prog = kProgram;
  message.cbody.vers = 2;
  message.cbody.proc = kCountCached;
  message.cbody.cred = {xdr::auth_flavor::AUTH_SYS, body.bytes()};
  std::vector<std::byte> bytes(1024);
  xdr::Encoder encoder{MutableByteSpan(bytes)};
  xdr::encode(encoder, message);
  encoder.u32(argument);
  bytes.resize(encoder.size());
  return bytes;
}

TEST_F(DispatchTest, ARetryWithAnotherStampInItsCredentialIsTheSameCall) {
  FakeCall& first = send(count_message(7, 1000, "client", 9), connection_);
  FakeConnection reconnected(*loop_, pool_, "192.0.2.1", 901);
  FakeCall& again = send(count_message(7, 1060, "client", 9), reconnected);
  EXPECT_EQ(g_runs, 1);
  EXPECT_EQ(again.answer, first.answer);
}

TEST_F(DispatchTest, ArgumentsBehindALongCredentialTellCallsApart) {
  const std::string machine(240, 'm');
  send(count_message(7, 1000, machine, 9), connection_);
  send(count_message(7, 1000, machine, 10), connection_);
  EXPECT_EQ(g_runs, 2);
}

TEST_F(DispatchTest, IdempotentCallsRunAgain) {
  finish(send(kWorkerOnly, 7));
  finish(send(kWorkerOnly, 7));
  EXPECT_EQ(g_runs, 2);
}

TEST_F(DispatchTest, ACallThatWasNotRunIsNotRemembered) {
  std::byte argument[4];
  store_be32(argument, 9);
  for (std::uint32_t procedure : {kError, kDropped}) {
    EXPECT_TRUE(send(procedure, 3).over());
    EXPECT_TRUE(send(procedure, 3).over());
  }
  EXPECT_EQ(replies_.stats().entries, 0u);
}

TEST_F(DispatchTest, ADuplicateOfARunningCallGetsItsAnswerOnTheNewConnection) {
  const auto [first, again] = twice(kBlocksCached);
  EXPECT_EQ(again->answer, first->answer);
}

TEST_F(DispatchTest, ADuplicateMayHaveToWaitAndRunsThen) {
  const auto [first, again] = twice(kOneAtATime);
  EXPECT_EQ(first_word(*first), 1u);
  EXPECT_EQ(first_word(*again), 2u) << "it ran";
  EXPECT_EQ(replies_.stats().entries, 0u);
}

TEST_F(DispatchTest, ADuplicateOfARunningCallOnTheSameConnectionIsDropped) {
  FakeCall& first = send(kBlocksCached, 7, 5);
  FakeCall& again = send(kBlocksCached, 7, 5);
  EXPECT_EQ(again.drops, 1);
  finish(first);
  EXPECT_EQ(first.replies, 1);
}

TEST_F(DispatchTest, ReplyRoomIsWaitedFor) {
  std::vector<Buffer> all;
  while (Buffer buffer = pool_.acquire(std::size_t{1} << 20))
    all.push_back(std::move(buffer));
  calls_.push_back(std::make_unique<FakeCall>(connection_, call_message(1, kProgram, 2, kLarge)));
  FakeCall& call = *calls_.back();
  call.may_reserve = false;
  dispatcher_->on_call(call);
  EXPECT_FALSE(call.over());
  call.may_reserve = true;
  all.clear();
  finish(call);
  EXPECT_EQ(stat(call), xdr::accept_stat::SUCCESS);
}

TEST(MeasuredPlacement, MovesToWorkersWhenSlowAndComesBackWhenFast) {
  MeasuredPlacement placement;
  for (int i = 0; i < 100; ++i)
    placement.add(20'000);
  EXPECT_FALSE(placement.on_workers());
  for (int i = 0; i < 100; ++i)
    placement.add(1'000'000);
  EXPECT_TRUE(placement.on_workers());
  for (int i = 0; i < 5; ++i)
    placement.add(20'000);
  EXPECT_TRUE(placement.on_workers());
  for (int i = 0; i < 200; ++i)
    placement.add(20'000);
  EXPECT_FALSE(placement.on_workers());
}

TEST(MeasuredPlacement, OneStallDoesNotMoveIt) {
  MeasuredPlacement placement;
  for (int i = 0; i < 100; ++i)
    placement.add(20'000);
  placement.add(10'000'000'000);
  EXPECT_FALSE(placement.on_workers());
}

}  // namespace
}  // namespace nfsrdma::test
