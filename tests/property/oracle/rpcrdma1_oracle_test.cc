// SPDX-License-Identifier: Apache-2.0
// The transport header of RPC-over-RDMA: the code that ships (rpcrdma/header.h, chunk_list.h and
// reply_chain.h) against rpcgen and libtirpc.
#include "rpcrdma/reply_chain.h"
#include "tests/property/oracle/rpcrdma1_values.h"  // ours before the oracle's

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/property/oracle/compare.h"

namespace nfsrdma::oracle {
namespace {

using Message = Pair<TransportHeader, ::rdma_msg, xdr_rdma_msg>;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kRoom = 8192;  // the longest header within our limits has 4.7 KiB
constexpr std::uint64_t kRounds = 5000;

Bytes bytes_of(const ::rdma_msg& header) {
  ::rdma_msg copy = header;
  return oracle_encode<Message>(copy, kRoom);
}
Bytes encode(const TransportHeader& header) {
  Bytes bytes(kRoom);
  bytes.resize(encode_header(bytes, header.xid, header.credits, static_cast<rdma_proc>(header.proc),
                             header.chunks));
  return bytes;
}

/// Segments and their sum; `next` goes on behind them.
void expect_chunk(const ChunkLists& lists, const ReadChunk& chunk,
                  const ::rpcrdma1_read_list*& next) {
  std::uint64_t length = 0;
  for (const Segment& segment : lists.segments(chunk)) {
    ASSERT_NE(next, nullptr);
    ASSERT_EQ(chunk.position, next->rdma_entry.rdma_position);
    ASSERT_EQ(segment, segment_of(next->rdma_entry.rdma_target));
    length += segment.length;
    next = next->rdma_next;
  }
  ASSERT_EQ(chunk.length, length);
  ASSERT_TRUE(next == nullptr || next->rdma_entry.rdma_position != chunk.position);
}
void expect_segments(std::span<const Segment> ours, std::uint64_t length,
                     const ::rpcrdma1_write_chunk& theirs) {
  ASSERT_EQ(ours.size(), segments_of(theirs).size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i], segment_of(segments_of(theirs)[i]));
    length -= ours[i].length;
  }
  ASSERT_EQ(length, 0u);
}

void expect_lists(const ChunkLists& ours, const ::rpcrdma1_chunk_lists& theirs) {
  const ::rpcrdma1_read_list* read = theirs.rdma_reads;
  for (const ReadChunk& chunk : ours.reads()) {
    ASSERT_GT(chunk.count, 0u);
    ASSERT_NO_FATAL_FAILURE(expect_chunk(ours, chunk, read));
  }
  ASSERT_EQ(read, nullptr);
  const ::rpcrdma1_write_list* write = theirs.rdma_writes;
  for (const WriteChunk& chunk : ours.writes()) {
    ASSERT_NE(write, nullptr);
    ASSERT_NO_FATAL_FAILURE(expect_segments(ours.segments(chunk), chunk.length, write->rdma_entry));
    write = write->rdma_next;
  }
  ASSERT_EQ(write, nullptr);
  ASSERT_EQ(ours.has_reply_chunk, theirs.rdma_reply != nullptr);
  if (!ours.has_reply_chunk) return;
  ASSERT_NO_FATAL_FAILURE(expect_segments(ours.reply(), ours.reply_length, *theirs.rdma_reply));
}

/// What we decoded is what the oracle has.
void expect_same(const TransportHeader& ours, const ::rdma_msg& theirs) {
  ASSERT_EQ(ours.xid, theirs.rdma_xid);
  ASSERT_EQ(ours.version, theirs.rdma_vers);
  ASSERT_EQ(ours.credits, theirs.rdma_credit);
  ASSERT_EQ(ours.proc, static_cast<std::uint32_t>(theirs.rdma_body.proc));
  if (ours.proc == RDMA_MSG || ours.proc == RDMA_NOMSG) {
    ASSERT_NO_FATAL_FAILURE(expect_lists(ours.chunks, lists_of(theirs)));
    return;
  }
  ASSERT_TRUE(ours.chunks.empty());
  ASSERT_EQ(ours.header_bytes, kFixedHeaderBytes);
  if (ours.proc != RDMA_ERROR) return;
  const ::rpcrdma1_error& error = theirs.rdma_body.rpcrdma1_body_u.rdma_error;
  ASSERT_EQ(ours.error, static_cast<std::uint32_t>(error.err));
  const bool has_range = ours.error == ERR_VERS;
  ASSERT_EQ(ours.version_low, has_range ? error.rpcrdma1_error_u.range.rdma_vers_low : 0);
  ASSERT_EQ(ours.version_high, has_range ? error.rpcrdma1_error_u.range.rdma_vers_high : 0);
}

