// SPDX-License-Identifier: Apache-2.0
// The client's session against a server that answers errors on purpose, loses sessions, restarts
// and forgets: each call ends with its answer, nothing runs twice, no slot is lost.
#include "client/nfs4/session.h"

#include "client/nfs4/recovery.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::seconds;

TEST_F(SessionTest, BeginsWithClientIdAndSession) {
  std::optional<Result<void>> done;
  group_.spawn(keep(nfs_->begin(op_, &detail_), &done));
  server_->serve_all();
  ASSERT_TRUE(done.has_value() && done->ok());
  const std::vector<std::vector<Op>> expected{{Op::OP_EXCHANGE_ID}, {Op::OP_CREATE_SESSION}};
  EXPECT_EQ(server_->seen, expected);
  EXPECT_EQ(nfs_->version(), "4.2");
  expect_getattr_works();
}

TEST_F(SessionTest, AnErrorOfBeforeIsNotTheReasonOfThisOne) {
  detail_ = "an error of before";
  std::optional<Result<void>> done;
  group_.spawn(keep(nfs_->begin(op_, &detail_), &done));
  rpc_->abort_all();
  environment_->settle();
  ASSERT_TRUE(done.has_value() && !done->ok());
  EXPECT_EQ(detail_, done->error().message());
}

TEST_F(SessionTest, TakesTheMinorVersionThatTheServerHas) {
  server_->newest_minor = 1;
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(nfs_->version(), "4.1");
  expect_getattr_works();
}

TEST_F(SessionTest, RefusesAnotherMinorVersionThanTheOneAskedFor) {
  server_->newest_minor = 1;
  nfs4::SessionOptions options;
  options.any_minor = false;
  make(options);
  const Result<void> done = begin();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, EPROTONOSUPPORT);
  EXPECT_EQ(detail_, "EXCHANGE_ID: NFS4ERR_MINOR_VERS_MISMATCH");
}

TEST_F(SessionTest, NeverHasMoreRequestsThanSlots) {
  server_->slots = 2;
  ASSERT_TRUE(begin().ok());
  std::array<std::optional<Result<Attributes>>, 5> got;
  for (auto& one : got)
    ask(&one, op_);
  EXPECT_EQ(environment_->transport()->out().size(), 2u);
  server_->serve_all();
  for (auto& one : got)
    EXPECT_TRUE(one.has_value() && one->ok());
  EXPECT_EQ(session().slots().taken(), 0u);
}

TEST_F(SessionTest, UsesFewerSlotsWhenTheServerWantsThem) {
  ASSERT_TRUE(begin().ok());
  server_->target_highest = 0;
  expect_getattr_works();
  EXPECT_EQ(session().slots().usable(), 1u);
  std::array<std::optional<Result<Attributes>>, 2> got;
  for (auto& one : got)
    ask(&one, op_);
  EXPECT_EQ(environment_->transport()->out().size(), 1u);
  server_->serve_all();
  EXPECT_TRUE(got[0].has_value() && got[1].has_value());
}

TEST_F(SessionTest, AnAnswerThatContradictsItselfKeepsNoSlot) {
  server_->slots = 1;
  ASSERT_TRUE(begin().ok());
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  environment_->transport()->answer([](xdr::Encoder& out) {
    xdr::encode(out, xdr::COMPOUND4res{Stat::NFS4ERR_DELAY, {}, 1});
    out.u32(static_cast<std::uint32_t>(Op::OP_SEQUENCE));
    out.u32(static_cast<std::uint32_t>(Stat::NFS4ERR_GRACE));
  });
  environment_->settle();
  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE(got->ok());
  server_->serve_for(seconds(5));
  EXPECT_EQ(session().slots().taken(), 0u);
  expect_getattr_works();
}

TEST_F(SessionTest, AWaitForASlotCanBeInterrupted) {
  server_->slots = 1;
  ASSERT_TRUE(begin().ok());
  std::optional<Result<Attributes>> first, second;
  CancelToken cancel;
  OpContext op;
  op.cancel = &cancel;
  ask(&first, op_);
  ask(&second, op);
  cancel.cancel();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->error().sys, EINTR);
  server_->serve_all();
  EXPECT_TRUE(first.has_value() && first->ok());
}

