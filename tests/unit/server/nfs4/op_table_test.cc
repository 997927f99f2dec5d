// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/op_table.h"

#include <gtest/gtest.h>

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using enum xdr::nfs_opnum4;
using enum xdr::nfsstat4;

nfsstat4 place(nfs_opnum4 op, std::uint32_t minor, std::uint32_t index, std::uint32_t count,
               bool in_session) {
  return check_place(static_cast<std::uint32_t>(op), minor, index, count, in_session);
}

TEST(OpTable, EachMinorVersionHasItsOperations) {
  // RFC 7530 has 37 operations; RFC 8881 adds 19; RFC 7862 13 and RFC 8276 4.
  std::uint32_t of[3] = {0, 0, 0};
  for (std::uint32_t number = 0; number < 20000; ++number) {
    for (std::uint32_t minor = 0; minor <= kLastMinorVersion; ++minor)
      of[minor] += check_place(number, minor, 0, 1, false) != NFS4ERR_OP_ILLEGAL ? 1 : 0;
  }
  EXPECT_EQ(of[0], 37u);
  EXPECT_EQ(of[1], 37u + 19);
  EXPECT_EQ(of[2], 37u + 19 + 13 + 4);
  EXPECT_EQ(place(OP_SEQUENCE, 0, 0, 1, false), NFS4ERR_OP_ILLEGAL);
  EXPECT_EQ(place(OP_CLONE, 1, 1, 2, true), NFS4ERR_OP_ILLEGAL);
  EXPECT_EQ(place(OP_ILLEGAL, 2, 1, 2, true), NFS4ERR_OP_ILLEGAL);
  EXPECT_EQ(find_operation(2), nullptr);
  EXPECT_EQ(find_operation(76), nullptr);
}

TEST(OpTable, WhatOnlyVersion40Has) {
  for (const nfs_opnum4 op :
       {OP_SETCLIENTID, OP_SETCLIENTID_CONFIRM, OP_RENEW, OP_OPEN_CONFIRM, OP_RELEASE_LOCKOWNER}) {
    EXPECT_EQ(place(op, 0, 0, 1, false), NFS4_OK);
    EXPECT_EQ(place(op, 1, 1, 2, true), NFS4ERR_NOTSUPP);
    EXPECT_EQ(place(op, 2, 1, 2, true), NFS4ERR_NOTSUPP);
    EXPECT_EQ(place(op, 1, 0, 1, false), NFS4ERR_OP_NOT_IN_SESSION);
  }
}

TEST(OpTable, SequenceIsTheFirst) {
  EXPECT_EQ(place(OP_SEQUENCE, 1, 0, 1, false), NFS4_OK);
  EXPECT_EQ(place(OP_SEQUENCE, 1, 0, 9, false), NFS4_OK);
  EXPECT_EQ(place(OP_SEQUENCE, 1, 1, 2, true), NFS4ERR_SEQUENCE_POS);
  EXPECT_EQ(place(OP_SEQUENCE, 1, 1, 2, false), NFS4ERR_SEQUENCE_POS);
  EXPECT_EQ(place(OP_PUTROOTFH, 1, 0, 2, false), NFS4ERR_OP_NOT_IN_SESSION);
  EXPECT_EQ(place(OP_PUTROOTFH, 1, 1, 2, true), NFS4_OK);
}

TEST(OpTable, WhatNeedsNoSessionStandsAlone) {
  for (const nfs_opnum4 op :
       {OP_EXCHANGE_ID, OP_CREATE_SESSION, OP_DESTROY_SESSION, OP_DESTROY_CLIENTID}) {
    EXPECT_EQ(place(op, 1, 0, 1, false), NFS4_OK);
    EXPECT_EQ(place(op, 1, 0, 2, false), NFS4ERR_NOT_ONLY_OP);
    EXPECT_EQ(place(op, 1, 1, 2, true), NFS4_OK);
  }
  EXPECT_EQ(place(OP_BIND_CONN_TO_SESSION, 1, 0, 1, false), NFS4_OK);
  EXPECT_EQ(place(OP_BIND_CONN_TO_SESSION, 1, 1, 2, true), NFS4ERR_NOT_ONLY_OP);
}

TEST(OpTable, WhatNeedsTheSavedHandleNeedsTheCurrentOne) {
  for (std::uint32_t number = xdr::kNfs4FirstOperation; number <= xdr::kNfs4LastOperation;
       ++number) {
    const Operation& op = *find_operation(number);
    EXPECT_TRUE(op.needs_handle || !op.needs_saved_handle) << number;
    // RFC 8267 6: these are all. Of CREATE it is the text of a symbolic link.
    const bool payload = op.number == OP_READ || op.number == OP_WRITE ||
                         op.number == OP_READLINK || op.number == OP_CREATE;
    EXPECT_EQ(op.has_payload, payload) << number;
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4
