// SPDX-License-Identifier: Apache-2.0
// Our active side against bytes on a socket: knfsd on siw, irdma, cxgb4, and peers that misbehave.
#include "tests/unit/rpcrdma/iwarp/raw_peer.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr char kEmptyWriteNoCrc[] = "000ec140 00000000 00000000 00000000 00000000";
constexpr std::size_t kRequestSize = 40;  // with 8 bytes of private data and our own block

class ConnectorSocket : public RawPeerTest {
 protected:
  ConnectorSocket() {
    ours_.private_data = from_hex("f6ab0e18 01010303");
    ours_.inbound_reads = 16;
    ours_.outbound_reads = 1;
  }
  /// The first half of the connection: what our request was.
  UniqueFd accept_request(const UniqueFd& listener, std::string* request,
                          std::size_t size = kRequestSize) {
    UniqueFd fd = raw_accept(listener);
    *request = hear(fd, size);
    return fd;
  }
  std::string request_;
};

TEST_F(ConnectorSocket, FirstRequestIsTheOneOfLinuxWithOurBlockBehind) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  EXPECT_EQ(request_,
            "4d504120 49442052 65712046 72616d65 10020014 00100001 f6ab0e18 01010303 6e72646d "
            "01000000");
}

TEST_F(ConnectorSocket, KnfsdsReplyConnects) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, kPlainReply);
  ASSERT_TRUE(until([&] { return connected_; }));
  EXPECT_EQ(reply_data_, "f6ab0e18 01000303");
  EXPECT_FALSE(ours_.queue_pair->info().own_peer);
  EXPECT_EQ(ours_.queue_pair->info().max_inbound_reads, 16u);
}

TEST_F(ConnectorSocket, SilentPeerIsNudgedWithEmptyWrites) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, kPlainReply);
  EXPECT_EQ(hear(fd, 20), kEmptyWriteNoCrc);
  EXPECT_EQ(hear(fd, 20), kEmptyWriteNoCrc);
}

TEST_F(ConnectorSocket, NudgesComeThreeTimesInTheFirstSecond) {
  stop_the_clock();
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, kPlainReply);
  ASSERT_TRUE(until([&] { return connected_; }));
  for (int milliseconds : {50, 150, 800}) {
    let_pass(std::chrono::milliseconds(milliseconds - 1));
    EXPECT_TRUE(hears_nothing(fd)) << milliseconds;
    let_pass(std::chrono::milliseconds(1));
    EXPECT_EQ(hear(fd, 20), kEmptyWriteNoCrc) << milliseconds;
  }
  let_pass(std::chrono::seconds(60));
  EXPECT_TRUE(hears_nothing(fd));
}

