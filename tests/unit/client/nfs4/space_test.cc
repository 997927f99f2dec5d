// SPDX-License-Identifier: Apache-2.0
// SEEK, COPY and extended attributes of the client, against a server that answers what the test
// wants.
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Stat = xdr::nfsstat4;

class SpaceTest : public SessionTest {
 protected:
  Result<std::uint64_t> seek(std::uint64_t offset, SeekFor what) {
    return finish(nfs_->seek(op_, file_, offset, what));
  }
  Result<CopyResult> copy(std::uint64_t count) {
    return finish(nfs_->copy(op_, file_, 10, other_, 20, count));
  }
  Result<CopyResult> copy_blocks(std::uint64_t count) {
    return finish(nfs_->copy(op_, file_, 4096, other_, 1u << 20, count));
  }
  Result<CopyResult> copy_within(std::uint64_t count) {
    return finish(nfs_->copy(op_, file_, 10, file_, 20, count));
  }
  void will_seek(bool eof, std::uint64_t offset) {
    server_->seek.resok4.sr_eof = eof;
    server_->seek.resok4.sr_offset = offset;
  }
  void will_copy(std::uint64_t count, xdr::stable_how4 how, std::uint64_t verifier) {
    xdr::COPY4res res;
    res.resok4.cr_response.wr_count = count;
    res.resok4.cr_response.wr_committed = how;
    store_be64(res.resok4.cr_response.wr_writeverf.data(), verifier);
    res.resok4.cr_requirements = {true, true};
    server_->copies.push_back(res);
  }
  std::size_t commits() const {
    std::size_t count = 0;
    for (const auto& compound : server_->seen)
      count += static_cast<std::size_t>(
          std::count(compound.begin(), compound.end(), xdr::nfs_opnum4::OP_COMMIT));
    return count;
  }
  const FileHandle other_{as_bytes(std::string_view("another file"))};
};

TEST_F(SpaceTest, SeekSaysWhereDataOrAHoleBegins) {
  ASSERT_TRUE(begin().ok());
  will_seek(false, 4096);
  EXPECT_EQ(seek(100, SeekFor::kData).value(), 4096u);
  will_seek(true, 5000);
  EXPECT_EQ(seek(100, SeekFor::kHole).value(), 5000u) << "the end is a hole";
}

/// RFC 7862 15.11.3: that is no error in NFS, and one for lseek(2).
TEST_F(SpaceTest, NoDataUpToTheEndIsEnxio) {
  ASSERT_TRUE(begin().ok());
  will_seek(true, 5000);
  EXPECT_EQ(seek(100, SeekFor::kData).error().sys, ENXIO);
  server_->seek.status = Stat::NFS4ERR_NXIO;
  EXPECT_EQ(seek(9000, SeekFor::kHole).error().sys, ENXIO);
}

TEST_F(SpaceTest, ASeekNeverGoesBack) {
  ASSERT_TRUE(begin().ok());
  will_seek(false, 99);
  EXPECT_EQ(seek(100, SeekFor::kHole).error().code, Errc::kProtocol);
  will_seek(false, std::uint64_t{1} << 63);
  EXPECT_EQ(seek(100, SeekFor::kHole).error().code, Errc::kProtocol) << "no offset of a file";
}

TEST_F(SpaceTest, OlderVersionsHaveNoneOfIt) {
  server_->newest_minor = 1;
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(seek(0, SeekFor::kData).error().sys, ENOSYS);
  EXPECT_EQ(copy(1).error().sys, ENOSYS);
  EXPECT_EQ(finish(nfs_->allocate(op_, file_, 0, 1)).error().sys, ENOSYS);
  EXPECT_EQ(finish(nfs_->deallocate(op_, file_, 0, 1)).error().sys, ENOSYS);
  EXPECT_TRUE(server_->seen.empty());
}

TEST_F(SpaceTest, ACopyThatIsStableNeedsNoCommit) {
  ASSERT_TRUE(begin().ok());
  will_copy(1000, xdr::stable_how4::FILE_SYNC4, 7);
  EXPECT_EQ(copy(1000).value().count, 1000u);
  EXPECT_EQ(commits(), 0u);
  ASSERT_EQ(server_->copy_calls.size(), 1u);
  const xdr::COPY4args& call = server_->copy_calls[0];
  EXPECT_EQ(call.ca_src_offset, 10u);
  EXPECT_EQ(call.ca_dst_offset, 20u);
  EXPECT_EQ(call.ca_count, 1000u);
  EXPECT_TRUE(call.ca_consecutive);
  EXPECT_TRUE(call.ca_synchronous);
}

TEST_F(SpaceTest, WhatIsNotStableIsCommitted) {
  ASSERT_TRUE(begin().ok());
  server_->verifier = 7;
  will_copy(900, xdr::stable_how4::UNSTABLE4, 7);
  EXPECT_EQ(copy(1000).value().count, 900u);
  EXPECT_EQ(commits(), 1u);
}