TEST_F(SessionTest, AnInterruptedRequestsSlotIsUsedAgainOnceTheServerHasSpoken) {
  server_->slots = 1;
  ASSERT_TRUE(begin().ok());
  for (const bool arrives : {true, false}) {
    std::optional<Result<Attributes>> got;
    CancelToken cancel;
    OpContext op;
    op.cancel = &cancel;
    ask(&got, op);
    if (arrives) server_->run_unanswered();
    cancel.cancel();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->error().sys, EINTR);
    EXPECT_EQ(session().slots().taken(), 1u);  // until it is known what became of it
    server_->serve_all();
    EXPECT_EQ(session().slots().taken(), 0u);
    expect_getattr_works();
  }
  EXPECT_EQ(server_->sessions, 1u);
}

TEST_F(SessionTest, ALostConnectionNeitherRepeatsNorLosesARequest) {
  ASSERT_TRUE(begin().ok());
  std::optional<Result<RemoveResult>> removed;
  group_.spawn(keep(nfs_->remove(op_, file_, "name", nullptr), &removed));
  environment_->settle();
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  ASSERT_TRUE(removed.has_value());
  EXPECT_TRUE(removed->ok());
  EXPECT_EQ(server_->removed, 1u);
  EXPECT_EQ(server_->sessions, 1u);
}

TEST_F(SessionTest, ARequestThatSequencePutOffKeepsSlotAndSequenceId) {
  ASSERT_TRUE(begin().ok());
  server_->sequence_errors = {Stat::NFS4ERR_DELAY, Stat::NFS4ERR_CONN_NOT_BOUND_TO_SESSION};
  expect_getattr_works();
  ASSERT_EQ(server_->sequences.size(), 3u);
  EXPECT_EQ(server_->sequences[0], server_->sequences[1]);
  EXPECT_EQ(server_->sequences[0], server_->sequences[2]);
  EXPECT_EQ(server_->seen[2], std::vector<Op>{Op::OP_BIND_CONN_TO_SESSION});
}

TEST_F(SessionTest, SaysOnceThatAllIsReclaimedBeforeItOpens) {
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(server_->reclaims_complete, 0u);
  allow_opens();
  allow_opens();
  EXPECT_EQ(server_->reclaims_complete, 1u);
}

TEST_F(SessionTest, ARequestThatSequencePutOffKeepsItsSlotFromOthers) {
  ASSERT_TRUE(begin().ok());
  server_->sequence_errors = {Stat::NFS4ERR_DELAY};
  std::optional<Result<Attributes>> first, second;
  ask(&first, op_);
  server_->serve_all();
  ask(&second, op_);
  server_->serve_for(seconds(5));
  ASSERT_TRUE(first.has_value() && second.has_value());
  ASSERT_EQ(server_->sequences.size(), 3u);
  EXPECT_EQ(server_->sequences[0].first, 0u);
  EXPECT_EQ(server_->sequences[1].first, 1u);
  EXPECT_EQ(server_->sequences[2], server_->sequences[0]);
}

TEST_F(SessionTest, AfterARestartOfTheServerAllGoesOn) {
  ASSERT_TRUE(begin().ok());
  allow_opens();
  server_->restart();
  std::array<std::optional<Result<Attributes>>, 3> got;
  for (auto& one : got)
    ask(&one, op_);
  server_->serve_for(seconds(5));
  for (auto& one : got)
    EXPECT_TRUE(one.has_value() && one->ok());
  EXPECT_EQ(server_->sessions, 2u);  // one for all of them
  EXPECT_EQ(server_->reclaims_complete, 2u);
  EXPECT_EQ(session().slots().taken(), 0u);
}

TEST_F(SessionTest, ALostSessionKeepsTheClientId) {
  ASSERT_TRUE(begin().ok());
  allow_opens();
  server_->lose_session();
  expect_getattr_works();
  EXPECT_EQ(server_->sessions, 2u);
  EXPECT_EQ(server_->reclaims_complete, 1u);
}

/// RFC 8881, 18.37: or its slots are there until the client goes, and the client id with them.
TEST_F(SessionTest, ASessionThatIsReplacedIsDestroyed) {
  server_->keeps_sessions = true;
  ASSERT_TRUE(begin().ok());
  server_->sequence_errors = {Stat::NFS4ERR_SEQ_MISORDERED};
  expect_getattr_works();
  EXPECT_EQ(server_->sessions, 2u);
  EXPECT_EQ(server_->replaced(), 0u);
  EXPECT_EQ(times(Op::OP_DESTROY_SESSION), 1u);
  group_.spawn(nfs_->end(op_));
  server_->serve_all();
  EXPECT_FALSE(server_->clientid_busy);
}

