// SPDX-License-Identifier: Apache-2.0
#include "xdr/print.h"

#include <gtest/gtest.h>

#include "tests/support/xdr_bytes.h"
#include "xdr/nfs3.h"
#include "xdr/rpcb.h"

namespace nfsrdma::xdr {
namespace {

TEST(Print, NamesFieldsAndEnumValues) {
  auto data = nfsrdma::testing::words({0x68690000});
  READ3res result;
  result.resok = {.count = 2, .eof = true, .data = {std::span(data).first(2)}};
  EXPECT_EQ(print(result),
            "{status=NFS3_OK resok={file_attributes={attributes_follow=false} count=2 eof=true "
            "data=2:6869}}");
}

TEST(Print, UnknownEnumValuesAreNumbers) {
  GETATTR3res result;
  result.status = static_cast<nfsstat3>(777);
  EXPECT_EQ(print(result), "{status=777 resfail={}}");
}

TEST(Print, ControlCharactersDoNotGetThrough) {
  EXPECT_EQ(print(RpcbAddress{"a\x1b[2J\"\\\n\xff"}), "{uaddr=\"a\\x1b[2J\\\"\\\\\\x0a\\xff\"}");
}

TEST(Print, LongOpaquesAreCutShort) {
  std::vector<std::byte> handle(64);
  std::string text = print(GETATTR3args{{handle}});
  EXPECT_EQ(text, "{object={data=64:" + std::string(64, '0') + "...}}");
}

TEST(Print, LongListsAreCutShort) {
  std::vector<std::byte> room(4096);
  Encoder encoder(room);
  ListWriter<mapping> writer(encoder);
  for (std::uint32_t i = 0; i < 100; ++i)
    ASSERT_TRUE(writer.try_add({.prog = i}));
  std::string text = print(pmaplist{writer.list()});
  EXPECT_NE(text.find("{prog=15 "), std::string::npos);
  EXPECT_EQ(text.find("{prog=16 "), std::string::npos);
  EXPECT_NE(text.find("... 100 in all"), std::string::npos);
}

}  // namespace
}  // namespace nfsrdma::xdr
