// SPDX-License-Identifier: Apache-2.0
#include "xdr/nfs3.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(Nfs3, ProcedureTableIsInOrder) {
  auto in_order = []<typename... P>(std::tuple<P...>*) {
    std::uint32_t next = 0;
    return ((static_cast<std::uint32_t>(P::number) == next++) && ...);
  };
  EXPECT_TRUE(in_order(static_cast<Nfs3Procedures*>(nullptr)));
}

TEST(Nfs3Args, ReadHasTheWordsOfTheRfc) {
  auto handle = words({0xaabbccdd});
  READ3args args{.file = {handle}, .offset = 0x100000002, .count = 4096};
  EXPECT_EQ(encode_flat(args), words({4, 0xaabbccdd, 1, 2, 4096}));
}

TEST(Nfs3Args, AHandleOf64BytesIsTaken) {
  std::vector<std::byte> handle(64);
  GETATTR3args back;
  EXPECT_TRUE(decode_exactly(encode_flat(GETATTR3args{{handle}}), back));
}

TEST(Nfs3Args, AHandleOf65BytesIsRefused) {
  std::vector<std::byte> handle(65);
  GETATTR3args back;
  EXPECT_FALSE(decode_exactly(encode_flat(GETATTR3args{{handle}}), back));
}

TEST(Nfs3Args, ANameTooLongForFileSystemsStillDecodes) {
  std::string name(256, 'n');
  LOOKUP3args back;
  auto bytes = encode_flat(LOOKUP3args{{{}, name}});
  ASSERT_TRUE(decode_exactly(bytes, back));
  EXPECT_EQ(back.what.name, name);
}

TEST(Nfs3Args, ANameLongerThanTheLimitIsRefused) {
  std::string name(kNfs3MaxName + 1, 'n');
  LOOKUP3args back;
  EXPECT_FALSE(decode_exactly(encode_flat(LOOKUP3args{{{}, name}}), back));
}

TEST(Nfs3Args, ANameMayHoldZeros) {
  std::string_view name("a\0b", 3);
  LOOKUP3args back;
  auto bytes = encode_flat(LOOKUP3args{{{}, name}});
  ASSERT_TRUE(decode_exactly(bytes, back));
  EXPECT_EQ(back.what.name, name);
}

TEST(Nfs3Args, WriteDataGoesByReference) {
  std::vector<std::byte> data(100);
  WRITE3args args{.file = {}, .offset = 0, .count = 100, .data = {data}};
  std::array<std::byte, 64> room;
  Encoder encoder(room);
  encode(encoder, args);
  ASSERT_EQ(encoder.payloads().size(), 1u);
  EXPECT_EQ(encoder.payloads()[0].bytes.data(), data.data());
  EXPECT_EQ(encoder.size(), encoded_size_without_payload(args));
  EXPECT_EQ(encoded_size(args), encoder.size() + 100);
}

TEST(Nfs3Args, SymlinkTextGoesByReference) {
  std::vector<std::byte> text(5);
  SYMLINK3args args;
  args.symlink.symlink_data = {text};
  std::array<std::byte, 128> room;
  Encoder encoder(room);
  encode(encoder, args);
  EXPECT_EQ(encoder.payloads().size(), 1u);
}

TEST(Nfs3Args, AnUnknownStableHowIsKeptAsANumber) {
  auto bytes = words({0, 0, 0, 0, 7, 0});
  WRITE3args args;
  ASSERT_TRUE(decode_exactly(bytes, args));
  EXPECT_EQ(static_cast<std::uint32_t>(args.stable), 7u);
}

TEST(Nfs3Args, AnUnknownCreateModeIsRefused) {
  auto bytes = words({0, 0, 3, 0, 0, 0, 0, 0, 0});
  CREATE3args args;
  Decoder decoder(bytes);
  EXPECT_FALSE(decode(decoder, args));
}

TEST(Nfs3Args, ExclusiveCreateCarriesAVerifierAndNoAttributes) {
  CREATE3args args;
  args.how.mode = createmode3::EXCLUSIVE;
  args.how.verf[7] = std::byte{9};
  EXPECT_EQ(encode_flat(args), words({0, 0, 2, 0, 9}));
}

TEST(Nfs3Args, AnUnknownTimeHowSetsNothing) {
  auto bytes = words({0, 0, 0, 0, 3, 0});
  sattr3 attributes;
  EXPECT_TRUE(decode_exactly(bytes, attributes));
}

TEST(Nfs3Args, MknodOfARegularFileHasNoAttributes) {
  auto bytes = words({0, 0, 1});
  MKNOD3args args;
  EXPECT_TRUE(decode_exactly(bytes, args));
}

TEST(Nfs3Args, MknodOfADeviceHasItsNumber) {
  MKNOD3args args;
  args.what.type = ftype3::NF3CHR;
  args.what.device.spec = {5, 1};
  EXPECT_EQ(encode_flat(args), words({0, 0, 4, 0, 0, 0, 0, 0, 0, 5, 1}));
}

TEST(Nfs3Results, AttributesTake84Bytes) {
  EXPECT_EQ(encoded_size(fattr3{}), 84u);
}

TEST(Nfs3Results, AttributesHaveTheOrderOfTheRfc) {
  fattr3 a;
  a.type = ftype3::NF3DIR;
  a.mode = 3;
  a.nlink = 4;
  a.uid = 5;
  a.gid = 6;
  a.size = 7;
  a.used = 8;
  a.rdev = {9, 10};
  a.fsid = 11;
  a.fileid = 12;
  a.atime = {13, 14};
  a.mtime = {15, 16};
  a.ctime = {17, 18};
  EXPECT_EQ(encode_flat(a),
            words({2, 3, 4, 5, 6, 0, 7, 0, 8, 9, 10, 0, 11, 0, 12, 13, 14, 15, 16, 17, 18}));
}

TEST(Nfs3Results, ReadDataGoesByReferenceBehindItsLength) {
  std::vector<std::byte> data(3);
  READ3res result;
  result.resok = {.file_attributes = {}, .count = 3, .eof = true, .data = {data}};
  std::array<std::byte, 64> room;
  Encoder encoder(room);
  encode(encoder, result);
  EXPECT_EQ(std::vector(encoder.bytes().begin(), encoder.bytes().end()), words({0, 0, 3, 1, 3}));
  ASSERT_EQ(encoder.payloads().size(), 1u);
  EXPECT_EQ(encoder.payloads()[0].head_bytes, 20u);
}

TEST(Nfs3Results, AFailureCarriesItsOwnArm) {
  READ3res result;
  result.status = nfsstat3::NFS3ERR_STALE;
  EXPECT_EQ(encode_flat(result), words({70, 0}));
}

TEST(Nfs3Results, AFailureOfGetattrIsItsStatusAlone) {
  GETATTR3res result;
  result.status = nfsstat3::NFS3ERR_IO;
  EXPECT_EQ(encode_flat(result), words({5}));
}

TEST(Nfs3Results, AnUnknownStatusIsKeptAsANumber) {
  auto bytes = words({12345, 0});
  READ3res result;
  ASSERT_TRUE(decode_exactly(bytes, result));
  EXPECT_EQ(static_cast<std::uint32_t>(result.status), 12345u);
  EXPECT_FALSE(is_known(result.status));
}

TEST(Nfs3Results, AFollowFlagOfTwoIsRefused) {
  auto bytes = words({70, 2});
  READ3res result;
  EXPECT_FALSE(decode_exactly(bytes, result));
}

}  // namespace
}  // namespace nfsrdma::xdr
