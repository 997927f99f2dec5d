// SPDX-License-Identifier: Apache-2.0
// Clients of minor version 0 are called at the address that they name, over connections of the
// server's own: delegations for them, and what happens when nobody answers there.
#include <gtest/gtest.h>

#include <thread>

#include "server/nfs4/callback_lines.h"
#include "tests/support/callback_service.h"
#include "tests/support/nfs4_harness.h"
#include "xdr/nfs4_callback.h"
#include "xdr/universal_address.h"

namespace nfsrdma::test {
namespace {

using nfs4::CallbackAddress;
using nfs4::CallbackLines;
using xdr::open_delegation_type4;

TEST(CallbackAddressTest, IsOfTcpAlone) {
  const auto v4 = CallbackAddress::parse(CallbackAddress::to_text("tcp", "192.0.2.7.3.232", 7, 9));
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->where.text(), "192.0.2.7:1000");
  EXPECT_EQ(v4->program, 7u);
  EXPECT_EQ(v4->ident, 9u);
  EXPECT_EQ(CallbackAddress::parse("tcp6 2001:db8::7.3.232 7 9")->where.text(),
            "[2001:db8::7]:1000");
  for (const char* text : {"", "tcp", "7 9", "rdma 192.0.2.7.3.232 7 9", "udp 192.0.2.7.3.232 7 9",
                           "tcp 192.0.2.7.0.0 7 9", "tcp  7 9", "tcp6 192.0.2.7.3.232 7 9",
                           "tcp 2001:db8::7.3.232 7 9", "tcp host.example.3.232 7 9",
                           "tcp 192.0.2.7.3.232 7 x", "tcp 192.0.2.7.3.232 7 99999999999"}) {
    EXPECT_FALSE(CallbackAddress::parse(text)) << text;
  }
}

class CallbackLinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"file", "second"}) {
      const Open4 made = harness_.open(harness_.root(), name);
      ASSERT_EQ(made.status, NFS4_OK);
      ASSERT_EQ(harness_.close(made), NFS4_OK);
      ASSERT_EQ(harness_.on<OP_COMMIT>(made.handle).status, NFS4_OK);
      file_ = made.handle;
    }
    file_ = harness_.lookup(harness_.root(), "file");
  }
  static HarnessOptions on_loopback() {
    HarnessOptions options;
    options.peer = "127.0.0.1";
    return options;
  }

  void set_client_id(std::string_view host, std::uint16_t port) {
    const std::string address = xdr::format_universal_address(host, port);
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(std::string_view("old client"));
    who.callback.cb_program = 0x40000001;
    who.callback.cb_location = {"tcp", address};
    who.callback_ident = 77;
    const auto known =
        harness_.run_bare(Operations4().add<OP_SETCLIENTID>(who), 0).get<OP_SETCLIENTID>().resok4;
    client_ = known.clientid;
    ASSERT_EQ(harness_
                  .run_bare(Operations4().add<OP_SETCLIENTID_CONFIRM>(
                                {known.clientid, known.setclientid_confirm}),
                            0)
                  .status,
              NFS4_OK);
  }
  /// Once it is known whether the client can be called.
  CallbackLines::State state() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      {
        std::lock_guard lock(harness_.state().mutex);
        const auto now = harness_.state().caller.lines().state(client_);
        if (now != CallbackLines::State::kUnknown) return now;
      }
      if (std::chrono::steady_clock::now() >= end) return CallbackLines::State::kUnknown;
      std::this_thread::yield();
    }
  }
  Reply4 open_old(std::string_view name) {
    xdr::OPEN4args args;
    args.seqid = ++owner_seqid_;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
    args.owner = {client_, as_bytes(std::string_view("owner"))};
    args.claim.file = name;
    return harness_.run_bare(Operations4().putfh(harness_.root()).add<OP_OPEN>(args), 0);
  }
  /// An owner that is known gets what there is to be had.
  void confirm_owner() {
    const Reply4 first = open_old("second");
    ASSERT_EQ(first.status, NFS4_OK);
    const auto& result = first.get<OP_OPEN>().resok4;
    EXPECT_EQ(result.delegation.delegation_type, open_delegation_type4::OPEN_DELEGATE_NONE)
        << "the owner may be an old request's";
    ASSERT_NE(result.rflags & xdr::OPEN4_RESULT_CONFIRM, 0u);
    ASSERT_EQ(harness_
                  .run_bare(Operations4()
                                .putfh(harness_.lookup(harness_.root(), "second"))
                                .add<OP_OPEN_CONFIRM>({result.stateid, ++owner_seqid_}),
                            0)
                  .status,
              NFS4_OK);
  }
  void take_delegation() {
    confirm_owner();
    const Reply4 reply = open_old("file");
    ASSERT_EQ(reply.status, NFS4_OK);
    const auto& given = reply.get<OP_OPEN>().resok4.delegation;
    ASSERT_EQ(given.delegation_type, open_delegation_type4::OPEN_DELEGATE_READ);
    delegation_ = given.read.stateid;
  }
  nfsstat4 open_for_writing() {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_WRITE;
    args.owner = {harness_.session.client, as_bytes(std::string_view("owner"))};
    args.claim.file = "file";
    return harness_.run(Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status;
  }
  void leave(CallbackLines::State now) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (state() == now && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }
  /// It holds a delegation that somebody wants, and does not answer any more.
  void lose_a_holder() {
    set_client_id("127.0.0.1", service_.port());
    ASSERT_EQ(state(), CallbackLines::State::kUp);
    take_delegation();
    service_.answers = false;
    service_.hang_up();
    EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
    leave(CallbackLines::State::kUp);
    ASSERT_EQ(state(), CallbackLines::State::kDown);
  }
  /// The file is open in the life of the server that has begun, and what the client says that it
  /// was promised with it.
  Reply4 reclaim() {
    xdr::OPEN4args args;
    args.seqid = ++owner_seqid_;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
    args.owner = {client_, as_bytes(std::string_view("owner"))};
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    args.claim.delegate_type = open_delegation_type4::OPEN_DELEGATE_READ;
    return harness_.run_bare(Operations4().putfh(file_).add<OP_OPEN>(args), 0);
  }
  void restart() {
    harness_.restart();
    owner_seqid_ = 0;
    set_client_id("127.0.0.1", service_.port());
    ASSERT_EQ(state(), CallbackLines::State::kUp);
  }
  nfsstat4 give_back() {
    return harness_.run_bare(Operations4().putfh(file_).add<OP_DELEGRETURN>({delegation_}), 0)
        .status;
  }
  nfsstat4 renew() { return harness_.run_bare(Operations4().add<OP_RENEW>({client_}), 0).status; }

  CallbackService service_;
  Nfs4Harness harness_{on_loopback()};
  FileHandle file_;
  std::uint64_t client_ = 0;
  std::uint32_t owner_seqid_ = 0;
  xdr::stateid4 delegation_;
};