/// RFC 7862 15.2.3: no server does that. The kernel reads and writes for copy_file_range(2) then.
TEST_F(SpaceTest, WithinOneFileNothingIsCopied) {
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(copy_within(5).error().sys, EOPNOTSUPP);
  EXPECT_TRUE(server_->copy_calls.empty());
}

TEST_F(SpaceTest, ACopyThatARestartLostIsMadeAgain) {
  ASSERT_TRUE(begin().ok());
  server_->verifier = 8;
  will_copy(1000, xdr::stable_how4::UNSTABLE4, 7);
  will_copy(1000, xdr::stable_how4::UNSTABLE4, 8);
  EXPECT_EQ(copy(1000).value().count, 1000u);
  EXPECT_EQ(server_->copy_calls.size(), 2u);
  EXPECT_EQ(commits(), 2u);
}

TEST_F(SpaceTest, ACopyThatIsLostAgainAndAgainIsAnError) {
  ASSERT_TRUE(begin().ok());
  server_->verifier = 8;
  for (int i = 0; i < 10; ++i)
    will_copy(1000, xdr::stable_how4::UNSTABLE4, 7);
  EXPECT_EQ(copy(1000).error().sys, EIO);
  EXPECT_LT(server_->copy_calls.size(), 10u);
}

/// A count of 0 on the wire would be all of the file.
TEST_F(SpaceTest, NothingIsCopiedWithoutACall) {
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(copy(0).value().count, 0u);
  EXPECT_TRUE(server_->copy_calls.empty());
}

TEST_F(SpaceTest, OneCallCopiesSoMuchAndNoMore) {
  ASSERT_TRUE(begin().ok());
  will_copy(Nfs4Operations::kMostOfACopy, xdr::stable_how4::FILE_SYNC4, 7);
  EXPECT_EQ(copy(std::uint64_t{1} << 40).value().count, Nfs4Operations::kMostOfACopy);
  EXPECT_EQ(server_->copy_calls.at(0).ca_count, Nfs4Operations::kMostOfACopy);
}

TEST_F(SpaceTest, AnswersToACopyThatCannotBeAreErrors) {
  ASSERT_TRUE(begin().ok());
  will_copy(1001, xdr::stable_how4::FILE_SYNC4, 7);
  EXPECT_EQ(copy(1000).error().code, Errc::kProtocol) << "more than was asked for";
  will_copy(1000, xdr::stable_how4::FILE_SYNC4, 7);
  ASSERT_TRUE(server_->copies.back().resok4.cr_response.wr_callback_id.push_back({}));
  EXPECT_EQ(copy(1000).error().code, Errc::kProtocol) << "goes on although it must not";
}

TEST_F(SpaceTest, AServerThatCannotCopyAtOnceCannotCopy) {
  ASSERT_TRUE(begin().ok());
  for (const Stat status : {Stat::NFS4ERR_OFFLOAD_NO_REQS, Stat::NFS4ERR_OFFLOAD_DENIED}) {
    xdr::COPY4res res;
    res.status = status;
    server_->copies.push_back(res);
    EXPECT_EQ(copy(1000).error().sys, EOPNOTSUPP);
  }
}

TEST_F(SpaceTest, WhatCanBeClonedIsNotCopied) {
  ASSERT_TRUE(begin().ok());
  server_->clones = {Stat::NFS4_OK};
  const std::uint64_t count = (std::uint64_t{1} << 32) + 5;  // an end that may be the file's
  EXPECT_EQ(copy_blocks(count).value().count, count);
  ASSERT_EQ(server_->clone_calls.size(), 1u);
  EXPECT_EQ(server_->clone_calls[0].cl_src_offset, 4096u);
  EXPECT_EQ(server_->clone_calls[0].cl_dst_offset, 1u << 20);
  EXPECT_EQ(server_->clone_calls[0].cl_count, count);
  EXPECT_EQ(commits(), 1u) << "in the same COMPOUND";
  EXPECT_TRUE(server_->copy_calls.empty());
}

TEST_F(SpaceTest, WhatHasNoWholeBlocksIsNotCloned) {
  ASSERT_TRUE(begin().ok());
  will_copy(1u << 22, xdr::stable_how4::FILE_SYNC4, 7);
  EXPECT_TRUE(copy(1u << 22).ok());  // from and to the middle of a block
  will_copy(5000, xdr::stable_how4::FILE_SYNC4, 7);
  EXPECT_TRUE(copy_blocks(5000).ok());
  EXPECT_TRUE(server_->clone_calls.empty());
}

TEST_F(SpaceTest, AFileSystemThatCannotCloneIsNotAskedEachTime) {
  ASSERT_TRUE(begin().ok());
  for (int i = 0; i < 3; ++i) {
    will_copy(8192, xdr::stable_how4::FILE_SYNC4, 7);
    EXPECT_EQ(copy_blocks(8192).value().count, 8192u);
  }
  EXPECT_EQ(server_->clone_calls.size(), 1u);
  EXPECT_EQ(server_->copy_calls.size(), 3u);
}

