// SPDX-License-Identifier: Apache-2.0
// COMPOUNDs over RPC-over-RDMA as RFC 8267 section 6 has them: which item travels in which chunk,
// and that what a session keeps comes back the same by whichever transport.
#include <sys/xattr.h>

#include "tests/support/nfs4_over_rdma.h"

namespace nfsrdma::test {
namespace {

using enum xdr::fattr4_number;

std::string text_of(std::size_t length, char first) {
  std::string out(length, ' ');
  for (std::size_t i = 0; i < length; ++i)
    out[i] = static_cast<char>(first + i % 23);
  return out;
}

class Chunks4 : public ::testing::Test {
 protected:
  void SetUp() override {
    put_file(nfs.path("one"), kOne, 0666);
    put_file(nfs.path("two"), kTwo, 0666);
    ASSERT_EQ(::symlink(kText.c_str(), nfs.path("link").c_str()), 0);
    one = nfs.open(nfs.root(), "one", xdr::OPEN4_SHARE_ACCESS_BOTH, false);
    two = nfs.open(nfs.root(), "two", xdr::OPEN4_SHARE_ACCESS_BOTH, false);
    ASSERT_EQ(one.status, NFS4_OK);
    ASSERT_EQ(two.status, NFS4_OK);
    link = nfs.lookup(nfs.root(), "link");
  }

  /// A request in the session, to go on with. `keep`: for its retry.
  ChunkedCompound begin(bool keep = false) {
    ++nfs.session.sequence;
    return again(keep);
  }
  ChunkedCompound again(bool keep = true) const {
    ChunkedCompound out(nfs.session.minor_version);
    out.add<OP_SEQUENCE>({nfs.session.id, nfs.session.sequence, 0, 0, keep});
    return out;
  }
  ChunkedCompound& read(ChunkedCompound& call, const Open4& file, std::uint64_t offset = 0) {
    return call.putfh(file.handle).add<OP_READ>({file.stateid, offset, 4096});
  }
  /// Data, a link's text, data.
  ChunkedCompound& read_all(ChunkedCompound& call) {
    return read(read(call, one).putfh(link).add<OP_READLINK>(), two);
  }
  ChunkedCompound& write(ChunkedCompound& call, const Open4& file, std::string_view data,
                         std::uint64_t offset = 0) {
    return call.putfh(file.handle)
        .add_reduced<OP_WRITE>(
            {file.stateid, offset, xdr::stable_how4::UNSTABLE4, {as_bytes(data)}});
  }
  static std::string data(const ChunkedReply& answer, std::size_t nth) {
    return std::string(as_text(answer.reply.get<OP_READ>(nth).resok4.data.bytes));
  }
  static std::string text(const ChunkedReply& answer) {
    return std::string(as_text(answer.reply.get<OP_READLINK>().resok4.link.bytes));
  }
  static void expect_all(const ChunkedReply& answer) {
    EXPECT_EQ(answer.reply.status, NFS4_OK);
    EXPECT_EQ(data(answer, 0), kOne);
    EXPECT_EQ(text(answer), kText);
    EXPECT_EQ(data(answer, 1), kTwo);
  }
  /// The file's size by GETATTR, first of such results.
  static std::uint64_t size_in(const ChunkedReply& answer) {
    const auto res = answer.reply.get<OP_GETATTR>();
    EXPECT_EQ(res.resok4.obj_attributes.attr_vals.size(), 8u);
    return load_be64(res.resok4.obj_attributes.attr_vals.data());
  }