TEST_F(ConnectorSocket, RequestWaitsForNoTimerAndNothingFollowsIt) {
  // siw closes five seconds after it accepted, and takes stray bytes for an error.
  stop_the_clock();
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  EXPECT_EQ(request_.substr(0, 44), "4d504120 49442052 65712046 72616d65 10020014");
  let_pass(std::chrono::milliseconds(9'900));
  EXPECT_TRUE(hears_nothing(fd));
  EXPECT_FALSE(failed_);
  say(fd, kPlainReply);
  EXPECT_TRUE(until([&] { return connected_; }));
}

TEST_F(ConnectorSocket, ReplyMayTakeTenSeconds) {
  stop_the_clock();
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  let_pass(std::chrono::milliseconds(9'000));
  // Bytes that trickle in are no reason to wait longer.
  say(fd, "4d504120 49442052 65702046 72616d65");
  let_pass(std::chrono::milliseconds(999));
  EXPECT_FALSE(failed_);
  let_pass(std::chrono::milliseconds(1));
  EXPECT_TRUE(failed_);
  EXPECT_EQ(error_.code, Errc::kTimedOut);
}

TEST_F(ConnectorSocket, AnsweringPeerIsNotNudged) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, kPlainReply);
  say(fd, kEmptyWriteNoCrc);
  ASSERT_TRUE(until([&] { return connected_; }));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(120);
  while (std::chrono::steady_clock::now() < end)
    turn();
  EXPECT_TRUE(hears_nothing(fd));
}

TEST_F(ConnectorSocket, PeerThatResetsPlainRequestsGetsPeerToPeer) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd first = accept_request(listener, &request_);
  reset(first);
  UniqueFd fd = accept_request(listener, &request_);
  EXPECT_EQ(request_.substr(36, 17), "10020014 80104001");
  say(fd, "4d504120 49442052 65702046 72616d65 10020004 80014010");
  EXPECT_EQ(hear(fd, 52),
            "002e4141 00000000 00000001 00000001 00000000 00000000 00000000 00000000 00000000 "
            "00000000 00000000 00000000 00000000");
  EXPECT_FALSE(connected_);
  say(fd, "000ec142 00000000 00000000 00000000 00000000");
  EXPECT_TRUE(until([&] { return connected_; }));
}

TEST_F(ConnectorSocket, WhatWorkedIsRememberedForTheServer) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd first = accept_request(listener, &request_);
  reset(first);
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, "4d504120 49442052 65702046 72616d65 10020004 80018010");
  ASSERT_TRUE(until([&] { return connected_; }));
  EXPECT_EQ(hear(fd, 20), kEmptyWriteNoCrc);
  connected_ = false;
  ours_.queue_pair.reset();
  connect();
  UniqueFd again = accept_request(listener, &request_);
  EXPECT_EQ(request_.substr(36, 17), "10020014 80104001");
}

TEST_F(ConnectorSocket, Revision1IsTheLastResort) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  for (int i = 0; i < 2; ++i) {
    UniqueFd fd = accept_request(listener, &request_);
    reset(fd);
  }
  UniqueFd fd = accept_request(listener, &request_, 36);
  EXPECT_EQ(request_.substr(36, 8), "00010010");
  reset(fd);
  EXPECT_TRUE(until([&] { return failed_; }));
}

/// A listener that had no room for the first two, whatever kind they were of.
class ConnectorAfterRevision1 : public ConnectorSocket {
 protected:
  void learn_revision_1() {
    connect();
    for (int i = 0; i < 2; ++i) {
      UniqueFd fd = accept_request(listener_fd_, &request_);
      reset(fd);
    }
    UniqueFd fd = accept_request(listener_fd_, &request_, 36);
    say(fd, kRevision1Reply);
    ASSERT_TRUE(until([&] { return connected_; }));
    connected_ = false;
    ours_.queue_pair.reset();
  }
  static constexpr char kRevision1Reply[] = "4d504120 49442052 65702046 72616d65 00010000";
  static constexpr char kPlainFlags[] = "10020014 00100001";
  UniqueFd listener_fd_;
};

TEST_F(ConnectorAfterRevision1, WhatIsRememberedIsTriedFirstAndNotAlone) {
  start();
  listener_fd_ = raw_listen();
  learn_revision_1();
  connect();
  UniqueFd first = accept_request(listener_fd_, &request_, 36);
  EXPECT_EQ(request_.substr(36, 8), "00010010");
  reset(first);
  UniqueFd second = accept_request(listener_fd_, &request_);
  EXPECT_EQ(request_.substr(36, 17), kPlainFlags);
  reset(second);
  UniqueFd third = accept_request(listener_fd_, &request_);
  EXPECT_EQ(request_.substr(36, 17), "10020014 80104001");
  reset(third);
  EXPECT_TRUE(until([&] { return failed_; })) << "each kind once";
}

