// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "rpcrdma/base/unique_fd.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

/// The special stateid that stands for the one that an operation before left (RFC 8881 16.2.3.1.2).
constexpr xdr::stateid4 kCurrentStateid{1, {}};

class Copies : public ::testing::Test {
 protected:
  Copies() {
    put_file(nfs.path("from"), "0123456789");
    from = nfs.open(nfs.root(), "from");
    to = nfs.open(nfs.root(), "to");
  }
  xdr::COPY4args args(std::uint64_t source, std::uint64_t target, std::uint64_t count) const {
    xdr::COPY4args out;
    out.ca_src_stateid = from.stateid;
    out.ca_dst_stateid = to.stateid;
    out.ca_src_offset = source;
    out.ca_dst_offset = target;
    out.ca_count = count;
    return out;
  }
  Reply4 copy(const xdr::COPY4args& what) { return copy(what, from.handle, to.handle); }
  Reply4 copy(const xdr::COPY4args& what, const FileHandle& source, const FileHandle& target) {
    return nfs.run(Operations4().putfh(source).add<OP_SAVEFH>().putfh(target).add<OP_COPY>(what));
  }
  Reply4 clone(const xdr::CLONE4args& what) { return clone(what, from.handle, to.handle); }
  Reply4 clone(const xdr::CLONE4args& what, const FileHandle& source, const FileHandle& target) {
    return nfs.run(Operations4().putfh(source).add<OP_SAVEFH>().putfh(target).add<OP_CLONE>(what));
  }
  Nfs4Harness nfs;
  Open4 from, to;
};

TEST_F(Copies, ARangeIsCopied) {
  put_file(nfs.path("to"), "abcdefghij");
  const std::uint64_t before = nfs.change(to.handle);
  const Reply4 reply = copy(args(2, 4, 3));
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_TRUE(reply.ran_on_worker);
  EXPECT_EQ(reply.get<OP_COPY>().resok4.cr_response.wr_count, 3u);
  EXPECT_EQ(content_of(nfs.path("to")), "abcd234hij");
  EXPECT_GT(nfs.change(to.handle), before);
}

TEST_F(Copies, ACountOf0GoesToTheEnd) {
  EXPECT_EQ(copy(args(4, 0, 0)).get<OP_COPY>().resok4.cr_response.wr_count, 6u);
  EXPECT_EQ(content_of(nfs.path("to")), "456789");
  EXPECT_EQ(copy(args(10, 0, 0)).get<OP_COPY>().resok4.cr_response.wr_count, 0u);
}

TEST_F(Copies, WhatWasCopiedIsUncommittedAndSaysSo) {
  const Reply4 reply = copy(args(0, 0, 10));
  const auto res = reply.get<OP_COPY>().resok4;
  EXPECT_FALSE(reply.waited_for_disk);
  EXPECT_TRUE(res.cr_response.wr_callback_id.count == 0u);
  EXPECT_EQ(res.cr_response.wr_committed, xdr::stable_how4::UNSTABLE4);
  EXPECT_TRUE(res.cr_requirements.cr_consecutive);
  EXPECT_TRUE(res.cr_requirements.cr_synchronous);
  const Reply4 committed = nfs.on<OP_COMMIT>(to.handle);
  EXPECT_TRUE(committed.waited_for_disk);
  EXPECT_EQ(committed.get<OP_COMMIT>().resok4.writeverf, res.cr_response.wr_writeverf);
}

TEST_F(Copies, ALostWriteBackShowsInTheVerifier) {
  const auto res = copy(args(0, 0, 10)).get<OP_COPY>().resok4;
  nfs.server().verifier.renew();
  EXPECT_NE(nfs.on<OP_COMMIT>(to.handle).get<OP_COMMIT>().resok4.writeverf,
            res.cr_response.wr_writeverf);
}