/// The oracle reads `bytes`, all of them, as what it would have written.
void expect_oracle_reads(const Bytes& bytes) {
  OracleValue<Message> read(bytes);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.consumed(), bytes.size());
  ASSERT_EQ(bytes_of(read.value()), bytes);
}

class RpcRdma1Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};

void compare_chunks(std::uint32_t proc) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Arena arena;
    RandomSource random(seed);
    const ::rdma_msg theirs = random_header(arena, random, proc);
    const Bytes bytes = bytes_of(theirs);

    Bytes message = bytes;
    message.resize(bytes.size() + random.below(64));  // the RPC message
    TransportHeader read;
    ASSERT_EQ(decode_header(message, read), HeaderVerdict::kOk);
    ASSERT_EQ(read.header_bytes, bytes.size());
    ASSERT_NO_FATAL_FAILURE(expect_same(read, theirs));
    ASSERT_EQ(encode(read), bytes);

    TransportHeader built;
    built.xid = theirs.rdma_xid;
    built.credits = theirs.rdma_credit;
    built.proc = proc;
    ASSERT_TRUE(build(lists_of(theirs), built.chunks));
    ASSERT_EQ(encode(built), bytes);
    ASSERT_NO_FATAL_FAILURE(expect_oracle_reads(encode(built)));
  }
}

TEST_F(RpcRdma1Oracle, ShortMessagesHaveTheSameBytesBothWays) {
  compare_chunks(RDMA_MSG);
}
TEST_F(RpcRdma1Oracle, LongMessagesHaveTheSameBytesBothWays) {
  compare_chunks(RDMA_NOMSG);
}

/// Of the obsolete types we read what tells them apart and never write one.
TEST_F(RpcRdma1Oracle, ObsoleteTypesAreReadAsTheyWereMeant) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Arena arena;
    RandomSource random(seed);
    const ::rdma_msg theirs =
        random_header(arena, random, random.below(2) == 0 ? RDMA_MSGP : RDMA_DONE);
    TransportHeader read;
    ASSERT_EQ(decode_header(bytes_of(theirs), read), HeaderVerdict::kOk);
    ASSERT_NO_FATAL_FAILURE(expect_same(read, theirs));
  }
}

/// The versions that we name are always ours.
TEST_F(RpcRdma1Oracle, ErrorsHaveTheSameBytesBothWays) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Arena arena;
    RandomSource random(seed);
    ::rdma_msg theirs = random_header(arena, random, RDMA_ERROR);
    TransportHeader read;
    ASSERT_EQ(decode_header(bytes_of(theirs), read), HeaderVerdict::kOk);
    ASSERT_NO_FATAL_FAILURE(expect_same(read, theirs));

    ::rpcrdma1_error& error = theirs.rdma_body.rpcrdma1_body_u.rdma_error;
    Bytes ours(kRoom);
    if (error.err == ::ERR_VERS) {
      error.rpcrdma1_error_u.range = {kRpcRdmaVersion, kRpcRdmaVersion};
      ours.resize(encode_err_vers(ours, theirs.rdma_xid, theirs.rdma_credit));
    } else {
      ours.resize(encode_err_chunk(ours, theirs.rdma_xid, theirs.rdma_credit));
    }
    ASSERT_EQ(ours, bytes_of(theirs));
    ASSERT_NO_FATAL_FAILURE(expect_oracle_reads(ours));
  }
}

