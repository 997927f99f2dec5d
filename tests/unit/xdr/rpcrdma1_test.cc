// SPDX-License-Identifier: Apache-2.0
#include "xdr/rpcrdma1.h"

#include <gtest/gtest.h>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(RpcRdma1, TheFixedHeaderIsFourWords) {
  rdma_fixed_header header{.rdma_xid = 7, .rdma_credit = 32, .proc = rdma_proc::RDMA_NOMSG};
  EXPECT_EQ(encode_flat(header), words({7, 1, 32, 1}));
  EXPECT_EQ(encoded_size(header), kRpcRdmaFixedBytes);
}

TEST(RpcRdma1, AReadSegmentStartsWithItsPosition) {
  rdma_read_segment segment{148, {0xaabbccdd, 4096, 0x100000002}};
  EXPECT_EQ(encode_flat(segment), words({148, 0xaabbccdd, 4096, 1, 2}));
  EXPECT_EQ(encoded_size(segment) + 4, kRpcRdmaReadSegmentBytes);
}

TEST(RpcRdma1, ASegmentIsSixteenBytes) {
  EXPECT_EQ(encoded_size(rdma_segment{}), kRpcRdmaSegmentBytes);
}

TEST(RpcRdma1, ErrVersNamesTheVersions) {
  EXPECT_EQ(encode_flat(rdma_error{rpcrdma_errcode::ERR_VERS, 1, 1}), words({1, 1, 1}));
}

TEST(RpcRdma1, ErrChunkIsOneWord) {
  EXPECT_EQ(encode_flat(rdma_error{rpcrdma_errcode::ERR_CHUNK}), words({2}));
}

TEST(RpcRdma1, AnUnknownErrorIsRefused) {
  auto bytes = words({3});
  rdma_error error;
  EXPECT_FALSE(decode_exactly(bytes, error));
}

TEST(RpcRdma1, AnUnknownProcedureIsKeptAsANumber) {
  auto bytes = words({7, 1, 32, 9});
  rdma_fixed_header header;
  ASSERT_TRUE(decode_exactly(bytes, header));
  EXPECT_FALSE(is_known(header.proc));
}

}  // namespace
}  // namespace nfsrdma::xdr
