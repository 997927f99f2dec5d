// SPDX-License-Identifier: Apache-2.0
// The verbs fabric on a real device: both ends in this process, on the local address
// NFSRDMA_VERBS_ADDR of an RDMA device. tests/interop/lab_verbs.sh runs it in the lab's guest on
// rxe and siw, each with shared and with per-queue-pair receives. Without the variable every test
// is skipped.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/unique_fd.h"
#include "rpcrdma/verbs/device_probe.h"
#include "rpcrdma/verbs/doorbell.h"
#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma::verbs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kReceives = 16;
constexpr std::size_t kMessage = 1024;

/// One side: its objects on the device, its queue pair and what it heard.
class End final : public CompletionHandler, public QueuePairHandler {
 public:
  void build(Device& device, EventLoop& loop) {
    if (domain != nullptr) return;
    domain = std::move(device.create_protection_domain()).value();
    queue = std::move(device.create_completion_queue(loop, *this, completions)).value();
    receives = std::move(device.create_shared_receive_queue(*domain, kReceives)).value();
    memory.resize(1 << 20);
    region = std::move(domain->register_memory(memory, Access::kLocal, nullptr)).value();
    for (std::uint32_t i = 0; i < kReceives; ++i)
      post_receive(i);
  }
  void post_receive(std::uint64_t slot) {
    auto posted = receives->post(slot, {memory.data() + slot * kMessage, kMessage, region.lkey()});
    ASSERT_TRUE(posted.ok()) << posted.error().message();
  }
  QueuePairOptions options(std::string_view private_data) {
    QueuePairOptions o;
    o.domain = domain.get();
    o.completions = queue.get();
    o.receives = receives.get();
    o.handler = this;
    o.send_depth = 32;
    o.inbound_reads = 8;
    o.outbound_reads = 8;
    o.private_data = as_bytes(private_data);
    return o;
  }
  void on_completions() override {
    std::array<WorkCompletion, 8> batch;
    for (std::size_t got = batch.size(); got == batch.size();) {
      got = queue->poll(batch);
      for (std::size_t i = 0; i < got; ++i)
        take(batch[i]);
    }
  }
  void take(const WorkCompletion& completion) {
    if (completion.opcode == WorkOpcode::kReceive) {
      messages.emplace_back(reinterpret_cast<char*>(memory.data()) + completion.wr_id * kMessage,
                            completion.byte_count);
      post_receive(completion.wr_id);
    } else {
      sent.push_back(completion);
    }
  }
  void on_established() override { ++established; }
  void on_disconnected(Error why) override {
    ++disconnected;
    reason = why;
  }
  /// Scratch memory behind the receives.
  std::byte* scratch(std::size_t offset = 0) { return memory.data() + (64 << 10) + offset; }
  Sge scratch_sge(std::size_t offset, std::uint32_t length) {
    return {scratch(offset), length, region.lkey()};
  }
  Result<void> send(std::string_view text, std::uint64_t wr_id = 1, bool signaled = true) {
    std::memcpy(scratch(), text.data(), text.size());
    const Sge sge = scratch_sge(0, static_cast<std::uint32_t>(text.size()));
    WorkRequest request;
    request.wr_id = wr_id;
    request.signaled = signaled;
    request.sges = {&sge, 1};
    return post(request);
  }
  Result<void> post(const WorkRequest& request) {
    std::size_t posted = 0;
    return pair->post({&request, 1}, &posted);
  }

  std::uint32_t completions = 256;  // depth of the queue
  std::unique_ptr<ProtectionDomain> domain;
  std::vector<std::byte> memory;
  MemoryRegion region;
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<SharedReceiveQueue> receives;
  std::unique_ptr<QueuePair> pair;
  std::vector<std::string> messages;
  std::vector<WorkCompletion> sent;
  int established = 0;
  int disconnected = 0;
  Error reason;
};