/// Its blocks may be larger than ours, or the two on different file systems.
TEST_F(SpaceTest, ACloneThatIsRefusedBecomesACopy) {
  ASSERT_TRUE(begin().ok());
  for (const Stat status : {Stat::NFS4ERR_INVAL, Stat::NFS4ERR_XDEV, Stat::NFS4ERR_WRONG_TYPE}) {
    server_->clones = {status};
    will_copy(8192, xdr::stable_how4::FILE_SYNC4, 7);
    EXPECT_EQ(copy_blocks(8192).value().count, 8192u);
  }
  EXPECT_EQ(server_->clone_calls.size(), 3u);
}

TEST_F(SpaceTest, WhatDoesNotComeOfCloningIsNotTriedAgain) {
  ASSERT_TRUE(begin().ok());
  server_->clones = {Stat::NFS4ERR_NOSPC};
  EXPECT_EQ(copy_blocks(8192).error().sys, ENOSPC);
  EXPECT_TRUE(server_->copy_calls.empty());
}

TEST_F(SpaceTest, NamesOfExtendedAttributesComeInPages) {
  ASSERT_TRUE(begin().ok());
  server_->xattr_pages = {{"a", "b"}, {"c"}, {}};
  const std::vector<std::string> expected{"a", "b", "c"};
  EXPECT_EQ(finish(nfs_->list_xattrs(op_, file_)).value(), expected);
  server_->xattr_pages.clear();
  EXPECT_TRUE(finish(nfs_->list_xattrs(op_, file_)).value().empty());
}

TEST_F(SpaceTest, AListThatDoesNotGetOnIsAnError) {
  ASSERT_TRUE(begin().ok());
  server_->xattr_pages = {{"a"}, {}, {"c"}};
  EXPECT_EQ(finish(nfs_->list_xattrs(op_, file_)).error().code, Errc::kProtocol);
}

TEST_F(SpaceTest, NamesThatCannotBeAreLeftOut) {
  ASSERT_TRUE(begin().ok());
  server_->xattr_pages = {{"", std::string("a\0b", 3), "c"}};
  EXPECT_EQ(finish(nfs_->list_xattrs(op_, file_)).value(), std::vector<std::string>{"c"});
}

TEST_F(SpaceTest, AListOfNothingButNonsenseEnds) {
  ASSERT_TRUE(begin().ok());
  server_->xattr_pages.assign(1000, {""});
  EXPECT_EQ(finish(nfs_->list_xattrs(op_, file_)).error().code, Errc::kProtocol);
}

/// As knfsd before it knew of extended attributes.
TEST_F(SpaceTest, AnOperationThatTheServerDoesNotKnowIsNotSupported) {
  ASSERT_TRUE(begin().ok());
  server_->unknown = xdr::nfs_opnum4::OP_GETXATTR;
  EXPECT_EQ(finish(nfs_->get_xattr(op_, file_, "a")).error().sys, EOPNOTSUPP);
  expect_getattr_works();
}

TEST_F(SpaceTest, AListWithoutEndIsCut) {
  ASSERT_TRUE(begin().ok());
  server_->xattr_pages.assign(1000, {std::string(200, 'n')});
  EXPECT_EQ(finish(nfs_->list_xattrs(op_, file_)).error().sys, E2BIG);
}

TEST_F(SpaceTest, AValueMayBeLongerThanAllOtherArguments) {
  ASSERT_TRUE(begin().ok());
  const std::string value(kMaxXattrBytes, 'v');
  EXPECT_TRUE(finish(nfs_->set_xattr(op_, file_, "a", as_bytes(value), XattrThere::kEither)).ok());
  EXPECT_EQ(server_->xattr, value);
  EXPECT_EQ(finish(nfs_->set_xattr(op_, file_, "a", as_bytes(value + "v"), XattrThere::kEither))
                .error()
                .sys,
            E2BIG);
  expect_getattr_works();
}

TEST_F(SpaceTest, ErrorsOfExtendedAttributesAreThoseOfXattr) {
  ASSERT_TRUE(begin().ok());
  const std::pair<Stat, int> errors[] = {{Stat::NFS4ERR_NOXATTR, ENODATA},
                                         {Stat::NFS4ERR_XATTR2BIG, E2BIG},
                                         {Stat::NFS4ERR_EXIST, EEXIST},
                                         {Stat::NFS4ERR_NOTSUPP, EOPNOTSUPP}};
  for (const auto& [status, number] : errors) {
    server_->setxattr = status;
    EXPECT_EQ(finish(nfs_->set_xattr(op_, file_, "a", {}, XattrThere::kYes)).error().sys, number);
  }
}

}  // namespace
}  // namespace nfsrdma
