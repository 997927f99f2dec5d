// SPDX-License-Identifier: Apache-2.0
#include "xdr/rpc.h"

#include <gtest/gtest.h>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(RpcCall, HasTheWordsOfTheRfc) {
  rpc_msg message;
  message.xid = 0x11223344;
  message.cbody.prog = 100003;
  message.cbody.vers = 3;
  message.cbody.proc = 1;
  EXPECT_EQ(encode_flat(message), words({0x11223344, 0, 2, 100003, 3, 1, 0, 0, 0, 0}));
}

TEST(RpcCall, ArgumentsFollowTheHeader) {
  auto bytes = words({1, 0, 2, 100003, 3, 1, 0, 0, 0, 0, 77});
  Decoder decoder(bytes);
  rpc_msg message;
  ASSERT_TRUE(decode(decoder, message));
  EXPECT_EQ(decoder.u32(), 77u);
}

TEST(RpcCall, OfAnotherRpcVersionIsReadUpToTheVersion) {
  auto bytes = words({1, 0, 3, 99});
  Decoder decoder(bytes);
  rpc_msg message;
  ASSERT_TRUE(decode(decoder, message));
  EXPECT_EQ(message.cbody.rpcvers, 3u);
  EXPECT_EQ(decoder.remaining(), 4u);
}

TEST(RpcMessage, OfAnUnknownTypeIsRefused) {
  auto bytes = words({1, 2, 2, 100003, 3, 1, 0, 0, 0, 0});
  rpc_msg message;
  Decoder decoder(bytes);
  EXPECT_FALSE(decode(decoder, message));
}

TEST(RpcCall, ACredentialOf400BytesIsTaken) {
  std::vector<std::byte> body(400);
  rpc_msg message;
  message.cbody.cred = {auth_flavor::AUTH_SYS, body};
  rpc_msg back;
  ASSERT_TRUE(decode_exactly(encode_flat(message), back));
  EXPECT_EQ(back.cbody.cred.body.size(), 400u);
}

TEST(RpcCall, ACredentialOf401BytesIsRefused) {
  std::vector<std::byte> body(401);
  rpc_msg message;
  message.cbody.cred = {auth_flavor::AUTH_SYS, body};
  rpc_msg back;
  EXPECT_FALSE(decode_exactly(encode_flat(message), back));
}

TEST(RpcCall, AnUnknownFlavourIsKeptAsANumber) {
  auto bytes = words({1, 0, 2, 100003, 3, 1, 390003, 0, 0, 0});
  rpc_msg message;
  ASSERT_TRUE(decode_exactly(bytes, message));
  EXPECT_EQ(static_cast<std::uint32_t>(message.cbody.cred.flavor), 390003u);
}

TEST(RpcReply, AcceptedHasTheWordsOfTheRfc) {
  EXPECT_EQ(encode_flat(accepted(7, accept_stat::SUCCESS)), words({7, 1, 0, 0, 0, 0}));
}

TEST(RpcReply, ProgMismatchNamesTheVersions) {
  EXPECT_EQ(encode_flat(accepted(7, accept_stat::PROG_MISMATCH, {3, 4})),
            words({7, 1, 0, 0, 0, 2, 3, 4}));
}

TEST(RpcReply, DeniedVersionNamesTwo) {
  EXPECT_EQ(encode_flat(denied_version(7)), words({7, 1, 1, 0, 2, 2}));
}

TEST(RpcReply, DeniedAuthSaysWhy) {
  EXPECT_EQ(encode_flat(denied_auth(7, auth_stat::AUTH_TOOWEAK)), words({7, 1, 1, 1, 5}));
}

TEST(RpcReply, AnUnknownReplyStatIsRefused) {
  auto bytes = words({7, 1, 2, 0, 0, 0});
  rpc_msg message;
  EXPECT_FALSE(decode_exactly(bytes, message));
}

TEST(RpcReply, AnUnknownRejectStatIsRefused) {
  auto bytes = words({7, 1, 1, 2, 0, 0});
  rpc_msg message;
  Decoder decoder(bytes);
  EXPECT_FALSE(decode(decoder, message));
}

TEST(RpcReply, AnUnknownAcceptStatIsKeptAsANumber) {
  auto bytes = words({7, 1, 0, 0, 0, 99});
  rpc_msg message;
  ASSERT_TRUE(decode_exactly(bytes, message));
  EXPECT_EQ(static_cast<std::uint32_t>(message.rbody.areply.stat), 99u);
}

TEST(AuthSys, HasTheWordsOfTheRfc) {
  authsys_parms parms{.stamp = 9, .machinename = "ab", .uid = 1000, .gid = 100, .gids = {}};
  parms.gids.push_back(4);
  parms.gids.push_back(5);
  EXPECT_EQ(encode_flat(parms), words({9, 2, 0x61620000, 1000, 100, 2, 4, 5}));
}

TEST(AuthSys, SixteenGroupsAreTaken) {
  authsys_parms parms;
  for (std::uint32_t i = 0; i < 16; ++i)
    ASSERT_TRUE(parms.gids.push_back(i));
  EXPECT_FALSE(parms.gids.push_back(16));
  authsys_parms back;
  ASSERT_TRUE(decode_exactly(encode_flat(parms), back));
  EXPECT_EQ(back.gids.view().back(), 15u);
}

TEST(AuthSys, SeventeenGroupsAreRefused) {
  std::vector<std::byte> bytes(4 * (5 + 17));
  Encoder encoder(bytes);
  for (std::uint32_t word : {0, 0, 0, 0, 17})
    encoder.u32(word);
  for (std::uint32_t i = 0; i < 17; ++i)
    encoder.u32(i);
  authsys_parms parms;
  EXPECT_FALSE(decode_exactly(bytes, parms));
  EXPECT_EQ(parms.gids.count, 0u);
}

TEST(AuthSys, AMachineNameOf256BytesIsRefused) {
  std::string name(256, 'x');
  authsys_parms parms;
  parms.machinename = name;
  authsys_parms back;
  EXPECT_FALSE(decode_exactly(encode_flat(parms), back));
}

}  // namespace
}  // namespace nfsrdma::xdr