/// Else each WRITE of some size would end the connection, and the next one is of revision 1 again.
TEST_F(ConnectorAfterRevision1, TheServerMayRead) {
  stop_the_clock();  // no nudges
  start();
  listener_fd_ = raw_listen();
  learn_revision_1();
  connect();
  UniqueFd fd = accept_request(listener_fd_, &request_, 36);
  say(fd, kRevision1Reply);
  ASSERT_TRUE(until([&] { return connected_; }));
  EXPECT_EQ(ours_.queue_pair->info().max_inbound_reads, 16u);
  EXPECT_EQ(ours_.queue_pair->info().max_outbound_reads, 0u);
  // A Read Request of no bytes, and its Response.
  say(fd,
      "002e4141 00000000 00000001 00000001 00000000 00000000 00000000 00000000 00000000 "
      "00000000 00000000 00000000 00000000");
  EXPECT_EQ(hear(fd, 20), "000ec142 00000000 00000000 00000000 00000000");
  EXPECT_EQ(ours_.disconnected, 0);
}

TEST_F(ConnectorAfterRevision1, TheBestKindHasItsTurnAgainAfterTenMinutes) {
  stop_the_clock();
  start();
  listener_fd_ = raw_listen();
  learn_revision_1();
  let_pass(std::chrono::minutes(9));
  connect();
  {
    UniqueFd fd = accept_request(listener_fd_, &request_, 36);
    EXPECT_EQ(request_.substr(36, 8), "00010010");
    say(fd, kRevision1Reply);
    ASSERT_TRUE(until([&] { return connected_; }));
    ours_.queue_pair.reset();
  }
  let_pass(std::chrono::minutes(2));
  connect();
  UniqueFd fd = accept_request(listener_fd_, &request_);
  EXPECT_EQ(request_.substr(36, 17), kPlainFlags);
}

TEST_F(ConnectorSocket, LossWhileReadyMessageIsUnderWayFails) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd first = accept_request(listener, &request_);
  reset(first);
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, "4d504120 49442052 65702046 72616d65 10020004 80014010");
  hear(fd, 52);
  reset(fd);
  EXPECT_TRUE(until([&] { return failed_; }));
  EXPECT_EQ(ours_.disconnected, 0);
}

TEST_F(ConnectorSocket, RejectShowsThePrivateData) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, "4d504120 49442052 65702046 72616d65 30020008 00000000 deadbeef");
  ASSERT_TRUE(until([&] { return failed_; }));
  EXPECT_EQ(error_.code, Errc::kRefused);
  EXPECT_NE(detail_.find("deadbeef"), std::string::npos) << detail_;
}

TEST_F(ConnectorSocket, MissingReplyTimesOut) {
  IwarpOptions options;
  options.handshake_timeout = std::chrono::milliseconds(30);
  start(options);
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  ASSERT_TRUE(until([&] { return failed_; }));
  EXPECT_EQ(error_.code, Errc::kTimedOut);
}

TEST_F(ConnectorSocket, NobodyListeningFails) {
  start();
  raw_listen();  // closed again: the port is free
  connect();
  ASSERT_TRUE(until([&] { return failed_; }));
  EXPECT_EQ(error_.sys, ECONNREFUSED) << detail_;
}

TEST_F(ConnectorSocket, NotAnMpaReplyFails) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, "48545450 2f312e31 20343030");
  ASSERT_TRUE(until([&] { return failed_; }));
  EXPECT_EQ(error_.code, Errc::kProtocol);
}

TEST_F(ConnectorSocket, AbandonedConnectorIsSilent) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = accept_request(listener, &request_);
  connector_.reset();
  EXPECT_TRUE(hears_end(fd));
  EXPECT_FALSE(failed_ || connected_);
}

TEST_F(ConnectorSocket, ConnectorDestroyedWhileReadyMessageIsUnderWay) {
  start();
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd first = accept_request(listener, &request_);
  reset(first);
  UniqueFd fd = accept_request(listener, &request_);
  say(fd, "4d504120 49442052 65702046 72616d65 10020004 80014010");
  hear(fd, 52);
  connector_.reset();
  EXPECT_TRUE(hears_end(fd));
  EXPECT_FALSE(failed_ || connected_);
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
