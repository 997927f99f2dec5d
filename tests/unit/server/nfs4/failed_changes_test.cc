// SPDX-License-Identifier: Apache-2.0
// Operations that change nothing: the change attribute of the directory stays (RFC 8881 3.3.3,
// 5.8.1.4).
#include <gtest/gtest.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

class FailedChanges : public ::testing::Test {
 protected:
  Nfs4Harness nfs_;
};

TEST_F(FailedChanges, WhatFailsChangesNoDirectory) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  xdr::CREATE4args directory;
  directory.objtype.type = xdr::nfs_ftype4::NF4DIR;
  directory.objname = "directory";
  ASSERT_EQ(nfs_.on<OP_CREATE>(nfs_.root(), directory).status, NFS4_OK);
  ASSERT_EQ(nfs_.open(nfs_.lookup(nfs_.root(), "directory"), "file").status, NFS4_OK);
  const std::uint64_t before = nfs_.change(nfs_.root());
  const std::uint64_t file_before = nfs_.change(file.handle);

  EXPECT_EQ(nfs_.on<OP_REMOVE>(nfs_.root(), {"none"}).status, NFS4ERR_NOENT);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "REMOVE";
  EXPECT_EQ(nfs_.on<OP_REMOVE>(nfs_.root(), {"directory"}).status, NFS4ERR_NOTEMPTY);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "REMOVE of a directory";
  EXPECT_EQ(nfs_.on<OP_CREATE>(nfs_.root(), directory).status, NFS4ERR_EXIST);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "CREATE";
  const auto two = [&](const FileHandle& first) {
    return Operations4().putfh(first).add<OP_SAVEFH>().putfh(nfs_.root());
  };
  EXPECT_EQ(nfs_.run(two(nfs_.root()).add<OP_RENAME>({"none", "other"})).status, NFS4ERR_NOENT);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "RENAME";
  EXPECT_EQ(nfs_.run(two(file.handle).add<OP_LINK>({"directory"})).status, NFS4ERR_EXIST);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "LINK";
  EXPECT_EQ(nfs_.change(file.handle), file_before) << "LINK";
  EXPECT_EQ(nfs_.on<OP_REMOVE>(nfs_.root(), {"file"}).status, NFS4_OK);
  EXPECT_GT(nfs_.change(nfs_.root()), before);
}

}  // namespace
}  // namespace nfsrdma::test