TEST_F(SessionTest, ASessionThatIsReplacedIsKeptForWhatIsUnderWay) {
  server_->keeps_sessions = true;
  ASSERT_TRUE(begin().ok());
  std::optional<Result<Attributes>> got;
  std::optional<Result<RemoveResult>> removed;
  ask(&got, op_);
  group_.spawn(keep(nfs_->remove(op_, file_, "name", nullptr), &removed));
  environment_->settle();
  server_->sequence_errors = {Stat::NFS4ERR_SEQ_MISORDERED};
  server_->serve_one();  // the GETATTR
  environment_->settle();
  server_->run_unanswered();  // the REMOVE
  auto& out = environment_->transport()->out();
  ASSERT_EQ(out.size(), 2u);
  std::swap(out[0], out[1]);
  server_->serve_one();  // CREATE_SESSION
  environment_->settle();
  EXPECT_EQ(server_->replaced(), 1u);
  EXPECT_EQ(times(Op::OP_DESTROY_SESSION), 0u);
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  ASSERT_TRUE(got.has_value() && removed.has_value());
  EXPECT_TRUE(got->ok() && removed->ok());
  EXPECT_EQ(server_->removed, 1u);
  EXPECT_EQ(server_->sessions, 2u);
  EXPECT_EQ(server_->replaced(), 0u);
}

/// What was given up there, nobody asks about any more.
TEST_F(SessionTest, AReplacedSessionEndsWithTheOthersAtTheLatest) {
  server_->keeps_sessions = true;
  ASSERT_TRUE(begin().ok());
  std::optional<Result<Attributes>> got;
  CancelToken cancel;
  OpContext op;
  op.cancel = &cancel;
  ask(&got, op);
  cancel.cancel();  // its slot is asked for, which is answered with nonsense
  server_->wrong_ids = {FakeNfs4Server::WrongId::kSequence};
  server_->serve_for(seconds(2));
  expect_getattr_works();
  EXPECT_EQ(server_->sessions, 2u);
  EXPECT_EQ(server_->replaced(), 1u);
  group_.spawn(nfs_->end(op_));
  server_->serve_all();
  EXPECT_EQ(server_->replaced(), 0u);
  EXPECT_FALSE(server_->clientid_busy);
}

TEST_F(SessionTest, ARemoveThatRanBeforeTheRestartSucceeds) {
  ASSERT_TRUE(begin().ok());
  std::optional<Result<RemoveResult>> removed;
  group_.spawn(keep(nfs_->remove(op_, file_, "name", nullptr), &removed));
  environment_->settle();
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->restart();
  server_->serve_for(seconds(10));
  ASSERT_TRUE(removed.has_value());
  EXPECT_TRUE(removed->ok());
  EXPECT_EQ(server_->removed, 1u);
}

TEST_F(SessionTest, ARemoveOfNothingFailsAlsoAfterALostConnection) {
  ASSERT_TRUE(begin().ok());
  server_->file_there = false;
  std::optional<Result<RemoveResult>> removed;
  group_.spawn(keep(nfs_->remove(op_, file_, "name", nullptr), &removed));
  environment_->settle();
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->error().sys, ENOENT);
}

TEST_F(SessionTest, AbortEndsCallsThatWaitForANewSession) {
  ASSERT_TRUE(begin().ok());
  server_->restart();
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  server_->serve_one();  // BADSESSION
  environment_->settle();
  EXPECT_FALSE(got.has_value());
  nfs_->abort();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, EIO);
}

