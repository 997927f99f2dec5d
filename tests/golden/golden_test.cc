// SPDX-License-Identifier: Apache-2.0
// Replays the traces of this folder; README.md has their format.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/reply_chain.h"

namespace nfsrdma {
namespace {

struct Trace {
  std::map<std::string, std::vector<std::string>> sections;  // keyword -> lines
  std::vector<std::string> writes;

  bool has(const std::string& key) const { return sections.count(key) > 0; }
  std::string text(const std::string& key) const {
    std::string all;
    auto found = sections.find(key);
    if (found == sections.end()) return all;
    for (const std::string& line : found->second)
      all += line + "\n";
    return all;
  }
  std::uint64_t number(const std::string& key) const {
    return has(key) ? std::stoull(sections.at(key).front(), nullptr, 0) : 0;
  }
  std::vector<std::byte> bytes(const std::string& key) const {
    std::vector<std::byte> out;
    std::istringstream in(text(key));
    for (std::string word; in >> word;) {
      out.resize(out.size() + 4);
      store_be32(out.data() + out.size() - 4,
                 static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
    }
    return out;
  }
};

Trace load(const std::filesystem::path& path) {
  Trace trace;
  std::ifstream file(path);
  std::string key;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == ' ') {
      trace.sections[key].push_back(line.substr(2));
      continue;
    }
    const auto space = line.find(' ');
    key = line.substr(0, space);
    if (key == "write") trace.writes.push_back(line);
    trace.sections[key];
    if (space != std::string::npos) trace.sections[key].push_back(line.substr(space + 1));
  }
  return trace;
}

std::string describe(const Segment& s) {
  return fmt::format(" 0x{:08x} {} @0x{:x}", s.handle, s.length, s.offset);
}

std::string describe(const TransportHeader& header, std::size_t message_bytes) {
  std::string out = fmt::format(
      "{} xid={:08x} credits={} header={} inline={}\n", header.proc == RDMA_NOMSG ? "NOMSG" : "MSG",
      header.xid, header.credits, header.header_bytes, message_bytes - header.header_bytes);
  const ChunkLists& chunks = header.chunks;
  for (const ReadChunk& chunk : chunks.reads()) {
    out += fmt::format("read-chunk position={} length={}", chunk.position, chunk.length);
    for (const Segment& s : chunks.segments(chunk))
      out += describe(s);
    out += "\n";
  }
  for (const WriteChunk& chunk : chunks.writes()) {
    out += "write-chunk";
    for (const Segment& s : chunks.segments(chunk))
      out += describe(s);
    out += "\n";
  }
  if (chunks.has_reply_chunk) {
    out += "reply-chunk";
    for (const Segment& s : chunks.reply())
      out += describe(s);
    out += "\n";
  }
  return out;
}

void check_reply(const Trace& trace, const TransportHeader& header) {
  std::vector<std::byte> rpc = trace.bytes("rpc-reply");
  if (trace.has("rpc-reply-of")) rpc.resize(trace.number("rpc-reply-of"));
  std::vector<std::byte> payload(trace.number("payload"));
  std::vector<std::byte> room(4096);
  const xdr::PayloadReference reference{rpc.size(), payload};
  ReplyParts parts;
  parts.xid = header.xid;
  parts.offered = &header.chunks;
  parts.encoded = rpc;
  if (!payload.empty()) parts.payloads = {&reference, 1};
  parts.send_room = room;
  parts.max_send_sge = 8;
  if (trace.has("no-private-data")) {
    // What the server has of a client that does not say what it takes.
    parts.inline_send =
        InlineThresholds::negotiate({4096, 4096, true}, PrivateData::parse({})).send;
    EXPECT_FALSE(PrivateData::parse({}).remote_invalidation);
  } else {
    parts.inline_send = static_cast<std::uint32_t>(trace.number("inline"));
    parts.invalidate = invalidation_candidate(header.chunks);
  }
  auto chain = std::make_unique<ReplyChain>();
  chain->build(parts);
  store_be32(room.data() + kCreditsOffset, static_cast<std::uint32_t>(trace.number("grant")));

  std::vector<std::string> writes;
  for (const WorkRequest& request : chain->requests()) {
    if (request.opcode != WorkOpcode::kWrite) continue;
    std::size_t length = 0;
    for (const Sge& sge : request.sges)
      length += sge.length;
    writes.push_back(fmt::format("write 0x{:08x} @0x{:x} {}", request.remote_handle,
                                 request.remote_offset, length));
  }
  EXPECT_EQ(writes, trace.writes);

  const WorkRequest& send = chain->requests().back();
  EXPECT_EQ(send.opcode == WorkOpcode::kSendWithInvalidate, trace.has("invalidate"));
  if (trace.has("invalidate")) {
    EXPECT_EQ(send.remote_handle, trace.number("invalidate"));
  }
  std::vector<std::byte> sent;
  for (const Sge& sge : send.sges)
    sent.insert(sent.end(), sge.address, sge.address + sge.length);
  std::vector<std::byte> wanted = trace.bytes("reply");
  wanted.resize(wanted.size() + trace.number("reply-zeros"));
  EXPECT_EQ(sent, wanted);
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, IsUnderstoodAndAnsweredToTheByte) {
  const Trace trace = load(std::filesystem::path(NFSRDMA_GOLDEN_DIR) / GetParam());
  const std::vector<std::byte> call = trace.bytes("call");
  auto header = std::make_unique<TransportHeader>();
  ASSERT_EQ(decode_header(call, *header), HeaderVerdict::kOk);
  EXPECT_EQ(describe(*header, call.size()), trace.text("decoded"));
  EXPECT_TRUE(call_chunks_sane(*header, call.size() - header->header_bytes, 1 << 20));

  std::vector<std::byte> again(call.size());
  const std::size_t size = encode_header(again, header->xid, header->credits,
                                         static_cast<rdma_proc>(header->proc), header->chunks);
  ASSERT_EQ(size, header->header_bytes);
  EXPECT_TRUE(
      std::equal(call.begin(), call.begin() + static_cast<std::ptrdiff_t>(size), again.begin()));
  if (trace.has("reply")) check_reply(trace, *header);
}

std::vector<std::string> traces() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(NFSRDMA_GOLDEN_DIR)) {
    if (entry.path().extension() == ".trace") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Traces, Golden, ::testing::ValuesIn(traces()), [](const auto& trace) {
  return trace.param.substr(0, trace.param.find('.'));
});

}  // namespace
}  // namespace nfsrdma
