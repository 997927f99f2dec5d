// SPDX-License-Identifier: Apache-2.0
// NFSv4.0 by the client: the client id, and files that are made. Locks are in minor0_locks_test.cc.
#include <gmock/gmock.h>

#include <random>

#include "rpcrdma/base/log.h"
#include "tests/support/small_stack.h"
#include "tests/unit/client/nfs4/minor0_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Ops = std::vector<xdr::nfs_opnum4>;

class Minor0 : public Minor0Test {
 protected:
  explicit Minor0(bool soft = false) : Minor0Test(soft) {
    EXPECT_EQ(begin(), 0) << detail_;
    server_->seen.clear();
  }
  int getattr() {
    std::optional<Result<Attributes>> got;
    group_.spawn(keep(nfs_->getattr(op_, file_), &got));
    server_->serve_for(seconds(2));
    if (!got) return -1;
    return got->ok() ? 0 : got->error().sys;
  }
};

class Minor0Begin : public Minor0Test {};

TEST_F(Minor0, DataIsWrittenBehindTheCreation) {
  EXPECT_EQ(nfs_->most_with_create(), 0u);
  Made made;
  std::size_t written = 7;
  const SetAttributes set;
  group_.spawn(keep(nfs_->create_with_data(op_, directory_, "new", CreateMode::kGuarded, set,
                                           as_bytes("data"), &written),
                    &made));
  server_->serve_for(seconds(2));
  EXPECT_EQ(number(made), 0);
  EXPECT_EQ(written, 0u);
  for (const Ops& compound : server_->seen)
    EXPECT_EQ(std::count(compound.begin(), compound.end(), Op::OP_WRITE), 0);
}

TEST_F(Minor0, WhatACreationLeftIsClosedWhenItsRepetitionWasRefused) {
  Made made;
  start_create(&made, "new");
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->errors[Op::OP_PUTFH] = {Stat::NFS4ERR_ACCESS};
  server_->names.erase("new");  // by somebody else: only the first request can be answered again
  server_->serve_for(seconds(60));
  EXPECT_EQ(number(made), EACCES);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0, ACreationIsNotRepeatedForWhatComesBehindIt) {
  server_->errors[Op::OP_GETATTR] = {Stat::NFS4ERR_DELAY};
  EXPECT_EQ(create("new"), 0);
  EXPECT_EQ(server_->times(Op::OP_OPEN), 1u);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0Begin, BeginsWithAClientId) {
  EXPECT_EQ(begin(), 0);
  EXPECT_EQ(server_->seen, (std::vector<Ops>{{Op::OP_SETCLIENTID}, {Op::OP_SETCLIENTID_CONFIRM}}));
  EXPECT_EQ(nfs_->version(), "4.0");
  EXPECT_EQ(session().client_id(), server_->client_id());
  EXPECT_EQ(nfs_->session_slots(), 0u);
  EXPECT_FALSE(nfs_->has_xattrs());
}

TEST_F(Minor0Begin, AServerThatHasNothingNewerWillDo) {
  make({});
  EXPECT_EQ(begin(), 0) << detail_;
  EXPECT_EQ(nfs_->version(), "4.0");
}

TEST_F(Minor0Begin, AServerMayRestartInBetween) {
  server_->set_errors = {Stat::NFS4ERR_DELAY};
  server_->confirm_errors = {Stat::NFS4ERR_STALE_CLIENTID};
  EXPECT_EQ(begin(), 0) << detail_;
}

TEST_F(Minor0Begin, ARefusalIsTold) {
  server_->set_errors = {Stat::NFS4ERR_CLID_INUSE};
  EXPECT_EQ(begin(), EIO);
  EXPECT_EQ(detail_, "SETCLIENTID: NFS4ERR_CLID_INUSE");
}

TEST_F(Minor0Begin, WhoHasItsSessionFromOthersAsksTheServerForNothing) {
  EXPECT_EQ(begin(), 0);
  struct Given final : nfs4::SessionSource {
    Task<Result<nfs4::MadeSession>> make_session(const OpContext& op, xdr::sessionid4 before,
                                                 std::string* detail) override {
      return host->make_session(op, before, detail);
    }
    void lease_moved() override { host->lease_moved(); }
    nfs4::Session* host = nullptr;
  } given;
  given.host = &session();
  nfs4::SessionOptions options;
  options.owner = "guest";
  options.slots = 4;
  options.source = &given;
  server_->seen.clear();
  Nfs4Operations guest(*rpc_, options);
  Outcome done;
  group_.spawn(keep(guest.begin(op_, &detail_), &done));
  server_->serve_for(seconds(1));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(guest.version(), "4.0");
  EXPECT_TRUE(server_->seen.empty());
  // What it shows the server is the host's, who has to know what has become of it.
  const DataRight right{1, {std::byte{9}}};
  for (const Stat gone : {Stat::NFS4ERR_STALE_STATEID, Stat::NFS4ERR_EXPIRED}) {
    server_->read_errors = {gone};
    OpContext op = op_;
    op.right = &right;
    std::optional<Result<ReadResult>> read;
    group_.spawn(keep(guest.read_once(op, file_, 0, room_), &read));
    server_->serve_for(seconds(1));
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(is_right_gone(read->error()));
  }
  EXPECT_EQ(server_->times(Op::OP_RENEW), 0u);
  guest.abort();
}