TEST_F(SessionTest, MayGoWhileItWaitsToTryAgain) {
  ASSERT_TRUE(begin().ok());
  // One call's slot is being asked for, another call waits for a new session; both were told:
  // later.
  std::optional<Result<Attributes>> given_up, waiting;
  CancelToken cancel;
  OpContext op;
  op.cancel = &cancel;
  ask(&given_up, op);
  cancel.cancel();
  server_->sequence_errors = {Stat::NFS4ERR_DELAY};
  server_->serve_all();
  EXPECT_EQ(session().slots().taken(), 1u);
  server_->restart();
  server_->exchange_errors.assign(100, Stat::NFS4ERR_DELAY);
  ask(&waiting, op_);
  server_->serve_all();
  EXPECT_FALSE(waiting.has_value());
  nfs_->abort();
  ASSERT_TRUE(waiting.has_value());
  EXPECT_EQ(waiting->error().sys, EIO);
  nfs_.reset();  // checks that nothing of its own is running
  make({});
}

TEST_F(SessionTest, AWaitForANewSessionCanBeInterrupted) {
  ASSERT_TRUE(begin().ok());
  server_->restart();
  std::optional<Result<Attributes>> got;
  CancelToken cancel;
  OpContext op;
  op.cancel = &cancel;
  ask(&got, op);
  server_->serve_one();
  cancel.cancel();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, EINTR);
  expect_getattr_works();
}

TEST_F(SessionTest, AReplyThatEndsAnywhereIsAnErrorAndCostsNoSlot) {
  ASSERT_TRUE(begin().ok());
  std::size_t length = 1;
  for (std::size_t cut = 0; cut < length; cut += 4) {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    const std::vector<std::byte> reply =
        server_->reply_to(*environment_->transport()->out().front());
    length = reply.size();
    environment_->transport()->answer(
        [&](xdr::Encoder& out) { out.fixed_opaque(ByteSpan(reply).first(cut)); });
    ASSERT_TRUE(got.has_value()) << cut;
    EXPECT_FALSE(got->ok()) << cut;
    server_->serve_for(seconds(2));
    EXPECT_EQ(session().slots().taken(), 0u) << cut;
  }
  EXPECT_GT(length, 100u);
  expect_getattr_works();
}

/// RFC 8881 18.46.3: nothing in such a reply is the answer to what was asked.
TEST_F(SessionTest, AResultOfAnotherRequestIsAnErrorAndCostsNoSlot) {
  ASSERT_TRUE(begin().ok());
  using WrongId = FakeNfs4Server::WrongId;
  for (const WrongId wrong : {WrongId::kSession, WrongId::kSequence, WrongId::kSlot}) {
    server_->wrong_ids = {wrong};
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(seconds(2));
    ASSERT_TRUE(got.has_value());
    ASSERT_FALSE(got->ok());
    EXPECT_EQ(got->error().sys, EIO);
    EXPECT_EQ(session().slots().taken(), 0u);
    expect_getattr_works();
  }
}

TEST_F(SessionTest, ASlotThatIsPastHelpEndsWithItsSession) {
  ASSERT_TRUE(begin().ok());
  const unsigned before = server_->sessions;
  using WrongId = FakeNfs4Server::WrongId;
  CancelToken cancel;
  OpContext op = op_;
  op.cancel = &cancel;
  std::optional<Result<Attributes>> got;
  ask(&got, op);
  cancel.cancel();
  ASSERT_TRUE(got.has_value() && !got->ok());
  server_->wrong_ids = {WrongId::kSequence};  // when the server is asked what became of it
  server_->serve_for(seconds(2));
  expect_getattr_works();
  EXPECT_EQ(server_->sessions, before + 1);
  EXPECT_EQ(session().slots().taken(), 0u);
}

TEST_F(SessionTest, AReplyWithAnyBitFlippedEndsTheCall) {
  ASSERT_TRUE(begin().ok());
  std::size_t bits = 1;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    std::vector<std::byte> reply = server_->reply_to(*environment_->transport()->out().front());
    bits = std::max(bits, 8 * reply.size());
    ASSERT_LT(bit / 8, reply.size());
    reply[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    environment_->transport()->answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
    server_->serve_for(seconds(5));
    ASSERT_TRUE(got.has_value()) << bit;
    ASSERT_EQ(session().slots().taken(), 0u) << bit;
    expect_getattr_works();
  }
  EXPECT_GT(bits, 900u);
}

// Errors of SEQUENCE, and of operations behind it, that no caller gets to see.
struct Passing {
  Stat status;
  bool of_sequence;
};
class PassingErrors : public SessionTest, public testing::WithParamInterface<Passing> {};