class VerbsDevicePair : public ::testing::TestWithParam<bool>,
                        public IncomingHandler,
                        public AcceptHandler,
                        public ConnectHandler {
 protected:
  void SetUp() override {
    const char* address = std::getenv("NFSRDMA_VERBS_ADDR");
    if (address == nullptr) GTEST_SKIP() << "NFSRDMA_VERBS_ADDR names no device's address";
    if (std::getenv("NFSRDMA_TEST_LOG") != nullptr) set_log_level(LogLevel::kDebug);
    set_up_fabric(SocketAddress::parse(address, 0).value());
  }
  void set_up_fabric(const SocketAddress& local) {
    loop_ = std::move(EventLoop::create()).value();
    VerbsOptions options;
    options.per_queue_pair_receives = GetParam();
    fabric_ = make_fabric(options);
    auto listener = fabric_->listen(*loop_, local, *this);
    ASSERT_TRUE(listener.ok()) << listener.error().message();
    listener_ = std::move(listener).value();
  }
  void TearDown() override {
    connector_.reset();
    client_.pair.reset();
    server_.pair.reset();
    request_.reset();
    listener_.reset();
    for (End* end : {&client_, &server_}) {
      end->receives.reset();
      end->queue.reset();
      end->region.reset();
      end->domain.reset();
    }
    if (fabric_) fabric_->forget(*loop_);
  }

  void on_incoming(std::unique_ptr<Incoming> incoming) override { incoming->start(*loop_, *this); }
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override {
    ++requests_;
    server_saw_.assign(as_text(request->private_data()));
    if (refuse_) return request->reject(as_bytes("no"));
    server_.build(request->device(), *loop_);
    auto pair = request->accept(server_.options("from the server"));
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    server_.pair = std::move(pair).value();
  }
  Result<QueuePairOptions> on_device(Device& device) override {
    device_ = &device;
    client_.build(device, *loop_);
    return client_.options("from the client");
  }
  void on_connected(std::unique_ptr<QueuePair> pair, ByteSpan private_data) override {
    client_.pair = std::move(pair);
    client_saw_.assign(as_text(private_data));
  }
  void on_connect_failed(Error error, const std::string& detail) override {
    connect_error_ = error;
    connect_detail_ = detail;
  }

  bool until(const std::function<bool()>& done, Duration limit = 10s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop_->turn(50ms);
    }
    return true;
  }
  void start_connect(const SocketAddress& to) {
    auto connector = fabric_->connect(*loop_, to, *this);
    ASSERT_TRUE(connector.ok()) << connector.error().message();
    connector_ = std::move(connector).value();
  }
  /// Both ends are up and have exchanged one message each.
  void connect() {
    start_connect(listener_->address());
    ASSERT_TRUE(until([&] { return client_.pair != nullptr || !connect_detail_.empty(); }));
    ASSERT_NE(client_.pair, nullptr) << connect_detail_;
    ASSERT_TRUE(client_.send("hello").ok());
    ASSERT_TRUE(until([&] { return !server_.messages.empty() && !client_.sent.empty(); }));
    ASSERT_TRUE(server_.send("welcome").ok());
    ASSERT_TRUE(until([&] { return !client_.messages.empty() && !server_.sent.empty(); }));
  }
  void forget_messages() {
    for (End* end : {&client_, &server_}) {
      end->messages.clear();
      end->sent.clear();
    }
  }
  WorkRequest write_request(const MemoryRegion& target, const Sge& sge, std::uint64_t offset) {
    WorkRequest request;
    request.wr_id = 77;
    request.opcode = WorkOpcode::kWrite;
    request.sges = {&sge, 1};
    request.remote_handle = target.handle();
    request.remote_offset = target.remote_offset() + offset;
    return request;
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<ConnectRequest> request_;
  Device* device_ = nullptr;
  End client_;
  End server_;
  std::string server_saw_;
  std::string client_saw_;
  int requests_ = 0;
  bool refuse_ = false;
  Error connect_error_;
  std::string connect_detail_;
};

TEST_P(VerbsDevicePair, SendsReachThePeerBothWays) {
  connect();
  EXPECT_EQ(server_.messages.at(0), "hello");
  EXPECT_EQ(client_.messages.at(0), "welcome");
  EXPECT_EQ(server_.established, 1);
}

TEST_P(VerbsDevicePair, WorksOnAThreadThatChangedItsCredentials) {
  // As the server does for each caller. The kernel then refuses the libraries' system calls.
  ::setfsuid(12345);
  ::setfsuid(0);
  connect();
  std::vector<std::byte> target(64);
  auto region = client_.domain->register_memory(target, Access::kRemoteWrite, client_.pair.get());
  EXPECT_TRUE(region.ok());
  ::setfsuid(12346);
  ::setfsuid(0);
  forget_messages();
  ASSERT_TRUE(server_.send("again").ok());
  EXPECT_TRUE(until([&] { return client_.messages.size() == 1; }));
  // And without another thread's help, from Linux 5.0 on.
  EXPECT_FALSE(Doorbell::refused());
}

