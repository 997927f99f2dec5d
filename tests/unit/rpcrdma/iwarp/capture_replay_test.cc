// SPDX-License-Identifier: Apache-2.0
// Real traffic of Linux's NFS over siw: both directions of every iWARP connection go through our
// receiver, which must accept every FPDU and find as many as an independent walk over the lengths.
#include <filesystem>

#include "rpcrdma/header.h"
#include "rpcrdma/iwarp/mpa_connect.h"
#include "tests/unit/rpcrdma/iwarp/engine_pair.h"
#include "tests/unit/rpcrdma/iwarp/pcap_reader.h"

namespace nfsrdma::iwarp::test {
namespace {

/// Has memory for every STag that is asked for, wherever its offsets begin.
class AnyStags final : public StagDirectory {
 public:
  StagAccess check(std::uint32_t stag, std::uint64_t offset, std::uint64_t length, std::uint64_t,
                   Access access) override {
    auto [found, added] = regions_.try_emplace({stag, access});
    Region& region = found->second;
    // The key comes round after 256 uses: the same STag then names other memory.
    if (added || offset - region.entry.base_offset >= kSize) {
      region.bytes.resize(kSize);
      region.entry.placed_end = 0;
      region.entry.base = region.bytes.data();
      region.entry.size = kSize;
      region.entry.base_offset = offset;
    }
    const std::uint64_t position = offset - region.entry.base_offset;
    if (!range_inside<std::uint64_t>(position, length, kSize)) return {StagFault::kBounds};
    return {StagFault::kNone, &region.entry, position};
  }
  bool invalidate(std::uint32_t stag, std::uint64_t) override {
    regions_.erase({stag, Access::kRemoteRead});
    regions_.erase({stag, Access::kRemoteWrite});
    ++invalidated;
    return true;
  }
  int invalidated = 0;

 private:
  static constexpr std::size_t kSize = 1 << 20;
  struct Region {
    StagEntry entry;
    std::vector<std::byte> bytes;
  };
  std::map<std::pair<std::uint32_t, Access>, Region> regions_;
};

/// What is in a stream of FPDUs without CRC, found by its lengths alone.
struct Census {
  std::size_t fpdus = 0;
  std::size_t messages = 0;  // Sends
  std::size_t invalidates = 0;
  std::vector<ReadRequestBody> reads;
};

Census take_census(ByteSpan stream) {
  Census census;
  while (stream.size() >= 4) {
    const std::size_t front = kMpaLengthSize + load_be16(stream.data());
    const std::size_t total = front + fpdu_trailer(front);
    if (total > stream.size()) break;
    const auto opcode = static_cast<unsigned>(stream[3]) & 15;
    const bool last = (static_cast<unsigned>(stream[2]) & kDdpLast) != 0;
    ++census.fpdus;
    if (opcode >= 3 && opcode <= 6 && last) ++census.messages;
    if (opcode == 4 || opcode == 6) ++census.invalidates;
    if (opcode == 1) census.reads.push_back(load_read_request(stream.data() + kUntaggedHeader));
    stream = stream.subspan(total);
  }
  return census;
}

struct NoDomain final : ProtectionDomain {
  Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
    return Error{};
  }
  void deregister(MemoryRegion&) override {}
};

class Side final : public EngineEvents {
 public:
  Side(bool initiator, const MpaAgreement& agreed)
      : engine(*this, stags, pool, make(initiator, agreed)) {}
  static EngineOptions make(bool initiator, const MpaAgreement& agreed) {
    EngineOptions options;
    options.initiator = initiator;
    options.crc = agreed.crc;
    options.ird = options.ord = 128;
    options.send_depth = 100'000;
    return options;
  }
  void on_completion(const WorkCompletion& completion) override {
    if (completion.opcode == WorkOpcode::kReceive) {
      ++messages;
      received.emplace_back(buffer_.begin(), buffer_.begin() + completion.byte_count);
    } else if (completion.status == WorkStatus::kSuccess) {
      ++reads;
    }
  }
  bool take_receive(std::uint64_t* wr_id, Sge* buffer) override {
    *wr_id = 0;
    *buffer = {buffer_.data(), static_cast<std::uint32_t>(buffer_.size()), 0};
    return true;
  }
  void return_receive(std::uint64_t, Sge) override {}
  void on_first_fpdu() override {}
  void on_rtr_done() override {}
  void on_engine_failed() override {}