TEST_P(PassingErrors, AreDealtWith) {
  ASSERT_TRUE(begin().ok());
  auto& errors = GetParam().of_sequence ? server_->sequence_errors : server_->getattr_errors;
  // More often in a row than the client goes on without a pause.
  errors.assign(6, GetParam().status);
  expect_getattr_works();
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(session().slots().taken(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Table, PassingErrors,
                         testing::Values(Passing{Stat::NFS4ERR_BADSESSION, true},
                                         Passing{Stat::NFS4ERR_DEADSESSION, true},
                                         Passing{Stat::NFS4ERR_SEQ_MISORDERED, true},
                                         Passing{Stat::NFS4ERR_BADSLOT, true},
                                         Passing{Stat::NFS4ERR_BAD_HIGH_SLOT, true},
                                         Passing{Stat::NFS4ERR_SEQ_FALSE_RETRY, true},
                                         Passing{Stat::NFS4ERR_STALE_CLIENTID, true},
                                         Passing{Stat::NFS4ERR_CONN_NOT_BOUND_TO_SESSION, true},
                                         Passing{Stat::NFS4ERR_DELAY, true},
                                         Passing{Stat::NFS4ERR_DELAY, false},
                                         Passing{Stat::NFS4ERR_GRACE, false}),
                         [](const auto& row) {
                           return std::string(xdr::enum_name(row.param.status)) +
                                  (row.param.of_sequence ? "_of_SEQUENCE" : "");
                         });

/// Also those that no operation has, or not there: each is dealt with or is the answer, once.
TEST_F(SessionTest, EveryErrorEndsOrPasses) {
  ASSERT_TRUE(begin().ok());
  for (const auto& [number, name] : xdr::enum_names(Stat())) {
    const auto status = static_cast<Stat>(number);
    if (status == Stat::NFS4_OK) continue;
    for (const bool of_sequence : {true, false}) {
      SCOPED_TRACE(std::string(name) + (of_sequence ? " of SEQUENCE" : " of GETATTR"));
      (of_sequence ? server_->sequence_errors : server_->getattr_errors) = {status};
      std::optional<Result<Attributes>> got;
      ask(&got, op_);
      server_->serve_for(seconds(60));
      ASSERT_TRUE(got.has_value());
      const bool passes = nfs4::remedy_of(status, of_sequence) != nfs4::Remedy::kNone;
      EXPECT_EQ(got->ok(), passes);
      if (!passes && !got->ok()) {
        EXPECT_EQ(got->error().sys, nfs4::errno_of(status));
      }
      EXPECT_EQ(session().slots().taken(), 0u);
      expect_getattr_works();
    }
  }
}

/// As of a directory that something is mounted on there: nobody waits for that to end.
TEST_F(SessionTest, WhatIsInUseOnTheServerIsWaitedForASecondOrTwo) {
  ASSERT_TRUE(begin().ok());
  server_->getattr_errors.assign(3, Stat::NFS4ERR_FILE_OPEN);
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  server_->serve_for(seconds(5));
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(got->ok());
  server_->getattr_errors.assign(1000, Stat::NFS4ERR_FILE_OPEN);
  got.reset();
  ask(&got, op_);
  server_->serve_for(seconds(5));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, EBUSY);
  EXPECT_EQ(session().slots().taken(), 0u);
}

class SoftSessionTest : public SessionTest {
 protected:
  SoftSessionTest() : SessionTest(true) {}
};

TEST_F(SoftSessionTest, GivesUpOnAServerThatMakesNoSessionAndTriesAgainLater) {
  ASSERT_TRUE(begin().ok());
  server_->restart();
  server_->exchange_errors.assign(1, Stat::NFS4ERR_SERVERFAULT);
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  server_->serve_for(seconds(10));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, EIO);
  expect_getattr_works();
}

TEST_F(SoftSessionTest, GivesUpOnAServerThatAlwaysSaysLater) {
  ASSERT_TRUE(begin().ok());
  server_->getattr_errors.assign(1000, Stat::NFS4ERR_DELAY);
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  server_->serve_for(seconds(30));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, ETIMEDOUT);
  EXPECT_EQ(session().slots().taken(), 0u);
}

// --- the back channel ---

TEST_F(SessionTest, TheServerMayCallOnTheConnectionOfTheSession) {
  ASSERT_TRUE(begin().ok());
  EXPECT_TRUE(nfs_->has_back_channel());
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
  expect_getattr_works();
}

