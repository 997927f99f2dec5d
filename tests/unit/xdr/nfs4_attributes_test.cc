// SPDX-License-Identifier: Apache-2.0
#include "xdr/nfs4_attributes.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/xdr_bytes.h"
#include "xdr/nfs4_directory.h"
#include "xdr/print.h"

namespace nfsrdma::xdr {
namespace {

using enum fattr4_number;
using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

/// A fattr4 as a request brings it.
fattr4 request(const bitmap4& mask, std::span<const std::byte> values) {
  return {.attrmask = mask, .attr_vals = values};
}

TEST(Nfs4Attributes, ValuesGoInTheOrderOfTheirNumbers) {
  FileAttributes4 a;
  a.attrmask = bitmap4::of({FATTR4_MODE, FATTR4_TYPE, FATTR4_SIZE, FATTR4_OWNER});
  a.mode = 0644;
  a.type = nfs_ftype4::NF4REG;
  a.size = 0x100000002;
  a.owner = "0";
  a.fileid = 99;  // not in the mask
  EXPECT_EQ(encode_flat(a), words({2, 0x12, 0x12, 24, 1, 1, 2, 0644, 1, 0x30000000}));
}

TEST(Nfs4Attributes, TheThirdWordHasItsPlace) {
  FileAttributes4 a;
  a.attrmask = bitmap4::of({FATTR4_SUPPATTR_EXCLCREAT, FATTR4_CHANGE_ATTR_TYPE});
  a.suppattr_exclcreat = bitmap4::of({FATTR4_MODE});
  a.change_attr_type = change_attr_type4::NFS4_CHANGE_TYPE_IS_TIME_METADATA;
  EXPECT_EQ(encode_flat(a), words({3, 0, 0, 0x8800, 16, 2, 0, 2, 3}));
}

TEST(Nfs4Attributes, TimesAreSigned) {
  FileAttributes4 a;
  a.attrmask = bitmap4::of({FATTR4_TIME_MODIFY});
  a.time_modify = {.seconds = -2, .nseconds = 7};
  auto bytes = encode_flat(a);
  EXPECT_EQ(bytes, words({2, 0, 1u << 21, 12, 0xffffffff, 0xfffffffe, 7}));
  FileAttributes4 back;
  ASSERT_TRUE(decode_exactly(bytes, back));
  EXPECT_EQ(back.time_modify.seconds, -2);
}

TEST(Nfs4Attributes, NoAttributesAreAnEmptyMaskAndAnEmptyOpaque) {
  EXPECT_EQ(encode_flat(FileAttributes4{}), words({0, 0}));
}

TEST(Nfs4Attributes, ARequestDecodesIntoItsFields) {
  auto values = words({0, 4096, 0, 0755, 1, 0, 8, 9});
  FileAttributes4 a;
  auto decoded = decode_attributes(
      request(bitmap4::of({FATTR4_SIZE, FATTR4_HIDDEN, FATTR4_MODE, FATTR4_TIME_ACCESS_SET}),
              values),
      a);
  EXPECT_EQ(decoded.outcome, AttributeDecoding::kOk);
  EXPECT_EQ(a.size, 4096u);
  EXPECT_FALSE(a.hidden);
  EXPECT_EQ(a.mode, 0755u);
  EXPECT_EQ(a.time_access_set.set_it, time_how4::SET_TO_CLIENT_TIME4);
  EXPECT_EQ(a.time_access_set.time.seconds, 8);
  EXPECT_EQ(a.time_access_set.time.nseconds, 9u);
}

TEST(Nfs4Attributes, ANumberThatNobodyKnowsIsNamed) {
  FileAttributes4 a;
  bitmap4 mask = bitmap4::of({FATTR4_SIZE});
  mask.set(90);
  mask.set(93);
  auto decoded = decode_attributes(request(mask, words({0, 1, 5, 5})), a);
  EXPECT_EQ(decoded.outcome, AttributeDecoding::kUnknownNumber);
  EXPECT_EQ(decoded.number, 90u);
}

TEST(Nfs4Attributes, ANumberThatWeHaveNoTypeForIsNamed) {
  FileAttributes4 a;
  auto decoded =
      decode_attributes(request(bitmap4::of({FATTR4_SIZE, FATTR4_RETENTION_SET}), {}), a);
  EXPECT_EQ(decoded.outcome, AttributeDecoding::kUnknownNumber);
  EXPECT_EQ(decoded.number, 70u);
}

TEST(Nfs4Attributes, ANumberBehindTheThirdWordIsNamed) {
  // As pynfs asks: attribute 1000, in the 32nd word.
  std::vector<std::byte> bytes(4 + 32 * 4 + 4);
  Encoder encoder(bytes);
  encoder.u32(32);
  for (int i = 0; i < 31; ++i)
    encoder.u32(0);
  encoder.u32(1u << 8);
  encoder.u32(0);
  fattr4 asked;
  ASSERT_TRUE(decode_exactly(bytes, asked));
  FileAttributes4 a;
  auto decoded = decode_attributes(asked, a);
  EXPECT_EQ(decoded.outcome, AttributeDecoding::kUnknownNumber);
  EXPECT_EQ(decoded.number, 1000u);
  EXPECT_TRUE((asked.attrmask & kFileAttributes4).empty());
}

TEST(Nfs4Attributes, ValuesTooShortOrTooLongAreBad) {
  FileAttributes4 a;
  bitmap4 mask = bitmap4::of({FATTR4_SIZE});
  EXPECT_EQ(decode_attributes(request(mask, words({0})), a).outcome, AttributeDecoding::kBadValues);
  EXPECT_EQ(decode_attributes(request(mask, words({0, 1})), a).outcome, AttributeDecoding::kOk);
  EXPECT_EQ(decode_attributes(request(mask, words({0, 1, 0})), a).outcome,
            AttributeDecoding::kBadValues);
}

TEST(Nfs4Attributes, ABooleanOfTwoIsBad) {
  FileAttributes4 a;
  EXPECT_EQ(decode_attributes(request(bitmap4::of({FATTR4_ARCHIVE}), words({2})), a).outcome,
            AttributeDecoding::kBadValues);
}

TEST(Nfs4Attributes, AnOpaqueLongerThanItsValuesIsRefused) {
  FileAttributes4 back;
  EXPECT_TRUE(decode_exactly(words({1, 0x10, 8, 0, 1}), back));
  EXPECT_FALSE(decode_exactly(words({1, 0x10, 12, 0, 1, 0}), back));
  EXPECT_FALSE(decode_exactly(words({1, 0x10, 4, 0, 1}), back));
}

TEST(Nfs4Attributes, AReplyWithANumberThatCannotBeReadIsRefused) {
  FileAttributes4 back;
  EXPECT_TRUE(decode_exactly(words({3, 0, 0, 1u << 18, 4, 1}), back));
  EXPECT_TRUE(back.xattr_support);
  EXPECT_FALSE(decode_exactly(words({3, 0, 0, 1u << 19, 0}), back));
  EXPECT_FALSE(decode_exactly(words({4, 0, 0, 0, 1, 0}), back));
}

TEST(Nfs4Attributes, AnAclIsWalkedElementByElement) {
  std::array<nfsace4, 2> aces{};
  aces[0] = {.type = 0, .flag = 0, .access_mask = ACE4_READ_DATA, .who = "OWNER@"};
  aces[1] = {.type = 1, .flag = 0, .access_mask = ACE4_WRITE_DATA, .who = "EVERYONE@"};
  std::array<std::byte, 256> room;
  Encoder scratch(room);
  FileAttributes4 a;
  a.attrmask = bitmap4::of({FATTR4_ACL});
  a.acl.aces = encode_array<nfsace4>(scratch, aces);
  FileAttributes4 back;
  auto bytes = encode_flat(a);
  ASSERT_TRUE(decode_exactly(bytes, back));
  std::string whose;
  for (const nfsace4& ace : back.acl.aces)
    whose += ace.who;
  EXPECT_EQ(whose, "OWNER@EVERYONE@");
  EXPECT_EQ(back.acl.aces.count, 2u);
}

TEST(Nfs4Attributes, AnEntryWithValuesReadsAsAnEntry) {
  AttributedEntry4 entry{.cookie = 3, .name = "f", .attrs = {}};
  entry.attrs.attrmask = bitmap4::of({FATTR4_FILEID});
  entry.attrs.fileid = 12;
  entry4 back;
  auto bytes = encode_flat(entry);
  ASSERT_TRUE(decode_exactly(bytes, back));
  EXPECT_EQ(back.name, "f");
  FileAttributes4 values;
  EXPECT_EQ(decode_attributes(back.attrs, values).outcome, AttributeDecoding::kOk);
  EXPECT_EQ(values.fileid, 12u);
}

TEST(Nfs4Attributes, NumbersHaveTheNamesOfTheRfcs) {
  EXPECT_EQ(enum_name(static_cast<fattr4_number>(20)), "FATTR4_FILEID");
  EXPECT_EQ(enum_name(static_cast<fattr4_number>(55)), "FATTR4_MOUNTED_ON_FILEID");
  EXPECT_EQ(enum_name(static_cast<fattr4_number>(75)), "FATTR4_SUPPATTR_EXCLCREAT");
  EXPECT_EQ(enum_name(static_cast<fattr4_number>(82)), "FATTR4_XATTR_SUPPORT");
  EXPECT_EQ(enum_name(static_cast<fattr4_number>(86)), "FATTR4_OPEN_ARGUMENTS");
}

}  // namespace
}  // namespace nfsrdma::xdr