/// `segments` of the call with `used` bytes spread over them, as a reply returns them.
void spread(Arena& arena, std::uint64_t used, const ::rpcrdma1_write_chunk& offered,
            ::rpcrdma1_write_chunk& to) {
  const auto segments = segments_of(offered);
  to.rdma_target.rdma_target_len = offered.rdma_target.rdma_target_len;
  to.rdma_target.rdma_target_val = arena.make_array<::rpcrdma1_segment>(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ::rpcrdma1_segment& segment = to.rdma_target.rdma_target_val[i];
    segment = segments[i];
    if (segment.rdma_length > used) segment.rdma_length = static_cast<std::uint32_t>(used);
    used -= segment.rdma_length;
  }
}

/// A call's lists that offer little, and a reply to it.
struct Exchange {
  Arena arena;
  ::rpcrdma1_chunk_lists lists{};
  ChunkLists offered;
  Bytes rpc, data = Bytes(4096), room = Bytes(65536);
  std::vector<xdr::PayloadReference> payloads;
  ReplyParts parts;

  explicit Exchange(RandomSource& random) {
    lists.rdma_writes = random_writes(arena, random, 1500);
    lists.rdma_reply = random_reply(arena, random, 1500);
    EXPECT_TRUE(build(lists, offered));
    rpc.resize(4 * (random.below(1500) + ChunkLists::kMaxWriteChunks));
    const auto results = static_cast<std::uint32_t>(few(random, ChunkLists::kMaxWriteChunks));
    for (std::uint32_t i = 0; i < results; ++i) {
      const std::uint64_t room_there =
          i < offered.write_chunk_count ? offered.writes()[i].length : 100;
      payloads.push_back({4 * (i + std::size_t{1}),
                          ByteSpan(data).first(
                              random.below(std::min<std::uint64_t>(room_there + 2, data.size())))});
    }
    parts.xid = random.make<std::uint32_t>();
    parts.offered = &offered;
    parts.encoded = rpc;
    parts.payloads = payloads;
    parts.send_room = room;
    parts.inline_send = 1024 + static_cast<std::uint32_t>(random.below(7168));
    parts.max_send_sge = 1 + static_cast<std::uint32_t>(random.below(8));
  }

  /// The header that such a reply must have; `stream` is the message without what goes elsewhere.
  ::rdma_msg expected(ReplyForm form, std::uint64_t* stream) {
    ::rdma_msg header;
    std::memset(&header, 0, sizeof header);
    header.rdma_xid = parts.xid;
    header.rdma_vers = kRpcRdmaVersion;
    header.rdma_credit = 1;
    header.rdma_body.proc = form == ReplyForm::kInline ? ::RDMA_MSG
                            : form == ReplyForm::kLong ? ::RDMA_NOMSG
                                                       : ::RDMA_ERROR;
    auto& body = header.rdma_body.rpcrdma1_body_u;
    if (form == ReplyForm::kErrChunk) {
      body.rdma_error.err = ::ERR_CHUNK;
      return header;
    }
    ::rpcrdma1_chunk_lists& echo = form == ReplyForm::kLong ? body.rdma_nomsg : body.rdma_msg;
    *stream = rpc.size();
    std::size_t next = 0;
    ::rpcrdma1_write_list** link = &echo.rdma_writes;
    for (const auto* write = lists.rdma_writes; write != nullptr;
         write = write->rdma_next, ++next) {
      std::uint64_t capacity = 0;
      for (const ::rpcrdma1_segment& segment : segments_of(write->rdma_entry))
        capacity += segment.rdma_length;
      const std::uint64_t size = next < payloads.size() ? payloads[next].bytes.size() : 0;
      if (capacity == 0) *stream += (size + 3) / 4 * 4;
      *link = arena.make<::rpcrdma1_write_list>();
      spread(arena, capacity == 0 ? 0 : size, write->rdma_entry, (*link)->rdma_entry);
      link = &(*link)->rdma_next;
    }
    for (; next < payloads.size(); ++next)
      *stream += (payloads[next].bytes.size() + 3) / 4 * 4;
    if (form != ReplyForm::kLong) return header;
    echo.rdma_reply = arena.make<::rpcrdma1_write_chunk>();
    spread(arena, *stream, *lists.rdma_reply, *echo.rdma_reply);
    return header;
  }
};