TEST_F(SessionTest, AServerThatDoesNotCallIsNotAskedTo) {
  server_->makes_callbacks = false;
  ASSERT_TRUE(begin().ok());
  EXPECT_FALSE(nfs_->has_back_channel());
  allow_opens();
  server_->serve_for(seconds(120));
  EXPECT_EQ(server_->binds, 0u);
}

TEST_F(SessionTest, AConnectionThatIsLostIsReplacedForCallbacks) {
  ASSERT_TRUE(begin().ok());
  allow_opens();
  environment_->transport()->lose();
  server_->status_flags = xdr::SEQ4_STATUS_CB_PATH_DOWN | xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION;
  server_->serve_for(std::chrono::milliseconds(500));
  EXPECT_EQ(server_->binds, 1u);
  server_->status_flags = 0;
  expect_getattr_works();
  EXPECT_TRUE(nfs_->has_back_channel());
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
  EXPECT_EQ(server_->sessions, 1u);
}

TEST_F(SessionTest, AServerThatWantsNoBindingIsNotAskedWithoutEnd) {
  ASSERT_TRUE(begin().ok());
  allow_opens();
  server_->makes_callbacks = false;
  server_->status_flags = xdr::SEQ4_STATUS_CB_PATH_DOWN;
  for (int i = 0; i < 300; ++i) {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(std::chrono::milliseconds(200));
  }
  EXPECT_FALSE(nfs_->has_back_channel());
  EXPECT_GE(server_->binds, 2u);
  EXPECT_LE(server_->binds, 5u);  // in a minute
}

/// RFC 8881, 18.46.3: the session is given up, when nothing is under way any more.
TEST_F(SessionTest, ABackChannelThatIsBrokenEndsItsSession) {
  server_->keeps_sessions = true;
  ASSERT_TRUE(begin().ok());
  allow_opens();
  const std::uint64_t broken = server_->session();
  std::optional<Result<Attributes>> got;
  std::optional<Result<RemoveResult>> removed;
  ask(&got, op_);
  group_.spawn(keep(nfs_->remove(op_, file_, "name", nullptr), &removed));
  environment_->settle();
  server_->status_flags = xdr::SEQ4_STATUS_BACKCHANNEL_FAULT;
  server_->serve_one();  // the GETATTR
  server_->status_flags = 0;
  environment_->settle();
  EXPECT_TRUE(got.has_value() && got->ok());
  EXPECT_FALSE(nfs_->has_back_channel());
  server_->serve_for(seconds(2));
  EXPECT_TRUE(removed.has_value() && removed->ok());
  EXPECT_EQ(server_->removed, 1u);
  EXPECT_NE(server_->session(), broken);
  EXPECT_EQ(server_->sessions, 2u);
  EXPECT_EQ(server_->replaced(), 0u);
  EXPECT_EQ(server_->reclaims_complete, 1u) << "the client id stands";
  EXPECT_TRUE(nfs_->has_back_channel());
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
}

TEST_F(SessionTest, AServerWhoseBackChannelsAllBreakMakesFewSessions) {
  server_->keeps_sessions = true;
  ASSERT_TRUE(begin().ok());
  allow_opens();
  server_->status_flags = xdr::SEQ4_STATUS_BACKCHANNEL_FAULT;
  for (int i = 0; i < 300; ++i) {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(std::chrono::milliseconds(200));
    ASSERT_TRUE(got.has_value() && got->ok());
  }
  EXPECT_FALSE(nfs_->has_back_channel());
  EXPECT_GE(server_->sessions, 3u);
  EXPECT_LE(server_->sessions, 6u);  // in a minute
  EXPECT_EQ(server_->replaced(), 0u);
  EXPECT_EQ(server_->binds, 0u);
  server_->status_flags = 0;
  expect_getattr_works();
  EXPECT_TRUE(nfs_->has_back_channel());
}

/// Nothing is held that it would have to call for.
TEST_F(SessionTest, WhoHasOpenedNothingMindsNoBrokenBackChannel) {
  ASSERT_TRUE(begin().ok());
  server_->status_flags = xdr::SEQ4_STATUS_BACKCHANNEL_FAULT;
  expect_getattr_works();
  EXPECT_EQ(server_->sessions, 1u);
  EXPECT_FALSE(nfs_->has_back_channel());
}