  void post_read(const ReadRequestBody& read) {
    sinks_.push_back(std::make_unique<std::vector<std::byte>>(read.size));
    regions_.push_back(
        MemoryRegion(domain_, *sinks_.back(), 0, read.sink_stag, read.sink_offset, 0));
    const Sge sge{sinks_.back()->data(), read.size, 0};
    WorkRequest request;
    request.opcode = WorkOpcode::kRead;
    request.sges = {&sge, 1};
    request.read_sink = &regions_.back();
    request.remote_handle = read.source_stag;
    request.remote_offset = read.source_offset;
    std::size_t posted = 0;
    ASSERT_TRUE(engine.post({&request, 1}, &posted).ok());
  }
  /// What it sends is not compared: the capture holds what the real peer sent.
  void drain() {
    for (;;) {
      engine.fill(*transmit_);
      if (transmit_->fpdu_count == 0) return;
      engine.on_sent(transmit_->bytes);
    }
  }
  void feed(ByteSpan stream) {
    // The first FPDU alone: the responder's Read Requests may go out only after it.
    const std::size_t front = kMpaLengthSize + load_be16(stream.data());
    std::size_t most = front + fpdu_trailer(front);
    while (!stream.empty() && !engine.failed()) {
      engine.receiver().plan(*scratch_);
      std::size_t left = std::min(stream.size(), most);
      most = 14'480;  // about what a socket gives at a time
      std::size_t taken = 0;
      for (int i = 0; i < scratch_->count && left > 0; ++i) {
        const iovec& piece = scratch_->iov[static_cast<std::size_t>(i)];
        const std::size_t n = std::min(piece.iov_len, left);
        std::memcpy(piece.iov_base, stream.data() + taken, n);
        taken += n;
        left -= n;
      }
      engine.receiver().on_bytes(*scratch_, taken);
      stream = stream.subspan(taken);
      drain();
    }
  }

  AnyStags stags;
  WorkPool pool;
  std::size_t messages = 0;
  std::size_t reads = 0;
  std::vector<std::vector<std::byte>> received;

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(65536);
  std::unique_ptr<ReceiveScratch> scratch_ = std::make_unique<ReceiveScratch>();
  std::unique_ptr<TransmitScratch> transmit_ = std::make_unique<TransmitScratch>();
  NoDomain domain_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> sinks_;
  std::deque<MemoryRegion> regions_;

