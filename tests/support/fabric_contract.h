// SPDX-License-Identifier: Apache-2.0
// What every fabric behind rpcrdma/fabric.h must do, as a parameterised suite. A fabric joins with
//
//   INSTANTIATE_TEST_SUITE_P(Iwarp, FabricContract, testing::Values(ContractFabric{...}),
//                            contract_name);
//
// Both ends live on one EventLoop. Optional features (kSendWithInvalidate ...) are looked up in
// DeviceInfo and their tests skipped where they lack.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/fabric.h"
#include "tests/support/fabric_contract_end.h"

namespace nfsrdma::test {

/// A fabric under test with the network below it.
class ContractWorld {
 public:
  virtual ~ContractWorld() = default;
  virtual EventLoop& loop() = 0;
  virtual Fabric& fabric() = 0;
  virtual SocketAddress listen_address() = 0;
  /// Lets something happen; false when nothing did for a while.
  virtual bool step() = 0;
  /// Memory was exposed: makes sure that the peer reaches it without hearing of it by a Send.
  virtual void exposed() {}
};

struct ContractFabric {
  std::string name;
  std::function<std::unique_ptr<ContractWorld>()> make;  // null result: not on this host
};
inline std::string contract_name(const testing::TestParamInfo<ContractFabric>& info) {
  return info.param.name;
}
inline void PrintTo(const ContractFabric& fabric, std::ostream* out) {
  *out << fabric.name;
}

class FabricContract : public testing::TestWithParam<ContractFabric>,
                       protected IncomingHandler,
                       protected AcceptHandler,
                       protected ConnectHandler {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (world_ == nullptr) GTEST_SKIP() << GetParam().name << " is not usable on this host";
    client_.on_exposed = [this] { world_->exposed(); };
  }
  void TearDown() override {
    if (world_ == nullptr) return;
    // In the order in which an engine takes itself apart.
    client_.queue_pair.reset();
    server_.queue_pair.reset();
    connector_.reset();
    listener_.reset();
    release(client_);
    release(server_);
    world_->fabric().forget(world_->loop());
  }
  static void release(ContractEnd& end) {
    end.regions.clear();
    end.receives.reset();
    end.completions.reset();
    end.domain.reset();
  }

  bool until(const std::function<bool()>& condition) {
    for (int i = 0; i < 20'000; ++i) {
      if (condition()) return true;
      if (!world_->step()) return condition();
    }
    return condition();
  }

  void listen() {
    auto listener = world_->fabric().listen(world_->loop(), world_->listen_address(), *this);
    ASSERT_TRUE(listener.ok()) << listener.error().message();
    listener_ = std::move(listener).value();
  }
  void connect() {
    auto connector = world_->fabric().connect(world_->loop(), listener_->address(), *this);
    ASSERT_TRUE(connector.ok()) << connector.error().message();
    connector_ = std::move(connector).value();
    ASSERT_TRUE(until([&] { return connected_ || connect_failed_; }));
  }
  /// Connected, with `receives` buffers posted at each end, and the server established.
  void establish(std::size_t receives = 16) {
    ASSERT_NO_FATAL_FAILURE(listen());
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_TRUE(connected_) << connect_detail_;
    client_.post_receives(receives);
    server_.post_receives(receives);
    ASSERT_TRUE(client_.send(0, client_.text("hello")).ok());
    ASSERT_TRUE(until([&] { return server_.messages.size() == 1 && client_.sends_done() == 1; }));
    server_.messages.clear();
    server_.done.clear();
    client_.done.clear();
  }

  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    incoming_ = std::move(incoming);
    incoming_->start(world_->loop(), *this);
  }
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override {
    request_data_.assign(request->private_data().begin(), request->private_data().end());
    request_reads_ = request->peer_inbound_reads();
    if (reject_) return request->reject(reject_data_);
    auto options = server_.prepare(world_->loop(), request->device());
    ASSERT_TRUE(options.ok());
    auto queue_pair = request->accept(*options);
    ASSERT_TRUE(queue_pair.ok()) << queue_pair.error().message();
    server_.queue_pair = std::move(queue_pair).value();
  }
  Result<QueuePairOptions> on_device(Device& device) override {
    return client_.prepare(world_->loop(), device);
  }
  void on_connected(std::unique_ptr<QueuePair> queue_pair, ByteSpan private_data) override {
    client_.queue_pair = std::move(queue_pair);
    reply_data_.assign(private_data.begin(), private_data.end());
    connected_ = true;
  }
  void on_connect_failed(Error error, const std::string& detail) override {
    connect_failed_ = true;
    connect_error_ = error;
    connect_detail_ = detail;
  }

  static std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<std::byte>((i * 131 + i / 251 + seed * 7) & 0xff);
    }
    return bytes;
  }
  static std::string as_string(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::vector<std::byte> as_vector(const std::string& text) {
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return {data, data + text.size()};
  }

  std::unique_ptr<ContractWorld> world_;
  ContractEnd client_;
  ContractEnd server_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Incoming> incoming_;
  std::vector<std::byte> request_data_;
  std::vector<std::byte> reply_data_;
  std::uint32_t request_reads_ = 0;
  bool reject_ = false;
  std::vector<std::byte> reject_data_;
  bool connected_ = false;
  bool connect_failed_ = false;
  Error connect_error_{};
  std::string connect_detail_;
};

