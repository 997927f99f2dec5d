// SPDX-License-Identifier: Apache-2.0
#include "server/capture/pcapng_writer.h"

namespace nfsrdma::pcapng {

namespace {

// Block types and options of the pcapng format.
constexpr std::uint32_t kSectionBlock = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kStatisticsBlock = 5;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kLinkEthernet = 1;

constexpr std::uint16_t kOptEnd = 0;
constexpr std::uint16_t kOptComment = 1;
constexpr std::uint16_t kSectionApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceDescription = 3;
constexpr std::uint16_t kInterfaceTimeResolution = 9;
constexpr std::uint16_t kPacketFlags = 2;
constexpr std::uint16_t kStatisticsStart = 2;
constexpr std::uint16_t kStatisticsEnd = 3;
constexpr std::uint16_t kStatisticsReceived = 4;
constexpr std::uint16_t kStatisticsDropped = 5;

constexpr std::uint32_t kInbound = 1;
constexpr std::uint32_t kOutbound = 2;
constexpr char kNanoseconds = 9;

template <typename T>
void append_number(std::string& out, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}
/// Times stand in two words, the upper one first, in whatever byte order.
void append_time(std::string& out, std::uint64_t time_ns) {
  append_number(out, static_cast<std::uint32_t>(time_ns >> 32));
  append_number(out, static_cast<std::uint32_t>(time_ns));
}
void append_padding(std::string& out, std::size_t bytes) {
  out.append(pad4(bytes), '\0');
}

/// A block whose length is known when it ends.
class Block {
 public:
  Block(std::string& out, std::uint32_t type) : out_(out), start_(out.size()) {
    append_number(out_, type);
    append_number(out_, std::uint32_t{0});
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    const auto length = static_cast<std::uint32_t>(out_.size() + 4 - start_);
    append_number(out_, length);
    std::memcpy(out_.data() + start_ + 4, &length, sizeof length);
  }
  void option(std::uint16_t code, std::string_view value) {
    value = value.substr(0, 0xffff);
    append_number(out_, code);
    append_number(out_, static_cast<std::uint16_t>(value.size()));
    out_.append(value);
    append_padding(out_, value.size());
  }
  template <typename T>
  void number_option(std::uint16_t code, T value) {
    append_number(out_, code);
    append_number(out_, static_cast<std::uint16_t>(sizeof value));
    append_number(out_, value);
  }
  void time_option(std::uint16_t code, std::uint64_t time_ns) {
    append_number(out_, code);
    append_number(out_, std::uint16_t{8});
    append_time(out_, time_ns);
  }
  void end_options() { append_number(out_, std::uint32_t{kOptEnd}); }

 private:
  std::string& out_;
  std::size_t start_;
};

}  // namespace

void append_section(std::string& out, std::string_view application, std::string_view comment) {
  Block block(out, kSectionBlock);
  append_number(out, kByteOrderMagic);
  append_number(out, std::uint16_t{1});  // version 1.0
  append_number(out, std::uint16_t{0});
  append_number(out, ~std::uint64_t{0});  // the section goes on to the end of the file
  if (!comment.empty()) block.option(kOptComment, comment);
  block.option(kSectionApplication, application);
  block.end_options();
}

void append_interface(std::string& out, std::string_view name, std::string_view description) {
  Block block(out, kInterfaceBlock);
  append_number(out, kLinkEthernet);
  append_number(out, std::uint16_t{0});
  append_number(out, std::uint32_t{0});  // no limit on what is kept of a packet
  block.option(kInterfaceName, name);
  block.option(kInterfaceDescription, description);
  block.option(kInterfaceTimeResolution, {&kNanoseconds, 1});
  block.end_options();
}

std::size_t append_packet(std::string& out, const Packet& packet) {
  const std::size_t before = out.size();
  std::size_t kept = 0;
  for (const ByteSpan& piece : packet.pieces)
    kept += piece.size();
  {
    Block block(out, kPacketBlock);
    append_number(out, std::uint32_t{0});  // of the first interface
    append_time(out, packet.time_ns);
    append_number(out, static_cast<std::uint32_t>(kept));
    append_number(out, static_cast<std::uint32_t>(packet.original_length));
    for (const ByteSpan& piece : packet.pieces)
      out.append(as_text(piece));
    append_padding(out, kept);
    block.number_option(kPacketFlags, packet.outbound ? kOutbound : kInbound);
    if (!packet.comment.empty()) block.option(kOptComment, packet.comment);
    block.end_options();
  }
  return out.size() - before;
}

void append_statistics(std::string& out, const Statistics& statistics) {
  Block block(out, kStatisticsBlock);
  append_number(out, std::uint32_t{0});
  append_time(out, statistics.end_ns);
  block.time_option(kStatisticsStart, statistics.start_ns);
  block.time_option(kStatisticsEnd, statistics.end_ns);
  block.number_option(kStatisticsReceived, statistics.received);
  block.number_option(kStatisticsDropped, statistics.dropped);
  block.end_options();
}

}  // namespace nfsrdma::pcapng