 public:
  Engine engine;
};

struct Handshake {
  MpaFrame request;
  MpaFrame reply;
  std::size_t request_size = 0;
  std::size_t reply_size = 0;
};

bool take_handshake(const CapturedConnection& connection, Handshake* out) {
  return decode_mpa_frame(connection.from_initiator, false, &out->request_size, &out->request) ==
             MpaParse::kDone &&
         decode_mpa_frame(connection.from_responder, true, &out->reply_size, &out->reply) ==
             MpaParse::kDone;
}

void expect_accepted(const char* which, Side& side, const Census& census, std::size_t reads) {
  EXPECT_FALSE(side.engine.failed()) << which << ": " << side.engine.failure().message();
  EXPECT_EQ(side.engine.receiver().fpdus(), census.fpdus) << which;
  EXPECT_EQ(side.messages, census.messages) << which;
  EXPECT_EQ(static_cast<std::size_t>(side.stags.invalidated), census.invalidates) << which;
  EXPECT_LE(side.reads, reads) << which;
}

/// The Sends that arrived on one connection.
struct Messages {
  std::vector<std::vector<std::byte>> at_server, at_client;
};

/// Returns the number of iWARP connections.
std::size_t replay(const std::string& path, std::vector<Messages>* said = nullptr) {
  std::size_t found = 0;
  for (const CapturedConnection& connection : reassemble(read_capture(path))) {
    Handshake handshake;
    if (!take_handshake(connection, &handshake)) continue;
    ++found;
    const MpaLimits limits{false, 128, 128};
    auto agreed = conclude_reply(handshake.request, handshake.reply, limits);
    EXPECT_TRUE(agreed.ok());
    if (!agreed.ok()) continue;
    const ByteSpan to_server = ByteSpan(connection.from_initiator).subspan(handshake.request_size);
    const ByteSpan to_client = ByteSpan(connection.from_responder).subspan(handshake.reply_size);
    const Census at_server = take_census(to_server);
    const Census at_client = take_census(to_client);
    EXPECT_GT(at_server.fpdus, 10u);
    EXPECT_GT(at_client.fpdus, 10u);

    Side server(false, *agreed);
    for (const ReadRequestBody& read : at_client.reads)
      server.post_read(read);
    server.feed(to_server);
    expect_accepted("client to server", server, at_server, at_client.reads.size());
    Side client(true, *agreed);
    client.feed(to_client);
    expect_accepted("server to client", client, at_client, 0);
    if (said != nullptr) said->push_back({server.received, client.received});
  }
  return found;
}

TEST(CaptureReplay, LinuxNfsV3OverSiw) {
  EXPECT_EQ(replay(NFSRDMA_GOLDEN_DIR "/siw/nfs-v3.pcap"), 2u);
}

TEST(CaptureReplay, LinuxNfsV41OverSiw) {
  EXPECT_EQ(replay(NFSRDMA_GOLDEN_DIR "/siw/nfs-v4.1.pcap"), 2u);
}

constexpr std::uint32_t kCallbackProgram = 0x40000000;  // as Linux's client says in CREATE_SESSION

/// Where the RPC message begins in one of RDMA_MSG without chunks, as all are in the backward
/// direction (RFC 8167 4.2.2); empty for others.
ByteSpan backward_rpc(ByteSpan message) {
  TransportHeader header;
  if (decode_header(message, header) != HeaderVerdict::kOk || header.proc != RDMA_MSG) return {};
  const ChunkLists& chunks = header.chunks;
  const bool bare = chunks.reads().empty() && chunks.writes().empty() && !chunks.has_reply_chunk;
  return bare ? message.subspan(header.header_bytes) : ByteSpan();
}

std::uint32_t word(ByteSpan rpc, std::size_t number) {
  return rpc.size() < 4 * (number + 1) ? 0xffffffff : load_be32(rpc.data() + 4 * number);
}

// Linux's client of version 4.2 on siw reads from our server and has its delegation recalled: a
// call of CB_COMPOUND comes to it between the replies to its own, and its answer between its calls.
TEST(CaptureReplay, LinuxNfsV42OverSiwIsCalledBack) {
  std::vector<Messages> said;
  ASSERT_EQ(replay(NFSRDMA_GOLDEN_DIR "/siw/nfs-v4.2-recall.pcap", &said), 1u);
  constexpr std::uint32_t kCall = 0, kReply = 1, kAccepted = 0, kSuccess = 0, kCbCompound = 1;
  std::vector<std::uint32_t> called, answered;
  for (const auto& message : said[0].at_client) {
    const ByteSpan rpc = backward_rpc(message);
    if (word(rpc, 1) != kCall) continue;
    EXPECT_EQ(word(rpc, 3), kCallbackProgram);
    EXPECT_EQ(word(rpc, 5), kCbCompound);
    called.push_back(word(rpc, 0));
  }
  for (const auto& message : said[0].at_server) {
    const ByteSpan rpc = backward_rpc(message);
    if (word(rpc, 1) != kReply) continue;
    EXPECT_EQ(word(rpc, 2), kAccepted);
    EXPECT_EQ(word(rpc, 4), 0u) << "length of its verifier";
    EXPECT_EQ(word(rpc, 5), kSuccess);
    EXPECT_EQ(word(rpc, 6), 0u) << "status of CB_COMPOUND";
    answered.push_back(word(rpc, 0));
  }
  EXPECT_EQ(called.size(), 1u);
  EXPECT_EQ(answered, called);
}

TEST(CaptureReplay, CompleteCapturesBesideTheCheckout) {
  const std::filesystem::path folder = NFSRDMA_GOLDEN_DIR "/../../../shared/lab/pcap";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no ../shared/lab/pcap";
  std::size_t connections = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(file.path().string());
    connections += replay(file.path().string());
  }
  EXPECT_GE(connections, 8u);
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