TEST_F(Minor0, OnlyTheFirstFileOfAnOwnerIsConfirmed) {
  EXPECT_EQ(create("a"), 0);
  EXPECT_EQ(create("b"), 0);
  EXPECT_EQ(server_->open_owners(), 1u);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(server_->times(Op::OP_OPEN), 2u);
  EXPECT_EQ(server_->times(Op::OP_OPEN_CONFIRM), 1u);
  EXPECT_EQ(server_->times(Op::OP_CLOSE), 2u);
  EXPECT_EQ(create("a"), EEXIST);
  EXPECT_EQ(create("a", CreateMode::kUnchecked), 0);
}

TEST_F(Minor0, FilesThatAreMadeAtOnceHaveOwnersOfTheirOwn) {
  Made first, second;
  start_create(&first, "a");
  start_create(&second, "b");
  server_->serve_for(seconds(1));
  EXPECT_EQ(number(first), 0);
  EXPECT_EQ(number(second), 0);
  EXPECT_EQ(server_->open_owners(), 2u);
  EXPECT_EQ(server_->opens(), 0u);
  // Other identities have other owners.
  op_.identity.uid = 4711;
  EXPECT_EQ(create("c"), 0);
  EXPECT_EQ(server_->open_owners(), 3u);
}

TEST_F(Minor0, AnExclusiveCreateSetsTheModeBehindIt) {
  EXPECT_EQ(create("a", CreateMode::kExclusive), 0);
  ASSERT_EQ(server_->opens_seen.size(), 1u);
  EXPECT_EQ(server_->opens_seen[0].openhow.how.mode, xdr::createmode4::EXCLUSIVE4);
  EXPECT_EQ(server_->modes_set, std::vector<std::uint32_t>{0600});
}

TEST_F(Minor0, WhoIsInterruptedLeavesNothingOpen) {
  CancelToken cancel;
  op_.cancel = &cancel;
  Made made;
  start_create(&made, "a");
  cancel.cancel();
  EXPECT_EQ(number(made), EINTR);
  server_->serve_for(seconds(1));
  EXPECT_EQ(server_->made, 1u);
  EXPECT_EQ(server_->opens(), 0u);
  op_.cancel = nullptr;
}

TEST_F(Minor0, AnAnswerThatWasLostIsGivenOnceMore) {
  EXPECT_EQ(create("z"), 0);
  Made made;
  start_create(&made, "a");
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  EXPECT_EQ(number(made), 0);
  EXPECT_EQ(server_->made, 2u);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(create("b"), 0);
}

TEST_F(Minor0, ErrorsThatUseUpANumberAreCounted) {
  EXPECT_EQ(create("z"), 0);
  server_->open_errors = {Stat::NFS4ERR_DELAY, Stat::NFS4ERR_GRACE, Stat::NFS4ERR_RESOURCE};
  EXPECT_EQ(create("a"), EIO);
  server_->open_errors = {Stat::NFS4ERR_NOSPC};
  EXPECT_EQ(create("a"), ENOSPC);
  server_->putfh_errors = {Stat::NFS4ERR_STALE};
  EXPECT_EQ(create("a"), ESTALE);
  EXPECT_EQ(create("a"), 0);
  EXPECT_EQ(server_->open_owners(), 1u);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0, AnOwnerWhoseCountIsLostIsNotUsedAgain) {
  EXPECT_EQ(create("z"), 0);
  server_->loses_count = true;
  EXPECT_EQ(create("a"), 0);
  EXPECT_EQ(server_->open_owners(), 2u);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0, AClientIdThatIsGoneIsMadeAnew) {
  EXPECT_EQ(create("z"), 0);
  server_->restart();
  EXPECT_EQ(create("a"), 0);
  EXPECT_EQ(session().client_id(), server_->client_id());
  server_->expire();
  EXPECT_EQ(create("b"), 0);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0, ADelegationThatNobodyAskedForIsReturned) {
  server_->delegates = true;
  EXPECT_EQ(create("a"), 0);
  EXPECT_EQ(server_->times(Op::OP_DELEGRETURN), 1u);
  EXPECT_EQ(server_->delegations, 0u);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0, ARemovalThatTheServerHasForgottenIsDone) {
  std::optional<Result<RemoveResult>> removed;
  group_.spawn(keep(nfs_->remove(op_, directory_, "f", &file_), &removed));
  environment_->settle();
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  ASSERT_TRUE(removed.has_value());
  EXPECT_TRUE(removed->ok());
  removed.reset();
  group_.spawn(keep(nfs_->remove(op_, directory_, "f", &file_), &removed));
  server_->serve_for(seconds(5));
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->error().sys, ENOENT);
}

