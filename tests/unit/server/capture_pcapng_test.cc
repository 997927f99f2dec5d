// SPDX-License-Identifier: Apache-2.0
// pcapng blocks, byte by byte as the format has them.
#include <gtest/gtest.h>

#include "server/capture/pcapng_writer.h"

namespace nfsrdma {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values)
    out += static_cast<char>(value);
  return out;
}

TEST(PcapngWriter, ASectionBegins) {
  std::string out;
  pcapng::append_section(out, "nfsd1", "");
  EXPECT_EQ(out, bytes({0x0a, 0x0d, 0x0d, 0x0a, 44,   0,    0,    0,     // type, length
                        0x4d, 0x3c, 0x2b, 0x1a, 1,    0,    0,    0,     // byte order, version 1.0
                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  // to the end of the file
                        4,    0,    5,    0,    'n',  'f',  's',  'd',
                        '1',  0,    0,    0,                             // application, padded
                        0,    0,    0,    0,    44,   0,    0,    0}));  // no more options, length
}

TEST(PcapngWriter, TheInterfaceHasEthernetFramesAndNanoseconds) {
  std::string out;
  pcapng::append_interface(out, "nfs", "abcd");
  EXPECT_EQ(out, bytes({1, 0, 0, 0, 48,  0,   0,   0,    // type, length
                        1, 0, 0, 0, 0,   0,   0,   0,    // Ethernet, no limit
                        2, 0, 3, 0, 'n', 'f', 's', 0,    // name
                        3, 0, 4, 0, 'a', 'b', 'c', 'd',  // description
                        9, 0, 1, 0, 9,   0,   0,   0,    // 10^-9 seconds
                        0, 0, 0, 0, 48,  0,   0,   0}));
}

TEST(PcapngWriter, APacketOfTwoPieces) {
  const std::string head = "abc", tail = "de";
  const ByteSpan pieces[] = {as_bytes(head), as_bytes(tail)};
  std::string out;
  EXPECT_EQ(pcapng::append_packet(out, {0x0102030405060708, pieces, 300, true, "x"}), 60u);
  EXPECT_EQ(out, bytes({6,   0,   0,   0,   60,   0, 0, 0,  // type, length
                        0,   0,   0,   0,                   // the first interface
                        4,   3,   2,   1,   8,    7, 6, 5,  // time, upper word first
                        5,   0,   0,   0,   0x2c, 1, 0, 0,  // kept, original
                        'a', 'b', 'c', 'd', 'e',  0, 0, 0,  // data, padded
                        2,   0,   4,   0,   2,    0, 0, 0,  // outbound
                        1,   0,   1,   0,   'x',  0, 0, 0,  // comment
                        0,   0,   0,   0,   60,   0, 0, 0}));
}

TEST(PcapngWriter, BlocksAreMultiplesOfFour) {
  for (std::size_t size = 0; size < 9; ++size) {
    const std::string data(size, 'x');
    const ByteSpan piece = as_bytes(data);
    std::string out = "begun";  // what stands there already stays
    const std::size_t appended = pcapng::append_packet(out, {1, {&piece, 1}, size, false, ""});
    EXPECT_EQ(out.size(), 5 + appended);
    EXPECT_EQ(appended, 44 + (size + 3) / 4 * 4);
    EXPECT_EQ(out.substr(0, 5), "begun");
    EXPECT_EQ(static_cast<std::size_t>(out[5 + 4]), appended);
    EXPECT_EQ(static_cast<std::size_t>(out[out.size() - 4]), appended);
    EXPECT_EQ(out[out.size() - 12], 1) << "inbound";
  }
}

TEST(PcapngWriter, StatisticsTellWhatWasDropped) {
  std::string out;
  pcapng::append_statistics(out, {0x0000000200000001, 0x0000000400000003, 7, 2});
  EXPECT_EQ(out, bytes({5, 0, 0, 0, 76, 0, 0, 0,              // type, length
                        0, 0, 0, 0, 4,  0, 0, 0, 3, 0, 0, 0,  // interface, time
                        2, 0, 8, 0, 2,  0, 0, 0, 1, 0, 0, 0,  // start
                        3, 0, 8, 0, 4,  0, 0, 0, 3, 0, 0, 0,  // end
                        4, 0, 8, 0, 7,  0, 0, 0, 0, 0, 0, 0,  // received
                        5, 0, 8, 0, 2,  0, 0, 0, 0, 0, 0, 0,  // dropped
                        0, 0, 0, 0, 76, 0, 0, 0}));
}

}  // namespace
}  // namespace nfsrdma