TEST_F(SessionTest, CallsOfAnOlderSessionAreRefused) {
  ASSERT_TRUE(begin().ok());
  const auto old =
      server_->callback(xdr::nfs_cb_opnum4::OP_CB_RECALL_ANY, xdr::CB_RECALL_ANY4args{});
  server_->lose_session();
  expect_getattr_works();
  EXPECT_EQ(server_->sessions, 2u);
  const auto reply = server_->connected()->call_back(old);
  xdr::Decoder in(reply);
  xdr::rpc_msg header;
  xdr::CB_COMPOUND4res head;
  ASSERT_TRUE(xdr::decode(in, header) && xdr::decode(in, head));
  EXPECT_EQ(head.status, Stat::NFS4ERR_BADSESSION);
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
}

// --- further sessions of the client id, for other threads ---

class FurtherSessions : public SessionTest {
 protected:
  using Made = std::optional<Result<nfs4::MadeSession>>;
  FurtherSessions() { server_->further_sessions = true; }
  void start(Made* out, xdr::sessionid4 before = {}, CancelToken* cancel = nullptr) {
    op_.cancel = cancel;
    group_.spawn(keep(session().make_session(op_, before, &detail_), out));
    op_.cancel = nullptr;
    environment_->settle();
  }
  static std::uint64_t id_of(Made& made) { return load_be64((*made)->id.data()); }
};

TEST_F(FurtherSessions, HaveTheSameClientId) {
  ASSERT_TRUE(begin().ok());
  Made one, two;
  start(&one);
  start(&two);
  server_->serve_all();
  ASSERT_TRUE(one && one->ok() && two && two->ok());
  EXPECT_EQ(server_->further, (std::set{id_of(one), id_of(two)}));
  EXPECT_EQ((*one)->client_id, session().client_id());
  EXPECT_FALSE((*one)->back_channel);
  EXPECT_EQ((*one)->requests, 4u);
  // A number that comes twice would be the same request come again.
  EXPECT_EQ(server_->create_sequences, (std::vector<std::uint32_t>{1, 2, 3}));
  expect_getattr_works();  // the first is as it was
  EXPECT_EQ(session().epoch(), 1u);
}

TEST_F(FurtherSessions, EndWithTheClientId) {
  ASSERT_TRUE(begin().ok());
  Made one, two;
  start(&one);
  server_->serve_all();
  start(&two, (*one)->id);  // instead of the first
  server_->serve_all();
  ASSERT_TRUE(two && two->ok());
  EXPECT_EQ(server_->further, std::set{id_of(two)});
  group_.spawn(nfs_->end(op_));
  server_->serve_all();
  EXPECT_TRUE(server_->further.empty());
  EXPECT_FALSE(server_->clientid_busy);
  const std::vector<std::vector<Op>> last(server_->seen.end() - 3, server_->seen.end());
  EXPECT_EQ(last,
            (std::vector<std::vector<Op>>{
                {Op::OP_DESTROY_SESSION}, {Op::OP_DESTROY_SESSION}, {Op::OP_DESTROY_CLIENTID}}));
}

TEST_F(FurtherSessions, AfterARestartTheClientIdComesFirst) {
  ASSERT_TRUE(begin().ok());
  allow_opens();
  server_->restart();
  Made made;
  start(&made);
  server_->serve_for(seconds(5));
  ASSERT_TRUE(made && made->ok());
  EXPECT_EQ((*made)->client_id, session().client_id());
  EXPECT_EQ(server_->reclaims_complete, 2u);
  EXPECT_EQ(server_->further.size(), 1u);
  expect_getattr_works();
}

TEST_F(FurtherSessions, ErrorsOfTheServer) {
  ASSERT_TRUE(begin().ok());
  server_->create_errors = {Stat::NFS4ERR_DELAY, Stat::NFS4ERR_DELAY};
  Made late, none;
  start(&late);
  server_->serve_for(seconds(5));
  ASSERT_TRUE(late && late->ok());
  server_->create_errors = {Stat::NFS4ERR_NOSPC};
  start(&none);
  server_->serve_for(seconds(1));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->error().sys, ENOSPC);
  EXPECT_EQ(detail_, "CREATE_SESSION: NFS4ERR_NOSPC");
  server_->create_errors.assign(100, Stat::NFS4ERR_STALE_CLIENTID);
  Made never;
  start(&never);
  server_->serve_for(seconds(300));
  server_->create_errors.clear();
  server_->serve_for(seconds(60));
  EXPECT_TRUE(never.has_value());
  expect_getattr_works();
}