TEST_F(CallbackLinesTest, ADelegationIsRecalledAndGivenBack) {
  set_client_id("127.0.0.1", service_.port());
  ASSERT_EQ(state(), CallbackLines::State::kUp);
  take_delegation();
  EXPECT_EQ(
      harness_.run_bare(Operations4().putfh(file_).add<OP_READ>({delegation_, 0, 10}), 0).status,
      NFS4_OK);
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  const std::vector<std::byte> arguments = service_.next();
  xdr::Decoder in(arguments);
  xdr::CB_RECALL4args recall;
  ASSERT_TRUE(xdr::decode(in, recall));
  EXPECT_EQ(recall.stateid.other, delegation_.other);
  EXPECT_EQ(to_handle(recall.fh.data), file_);
  EXPECT_EQ(renew(), NFS4_OK);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(give_back(), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
  EXPECT_EQ(service_.connections(), 1);
}

TEST_F(CallbackLinesTest, AConnectionThatIsGoneIsMadeAnew) {
  set_client_id("127.0.0.1", service_.port());
  ASSERT_EQ(state(), CallbackLines::State::kUp);
  take_delegation();
  service_.hang_up();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  EXPECT_FALSE(service_.next().empty());
  EXPECT_EQ(service_.connections(), 2);
}

TEST_F(CallbackLinesTest, WhoCannotBeCalledIsPromisedNothing) {
  const auto type = [this](std::string_view name) {
    return open_old(name).get<OP_OPEN>().resok4.delegation.delegation_type;
  };
  set_client_id("127.0.0.1", 1);  // nobody listens there
  EXPECT_EQ(state(), CallbackLines::State::kDown);
  confirm_owner();
  EXPECT_EQ(type("file"), open_delegation_type4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(renew(), NFS4_OK) << "there is nothing that it would have to be called for";
  // Of another host: no connection is made in that name.
  set_client_id("127.0.0.2", service_.port());
  EXPECT_EQ(state(), CallbackLines::State::kNone);
  EXPECT_EQ(service_.connections(), 0);
  // It moves to where it can be called.
  set_client_id("127.0.0.1", service_.port());
  EXPECT_EQ(state(), CallbackLines::State::kUp);
  EXPECT_EQ(type("file"), open_delegation_type4::OPEN_DELEGATE_READ);
}

TEST_F(CallbackLinesTest, ASilentClientIsToldAndThenLosesIt) {
  ASSERT_NO_FATAL_FAILURE(lose_a_holder());
  EXPECT_EQ(renew(), NFS4ERR_CB_PATH_DOWN);
  harness_.clock.move(std::chrono::seconds(50));
  EXPECT_EQ(renew(), NFS4ERR_CB_PATH_DOWN);
  harness_.clock.move(std::chrono::seconds(15));
  {
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
    EXPECT_EQ(harness_.state().delegations.table().holds(client_), 0u) << "it cannot free it";
  }
  EXPECT_EQ(renew(), NFS4_OK);
  EXPECT_EQ(give_back(), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
}

TEST_F(CallbackLinesTest, ADelegationComesBackAfterARestart) {
  set_client_id("127.0.0.1", service_.port());
  ASSERT_EQ(state(), CallbackLines::State::kUp);
  take_delegation();
  ASSERT_NO_FATAL_FAILURE(restart());
  const Reply4 reply = reclaim();
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_OPEN>().resok4.delegation.delegation_type,
            open_delegation_type4::OPEN_DELEGATE_READ);
}

/// It cannot say that it knows, and would believe what is in its cache (RFC 7530 10.2.1).
TEST_F(CallbackLinesTest, OneThatWasRevokedDoesNotComeBackAndTheOpenDoes) {
  ASSERT_NO_FATAL_FAILURE(lose_a_holder());
  harness_.clock.move(std::chrono::seconds(50));
  EXPECT_EQ(renew(), NFS4ERR_CB_PATH_DOWN);
  harness_.clock.move(std::chrono::seconds(15));
  {
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
  }
  ASSERT_EQ(open_for_writing(), NFS4_OK);
  service_.answers = true;
  ASSERT_NO_FATAL_FAILURE(restart());
  const Reply4 reply = reclaim();
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_OPEN>().resok4.delegation.delegation_type,
            open_delegation_type4::OPEN_DELEGATE_NONE);
}

TEST_F(CallbackLinesTest, AClientThatAnswersAgainIsCalledAgain) {
  ASSERT_NO_FATAL_FAILURE(lose_a_holder());
  ASSERT_EQ(state(), CallbackLines::State::kDown);
  service_.answers = true;
  harness_.clock.move(std::chrono::seconds(10));
  const auto tick = [this] {
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
  };
  tick();  // looks whether it is there
  leave(CallbackLines::State::kDown);
  ASSERT_EQ(state(), CallbackLines::State::kUp);
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  EXPECT_FALSE(service_.next().empty());
  EXPECT_EQ(give_back(), NFS4_OK);
}

}  // namespace
}  // namespace nfsrdma::test
