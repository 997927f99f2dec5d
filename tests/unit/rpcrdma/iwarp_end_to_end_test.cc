// SPDX-License-Identifier: Apache-2.0
// The toy service over iWARP on loopback: our client, our server, our engine, real sockets, one
// thread. Every size and direction, with CRC on and off, towards own peers and as to strangers.
#include <gtest/gtest.h>

#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "rpcrdma/rdma_server.h"
#include "rpcrdma/requester.h"
#include "tests/support/loop_owner.h"
#include "tests/support/toy_rpc.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kSizes[] = {0,    1,    3,    4,     5,      1000,    3900,
                                    4095, 4096, 4097, 65535, 100001, 1 << 20, (1 << 20) + 1};

class IwarpEndToEnd : public ::testing::TestWithParam<iwarp::IwarpOptions>,
                      protected LoopOwner,
                      private IncomingHandler {
 protected:
  IwarpEndToEnd() {
    listener_ =
        std::move(
            fabric_->listen(*loop_, std::move(SocketAddress::parse("127.0.0.1", 0)).value(), *this))
            .value();
    client_ = make_rdma_transport(*loop_, *fabric_, listener_->address(), {}, log_);
    turn_until([this] { return log_.ready + log_.closed > 0; });
  }
  ~IwarpEndToEnd() override {
    client_.reset();
    handler_.hold = false;
    turn_until([this] { return server_.connection_count() == 0 || !handler_.held.empty(); });
    handler_.answer_held();
    turn_until([this] { return server_.connection_count() == 0; });
    EXPECT_EQ(server_.connection_count(), 0u);
  }
  ToyCall& call(std::uint32_t procedure, std::uint32_t size) {
    calls_.push_back(std::make_unique<ToyCall>(++last_xid_, procedure, size, size));
    client_->submit(*calls_.back());
    turn_until([this] { return calls_.back()->completions > 0; });
    return *calls_.back();
  }
  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    server_.accept(std::move(incoming));
  }

  std::vector<std::unique_ptr<ToyCall>> calls_;
  // Keeps a device per loop, so it goes before the loop.
  std::unique_ptr<Fabric> fabric_ = iwarp::make_fabric(GetParam());
  BufferPool pool_{*loop_, 64u << 20};
  ToyHandler handler_;
  RdmaServer server_{*loop_, pool_, handler_};
  std::unique_ptr<Listener> listener_;
  TransportLog log_;
  std::unique_ptr<ClientTransport> client_;
  std::uint32_t last_xid_ = 0x3000;
};

TEST_P(IwarpEndToEnd, EverySizeArrivesWhole) {
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  for (std::uint32_t size : kSizes) {
    EXPECT_TRUE(call(kToyRead, size).good) << "read " << size;
    EXPECT_TRUE(call(kToyWrite, size).good) << "write " << size;
    EXPECT_TRUE(call(kToyList, size).good) << "list " << size;
  }
}

TEST_P(IwarpEndToEnd, DataMovesByRdma) {
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  EXPECT_TRUE(call(kToyRead, 1 << 20).placed);
  EXPECT_TRUE(call(kToyWrite, 1 << 20).good);
  ConnectionInfo info;
  server_.for_each_connection([&](const ServerConnection& c) { info = c.describe(); });
  EXPECT_EQ(info.stats.rdma_write_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(info.stats.rdma_read_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(info.transport, TransportKind::kIwarp);
}

/// Where a checksum is computed, our own code would have to look at the pages.
TEST_P(IwarpEndToEnd, PagesOfAFileAreSentAsTheyAreWithoutCrc) {
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  int shown = 0;
  handler_.on_shown = [&](int, FileWindow&) { ++shown; };
  for (std::uint32_t size : {4096u, 65537u, 1u << 20, 3u << 20})
    EXPECT_TRUE(call(kToyRead, size).good) << size;
  EXPECT_EQ(shown, GetParam().require_crc ? 0 : 4);
  EXPECT_LT(pool_.in_use(), 1u << 20);  // messages alone
}

TEST_P(IwarpEndToEnd, AFileThatGetsShorterWhileItIsSentEndsInZeros) {
  if (GetParam().require_crc) return;  // none is sent: the test before
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  handler_.on_shown = [](int fd, FileWindow&) { EXPECT_EQ(::ftruncate(fd, 5 * 4096), 0); };
  ToyCall& shorter = call(kToyRead, 1 << 20);
  EXPECT_TRUE(shorter.ok);
  EXPECT_TRUE(ends_in_zeros(shorter.data(), 5 * 4096, 1 << 20));
  handler_.on_shown = nullptr;
  EXPECT_TRUE(call(kToyRead, 1 << 20).good);
  EXPECT_EQ(log_.closed, 0);
}

TEST_P(IwarpEndToEnd, AFileThatCannotBeReadWhileItIsSentEndsTheConnection) {
  if (GetParam().require_crc) return;
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  handler_.on_shown = [](int, FileWindow& window) {
    EXPECT_EQ(::mprotect(window.data() + 4096, 4096, PROT_NONE), 0);
  };
  EXPECT_FALSE(call(kToyRead, 1 << 20).ok);
  EXPECT_TRUE(turn_until([this] { return handler_.closed == 1; }));
}

TEST_P(IwarpEndToEnd, ManyCallsAtOnceAllComplete) {
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::uint32_t procedure = i % 3 == 0 ? kToyRead : i % 3 == 1 ? kToyWrite : kToyNull;
    calls.push_back(
        std::make_unique<ToyCall>(++last_xid_, procedure, procedure == kToyNull ? 0 : i * 331, i));
    client_->submit(*calls.back());
  }
  turn_until([&] {
    for (auto& c : calls) {
      if (c->completions == 0) return false;
    }
    return true;
  });
  for (auto& c : calls)
    EXPECT_TRUE(c->good);
  calls_.insert(calls_.end(), std::make_move_iterator(calls.begin()),
                std::make_move_iterator(calls.end()));
}

TEST_P(IwarpEndToEnd, ClosingWithCallsUnderWayEndsBothSides) {
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  handler_.hold = true;
  calls_.push_back(std::make_unique<ToyCall>(++last_xid_, kToyWrite, 100'000, 1));
  client_->submit(*calls_.back());
  ASSERT_TRUE(turn_until([this] { return !handler_.held.empty(); }));
  client_->close();
  EXPECT_TRUE(turn_until([this] { return log_.closed == 1 && handler_.closed == 1; }));
  EXPECT_EQ(calls_.back()->error.code, Errc::kClosed);
  handler_.answer_held();
  EXPECT_EQ(handler_.bad_calls, 0u);
}

iwarp::IwarpOptions options(bool crc, bool stranger) {
  iwarp::IwarpOptions made;
  made.require_crc = crc;
  made.hide_own_peer = stranger;
  return made;
}
INSTANTIATE_TEST_SUITE_P(Peers, IwarpEndToEnd,
                         ::testing::Values(options(false, false), options(true, false),
                                           options(false, true), options(true, true)));

}  // namespace
}  // namespace nfsrdma::test