  inline static const std::string kOne = text_of(4001, 'a'), kTwo = text_of(502, 'A'),
                                  kText = "some/where/else";
  static HarnessOptions any_port() {
    HarnessOptions out;
    out.exported.secure = false;
    return out;
  }
  Nfs4Harness nfs{any_port()};
  Nfs4OverRdma wire{nfs};
  Open4 one, two;
  FileHandle link;
};

// --- results in Write chunks
// --------------------------------------------------------------------

TEST_F(Chunks4, EachResultGoesToTheWriteChunkOfItsPlace) {
  ChunkedCompound call = begin();
  read_all(call).add<OP_GETFH>();
  const ChunkedReply answer = wire.over_rdma(call, {{4096, 64, 600}});
  EXPECT_EQ(answer.proc, RDMA_MSG);
  EXPECT_EQ(answer.written, (std::vector<std::string>{kOne, kText, kTwo}));
  expect_all(answer);
  // And nothing of it anywhere else.
  EXPECT_LT(answer.in_line, 400u);
  EXPECT_EQ(
      answer.in_line + round_up4(kOne.size()) + round_up4(kText.size()) + round_up4(kTwo.size()),
      24 + answer.reply.bytes.size());
}

TEST_F(Chunks4, ResultsBeyondTheLastWriteChunkAreInLine) {
  ChunkedCompound call = begin();
  const ChunkedReply answer = wire.over_rdma(read_all(call), {{4096, 64}});
  EXPECT_EQ(answer.proc, RDMA_MSG);
  EXPECT_EQ(answer.written, (std::vector<std::string>{kOne, kText}));
  expect_all(answer);
  EXPECT_GT(answer.in_line, kTwo.size());
}

TEST_F(Chunks4, AnEmptyWriteChunkLeavesItsResultInLine) {
  ChunkedCompound call = begin();
  const ChunkedReply answer = wire.over_rdma(read_all(call), {{4096, 0, 600}});
  EXPECT_EQ(answer.written, (std::vector<std::string>{kOne, "", kTwo}));
  expect_all(answer);
  ChunkedCompound other = begin();
  const ChunkedReply mostly = wire.over_rdma(read_all(other), {{0, 64, 0}, 8192});
  EXPECT_EQ(mostly.written, (std::vector<std::string>{"", kText, ""}));
  expect_all(mostly);
}

TEST_F(Chunks4, AReadOfNothingHasItsWriteChunkAsWell) {
  ChunkedCompound call = begin();
  read(read(read(call, one), one, kOne.size()), two);
  const ChunkedReply answer = wire.over_rdma(call, {{4096, 600, 600}});
  EXPECT_EQ(answer.written, (std::vector<std::string>{kOne, "", kTwo}));
  EXPECT_TRUE(answer.reply.get<OP_READ>(1).resok4.eof);
  EXPECT_EQ(data(answer, 1), "");
  EXPECT_EQ(data(answer, 2), kTwo);
}

TEST_F(Chunks4, BehindAFailureAllWriteChunksAreUnused) {
  ChunkedCompound call = begin();
  read(call, one).add<OP_READLINK>();
  const ChunkedReply answer = wire.over_rdma(read(call, two), {{4096, 64, 600}});
  EXPECT_EQ(answer.proc, RDMA_MSG);
  EXPECT_EQ(answer.reply.status, NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(answer.reply.results.size(), 4u);
  EXPECT_EQ(answer.written, (std::vector<std::string>{kOne, "", ""}));
}

TEST_F(Chunks4, EveryWriteChunkThatACallMayHaveIsUsed) {
  ChunkedCompound call = begin();
  Nfs4OverRdma::Chunks chunks;
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < ChunkLists::kMaxWriteChunks; ++i) {
    read(call, i % 2 == 0 ? one : two, i);
    chunks.write.push_back(4096);
    expected.push_back((i % 2 == 0 ? kOne : kTwo).substr(i));
  }
  EXPECT_EQ(wire.over_rdma(call, chunks).written, expected);
}

TEST_F(Chunks4, AWriteChunkTooSmallForItsResultIsAnErrorAndTheSlotGoesOn) {
  ChunkedCompound call = begin(true);
  const ChunkedReply refused = wire.over_rdma(read_all(call), {{4096, 64, 500}});
  EXPECT_EQ(refused.proc, RDMA_ERROR);
  EXPECT_EQ(refused.error, ERR_CHUNK);
  // It ran, and was kept.
  ChunkedCompound retry = again();
  expect_all(wire.over_rdma(read_all(retry), {{4096, 64, 600}}));
}

// --- arguments in Read chunks
// -------------------------------------------------------------------

TEST_F(Chunks4, AWriteInTheMiddleHasItsDataAtItsPlace) {
  const std::string data = text_of(5003, '0');
  ChunkedCompound call = begin();
  write(call, one, data).add<OP_GETATTR>({xdr::bitmap4::of({FATTR4_SIZE})});
  const ChunkedReply answer = wire.over_rdma(call, {});
  EXPECT_EQ(answer.reply.status, NFS4_OK);
  EXPECT_EQ(answer.reply.get<OP_WRITE>().resok4.count, data.size());
  EXPECT_EQ(size_in(answer), data.size());
  EXPECT_EQ(content_of(nfs.path("one")), data);
}

TEST_F(Chunks4, ReadAndWriteChunksOfOneCompoundDoNotMix) {
  const std::string first = text_of(1001, '0'), second = text_of(2002, 'k');
  ChunkedCompound call = begin();
  read(write(read(write(call, one, first), one), two, second), two);
  const ChunkedReply answer = wire.over_rdma(call, {{4096, 4096}});
  EXPECT_EQ(answer.reply.status, NFS4_OK);
  EXPECT_EQ(answer.written, (std::vector<std::string>{first + kOne.substr(1001), second}));
  EXPECT_EQ(content_of(nfs.path("two")), second);
}

TEST_F(Chunks4, TheTextOfANewLinkMayComeByReadChunk) {
  const std::string target = text_of(301, 'a');
  xdr::CREATE4args args;
  args.objtype.type = xdr::nfs_ftype4::NF4LNK;
  args.objtype.linkdata.bytes = as_bytes(target);
  args.objname = "made";
  ChunkedCompound call = begin();
  call.putfh(nfs.root()).add_reduced<OP_CREATE>(args).add<OP_READLINK>();
  const ChunkedReply answer = wire.over_rdma(call, {{512}});
  EXPECT_EQ(answer.reply.status, NFS4_OK);
  EXPECT_EQ(answer.written, std::vector<std::string>{target});
  EXPECT_EQ(std::filesystem::read_symlink(nfs.path("made")), target);
}

// Nfs4OverRdma looks at each step. That a peer does not reach the sink either: Receiver.
TEST_F(Chunks4, OfTheServersMemoryTheSinkOfItsOwnReadAloneIsRegistered) {
  ChunkedCompound reading = begin();
  EXPECT_EQ(wire.over_rdma(read(reading, two), {{4096}, 8192}).reply.status, NFS4_OK);
  EXPECT_EQ(wire.most_exposed(), 3u) << "the client's Write and Reply chunks";
  ChunkedCompound writing = begin();
  EXPECT_EQ(wire.over_rdma(write(writing, one, text_of(9000, '0')), {{4096}, 8192}).reply.status,
            NFS4_OK);
  EXPECT_EQ(wire.most_exposed(), 3u + 2u) << "and the Read chunk, and where it goes to";
}

// --- Reply chunks
// -------------------------------------------------------------------------------

TEST_F(Chunks4, ALongReaddirComesByReplyChunk) {
  for (int i = 0; i < 300; ++i)
    put_file(nfs.path("a rather long name, number " + std::to_string(i)), "");
  xdr::READDIR4args args;
  args.maxcount = 48u << 10;
  args.attr_request = xdr::bitmap4::of({FATTR4_SIZE, FATTR4_FILEID});
  ChunkedCompound call = begin();
  call.putfh(nfs.root()).add<OP_READDIR>(args);
  const ChunkedReply answer = wire.over_rdma(call, {{}, 64u << 10});
  EXPECT_EQ(answer.proc, RDMA_NOMSG);
  EXPECT_EQ(answer.in_reply_chunk, 24 + answer.reply.bytes.size());
  const auto res = answer.reply.get<OP_READDIR>();
  std::size_t names = 0;
  for (const xdr::entry4& entry : res.resok4.reply.entries)
    names += entry.name.empty() ? 0 : 1;
  EXPECT_EQ(names, 303u);
  EXPECT_TRUE(res.resok4.reply.eof);
  // What a Write chunk is there for goes there nevertheless.
  ChunkedCompound with_data = begin();
  read(with_data, one).putfh(nfs.root()).add<OP_READDIR>(args);
  const ChunkedReply both = wire.over_rdma(with_data, {{4096}, 64u << 10});
  EXPECT_EQ(both.proc, RDMA_NOMSG);
  EXPECT_EQ(both.written, std::vector<std::string>{kOne});
  EXPECT_EQ(both.in_reply_chunk + round_up4(kOne.size()), 24 + both.reply.bytes.size());
  EXPECT_TRUE(both.reply.get<OP_READDIR>().resok4.reply.eof);
}

TEST_F(Chunks4, ALongAclComesByReplyChunk) {
  // As acl(5) lays it out in the attribute: version, then tag, permissions and id of each.
  std::string acl = {2, 0, 0, 0};
  auto add = [&acl](int tag, int rights, std::uint32_t id) {
    for (const int byte : {tag, 0, rights, 0})
      acl += static_cast<char>(byte);
    for (int shift = 0; shift < 32; shift += 8)
      acl += static_cast<char>(id >> shift);
  };
  constexpr int kUserObj = 1, kUser = 2, kGroupObj = 4, kMask = 16, kOther = 32;
  add(kUserObj, 6, ~0u);
  for (std::uint32_t i = 0; i < 250; ++i)
    add(kUser, 4, 5000 + i);
  for (const int tag : {kGroupObj, kMask, kOther})
    add(tag, 4, ~0u);
  const std::string name = nfs.path("one");
  ASSERT_EQ(::setxattr(name.c_str(), "system.posix_acl_access", acl.data(), acl.size(), 0), 0);
  ChunkedCompound call = begin();
  call.putfh(one.handle).add<OP_GETATTR>({xdr::bitmap4::of({FATTR4_ACL})});
  const ChunkedReply answer = wire.over_rdma(call, {{}, 64u << 10});
  EXPECT_EQ(answer.proc, RDMA_NOMSG);
  EXPECT_GT(answer.in_reply_chunk, 4096u);
  xdr::FileAttributes4 values;
  const auto res = answer.reply.get<OP_GETATTR>();
  ASSERT_EQ(xdr::decode_attributes(res.resok4.obj_attributes, values).outcome,
            xdr::AttributeDecoding::kOk);
  std::size_t aces = 0;
  for (const xdr::nfsace4& ace : values.acl.aces)
    aces += ace.who.empty() ? 0 : 1;
  EXPECT_GE(aces, 250u);
}

TEST_F(Chunks4, AReplyThatFitsNowhereIsAnError) {
  ChunkedCompound call = begin();
  read(read(call, one), one);
  const ChunkedReply answer = wire.over_rdma(call, {});
  EXPECT_EQ(answer.proc, RDMA_ERROR);
  EXPECT_EQ(answer.error, ERR_CHUNK);
}

// --- what a session keeps
// -----------------------------------------------------------------------

TEST_F(Chunks4, ARetryHasTheSameItemsByWhicheverTransport) {
  ChunkedCompound call = begin(true);
  const ChunkedReply first = wire.over_rdma(read_all(call), {{4096, 64, 600}});
  expect_all(first);
  // Were it run again, this would be read.
  put_file(nfs.path("one"), "changed", 0666);
  ChunkedCompound retry = again();
  read_all(retry);
  const ChunkedReply by_tcp = wire.over_tcp(retry);
  EXPECT_EQ(by_tcp.reply.bytes, first.reply.bytes);
  const ChunkedReply by_rdma = wire.over_rdma(retry, {{4096, 64, 600}});
  EXPECT_EQ(by_rdma.proc, RDMA_MSG);
  EXPECT_EQ(by_rdma.reply.bytes, first.reply.bytes);
  EXPECT_EQ(by_rdma.written, first.written);
  const ChunkedReply without_chunks = wire.over_rdma(retry, {{}, 8192});
  EXPECT_EQ(without_chunks.proc, RDMA_NOMSG);
  EXPECT_EQ(without_chunks.reply.bytes, first.reply.bytes);
}

TEST_F(Chunks4, WhatWasAskedOverTcpComesInChunksWhenItIsAskedAgainOverRdma) {
  ChunkedCompound call = begin(true);
  read(read_all(call), one, kOne.size());
  const ChunkedReply first = wire.over_tcp(call);
  expect_all(first);
  const ChunkedReply again = wire.over_rdma(call, {{4096, 64, 600, 600}});
  EXPECT_EQ(again.proc, RDMA_MSG);
  EXPECT_EQ(again.written, (std::vector<std::string>{kOne, kText, kTwo, ""}));
  EXPECT_EQ(again.reply.bytes, first.reply.bytes);
}

TEST_F(Chunks4, AReadChunkDoesNotMakeARetryAnotherRequest) {
  const std::string data = text_of(303, '0');
  ChunkedCompound call = begin(true);
  write(call, one, data).add<OP_GETATTR>({xdr::bitmap4::of({FATTR4_CHANGE})});
  const ChunkedReply by_rdma = wire.over_rdma(call, {});
  EXPECT_EQ(by_rdma.reply.status, NFS4_OK);
  const ChunkedReply then_by_tcp = wire.over_tcp(call);
  EXPECT_EQ(then_by_tcp.reply.bytes, by_rdma.reply.bytes);

  ChunkedCompound other = begin(true);
  write(other, one, data).add<OP_GETATTR>({xdr::bitmap4::of({FATTR4_CHANGE})});
  const ChunkedReply by_tcp = wire.over_tcp(other);
  EXPECT_EQ(by_tcp.reply.status, NFS4_OK);
  EXPECT_EQ(wire.over_rdma(other, {}).reply.bytes, by_tcp.reply.bytes);
}

TEST_F(Chunks4, OtherDataUnderTheSameSequenceIdIsAFalseRetry) {
  ChunkedCompound call = begin(true);
  EXPECT_EQ(wire.over_rdma(write(call, one, "the data"), {}).reply.status, NFS4_OK);
  ChunkedCompound other = again();
  write(other, one, "not it  ");
  EXPECT_EQ(wire.over_rdma(other, {}).reply.status, NFS4ERR_SEQ_FALSE_RETRY);
  EXPECT_EQ(wire.over_tcp(other).reply.status, NFS4ERR_SEQ_FALSE_RETRY);
  ChunkedCompound longer = again();
  EXPECT_EQ(wire.over_rdma(write(longer, one, "the data and more"), {}).reply.status,
            NFS4ERR_SEQ_FALSE_RETRY);
}

TEST_F(Chunks4, ReadPlusHasNoItemForAChunkInARetryEither) {
  ChunkedCompound call = begin(true);
  call.putfh(one.handle).add<OP_READ_PLUS>({one.stateid, 0, 600});
  const ChunkedReply first = wire.over_tcp(read(call, two));
  EXPECT_EQ(first.reply.status, NFS4_OK);
  const ChunkedReply again = wire.over_rdma(call, {{4096}});
  EXPECT_EQ(again.written, std::vector<std::string>{kTwo});
  EXPECT_EQ(again.reply.bytes, first.reply.bytes);
}

}  // namespace
}  // namespace nfsrdma::test