TEST_F(Minor0, WhoHasOpenedNothingIsNotHeardOf) {
  session().set_lease(seconds(20));
  server_->serve_for(seconds(60));
  EXPECT_TRUE(server_->seen.empty());
  EXPECT_EQ(getattr(), 0);
  EXPECT_EQ(create("a"), 0);
  server_->seen.clear();
  server_->serve_for(seconds(60));
  EXPECT_GE(server_->times(Op::OP_RENEW), 5u);
  EXPECT_LE(server_->seen.size(), 8u);
}

TEST_F(Minor0, AnyNumberOfRequestsMayBeGivenUpWhileTheyWaitForASlot) {
  constexpr std::size_t kMany = 10'000;
  std::vector<std::optional<Result<Attributes>>> got(kMany);
  CancelToken cancel;
  OpContext op = op_;
  op.cancel = &cancel;
  for (auto& each : got)
    group_.spawn(keep(nfs_->getattr(op, file_), &each));
  test::on_small_stack([&] { cancel.cancel(); });
  for (const auto& each : got)
    ASSERT_TRUE(each && !each->ok() && errno_of(each->error()) == EINTR);
  EXPECT_EQ(getattr(), 0);
}

TEST_F(Minor0, TheEndWaitsForWhatIsNotClosedYet) {
  Made made;
  start_create(&made, "a");
  server_->serve_one();
  EXPECT_EQ(number(made), 0);
  EXPECT_EQ(server_->opens(), 1u);
  struct End {
    static Task<void> run(Nfs4Operations& nfs, const OpContext& op, bool* done) {
      co_await nfs.end(op);
      *done = true;
    }
  };
  bool ended = false;
  group_.spawn(End::run(*nfs_, op_, &ended));
  EXPECT_FALSE(ended);
  server_->serve_all();
  EXPECT_TRUE(ended);
  EXPECT_EQ(server_->opens(), 0u);
}

class SoftMinor0 : public Minor0 {
 protected:
  SoftMinor0() : Minor0(true) {}
};

TEST_F(SoftMinor0, WhatNobodyWaitsForAnyMoreIsClosedAllTheSame) {
  EXPECT_EQ(create("z"), 0);
  for (const bool runs : {false, true}) {
    Made made;
    start_create(&made, runs ? "a" : "b");
    if (runs) server_->run_unanswered();
    environment_->advance(seconds(30));
    EXPECT_EQ(number(made), ETIMEDOUT);
    EXPECT_EQ(server_->opens(), runs ? 1u : 0u);
    server_->serve_for(seconds(60));
    EXPECT_EQ(server_->opens(), 0u);
  }
  EXPECT_EQ(server_->made, 2u);  // not "b"
  EXPECT_EQ(create("c"), 0);
  EXPECT_EQ(server_->open_owners(), 1u);
}

TEST_F(SoftMinor0, WhatWasNotConfirmedOrClosedIsSoLater) {
  for (const int answered : {1, 2}) {  // OPEN, OPEN_CONFIRM
    for (const bool runs : {false, true}) {
      server_->restart();  // so that the owner is to be confirmed
      EXPECT_EQ(begin(), 0);
      Made made;
      start_create(&made, std::to_string(2 * answered + (runs ? 1 : 0)));
      for (int i = 0; i < answered; ++i) {
        EXPECT_TRUE(server_->serve_one());
        environment_->settle();
      }
      EXPECT_EQ(number(made), 0);
      if (runs) server_->run_unanswered();
      environment_->advance(seconds(30));
      server_->serve_for(seconds(60));
      EXPECT_EQ(server_->opens(), 0u) << answered << runs;
    }
  }
}

