// SPDX-License-Identifier: Apache-2.0
// What one READ or WRITE of 1 MiB may cost the server above the fabric: no heap allocation, no
// copy of payload, one work request per segment and one for the reply.
//
// Allocations are counted by replacing operator new. That payload is not copied is shown by where
// the work requests point: into the very buffer that the handler filled, and from the sink straight
// to the handler.
#include <gtest/gtest.h>

#include <array>

#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/rdma_server.h"
#include "tests/budget/counting_new.h"
#include "tests/support/toy_rpc.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kMiB = 1 << 20;

/// A fabric without a wire: records what is posted and completes it when told. Allocates nothing.
class StubDevice : public Device,
                   public ProtectionDomain,
                   public CompletionQueue,
                   public SharedReceiveQueue {
 public:
  struct Posted {
    WorkRequest request;
    Sge first_sge;
    std::size_t sge_count = 0;
  };
  std::array<Posted, 64> posted;
  std::size_t posted_count = 0;
  std::array<Posted, 256> receives;
  std::size_t receive_count = 0;
  std::array<WorkCompletion, 64> completions;
  std::size_t completion_count = 0;
  CompletionHandler* handler = nullptr;
  DeviceInfo device_info;

  const DeviceInfo& info() const override { return device_info; }
  Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() override;
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(EventLoop&, CompletionHandler& h,
                                                                   std::uint32_t) override;
  Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(ProtectionDomain&,
                                                                          std::uint32_t) override;
  Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access, const QueuePair*) override {
    return MemoryRegion(*this, bytes, 1, 1, 0, 1);
  }
  void deregister(MemoryRegion&) override {}
  std::size_t poll(std::span<WorkCompletion> out) override {
    const std::size_t n = std::min(out.size(), completion_count);
    std::copy_n(completions.begin(), n, out.begin());
    std::copy(completions.begin() + static_cast<std::ptrdiff_t>(n),
              completions.begin() + static_cast<std::ptrdiff_t>(completion_count),
              completions.begin());
    completion_count -= n;
    return n;
  }
  Result<void> post(std::uint64_t wr_id, Sge buffer) override {
    if (receive_count == receives.size()) return Error{Errc::kExhausted, 0, "stub"};
    receives[receive_count].request.wr_id = wr_id;
    receives[receive_count++].first_sge = buffer;
    return {};
  }
  std::uint32_t depth() const override { return 256; }
};

// The endpoint owns its objects; these hand everything on to the one stub.
struct ForwardDomain : ProtectionDomain {
  explicit ForwardDomain(StubDevice& s) : stub(s) {}
  Result<MemoryRegion> register_memory(MutableByteSpan b, Access a, const QueuePair* q) override {
    return stub.register_memory(b, a, q);
  }
  void deregister(MemoryRegion&) override {}
  StubDevice& stub;
};
struct ForwardCompletions : CompletionQueue {
  explicit ForwardCompletions(StubDevice& s) : stub(s) {}
  std::size_t poll(std::span<WorkCompletion> out) override { return stub.poll(out); }
  StubDevice& stub;
};
struct ForwardReceives : SharedReceiveQueue {
  explicit ForwardReceives(StubDevice& s) : stub(s) {}
  Result<void> post(std::uint64_t id, Sge b) override { return stub.post(id, b); }
  std::uint32_t depth() const override { return 256; }
  StubDevice& stub;
};
Result<std::unique_ptr<ProtectionDomain>> StubDevice::create_protection_domain() {
  return std::unique_ptr<ProtectionDomain>(new ForwardDomain(*this));
}
Result<std::unique_ptr<CompletionQueue>> StubDevice::create_completion_queue(EventLoop&,
                                                                             CompletionHandler& h,
                                                                             std::uint32_t) {
  handler = &h;
  return std::unique_ptr<CompletionQueue>(new ForwardCompletions(*this));
}
Result<std::unique_ptr<SharedReceiveQueue>> StubDevice::create_shared_receive_queue(
    ProtectionDomain&, std::uint32_t) {
  return std::unique_ptr<SharedReceiveQueue>(new ForwardReceives(*this));
}

