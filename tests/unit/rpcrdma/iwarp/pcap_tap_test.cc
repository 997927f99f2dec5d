// SPDX-License-Identifier: Apache-2.0
// What the tap writes is TCP that can be put together again; tshark's opinion of it is
// pcap_check.sh.
#include "rpcrdma/iwarp/pcap_tap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/rpcrdma/iwarp/pcap_reader.h"

namespace nfsrdma::iwarp::test {
namespace {

std::vector<std::byte> some(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 31 + seed);
  return bytes;
}

class PcapTapTest : public ::testing::Test {
 protected:
  std::vector<std::byte> written_;
  PcapTap tap_{
      [this](ByteSpan bytes) { written_.insert(written_.end(), bytes.begin(), bytes.end()); }};
  PcapTap::Stream stream_;
  const SocketAddress ours_ = std::move(SocketAddress::parse("192.0.2.1", 40000)).value();
  const SocketAddress theirs_ = std::move(SocketAddress::parse("192.0.2.2", 20049)).value();
};

TEST_F(PcapTapTest, BothDirectionsComeOutWholeWhoeverConnected) {
  // More than a packet holds.
  const auto out = some(150'001, 1), in = some(70'000, 2);
  for (const bool initiator : {true, false}) {
    written_.resize(24);  // the file's header
    tap_.open(stream_, ours_, theirs_, initiator);
    tap_.data(stream_, true, ByteSpan(out).first(100'000));
    tap_.data(stream_, false, in);
    tap_.data(stream_, true, ByteSpan(out).subspan(100'000));
    tap_.close(stream_);
    const auto connections = reassemble(written_);
    ASSERT_EQ(connections.size(), 1u);
    EXPECT_EQ(connections[0].from_initiator, initiator ? out : in);
    EXPECT_EQ(connections[0].from_responder, initiator ? in : out);
  }
}

TEST_F(PcapTapTest, PiecesAreTakenUpToTheBytesThatWereSent) {
  tap_.open(stream_, ours_, theirs_, true);
  std::vector<std::byte> first = some(10, 1), second = some(10, 2);
  const iovec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  tap_.data(stream_, true, pieces, 13);
  const auto connections = reassemble(written_);
  ASSERT_EQ(connections.size(), 1u);
  std::vector<std::byte> wanted = first;
  wanted.insert(wanted.end(), second.begin(), second.begin() + 3);
  EXPECT_EQ(connections[0].from_initiator, wanted);
}

TEST_F(PcapTapTest, AStreamThatIsNotOpenWritesNothing) {
  const std::size_t before = written_.size();
  tap_.data(stream_, true, some(10, 1));
  tap_.close(stream_);
  EXPECT_EQ(written_.size(), before);
}

TEST_F(PcapTapTest, PacketsOfIpv6AreAsLongAsTheySay) {
  const SocketAddress ours = std::move(SocketAddress::parse("2001:db8::1", 40000)).value();
  const SocketAddress theirs = std::move(SocketAddress::parse("2001:db8::2", 20049)).value();
  tap_.open(stream_, ours, theirs, true);
  tap_.data(stream_, true, some(100, 1));
  std::size_t at = 24;
  std::vector<std::uint16_t> payloads;
  while (at + 16 + 40 <= written_.size()) {
    std::uint32_t size = 0;
    std::memcpy(&size, &written_[at + 8], sizeof(size));  // in the byte order of this machine
    const std::byte* packet = &written_[at + 16];
    EXPECT_EQ(std::to_integer<int>(packet[0]) >> 4, 6);
    EXPECT_EQ(std::to_integer<int>(packet[6]), 6);  // TCP
    EXPECT_EQ(load_be16(packet + 4) + 40u, size);
    payloads.push_back(static_cast<std::uint16_t>(load_be16(packet + 4) - 20));
    // The second is SYN and ACK, of the other side.
    EXPECT_EQ(std::to_integer<int>(packet[23]), payloads.size() == 2 ? 2 : 1);
    at += 16 + size;
  }
  EXPECT_EQ(at, written_.size());
  EXPECT_EQ(payloads, (std::vector<std::uint16_t>{0, 0, 0, 100}));
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