TEST_P(FabricContract, PrivateDataReachesBothEndsUnchanged) {
  client_.private_data = as_vector("request data");
  server_.private_data = as_vector("reply data");
  establish();
  EXPECT_EQ(as_string(request_data_).substr(0, 12), "request data");
  EXPECT_EQ(as_string(reply_data_).substr(0, 10), "reply data");
}

TEST_P(FabricContract, ServerHearsOfEstablishmentOnce) {
  establish();
  EXPECT_EQ(server_.established, 1);
}

TEST_P(FabricContract, RejectFailsTheConnectorWithRefused) {
  reject_ = true;
  listen();
  connect();
  ASSERT_TRUE(connect_failed_);
  EXPECT_EQ(connect_error_.code, Errc::kRefused) << connect_detail_;
}

TEST_P(FabricContract, SendsArriveInOrder) {
  establish();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(client_.send(i, client_.text("message " + std::to_string(i))).ok());
  }
  ASSERT_TRUE(until([&] { return server_.messages.size() == 10; }));
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(server_.messages[i], "message " + std::to_string(i + 1));
  }
}

TEST_P(FabricContract, ServerMaySendOnceEstablished) {
  establish();
  ASSERT_TRUE(server_.send(1, server_.text("answer")).ok());
  ASSERT_TRUE(until([&] { return client_.messages.size() == 1; }));
  EXPECT_EQ(client_.messages[0], "answer");
}

TEST_P(FabricContract, SendGathersFromSeveralPieces) {
  establish();
  if (client_.device->info().max_send_sge < 2) GTEST_SKIP();
  const Sge sges[] = {client_.text("one "), client_.text("two")};
  WorkRequest request;
  request.sges = sges;
  ASSERT_TRUE(client_.post(request).ok());
  ASSERT_TRUE(until([&] { return server_.messages.size() == 1; }));
  EXPECT_EQ(server_.messages[0], "one two");
}

TEST_P(FabricContract, ReceiveNamesItsQueuePair) {
  establish();
  ASSERT_TRUE(client_.send(1, client_.text("x")).ok());
  ASSERT_TRUE(until([&] { return server_.messages.size() == 1; }));
  EXPECT_EQ(server_.done.back().queue_pair, server_.queue_pair.get());
}