TEST_F(RpcRdma1Oracle, RepliesReturnTheListsWithWhatWasWritten) {
  std::size_t seen[3] = {};
  auto chain = std::make_unique<ReplyChain>();
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    RandomSource random(seed);
    Exchange exchange(random);
    const ReplyForm form = chain->build(exchange.parts);
    ++seen[static_cast<std::size_t>(form)];
    std::uint64_t stream = 0;
    const Bytes bytes = bytes_of(exchange.expected(form, &stream));
    ASSERT_EQ(chain->sent_bytes(), bytes.size() + (form == ReplyForm::kInline ? stream : 0));
    exchange.room.resize(bytes.size());
    ASSERT_EQ(exchange.room, bytes);
  }
  for (std::size_t count : seen)
    EXPECT_GT(count, kRounds / 50);
}

/// What we accept the oracle accepts as the same; and what it accepts within our limits we read
/// once it wrote it in its own way (it takes any number for TRUE).
void expect_same_header_judgement(const Bytes& bytes, std::size_t* accepted) {
  TransportHeader ours;
  const HeaderVerdict verdict = decode_header(bytes, ours);
  OracleValue<Message> theirs(bytes);
  if (verdict == HeaderVerdict::kOk) {
    const bool obsolete = ours.proc == RDMA_MSGP || ours.proc == RDMA_DONE;
    const bool later_error = ours.proc == RDMA_ERROR && ours.error != ERR_VERS &&
                             ours.error != ERR_CHUNK;  // for a log, as a number
    if (!theirs.ok()) {
      ASSERT_TRUE(obsolete || later_error) << ours.proc;
      return;
    }
    ++*accepted;
    ASSERT_NO_FATAL_FAILURE(expect_same(ours, theirs.value()));
    if (ours.proc == RDMA_MSG || ours.proc == RDMA_NOMSG) {
      ASSERT_EQ(theirs.consumed(), ours.header_bytes);
      ASSERT_EQ(encode(ours), bytes_of(theirs.value()));
    }
  }
  if (!theirs.ok()) return;
  const ::rdma_msg& value = theirs.value();
  const HeaderVerdict again = decode_header(bytes_of(value), ours);
  if (value.rdma_vers != kRpcRdmaVersion) {
    ASSERT_EQ(again, HeaderVerdict::kWrongVersion);
    ASSERT_EQ(ours.xid, value.rdma_xid);
    ASSERT_EQ(ours.credits, value.rdma_credit);
    return;
  }
  const bool has_lists = value.rdma_body.proc == ::RDMA_MSG || value.rdma_body.proc == ::RDMA_NOMSG;
  const bool fits = !has_lists || lists_fit(lists_of(value));
  ASSERT_EQ(again, fits ? HeaderVerdict::kOk : HeaderVerdict::kBadChunks);
  if (!fits) return;
  ASSERT_NO_FATAL_FAILURE(expect_same(ours, value));
}

TEST_F(RpcRdma1Oracle, SameJudgementOfDamagedBytes) {
  constexpr std::uint64_t kDamaged = 40000;
  std::size_t accepted = 0;
  for (std::uint64_t seed = 0; seed < kDamaged; ++seed) {
    SCOPED_TRACE(seed);
    Arena arena;
    RandomSource random(seed);
    const std::uint64_t any = random.below(16);
    Bytes bytes = bytes_of(
        random_header(arena, random, any < 5 ? static_cast<std::uint32_t>(any) : RDMA_MSG));
    for (std::size_t i = random.below(4); i < 3; ++i) {
      // Small changes in the low byte of a word hit counts and discriminators more often.
      std::size_t at = random.below(bytes.size());
      if (random.below(2) == 0) at |= 3;
      bytes[std::min(at, bytes.size() - 1)] =
          static_cast<std::byte>(random.below(random.below(2) == 0 ? 3 : 256));
    }
    if (random.below(8) == 0) bytes.resize(random.below(bytes.size() + 1));
    ASSERT_NO_FATAL_FAILURE(expect_same_header_judgement(bytes, &accepted));
  }
  EXPECT_GT(accepted, kDamaged / 20);
  EXPECT_LT(accepted, kDamaged * 19 / 20);
}

}  // namespace
}  // namespace nfsrdma::oracle