struct StubQueuePair : QueuePair {
  explicit StubQueuePair(StubDevice& s) : stub(s) { qp_info.max_outbound_reads = 16; }
  Result<void> post(std::span<const WorkRequest> requests, std::size_t* count) override {
    for (const WorkRequest& request : requests) {
      stub.posted[stub.posted_count++] = {request, request.sges[0], request.sges.size()};
    }
    *count = requests.size();
    return {};
  }
  void disconnect() override {}
  const QueuePairInfo& info() const override { return qp_info; }
  StubDevice& stub;
  QueuePairInfo qp_info;
};

struct StubRequest : ConnectRequest {
  explicit StubRequest(StubDevice& s, QueuePair** out) : stub(s), made(out) {}
  Device& device() override { return stub; }
  const SocketAddress& peer() const override { return address; }
  ByteSpan private_data() const override { return data; }
  std::uint32_t peer_inbound_reads() const override { return 16; }
  Result<std::unique_ptr<QueuePair>> accept(const QueuePairOptions&) override {
    auto queue_pair = std::make_unique<StubQueuePair>(stub);
    *made = queue_pair.get();
    return std::unique_ptr<QueuePair>(std::move(queue_pair));
  }
  void reject(ByteSpan) override {}
  StubDevice& stub;
  QueuePair** made;
  SocketAddress address = SocketAddress::any_v4(1);
  std::array<std::byte, 8> data = PrivateData{4096, 4096, true}.encode();
};

/// Answers a READ from a pool buffer that it does not fill, and remembers what it saw.
struct BudgetHandler : CallHandler {
  const std::byte* payload = nullptr;       // READ: where the reply's data is
  const std::byte* request_data = nullptr;  // WRITE: where the call's data is
  void on_connection_opened(ServerConnection&) override {}
  void on_connection_closed(ServerConnection&) override {}
  void on_call(Call& call) override {
    const bool read = load_be32(call.message().data() + 20) == kToyRead;
    xdr::Encoder out(call.reply_room());
    for (std::uint32_t v : {call.xid(), 1u, 0u, 0u, 0u, 0u, 0u})
      out.u32(v);
    Buffer buffer;
    if (read) {
      buffer = call.connection().buffers().acquire(kMiB);
      payload = buffer.data();
      out.payload({buffer.data(), kMiB});
    } else {
      request_data = call.reduced().empty() ? nullptr : call.reduced()[0].bytes.data();
    }
    call.reply(out, std::move(buffer));
  }
};

class Budget : public ::testing::Test {
 protected:
  Budget() {
    device_.device_info.max_send_sge = 8;
    device_.device_info.max_send_depth = 4096;
    device_.device_info.max_outbound_reads = 16;
    device_.device_info.read_sink_needs_handle = true;
    server_.on_connect_request(std::make_unique<StubRequest>(device_, &queue_pair_));
  }