TEST_P(VerbsDevicePair, AFabricMadeAfterAChangeOfCredentialsWorks) {
  // The first fabric's use opens the devices for the whole process.
  connect();
  SocketAddress here = listener_->address();
  TearDown();
  forget_messages();
  ::setfsuid(12345);
  ::setfsuid(0);
  here.set_port(0);
  set_up_fabric(here);
  if (!HasFatalFailure()) connect();
}

TEST_P(VerbsDevicePair, TooSmallACompletionQueueGrowsOrRefuses) {
  client_.completions = server_.completions = 4;
  start_connect(listener_->address());
  ASSERT_TRUE(until([&] { return client_.pair != nullptr || !connect_detail_.empty(); }));
  if (client_.pair == nullptr) {
    // A provider without ibv_resize_cq. An overrun would break connections without a word.
    EXPECT_EQ(connect_error_.code, Errc::kExhausted);
    EXPECT_NE(connect_detail_.find("completion queue full"), std::string::npos) << connect_detail_;
    return;
  }
  for (std::uint32_t i = 0; i < kReceives; ++i)
    ASSERT_TRUE(client_.send("x", i).ok());
  // Time for all of them to end before anybody looks.
  ::poll(nullptr, 0, 200);
  EXPECT_TRUE(until([&] { return client_.sent.size() == kReceives; }));
  EXPECT_TRUE(until([&] { return server_.messages.size() == kReceives; }));
  for (const WorkCompletion& completion : client_.sent)
    EXPECT_EQ(completion.status, WorkStatus::kSuccess);
}

TEST_P(VerbsDevicePair, PrivateDataTravelsBothWays) {
  connect();
  EXPECT_EQ(server_saw_.substr(0, 15), "from the client");
  EXPECT_EQ(client_saw_.substr(0, 15), "from the server");
}

TEST_P(VerbsDevicePair, WriteIsThereBeforeTheSendBehindIt) {
  connect();
  std::vector<std::byte> target(64 << 10);
  auto region = client_.domain->register_memory(target, Access::kRemoteWrite, client_.pair.get());
  ASSERT_TRUE(region.ok()) << region.error().message();
  std::memset(server_.scratch(4096), 0x5a, 64 << 10);
  const Sge data = server_.scratch_sge(4096, 64 << 10);
  const Sge text = server_.scratch_sge(0, 4);
  std::array<WorkRequest, 2> chain;
  chain[0] = write_request(*region, data, 0);
  chain[0].signaled = false;
  chain[1].wr_id = 78;
  chain[1].sges = {&text, 1};
  forget_messages();
  std::size_t posted = 0;
  ASSERT_TRUE(server_.pair->post(chain, &posted).ok());
  EXPECT_EQ(posted, 2U);
  ASSERT_TRUE(until([&] { return !client_.messages.empty(); }));
  EXPECT_EQ(target.front(), std::byte{0x5a});
  EXPECT_EQ(target.back(), std::byte{0x5a});
  ASSERT_TRUE(until([&] { return !server_.sent.empty(); }));
  EXPECT_EQ(server_.sent.size(), 1U) << "the unsignalled Write reports nothing";
  EXPECT_EQ(server_.sent[0].wr_id, 78U);
}