TEST_F(Copies, ALongOneStopsAndIsGoneOnWith) {
  constexpr std::uint64_t kSize = (std::uint64_t{80} << 20) + 5;
  ASSERT_EQ(::truncate(nfs.path("from").c_str(), kSize), 0);
  std::uint64_t done = 0;
  int calls = 0;
  for (; done < kSize && calls < 10; ++calls) {
    const Reply4 reply = copy(args(done, done, kSize - done));
    ASSERT_EQ(reply.status, NFS4_OK);
    done += reply.get<OP_COPY>().resok4.cr_response.wr_count;
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(done, kSize);
  EXPECT_EQ(stat_of(nfs.path("to")).st_size, static_cast<off_t>(kSize));
  EXPECT_EQ(nfs.read(to, 0, 11), std::string("0123456789\0", 11));
}

TEST_F(Copies, TheSourceHasToBeThere) {
  EXPECT_EQ(copy(args(11, 0, 0)).status, NFS4ERR_INVAL);
  EXPECT_EQ(copy(args(5, 0, 6)).status, NFS4ERR_INVAL);
  EXPECT_EQ(copy(args(5, 0, ~std::uint64_t{0})).status, NFS4ERR_INVAL);
  EXPECT_EQ(copy(args(0, ~std::uint64_t{0}, 1)).status, NFS4ERR_FBIG);
  EXPECT_EQ(content_of(nfs.path("to")), "");
}

TEST_F(Copies, NotWithinOneFile) {
  ASSERT_EQ(::link(nfs.path("from").c_str(), nfs.path("same").c_str()), 0);
  const FileHandle same = nfs.lookup(nfs.root(), "same");
  auto within = args(0, 3, 5);
  within.ca_dst_stateid = from.stateid;
  for (const std::uint64_t count : {5, 3, 0}) {
    within.ca_count = count;
    EXPECT_EQ(copy(within, from.handle, from.handle).status, NFS4ERR_INVAL);
    EXPECT_EQ(copy(within, from.handle, same).status, NFS4ERR_INVAL) << "by another name";
  }
  EXPECT_EQ(content_of(nfs.path("from")), "0123456789");
}

TEST_F(Copies, ClonesWithinOneFileMustNotMeet) {
  const xdr::CLONE4args within{from.stateid, from.stateid, 0, 3, 5};
  EXPECT_EQ(clone(within, from.handle, from.handle).status, NFS4ERR_INVAL);
  EXPECT_EQ(content_of(nfs.path("from")), "0123456789");
}

TEST_F(Copies, EachStateidIsForItsFile) {
  auto swapped = args(0, 0, 1);
  std::swap(swapped.ca_src_stateid, swapped.ca_dst_stateid);
  EXPECT_EQ(copy(swapped).status, NFS4ERR_BAD_STATEID);
  auto same = args(0, 0, 1);
  same.ca_dst_stateid = same.ca_src_stateid;
  EXPECT_EQ(copy(same).status, NFS4ERR_BAD_STATEID);
  nfs.session = nfs.connect("second");
  const Open4 reader = nfs.open(nfs.root(), "to", xdr::OPEN4_SHARE_ACCESS_READ, false);
  auto read_only = args(0, 0, 1);
  read_only.ca_src_stateid = nfs.open(nfs.root(), "from", 1, false).stateid;
  read_only.ca_dst_stateid = reader.stateid;
  EXPECT_EQ(copy(read_only).status, NFS4ERR_OPENMODE);
  EXPECT_EQ(content_of(nfs.path("to")), "");
}

TEST_F(Copies, CurrentStateidsGoWithTheirHandles) {
  xdr::OPEN4args open;
  open.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
  open.owner = {nfs.session.client, as_bytes("owner")};
  open.claim.file = "from";
  Operations4 operations;
  operations.putfh(nfs.root()).add<OP_OPEN>(open).add<OP_SAVEFH>();
  open.claim.file = "to";
  xdr::COPY4args what = args(0, 0, 10);
  what.ca_src_stateid = what.ca_dst_stateid = kCurrentStateid;
  operations.putfh(nfs.root()).add<OP_OPEN>(open).add<OP_COPY>(what);
  EXPECT_EQ(nfs.run(operations).status, NFS4_OK);
  EXPECT_EQ(content_of(nfs.path("to")), "0123456789");
}

TEST_F(Copies, BothHandlesAreNeededAndOfFiles) {
  EXPECT_EQ(nfs.run(Operations4().putfh(to.handle).add<OP_COPY>(args(0, 0, 1))).status,
            NFS4ERR_NOFILEHANDLE);
  ASSERT_EQ(::symlink("from", nfs.path("link").c_str()), 0);
  ASSERT_EQ(::mkfifo(nfs.path("fifo").c_str(), 0666), 0);
  for (const FileHandle& other :
       {nfs.root(), nfs.lookup(nfs.root(), "link"), nfs.lookup(nfs.root(), "fifo")}) {
    EXPECT_EQ(copy(args(0, 0, 1), other, to.handle).status, NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(copy(args(0, 0, 1), from.handle, other).status, NFS4ERR_WRONG_TYPE);
    const xdr::CLONE4args whole{from.stateid, to.stateid, 0, 0, 0};
    EXPECT_EQ(clone(whole, other, to.handle).status, NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(clone(whole, from.handle, other).status, NFS4ERR_WRONG_TYPE);
  }
}

TEST_F(Copies, OtherServersAreNotAsked) {
  xdr::netloc4 there;
  there.nl_name = "server.example.org";
  std::vector<std::byte> room(256);
  xdr::Encoder encoder(room);
  auto what = args(0, 0, 10);
  what.ca_source_server = xdr::encode_array(encoder, std::span<const xdr::netloc4>(&there, 1));
  EXPECT_EQ(copy(what).status, NFS4ERR_NOTSUPP);
  EXPECT_EQ(nfs.on<OP_COPY_NOTIFY>(from.handle).status, NFS4ERR_NOTSUPP);
}

TEST_F(Copies, AReadOnlyExportRefuses) {
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  EXPECT_EQ(copy(args(0, 0, 1)).status, NFS4ERR_ROFS);
  EXPECT_EQ(clone({from.stateid, to.stateid, 0, 0, 0}).status, NFS4ERR_ROFS);
}

TEST_F(Copies, TheCallersRightsCount) {
  NFSRDMA_NEEDS_ROOT();
  ASSERT_EQ(::chmod(nfs.path("from").c_str(), 0600), 0);
  nfs.set_caller(user(2000, 2000));
  EXPECT_EQ(copy(args(0, 0, 1)).status, NFS4ERR_ACCESS);
  EXPECT_EQ(content_of(nfs.path("to")), "");
}

TEST_F(Copies, CloneIsWhatTheFileSystemSays) {
  const UniqueFd source(::open(nfs.path("from").c_str(), O_RDONLY));
  const UniqueFd probe(::open(nfs.path("probe").c_str(), O_RDWR | O_CREAT, 0644));
  const bool can = ::ioctl(probe.get(), FICLONE, source.get()) == 0;
  const Reply4 reply = clone({from.stateid, to.stateid, 0, 0, 0});
  EXPECT_EQ(reply.status, can ? NFS4_OK : NFS4ERR_NOTSUPP);
  EXPECT_EQ(reply.waited_for_disk, can);
  EXPECT_EQ(content_of(nfs.path("to")), can ? "0123456789" : "");
}

TEST_F(Copies, CloneChecksItsRanges) {
  EXPECT_EQ(clone({from.stateid, to.stateid, 11, 0, 0}).status, NFS4ERR_INVAL);
  EXPECT_EQ(clone({from.stateid, to.stateid, 0, 0, 11}).status, NFS4ERR_INVAL);
  EXPECT_EQ(clone({to.stateid, from.stateid, 0, 0, 0}).status, NFS4ERR_BAD_STATEID);
}

}  // namespace
}  // namespace nfsrdma::test
