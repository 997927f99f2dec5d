// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/crc32c.h"

#include "tests/unit/rpcrdma/iwarp/engine_pair.h"

namespace nfsrdma::iwarp::test {
namespace {

std::string on_wire(ByteSpan bytes) {
  Crc32c crc;
  crc.add(bytes);
  std::byte wire[4];
  store_le32(wire, crc.value());
  return to_hex(wire);
}

TEST(Crc32c, StandardCheckValue) {
  Crc32c crc;
  crc.add(as_bytes("123456789"));
  EXPECT_EQ(crc.value(), 0xE3069283u);
  EXPECT_EQ(on_wire(as_bytes("123456789")), "839206e3");
}

TEST(Crc32c, Zeros) {
  EXPECT_EQ(on_wire(std::vector<std::byte>(32)), "aa36918a");
}

TEST(Crc32c, Ones) {
  EXPECT_EQ(on_wire(std::vector<std::byte>(32, std::byte{0xff})), "43aba862");
}

TEST(Crc32c, Counting) {
  EXPECT_EQ(on_wire(counting(32)), "4e79dd46");
}

TEST(Crc32c, CountingDown) {
  std::vector<std::byte> bytes(32);
  for (std::size_t i = 0; i < 32; ++i)
    bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(on_wire(bytes), "5cdb3f11");
}

TEST(Crc32c, FpduOfRfc5044Figure5) {
  std::vector<std::byte> bytes = from_hex("00000000 002a4143 00000000 00000000 00000001 00000000");
  bytes.resize(bytes.size() + 24);
  EXPECT_EQ(on_wire(bytes), "52239983");
}

TEST(Crc32c, FpduOfRfc5044Figure6) {
  std::vector<std::byte> bytes = from_hex("002a4143 00000000 00000000 00000002 00000000 00000014");
  bytes.resize(bytes.size() + 24);
  EXPECT_EQ(on_wire(bytes), "84925898");
}

TEST(Crc32c, PiecesGiveTheSameAsTheWhole) {
  const std::vector<std::byte> bytes = counting(300);
  Crc32c whole;
  whole.add(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Crc32c pieces;
    pieces.add(bytes.data(), cut);
    pieces.add(bytes.data() + cut, bytes.size() - cut);
    ASSERT_EQ(pieces.value(), whole.value()) << cut;
  }
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