TEST_P(VerbsDevicePair, ReadFetchesThePeersBytes) {
  connect();
  std::vector<std::byte> source(100000, std::byte{0x33});
  auto region = client_.domain->register_memory(source, Access::kRemoteRead, client_.pair.get());
  ASSERT_TRUE(region.ok()) << region.error().message();
  const Sge sink = server_.scratch_sge(8192, 100000);
  WorkRequest read = write_request(*region, sink, 0);
  read.opcode = WorkOpcode::kRead;
  forget_messages();
  ASSERT_TRUE(server_.post(read).ok());
  ASSERT_TRUE(until([&] { return !server_.sent.empty(); }));
  EXPECT_EQ(server_.sent[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(server_.sent[0].opcode, WorkOpcode::kRead);
  EXPECT_EQ(std::memcmp(server_.scratch(8192), source.data(), source.size()), 0);
}

TEST_P(VerbsDevicePair, SmallReadBehindALargeOneCompletes) {
  connect();
  std::vector<std::byte> source(100000, std::byte{0x33});
  auto region = client_.domain->register_memory(source, Access::kRemoteRead, client_.pair.get());
  ASSERT_TRUE(region.ok());
  const Sge large = server_.scratch_sge(8192, 100000);
  const Sge small = server_.scratch_sge(8192, 10);
  WorkRequest read = write_request(*region, large, 0);
  read.opcode = WorkOpcode::kRead;
  forget_messages();
  ASSERT_TRUE(server_.post(read).ok());
  ASSERT_TRUE(server_.send("a", 2).ok());
  read.sges = {&small, 1};
  ASSERT_TRUE(server_.post(read).ok());
  ASSERT_TRUE(server_.send("b", 4).ok());
  EXPECT_TRUE(until([&] { return server_.sent.size() == 4; }));
  EXPECT_TRUE(until([&] { return client_.messages.size() == 2; }));
}

/// What a TCP peer gets after an MPA request (enhanced, IRD and ORD 4), without saying more.
std::vector<std::byte> answers_to_silence(const SocketAddress& to, std::size_t wanted) {
  constexpr char kRequest[] = "MPA ID Req Frame\x10\x02\x00\x04\x00\x04\x00\x04";
  const UniqueFd fd(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  timeval limit{5, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::vector<std::byte> got;
  if (::connect(fd.get(), to.data(), to.length()) != 0) return got;
  if (::send(fd.get(), kRequest, sizeof kRequest - 1, MSG_NOSIGNAL) < 0) return got;
  while (got.size() < wanted) {
    std::array<std::byte, 4096> part;
    const ssize_t n = ::recv(fd.get(), part.data(), part.size(), 0);
    if (n <= 0) break;
    got.insert(got.end(), part.begin(), part.begin() + n);
  }
  return got;
}

TEST_P(VerbsDevicePair, SiwsAcceptIsNudgedWhileNoMessageCame) {
  constexpr std::size_t kHeader = 20;  // of the MPA reply, and where its private data's length is
  constexpr std::size_t kReadRequest = 52;  // an FPDU
  const SocketAddress to = listener_->address();
  auto silent = std::async(std::launch::async,
                           [&] { return answers_to_silence(to, kHeader + 4 + 15 + kReadRequest); });
  ASSERT_TRUE(
      until([&] { return requests_ == 1 || silent.wait_for(0s) == std::future_status::ready; }));
  const VerbsHostReport host = probe_host();
  const bool siw = std::any_of(host.devices.begin(), host.devices.end(), [](const auto& device) {
    return device.kind.find("siw") != std::string::npos;
  });
  ASSERT_EQ(requests_, siw ? 1 : 0) << "only siw listens on TCP";
  if (!siw) {
    EXPECT_TRUE(silent.get().empty());
    return;
  }
  EXPECT_TRUE(until([&] { return silent.wait_for(0s) == std::future_status::ready; }));
  const std::vector<std::byte> got = silent.get();
  ASSERT_GT(got.size(), kHeader);
  const std::size_t fpdu = kHeader + std::to_integer<std::size_t>(got[19]);
  ASSERT_GE(got.size(), fpdu + 40) << "nothing came behind the reply";
  EXPECT_EQ(got[fpdu + 3] & std::byte{0x0f}, std::byte{1}) << "not an RDMA Read Request";
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(got[fpdu + 32 + i], std::byte{0}) << "its size is not 0";
  EXPECT_TRUE(until([&] { return server_.disconnected == 1; }));
  EXPECT_TRUE(server_.sent.empty()) << "what the fabric posts for itself is not reported";
}

TEST_P(VerbsDevicePair, SendWithInvalidateArrivesAsMessage) {
  connect();
  std::vector<std::byte> target(4096);
  auto region = client_.domain->register_memory(target, Access::kRemoteWrite, client_.pair.get());
  ASSERT_TRUE(region.ok());
  const Sge text = server_.scratch_sge(0, 7);
  WorkRequest request;
  request.opcode = WorkOpcode::kSendWithInvalidate;
  request.sges = {&text, 1};
  request.remote_handle = region->handle();
  forget_messages();
  // Regions that the peer cannot invalidate make this an error on some devices: either the message
  // arrives or the connection ends, never silence.
  auto result = server_.post(request);
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_TRUE(until([&] { return !client_.messages.empty() || client_.disconnected > 0; }));
  EXPECT_TRUE(client_.messages.size() == 1 || client_.disconnected == 1);
}

TEST_P(VerbsDevicePair, WriteBehindTheRegionBreaksTheConnection) {
  connect();
  std::vector<std::byte> target(8192);
  auto region = client_.domain->register_memory(MutableByteSpan(target).first(4096),
                                                Access::kRemoteWrite, client_.pair.get());
  ASSERT_TRUE(region.ok());
  std::memset(server_.scratch(0), 0xff, 4096);
  const Sge data = server_.scratch_sge(0, 4096);
  forget_messages();
  ASSERT_TRUE(server_.post(write_request(*region, data, 1)).ok());
  ASSERT_TRUE(until([&] { return server_.disconnected > 0 && client_.disconnected > 0; }));
  EXPECT_EQ(target[4096], std::byte{0}) << "a byte behind the region was written";
  ASSERT_EQ(server_.sent.size(), 1U);
}

TEST_P(VerbsDevicePair, DeregisteredMemoryIsOutOfReach) {
  connect();
  std::vector<std::byte> target(4096);
  auto region = client_.domain->register_memory(target, Access::kRemoteWrite, client_.pair.get());
  ASSERT_TRUE(region.ok());
  const Sge data = server_.scratch_sge(0, 64);
  std::memset(server_.scratch(0), 0xff, 64);
  const WorkRequest request = write_request(*region, data, 0);
  region->reset();
  ASSERT_TRUE(server_.post(request).ok());
  ASSERT_TRUE(until([&] { return client_.disconnected > 0 && server_.disconnected > 0; }));
  EXPECT_EQ(target[0], std::byte{0});
}

TEST_P(VerbsDevicePair, EverythingPostedCompletesOnceWhenTheConnectionBreaks) {
  connect();
  std::vector<std::byte> target(4096);
  auto region = client_.domain->register_memory(target, Access::kRemoteWrite, client_.pair.get());
  ASSERT_TRUE(region.ok());
  const Sge data = server_.scratch_sge(0, 64);
  std::array<WorkRequest, 8> chain;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    chain[i] = write_request(*region, data, i == 0 ? 100000 : 0);  // the first one is out of bounds
    chain[i].wr_id = 100 + i;
  }
  forget_messages();
  std::size_t posted = 0;
  ASSERT_TRUE(server_.pair->post(chain, &posted).ok());
  ASSERT_TRUE(until([&] { return server_.disconnected > 0; }));
  ASSERT_EQ(server_.sent.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(server_.sent[i].wr_id, 100 + i);
  EXPECT_EQ(server_.disconnected, 1);
}

TEST_P(VerbsDevicePair, OrderlyCloseIsHeardByThePeer) {
  connect();
  forget_messages();
  ASSERT_TRUE(client_.send("last words").ok());
  client_.pair->disconnect();
  ASSERT_TRUE(until([&] { return client_.disconnected > 0 && server_.disconnected > 0; }));
  EXPECT_EQ(server_.reason.code, Errc::kClosed);
  EXPECT_EQ(client_.reason.code, Errc::kClosed);
  ASSERT_EQ(server_.messages.size(), 1U) << "what was queued before the close arrives";
  EXPECT_EQ(server_.messages[0], "last words");
}

TEST_P(VerbsDevicePair, PostAfterDisconnectIsRefused) {
  connect();
  client_.pair->disconnect();
  auto posted = client_.send("too late");
  ASSERT_FALSE(posted.ok());
  EXPECT_EQ(posted.error().code, Errc::kClosed);
}

TEST_P(VerbsDevicePair, DestructionIsHeardByThePeer) {
  connect();
  client_.pair.reset();
  ASSERT_TRUE(until([&] { return server_.disconnected > 0; }));
  EXPECT_EQ(server_.disconnected, 1);
}

TEST_P(VerbsDevicePair, ReceivesSurviveTheirConnections) {
  // More connections than there are receives: any receive lost with a connection would show.
  for (std::uint32_t round = 0; round < kReceives + 4; ++round) {
    forget_messages();
    connect();
    if (HasFatalFailure()) return;
    client_.disconnected = server_.disconnected = 0;
    client_.pair->disconnect();
    ASSERT_TRUE(until([&] { return client_.disconnected > 0 && server_.disconnected > 0; }))
        << "round " << round;
    client_.pair.reset();
    server_.pair.reset();
  }
  EXPECT_EQ(requests_, static_cast<int>(kReceives) + 4);
}

TEST_P(VerbsDevicePair, RefusalIsReported) {
  refuse_ = true;
  start_connect(listener_->address());
  ASSERT_TRUE(until([&] { return !connect_detail_.empty(); }));
  EXPECT_EQ(connect_error_.code, Errc::kRefused) << connect_detail_;
}

TEST_P(VerbsDevicePair, NobodyListeningIsReported) {
  SocketAddress nobody = listener_->address();
  listener_.reset();
  start_connect(nobody);
  ASSERT_TRUE(until([&] { return !connect_detail_.empty(); }, 15s));
  EXPECT_EQ(requests_, 0);
}

TEST_P(VerbsDevicePair, AbandonedConnectorCallsNobody) {
  start_connect(listener_->address());
  connector_.reset();
  until([&] { return requests_ > 0; }, 200ms);
  EXPECT_EQ(client_.pair, nullptr);
  EXPECT_TRUE(connect_detail_.empty());
}

TEST_P(VerbsDevicePair, PairsKnowTheirAddressesAndLimits) {
  connect();
  EXPECT_TRUE(client_.pair->info().peer.same_host(listener_->address()));
  EXPECT_EQ(client_.pair->info().peer.port(), listener_->address().port());
  EXPECT_EQ(server_.pair->info().max_outbound_reads, 8U);
  EXPECT_FALSE(server_.pair->info().detail.empty());
}

/// The server's connections live on another thread than the listener's.
class OtherThread final : public IncomingHandler, public AcceptHandler {
 public:
  OtherThread() : loop_(std::move(EventLoop::create()).value()) {}
  void start() {
    thread_ = std::thread([this] { loop_->run(); });
  }
  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    loop_->post([this, held = std::make_shared<std::unique_ptr<Incoming>>(std::move(incoming))] {
      (*held)->start(*loop_, *this);
    });
  }
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override {
    end_.build(request->device(), *loop_);
    auto pair = request->accept(end_.options("from the other thread"));
    if (pair.ok()) end_.pair = std::move(pair).value();
  }
  /// Echoes, then ends the thread.
  void stop(Fabric& fabric) {
    loop_->post([this, &fabric] {
      end_.pair.reset();
      end_.receives.reset();
      end_.queue.reset();
      end_.region.reset();
      end_.domain.reset();
      fabric.forget(*loop_);
      loop_->stop();
    });
    thread_.join();
  }
  void reply(const std::string& text) {
    loop_->post([this, text] { (void)end_.send(text); });
  }

 private:
  std::unique_ptr<EventLoop> loop_;
  End end_;
  std::thread thread_;
};

TEST_P(VerbsDevicePair, ConnectionMovesToAnotherThread) {
  OtherThread other;
  auto listener = fabric_->listen(
      *loop_, std::move(SocketAddress::parse(std::getenv("NFSRDMA_VERBS_ADDR"), 0)).value(), other);
  ASSERT_TRUE(listener.ok());
  other.start();
  start_connect((*listener)->address());
  EXPECT_TRUE(until([&] { return client_.pair != nullptr || !connect_detail_.empty(); }));
  if (client_.pair != nullptr) {
    EXPECT_TRUE(client_.send("over there").ok());
    EXPECT_TRUE(until([&] { return !client_.sent.empty(); }));
    other.reply("from here");
    EXPECT_TRUE(until([&] { return !client_.messages.empty(); }));
    EXPECT_EQ(client_.messages.empty() ? "" : client_.messages[0], "from here");
  }
  other.stop(*fabric_);
  until([&] { return client_.disconnected > 0; });
  EXPECT_EQ(client_.disconnected, 1);
}

INSTANTIATE_TEST_SUITE_P(Receives, VerbsDevicePair, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& receives) {
                           return receives.param ? "PerQueuePair" : "Shared";
                         });

}  // namespace
}  // namespace nfsrdma::verbs