  /// The bytes arrive as a Send.
  void receive(ByteSpan message) {
    StubDevice::Posted receive = device_.receives[--device_.receive_count];
    std::memcpy(receive.first_sge.address, message.data(), message.size());
    WorkCompletion completion;
    completion.wr_id = receive.request.wr_id;
    completion.opcode = WorkOpcode::kReceive;
    completion.byte_count = static_cast<std::uint32_t>(message.size());
    completion.queue_pair = queue_pair_;
    device_.completions[device_.completion_count++] = completion;
    device_.handler->on_completions();
  }
  void complete_signaled() {
    const std::size_t count = std::exchange(device_.posted_count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (!device_.posted[i].request.signaled) continue;
      WorkCompletion completion;
      completion.wr_id = device_.posted[i].request.wr_id;
      completion.opcode = device_.posted[i].request.opcode;
      device_.completions[device_.completion_count++] = completion;
    }
    device_.handler->on_completions();
  }
  std::vector<std::byte> call(std::uint32_t procedure, int segments) {
    ChunkLists chunks;
    chunks.clear();
    ToyCall toy(7, procedure, 4, 1);
    if (procedure == kToyRead) chunks.begin_write_chunk();
    for (int i = 0; i < segments; ++i) {
      const Segment segment{5, kMiB / static_cast<std::uint32_t>(segments), 0x1000u * (i + 1u)};
      if (procedure == kToyRead) {
        chunks.add_write_segment(segment);
      } else {
        chunks.add_read_segment(static_cast<std::uint32_t>(toy.head.size()), segment);
      }
    }
    std::vector<std::byte> message(1024);
    message.resize(encode_header(message, 7, 32, RDMA_MSG, chunks));
    message.insert(message.end(), toy.head.begin(), toy.head.end());
    return message;
  }
  void read_once(const std::vector<std::byte>& message) {
    receive(message);
    complete_signaled();
  }
  void write_once(const std::vector<std::byte>& message) {
    receive(message);
    complete_signaled();  // the Reads
    complete_signaled();  // the reply
  }

  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  StubDevice device_;
  BufferPool pool_{*loop_, 64u << 20};
  BudgetHandler handler_;
  QueuePair* queue_pair_ = nullptr;
  RdmaServer server_{*loop_, pool_, handler_};
};

TEST_F(Budget, ReadOf1MiBAllocatesNothing) {
  const auto message = call(kToyRead, 4);
  for (int i = 0; i < 200; ++i)
    read_once(message);  // warm up: pools, grants, tables
  start_counting_allocations();
  for (int i = 0; i < 100; ++i)
    read_once(message);
  EXPECT_EQ(stop_counting_allocations(), 0u);
}

TEST_F(Budget, WriteOf1MiBAllocatesNothing) {
  const auto message = call(kToyWrite, 4);
  for (int i = 0; i < 200; ++i)
    write_once(message);
  start_counting_allocations();
  for (int i = 0; i < 100; ++i)
    write_once(message);
  EXPECT_EQ(stop_counting_allocations(), 0u);
}

TEST_F(Budget, ReadPostsOneRequestPerSegmentAndTheSendAsOneChain) {
  receive(call(kToyRead, 4));
  ASSERT_EQ(device_.posted_count, 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(device_.posted[i].request.opcode, WorkOpcode::kWrite);
    EXPECT_FALSE(device_.posted[i].request.signaled);
  }
  EXPECT_TRUE(device_.posted[4].request.signaled);
}

TEST_F(Budget, ReadSendsFromTheBufferThatTheHandlerFilled) {
  receive(call(kToyRead, 4));
  ASSERT_EQ(device_.posted_count, 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(device_.posted[i].sge_count, 1u);
    EXPECT_EQ(device_.posted[i].first_sge.address, handler_.payload + i * (kMiB / 4));
  }
}

TEST_F(Budget, WritePostsOneReadPerSegmentIntoWhatTheHandlerSees) {
  receive(call(kToyWrite, 4));
  ASSERT_EQ(device_.posted_count, 4u);
  const std::byte* sink = device_.posted[0].first_sge.address;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(device_.posted[i].request.opcode, WorkOpcode::kRead);
    EXPECT_EQ(device_.posted[i].first_sge.address, sink + i * (kMiB / 4));
  }
  complete_signaled();
  EXPECT_EQ(handler_.request_data, sink);
  EXPECT_EQ(device_.posted_count, 1u);  // the reply
}

TEST_F(Budget, SmallCallAllocatesNothing) {
  ToyCall toy(7, kToyNull, 0, 0);
  ChunkLists none;
  none.clear();
  std::vector<std::byte> message(1024);
  message.resize(encode_header(message, 7, 32, RDMA_MSG, none));
  message.insert(message.end(), toy.head.begin(), toy.head.end());
  for (int i = 0; i < 100; ++i)
    read_once(message);
  start_counting_allocations();
  for (int i = 0; i < 100; ++i)
    read_once(message);
  EXPECT_EQ(stop_counting_allocations(), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