TEST_P(FabricContract, WriteIsCompleteBeforeALaterSendIsSeen) {
  establish();
  const std::vector<std::byte> data = pattern(300'001);
  std::vector<std::byte> target(data.size() + 10, std::byte{0xee});
  // Bytes of the region that the peer does not write may change (iwarp guesses where data will
  // go); those in front of what it wrote and those outside may not.
  const MemoryRegion region =
      client_.expose({target.data(), data.size() + 8}, Access::kRemoteWrite);
  ASSERT_TRUE(server_.write(1, server_.text(as_string(data)), region, 5, false).ok());
  ASSERT_TRUE(server_.send(2, server_.text("done")).ok());
  ASSERT_TRUE(until([&] { return client_.messages.size() == 1; }));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), target.begin() + 5));
  EXPECT_EQ(target[4], std::byte{0xee});
  EXPECT_EQ(target[data.size() + 8], std::byte{0xee});
}

TEST_P(FabricContract, ReadFetchesTheBytes) {
  establish();
  std::vector<std::byte> source = pattern(200'003);
  std::vector<std::byte> sink(source.size());
  const MemoryRegion from = client_.expose(source, Access::kRemoteRead);
  const MemoryRegion to = server_.expose(sink, Access::kReadSink);
  ASSERT_TRUE(server_.read(7, to, 0, static_cast<std::uint32_t>(source.size()), from).ok());
  ASSERT_TRUE(until([&] { return server_.sends_done() == 1; }));
  EXPECT_EQ(server_.done.back().status, WorkStatus::kSuccess);
  EXPECT_EQ(sink, source);
}

TEST_P(FabricContract, MoreReadsThanAllowedWaitTheirTurn) {
  client_.inbound_reads = 2;
  server_.outbound_reads = 2;
  establish();
  EXPECT_LE(server_.queue_pair->info().max_outbound_reads, 2u);
  std::vector<std::byte> source = pattern(64'000);
  std::vector<std::byte> sink(source.size());
  const MemoryRegion from = client_.expose(source, Access::kRemoteRead);
  const MemoryRegion to = server_.expose(sink, Access::kReadSink);
  for (std::uint32_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(server_.read(i + 1, to, i * 4000, 4000, from, i * 4000).ok());
  }
  ASSERT_TRUE(until([&] { return server_.sends_done() == 16; }));
  EXPECT_EQ(sink, source);
}

TEST_P(FabricContract, SendCompletionsComeInPostingOrder) {
  establish();
  std::vector<std::byte> source = pattern(100'000);
  std::vector<std::byte> sink(source.size());
  const MemoryRegion from = client_.expose(source, Access::kRemoteRead);
  const MemoryRegion to = server_.expose(sink, Access::kReadSink);
  ASSERT_TRUE(server_.read(1, to, 0, 100'000, from).ok());
  ASSERT_TRUE(server_.send(2, server_.text("a")).ok());
  ASSERT_TRUE(server_.read(3, to, 0, 10, from).ok());
  ASSERT_TRUE(server_.send(4, server_.text("b")).ok());
  ASSERT_TRUE(until([&] { return server_.sends_done() == 4; }));
  EXPECT_EQ(server_.completed_ids(WorkStatus::kSuccess), (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

TEST_P(FabricContract, FencedSendFollowsTheReadsBeforeIt) {
  establish();
  std::vector<std::byte> source = pattern(500'000);
  std::vector<std::byte> sink(source.size());
  const MemoryRegion from = client_.expose(source, Access::kRemoteRead);
  const MemoryRegion to = server_.expose(sink, Access::kReadSink);
  ASSERT_TRUE(server_.read(1, to, 0, 500'000, from).ok());
  const Sge sge = server_.text("after");
  WorkRequest request;
  request.wr_id = 2;
  request.fence = true;
  request.sges = {&sge, 1};
  ASSERT_TRUE(server_.post(request).ok());
  ASSERT_TRUE(until([&] { return client_.messages.size() == 1; }));
  EXPECT_EQ(sink, source);
}

TEST_P(FabricContract, UnsignalledSuccessIsSilent) {
  establish();
  ASSERT_TRUE(client_.send(1, client_.text("quiet"), false).ok());
  ASSERT_TRUE(client_.send(2, client_.text("loud")).ok());
  ASSERT_TRUE(until([&] { return server_.messages.size() == 2 && client_.sends_done() > 0; }));
  EXPECT_EQ(client_.completed_ids(WorkStatus::kSuccess), (std::vector<std::uint64_t>{2}));
}

TEST_P(FabricContract, SendWithInvalidateWithdrawsTheRegion) {
  establish();
  if (!server_.device->info().send_with_invalidate || !client_.device->info().remote_invalidation) {
    GTEST_SKIP();
  }
  std::vector<std::byte> target(100);
  const MemoryRegion region = client_.expose(target, Access::kRemoteWrite);
  const Sge sge = server_.text("gone");
  WorkRequest request;
  request.opcode = WorkOpcode::kSendWithInvalidate;
  request.sges = {&sge, 1};
  request.remote_handle = region.handle();
  ASSERT_TRUE(server_.post(request).ok());
  ASSERT_TRUE(until([&] { return client_.messages.size() == 1; }));
  EXPECT_TRUE(client_.done.back().invalidated);
  EXPECT_EQ(client_.done.back().invalidated_handle, region.handle());
  ASSERT_TRUE(server_.write(9, server_.text("late"), region).ok());
  ASSERT_TRUE(until([&] { return client_.disconnected == 1; }));
  EXPECT_EQ(target, std::vector<std::byte>(100));
}

TEST_P(FabricContract, WriteBeyondTheRegionBreaksTheConnectionAndTouchesNothing) {
  establish();
  std::vector<std::byte> target(200, std::byte{0x11});
  const MemoryRegion region = client_.expose({target.data(), 100}, Access::kRemoteWrite);
  ASSERT_TRUE(server_.write(1, server_.text(std::string(101, 'x')), region).ok());
  ASSERT_TRUE(until([&] { return client_.disconnected == 1 && server_.disconnected == 1; }));
  EXPECT_EQ(target, std::vector<std::byte>(200, std::byte{0x11}));
}

TEST_P(FabricContract, WithdrawnRegionAdmitsNoWrite) {
  establish();
  std::vector<std::byte> target(100);
  MemoryRegion region = client_.expose(target, Access::kRemoteWrite);
  const std::uint32_t handle = region.handle();
  const std::uint64_t offset = region.remote_offset();
  region.reset();
  const Sge sge = server_.text("late");
  WorkRequest request;
  request.opcode = WorkOpcode::kWrite;
  request.sges = {&sge, 1};
  request.remote_handle = handle;
  request.remote_offset = offset;
  ASSERT_TRUE(server_.post(request).ok());
  ASSERT_TRUE(until([&] { return client_.disconnected == 1; }));
  EXPECT_EQ(target, std::vector<std::byte>(100));
}

TEST_P(FabricContract, RegionForReadingAdmitsNoWrite) {
  establish();
  std::vector<std::byte> target(100);
  const MemoryRegion region = client_.expose(target, Access::kRemoteRead);
  ASSERT_TRUE(server_.write(1, server_.text("no"), region).ok());
  ASSERT_TRUE(until([&] { return client_.disconnected == 1; }));
  EXPECT_EQ(target, std::vector<std::byte>(100));
}

TEST_P(FabricContract, RegionForWritingAdmitsNoRead) {
  establish();
  std::vector<std::byte> source = pattern(100);
  std::vector<std::byte> sink(100);
  const MemoryRegion from = client_.expose(source, Access::kRemoteWrite);
  const MemoryRegion to = server_.expose(sink, Access::kReadSink);
  ASSERT_TRUE(server_.read(1, to, 0, 100, from).ok());
  ASSERT_TRUE(until([&] { return server_.disconnected == 1; }));
  EXPECT_EQ(server_.completed_ids(WorkStatus::kSuccess), std::vector<std::uint64_t>{});
  EXPECT_EQ(sink, std::vector<std::byte>(100));
}

TEST_P(FabricContract, DisconnectCompletesEverythingOnceThenSaysSo) {
  establish();
  std::vector<std::byte> source = pattern(100'000);
  std::vector<std::byte> sink(source.size());
  const MemoryRegion from = client_.expose(source, Access::kRemoteRead);
  const MemoryRegion to = server_.expose(sink, Access::kReadSink);
  for (std::uint32_t i = 0; i < 6; ++i)
    ASSERT_TRUE(server_.read(i, to, 0, 100, from).ok());
  server_.queue_pair->disconnect();
  ASSERT_TRUE(until([&] { return server_.disconnected == 1; }));
  EXPECT_EQ(server_.sends_done(), 6u);
  EXPECT_EQ(server_.completions_at_disconnect, server_.done.size());
  ASSERT_TRUE(until([&] { return client_.disconnected == 1; }));
  EXPECT_EQ(server_.disconnected, 1);
}

TEST_P(FabricContract, OrderlyCloseIsReportedAsClosed) {
  establish();
  client_.queue_pair->disconnect();
  ASSERT_TRUE(until([&] { return client_.disconnected == 1 && server_.disconnected == 1; }));
  EXPECT_EQ(client_.reason.code, Errc::kClosed);
  EXPECT_EQ(server_.reason.code, Errc::kClosed) << server_.reason.message();
}

TEST_P(FabricContract, PostAfterDisconnectFailsOrFlushes) {
  establish();
  client_.queue_pair->disconnect();
  ASSERT_TRUE(until([&] { return client_.disconnected == 1; }));
  const Sge sge = client_.text("x");
  WorkRequest request;
  request.sges = {&sge, 1};
  std::size_t posted = 0;
  Result<void> result = client_.queue_pair->post({&request, 1}, &posted);
  ASSERT_TRUE(until([&] { return client_.sends_done() == posted; }));
  EXPECT_EQ(result.ok(), posted == 1);
  EXPECT_EQ(client_.completed_ids(WorkStatus::kSuccess), std::vector<std::uint64_t>{});
}

TEST_P(FabricContract, FullSendQueueTakesAPartOfTheChain) {
  client_.send_depth = 4;
  establish();
  const Sge sge = client_.text("x");
  std::vector<WorkRequest> requests(40);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].wr_id = i + 1;
    requests[i].sges = {&sge, 1};
  }
  std::size_t posted = 0;
  Result<void> result = client_.queue_pair->post(requests, &posted);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::kExhausted);
  EXPECT_GE(posted, 4u);
  EXPECT_LT(posted, 40u);
  ASSERT_TRUE(until([&] { return client_.sends_done() == posted; }));
}

TEST_P(FabricContract, DestroyedQueuePairEndsThePeer) {
  establish();
  client_.queue_pair.reset();
  ASSERT_TRUE(until([&] { return server_.disconnected == 1; }));
  EXPECT_EQ(server_.messages.size(), 0u);
}

TEST_P(FabricContract, PostedReceivesSurviveTheirConnection) {
  establish(2);
  ASSERT_TRUE(client_.send(1, client_.text("1")).ok());
  ASSERT_TRUE(until([&] { return server_.messages.size() == 1; }));
  client_.queue_pair->disconnect();
  ASSERT_TRUE(until([&] { return server_.disconnected == 1 && client_.disconnected == 1; }));
  const auto received = server_.done.size();
  server_.post_receives(2);
  client_.queue_pair.reset();
  EXPECT_EQ(server_.done.size(), received);
  for (const WorkCompletion& completion : server_.done) {
    EXPECT_TRUE(completion.opcode != WorkOpcode::kReceive ||
                completion.status == WorkStatus::kSuccess);
  }
}

}  // namespace nfsrdma::test
