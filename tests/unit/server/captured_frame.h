// SPDX-License-Identifier: Apache-2.0
// Takes frames of a capture apart again, by the layouts of IPv4, IPv6 and TCP, and checks what a
// receiver would check.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/capture/packet_sink.h"

namespace nfsrdma::test {

struct CapturedFrame {
  bool outbound = false;
  std::string bytes;  // what was kept
  std::size_t original_length = 0;
  std::string comment;

  std::uint8_t u8(std::size_t at) const { return static_cast<std::uint8_t>(bytes.at(at)); }
  std::uint16_t u16(std::size_t at) const {
    return static_cast<std::uint16_t>(u8(at) << 8 | u8(at + 1));
  }
  std::uint32_t u32(std::size_t at) const {
    return static_cast<std::uint32_t>(u16(at)) << 16 | u16(at + 2);
  }
  bool is_v6() const { return u16(12) == 0x86dd; }
  std::size_t tcp() const { return 14 + (is_v6() ? 40 : 20); }
  std::uint16_t source_port() const { return u16(tcp()); }
  std::uint16_t target_port() const { return u16(tcp() + 2); }
  std::uint32_t sequence() const { return u32(tcp() + 4); }
  std::uint32_t acknowledged() const { return u32(tcp() + 8); }
  std::uint8_t flags() const { return u8(tcp() + 13); }
  std::size_t header_bytes() const { return tcp() + std::size_t{u8(tcp() + 12)} / 16 * 4; }
  std::string payload() const { return bytes.substr(header_bytes()); }
  std::size_t payload_bytes() const { return original_length - header_bytes(); }

  /// The sum over `words`, folded, is all ones where the checksum in it is right (RFC 1071).
  static bool sums_up(const std::string& words) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(words[i]);
      sum += i % 2 == 0 ? std::uint32_t{byte} << 8 : byte;
      sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum == 0xffff;
  }
  /// Lengths and checksums; of a frame that is whole.
  void check() const {
    ASSERT_EQ(bytes.size(), original_length);
    const std::size_t ip_bytes = bytes.size() - 14;
    std::string pseudo;
    if (is_v6()) {
      EXPECT_EQ(u32(14), 0x60000000u);
      EXPECT_EQ(u16(14 + 4), ip_bytes - 40);
      EXPECT_EQ(u8(14 + 6), 6);
      pseudo = bytes.substr(14 + 8, 32);
    } else {
      EXPECT_EQ(u16(12), 0x0800);
      EXPECT_EQ(u8(14), 0x45);
      EXPECT_EQ(u16(14 + 2), ip_bytes);
      EXPECT_EQ(u8(14 + 9), 6);
      EXPECT_TRUE(sums_up(bytes.substr(14, 20))) << "IPv4";
      pseudo = bytes.substr(14 + 12, 8);
    }
    const std::string segment = bytes.substr(tcp());
    pseudo += std::string("\0\6", 2);
    pseudo += static_cast<char>(segment.size() >> 8);
    pseudo += static_cast<char>(segment.size());
    EXPECT_TRUE(sums_up(pseudo + segment)) << "TCP";
  }
};

class RecordingSink final : public PacketSink {
 public:
  void packet(bool outbound, std::span<const ByteSpan> pieces, std::size_t original_length,
              std::string_view comment) override {
    CapturedFrame frame;
    frame.outbound = outbound;
    for (const ByteSpan& piece : pieces)
      frame.bytes += as_text(piece);
    frame.original_length = original_length;
    frame.comment = comment;
    frames.push_back(std::move(frame));
  }
  std::vector<CapturedFrame> frames;
};

/// Bytes that differ from their neighbours.
inline std::string some_bytes(std::size_t count) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<char>(i * 7 + i / 256);
  return out;
}

}  // namespace nfsrdma::test