TEST_F(FurtherSessions, WhoAsksMayGoAway) {
  ASSERT_TRUE(begin().ok());
  CancelToken cancel, cancel_too;
  Made one, two, three;
  start(&one, {}, &cancel);
  start(&two, {}, &cancel_too);
  start(&three);
  cancel_too.cancel();
  ASSERT_TRUE(two.has_value());
  cancel.cancel();
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->error().sys, EINTR);
  server_->serve_all();
  ASSERT_TRUE(three && three->ok());
}

/// A session that another one gives.
class GivenSession : public SessionTest, protected nfs4::SessionSource {
 protected:
  GivenSession() {
    nfs4::SessionOptions options;
    options.source = this;
    make(options);
  }
  Task<Result<nfs4::MadeSession>> make_session(const OpContext&, xdr::sessionid4 before,
                                               std::string* detail) override {
    asked_.push_back(load_be64(before.data()));
    if (refuse_) {
      *detail = "not today";
      co_return Error{Errc::kSystem, ENOSPC, "CREATE_SESSION"};
    }
    nfs4::MadeSession made;
    made.client_id = 9;
    made.minor = 1;
    made.requests = 3;
    made.request_bytes = made.response_bytes = 1 << 20;
    store_be64(made.id.data(), server_->give_session());
    co_return made;
  }
  void lease_moved() override { ++told_; }
  std::vector<std::uint64_t> asked_;
  bool refuse_ = false;
  unsigned told_ = 0;
};

/// Whoever holds something of the client id's asks for it; the mount's other threads hold nothing.
TEST_F(GivenSession, PassesOnThatALeaseHasMoved) {
  ASSERT_TRUE(begin().ok());
  server_->status_flags = xdr::SEQ4_STATUS_LEASE_MOVED;
  const auto ask_twice = [&] {
    for (int i = 0; i < 2; ++i) {
      std::optional<Result<Attributes>> got;
      ask(&got, op_);
      server_->serve_all();
      ASSERT_TRUE(got && got->ok());
    }
  };
  ask_twice();
  EXPECT_EQ(told_, 1u) << "not with each answer";
  environment_->advance(seconds(2));
  ask_twice();
  EXPECT_EQ(told_, 2u);
  EXPECT_EQ(times(Op::OP_GETATTR), 4u);
}

TEST_F(GivenSession, IsUsedAndGivenBackByNobodyHere) {
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(nfs_->version(), "4.1");
  EXPECT_EQ(session().slots().size(), 3u);
  EXPECT_EQ(session().client_id(), 9u);
  expect_getattr_works();
  server_->seen.clear();
  group_.spawn(nfs_->end(op_));
  server_->serve_all();
  EXPECT_TRUE(server_->seen.empty());
}

TEST_F(GivenSession, IsAskedForAgainWhenItIsLost) {
  ASSERT_TRUE(begin().ok());
  const std::uint64_t first = server_->session();
  server_->lose_session();
  expect_getattr_works();
  EXPECT_EQ(asked_, (std::vector<std::uint64_t>{0, first}));
  for (const auto& compound : server_->seen)
    EXPECT_EQ(compound.front(), Op::OP_SEQUENCE);
}

TEST_F(GivenSession, IsNotForOthersToDestroyWhileSomethingIsUnderWay) {
  ASSERT_TRUE(begin().ok());
  std::optional<Result<Attributes>> first, second;
  ask(&first, op_);
  ask(&second, op_);
  server_->sequence_errors = {Stat::NFS4ERR_SEQ_MISORDERED};
  server_->serve_for(seconds(2));
  EXPECT_TRUE(first && first->ok() && second && second->ok());
  EXPECT_EQ(asked_, (std::vector<std::uint64_t>{0, 0}));
}

TEST_F(GivenSession, MayBeRefused) {
  refuse_ = true;
  const Result<void> done = begin();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys, ENOSPC);
  EXPECT_EQ(detail_, "not today");
}

}  // namespace
}  // namespace nfsrdma
