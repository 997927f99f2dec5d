// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpcrdma/iwarp/pcap_reader.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

namespace nfsrdma::iwarp::test {
namespace {

constexpr std::uint32_t kMagic = 0xa1b2c3d4;
constexpr std::uint32_t kMagicNano = 0xa1b23c4d;
constexpr std::uint32_t kEthernet = 1;

std::uint32_t host32(const std::byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

struct End {
  std::uint32_t address;
  std::uint16_t port;
  auto operator<=>(const End&) const = default;
};

struct Segment {
  End from;
  End to;
  std::uint32_t sequence = 0;
  bool syn = false;
  bool ack = false;
  ByteSpan payload;
};

bool parse_ipv4(ByteSpan ip, Segment* out) {
  if (ip.size() < 20 || (static_cast<unsigned>(ip[0]) >> 4) != 4) return false;
  const std::size_t header = (static_cast<unsigned>(ip[0]) & 15) * 4;
  const std::size_t total = load_be16(ip.data() + 2);
  if (static_cast<unsigned>(ip[9]) != 6 || total > ip.size() || total < header + 20) return false;
  const std::byte* tcp = ip.data() + header;
  const std::size_t offset = (static_cast<unsigned>(tcp[12]) >> 4) * 4;
  if (total < header + offset) return false;
  out->from = {load_be32(ip.data() + 12), load_be16(tcp)};
  out->to = {load_be32(ip.data() + 16), load_be16(tcp + 2)};
  out->sequence = load_be32(tcp + 4);
  out->syn = (static_cast<unsigned>(tcp[13]) & 2) != 0;
  out->ack = (static_cast<unsigned>(tcp[13]) & 16) != 0;
  out->payload = ip.subspan(header + offset, total - header - offset);
  return true;
}

/// One direction: pieces by their distance from the first byte.
struct Direction {
  bool begun = false;
  std::uint32_t first = 0;
  std::map<std::uint32_t, ByteSpan> pieces;

  void add(const Segment& segment) {
    if (segment.syn) {
      begun = true;
      first = segment.sequence + 1;
    }
    if (!begun || segment.payload.empty()) return;
    ByteSpan& piece = pieces[segment.sequence - first];
    if (segment.payload.size() > piece.size()) piece = segment.payload;
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out;
    for (const auto& [at, piece] : pieces) {
      if (at > out.size()) break;
      if (at + piece.size() <= out.size()) continue;
      out.insert(out.end(), piece.begin() + static_cast<long>(out.size() - at), piece.end());
    }
    return out;
  }
};

}  // namespace

std::vector<std::byte> read_capture(const std::string& path) {
  std::vector<std::byte> out;
  if (path.ends_with(".gz")) {
    FILE* pipe = ::popen(("gzip -dc '" + path + "'").c_str(), "r");
    if (pipe == nullptr) return out;
    std::array<std::byte, 65536> block;
    for (std::size_t n; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
      out.insert(out.end(), block.begin(), block.begin() + static_cast<long>(n));
    }
    ::pclose(pipe);
    return out;
  }
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  out.resize(chars.size());
  if (!chars.empty()) std::memcpy(out.data(), chars.data(), chars.size());
  return out;
}

std::vector<CapturedConnection> reassemble(const std::vector<std::byte>& capture) {
  std::vector<CapturedConnection> out;
  if (capture.size() < 24) return out;
  const std::uint32_t magic = host32(capture.data());
  if (magic != kMagic && magic != kMagicNano) return out;
  const std::size_t link = host32(capture.data() + 20) == kEthernet ? 14 : 0;
  std::map<std::pair<End, End>, std::pair<Direction, Direction>> connections;
  for (std::size_t at = 24; at + 16 <= capture.size();) {
    const std::size_t size = host32(capture.data() + at + 8);
    at += 16;
    if (!range_inside(at, size, capture.size())) break;
    Segment segment;
    if (size > link && parse_ipv4(ByteSpan(capture).subspan(at + link, size - link), &segment)) {
      if (segment.syn && !segment.ack) connections[{segment.from, segment.to}];
      if (auto found = connections.find({segment.from, segment.to}); found != connections.end()) {
        found->second.first.add(segment);
      } else if (found = connections.find({segment.to, segment.from}); found != connections.end()) {
        found->second.second.add(segment);
      }
    }
    at += size;
  }
  for (auto& [ends, directions] : connections) {
    out.push_back({directions.first.bytes(), directions.second.bytes()});
  }
  return out;
}

}  // namespace nfsrdma::iwarp::test