// Whoever asks again at once, and so begins the next attempt, does not take the others along.
TEST_F(SoftMinor0, WhoWaitsForAClientIdIsToldThatThereIsNone) {
  struct Ask {
    static Task<void> on_and_on(Nfs4Operations& nfs, OpContext op, FileHandle file,
                                const bool* enough) {
      while (!*enough) {
        [[maybe_unused]] Result<Attributes> got = co_await nfs.getattr(op, file);
      }
    }
  };
  server_->restart();
  Made made;
  start_create(&made, "a");
  EXPECT_TRUE(server_->serve_one());  // NFS4ERR_STALE_CLIENTID
  environment_->settle();
  server_->silent_until = environment_->now() + seconds(120);
  bool enough = false;
  group_.spawn(Ask::on_and_on(*nfs_, op_, file_, &enough));
  std::optional<Result<Attributes>> got;
  group_.spawn(keep(nfs_->getattr(op_, file_), &got));
  server_->serve_for(seconds(30));
  EXPECT_TRUE(got.has_value() && !got->ok());
  enough = true;
  server_->serve_for(seconds(120));
  EXPECT_EQ(getattr(), 0);
}

std::vector<std::string> warnings;

TEST_F(Minor0, PeopleAreToldOfAServerThatPutsOffForLong) {
  warnings.clear();
  set_log_sink(
      [](int, std::string_view line, std::span<const LogField>) { warnings.emplace_back(line); });
  server_->open_errors.assign(10000, Stat::NFS4ERR_DELAY);
  Made made;
  Made another;
  start_create(&made, "a");
  start_create(&another, "b");
  server_->serve_for(seconds(50));
  EXPECT_EQ(warnings.size(), 0u);
  server_->serve_for(seconds(20));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              testing::HasSubstr("NFSv4.0: server fake has been putting off OPEN for 6"));
  EXPECT_THAT(warnings[0], testing::HasSubstr("(NFS4ERR_DELAY)"));
  server_->serve_for(seconds(280));
  EXPECT_EQ(warnings.size(), 1u);
  server_->serve_for(seconds(30));
  EXPECT_EQ(warnings.size(), 2u);
  set_log_sink(nullptr);
  server_->open_errors.clear();
  server_->serve_for(seconds(60));
  EXPECT_EQ(number(made), 0);
  EXPECT_EQ(number(another), 0);
}

TEST_F(SoftMinor0, AServerThatPutsOffForEverIsGivenUp) {
  server_->open_errors.assign(1000, Stat::NFS4ERR_GRACE);
  Made made;
  start_create(&made, "a");
  server_->serve_for(seconds(60));
  EXPECT_EQ(number(made), ETIMEDOUT);
}

// The file was made, and is open: that nothing is told of it does not undo that.
TEST_F(SoftMinor0, AFileOfWhichTheServerTellsNothingInTimeIsMadeAndClosed) {
  server_->errors[Op::OP_GETATTR].assign(1000, Stat::NFS4ERR_DELAY);
  Made made;
  start_create(&made, "a");
  server_->serve_for(seconds(60));
  EXPECT_EQ(number(made), 0);
  EXPECT_EQ(server_->made, 1u);
  server_->errors.clear();
  server_->serve_for(seconds(60));
  EXPECT_EQ(server_->opens(), 0u);
}

// Whatever a server says: nothing crashes, waits without end, or is left behind.
class SpoiltMinor0 : public Minor0Test {
 protected:
  SpoiltMinor0() : Minor0Test(true) { server_->quiet = true; }
  void serve_spoilt(std::mt19937& random) {
    for (int i = 0; i < 400; ++i) {
      environment_->settle();
      FakeTransport* transport = server_->connected();
      if (transport == nullptr || transport->out().empty()) {
        environment_->advance(milliseconds(200));
        continue;
      }
      std::vector<std::byte> reply = server_->reply_to(*transport->out().front());
      if (random() % 3 == 0) {
        for (unsigned spoilt = random() % 4; spoilt-- > 0 && !reply.empty();)
          reply[random() % reply.size()] = static_cast<std::byte>(random());
      }
      if (random() % 16 == 0) reply.resize(random() % (reply.size() / 4 + 1) * 4);
      if (random() % 32 == 0) server_->restart();
      if (random() % 32 == 0) {
        transport->lose();
        continue;
      }
      transport->answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
    }
  }
};

TEST_F(SpoiltMinor0, NothingThatAServerSaysDoesHarm) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Outcome locked, unlocked;
    Made made, exclusive;
    nfs4::SessionOptions options;
    options.minor = 0;
    nfs_->abort();
    make(options);
    ASSERT_EQ(begin(), 0) << seed;
    start_create(&made, "a" + std::to_string(seed), CreateMode::kUnchecked);
    start_create(&exclusive, "b" + std::to_string(seed), CreateMode::kExclusive);
    start_lock(&locked, {1, LockKind::kWrite, {0, 9}});
    serve_spoilt(random);
    group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kWrite, {3, 5}}), &unlocked));
    serve_spoilt(random);
    nfs_->close(file_);
    serve_spoilt(random);
    EXPECT_TRUE(made && exclusive && locked && unlocked) << seed;
  }
}

}  // namespace
}  // namespace nfsrdma
