// SPDX-License-Identifier: Apache-2.0
// Clients of minor version 0 are called at the address that they name, over connections of the
// server's own: delegations for them, and what happens when nobody answers there.
#include <gtest/gtest.h>

#include <thread>

#include "server/nfs4/callback_lines.h"
#include "tests/support/old_client.h"

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

  /// The server calls the client there, or finds that it cannot.
  CallbackLines::State introduce(std::string_view host, std::uint16_t port) {
    client_.introduce(host, port);
    return client_.line();
  }
  void take_delegation() {
    client_.confirm_owner("second");
    const Reply4 reply = client_.open("file", xdr::OPEN4_SHARE_ACCESS_READ);
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
    while (client_.line() == now && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }
  /// It holds a delegation that somebody wants, and does not answer any more.
  void lose_a_holder() {
    ASSERT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
    take_delegation();
    service_.answers = false;
    service_.hang_up();
    EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
    leave(CallbackLines::State::kUp);
    ASSERT_EQ(client_.line(), CallbackLines::State::kDown);
  }
  /// The file is open in the life of the server that has begun, and what the client says that it
  /// was promised with it.
  Reply4 reclaim() {
    return client_.reclaim(file_, xdr::OPEN4_SHARE_ACCESS_READ,
                           open_delegation_type4::OPEN_DELEGATE_READ);
  }
  void restart() {
    harness_.restart();
    ASSERT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
  }
  nfsstat4 give_back() {
    return client_.run(Operations4().putfh(file_).add<OP_DELEGRETURN>({delegation_})).status;
  }
  nfsstat4 renew() { return client_.run(Operations4().add<OP_RENEW>({client_.id()})).status; }

  CallbackService service_;
  Nfs4Harness harness_{on_loopback()};
  FileHandle file_;
  OldClient client_{harness_, "old client"};
  xdr::stateid4 delegation_;
};

TEST_F(CallbackLinesTest, ADelegationIsRecalledAndGivenBack) {
  ASSERT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
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
  ASSERT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
  take_delegation();
  service_.hang_up();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  EXPECT_FALSE(service_.next().empty());
  EXPECT_EQ(service_.connections(), 2);
}

TEST_F(CallbackLinesTest, WhoCannotBeCalledIsPromisedNothing) {
  const auto type = [this](std::string_view name) {
    return client_.open(name, xdr::OPEN4_SHARE_ACCESS_READ)
        .get<OP_OPEN>()
        .resok4.delegation.delegation_type;
  };
  EXPECT_EQ(introduce("127.0.0.1", 1), CallbackLines::State::kDown);  // nobody listens there
  client_.confirm_owner("second");
  EXPECT_EQ(type("file"), open_delegation_type4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(renew(), NFS4_OK) << "there is nothing that it would have to be called for";
  // Of another host: no connection is made in that name.
  EXPECT_EQ(introduce("127.0.0.2", service_.port()), CallbackLines::State::kNone);
  EXPECT_EQ(service_.connections(), 0);
  // It moves to where it can be called.
  EXPECT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
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
    EXPECT_EQ(harness_.state().delegations.table().holds(client_.id()), 0u) << "it cannot free it";
  }
  EXPECT_EQ(renew(), NFS4ERR_CB_PATH_DOWN) << "nothing else tells it that one is gone";
  EXPECT_EQ(give_back(), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
  service_.answers = true;
  EXPECT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
  EXPECT_EQ(renew(), NFS4_OK);
}

/// Linux's client names no place again for that, and hears it for a lease.
TEST_F(CallbackLinesTest, ThatOneWasRevokedIsNotSaidForEver) {
  ASSERT_NO_FATAL_FAILURE(lose_a_holder());
  harness_.clock.move(std::chrono::seconds(50));
  EXPECT_EQ(renew(), NFS4ERR_CB_PATH_DOWN);
  harness_.clock.move(std::chrono::seconds(15));
  {
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(renew(), NFS4ERR_CB_PATH_DOWN) << i;
    harness_.clock.move(std::chrono::seconds(60));
  }
  EXPECT_EQ(renew(), NFS4_OK);
}

/// The way may be free by then.
TEST_F(CallbackLinesTest, AnOpenHasAClientThatWasNotReachedTriedAgain) {
  ASSERT_NO_FATAL_FAILURE(lose_a_holder());
  service_.answers = true;
  EXPECT_EQ(give_back(), NFS4_OK);
  const auto open = [this] {
    (void)client_.open("file", xdr::OPEN4_SHARE_ACCESS_READ);
    return client_.line();
  };
  EXPECT_EQ(open(), CallbackLines::State::kDown) << "not so soon";
  harness_.clock.move(std::chrono::seconds(61));
  (void)open();
  leave(CallbackLines::State::kDown);
  EXPECT_EQ(client_.line(), CallbackLines::State::kUp);
}

TEST_F(CallbackLinesTest, ADelegationComesBackAfterARestart) {
  ASSERT_EQ(introduce("127.0.0.1", service_.port()), CallbackLines::State::kUp);
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
  ASSERT_EQ(client_.line(), CallbackLines::State::kDown);
  service_.answers = true;
  harness_.clock.move(std::chrono::seconds(10));
  const auto tick = [this] {
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
  };
  tick();  // looks whether it is there
  leave(CallbackLines::State::kDown);
  ASSERT_EQ(client_.line(), CallbackLines::State::kUp);
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  EXPECT_FALSE(service_.next().empty());
  EXPECT_EQ(give_back(), NFS4_OK);
}

}  // namespace
}  // namespace nfsrdma::test
