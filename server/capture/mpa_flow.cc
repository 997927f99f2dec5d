// SPDX-License-Identifier: Apache-2.0
#include "server/capture/mpa_flow.h"

#include <algorithm>

#include "server/capture/pieces.h"

namespace nfsrdma {

namespace {

// RFC 5044, section 7.1: key, flags (no markers, no CRC, not rejected), revision, private data.
constexpr char kRequestKey[] = "MPA ID Req Frame";
constexpr char kReplyKey[] = "MPA ID Rep Frame";
constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kMpaFrameHeader = 20;
// The later revision adds the read depths, which are nothing to us; dissectors know this one best.
constexpr std::uint8_t kMpaRevision = 1;

constexpr std::size_t kLengthField = 2;
constexpr std::size_t kCrcField = 4;

// RFC 5041, section 4: control bits and headers, with MPA's length in front.
constexpr std::uint8_t kTagged = 0x80;
constexpr std::uint8_t kLast = 0x40;
constexpr std::uint8_t kDdpVersion = 1;
constexpr std::size_t kTaggedHeader = kLengthField + 14;
constexpr std::size_t kUntaggedHeader = kLengthField + 18;
constexpr std::uint32_t kSendQueue = 0;
constexpr std::uint32_t kReadRequestQueue = 1;

// RFC 5040, section 4.
constexpr std::uint8_t kRdmapVersion = 0x40;
constexpr std::uint8_t kWriteOpcode = 0;
constexpr std::uint8_t kReadRequestOpcode = 1;
constexpr std::uint8_t kReadResponseOpcode = 2;
constexpr std::uint8_t kSendOpcode = 3;
constexpr std::uint8_t kSendInvalidateOpcode = 4;
constexpr std::size_t kReadRequestBody = 28;

struct Untagged {
  std::uint8_t opcode = 0;
  std::uint32_t invalidated = 0;
  std::uint32_t queue = 0;
  std::uint32_t sequence = 0;
  std::uint32_t offset = 0;
  bool last = true;
};

/// All but the length.
void put_untagged(std::byte* out, const Untagged& header) {
  out[2] = static_cast<std::byte>((header.last ? kLast : 0) | kDdpVersion);
  out[3] = static_cast<std::byte>(kRdmapVersion | header.opcode);
  store_be32(out + 4, header.invalidated);
  store_be32(out + 8, header.queue);
  store_be32(out + 12, header.sequence);
  store_be32(out + 16, header.offset);
}

}  // namespace

void MpaFlow::open(const PrivateData& client, const PrivateData& server, std::string_view comment) {
  for (const From from : {From::kClient, From::kServer}) {
    const bool request = from == From::kClient;
    std::array<std::byte, kMpaFrameHeader + PrivateData::kBytes> frame{};
    std::memcpy(frame.data(), request ? kRequestKey : kReplyKey, kKeyBytes);
    frame[17] = std::byte{kMpaRevision};
    store_be16(frame.data() + 18, PrivateData::kBytes);
    const auto data = (request ? client : server).encode();
    std::memcpy(frame.data() + kMpaFrameHeader, data.data(), data.size());
    const ByteSpan piece(frame);
    tcp_.segment(from, {&piece, 1}, frame.size(), comment);
  }
}

/// One FPDU: `header` with room for the length, then payload_, of which `kept` bytes are written.
void MpaFlow::fpdu(From from, ByteSpan header, std::size_t kept) {
  const std::size_t payload = total_size(payload_);
  const std::size_t front = header.size() + payload;
  const std::array<std::byte, 3 + kCrcField> trailer{};  // padding, and a CRC that is not used
  const std::size_t trailer_bytes = pad4(front) + kCrcField;
  pieces_.clear();
  pieces_.push_back(header);
  pieces_.insert(pieces_.end(), payload_.begin(), payload_.end());
  pieces_.emplace_back(trailer.data(), trailer_bytes);
  tcp_.segment(from, pieces_, kept < payload ? header.size() + kept : front + trailer_bytes);
}

void MpaFlow::send(From from, std::span<const ByteSpan> message,
                   std::optional<std::uint32_t> invalidated) {
  const std::size_t size = total_size(message);
  PieceCursor cursor(message);
  Untagged header;
  header.opcode = invalidated ? kSendInvalidateOpcode : kSendOpcode;
  header.invalidated = invalidated.value_or(0);
  header.queue = kSendQueue;
  header.sequence = ++(from == From::kClient ? client_sends_ : server_sends_);
  std::size_t done = 0;
  do {
    const std::size_t part = std::min(size - done, kSegmentPayload);
    header.offset = static_cast<std::uint32_t>(done);
    header.last = done + part == size;
    std::array<std::byte, kUntaggedHeader> raw;
    store_be16(raw.data(), static_cast<std::uint16_t>(kUntaggedHeader - kLengthField + part));
    put_untagged(raw.data(), header);
    payload_.clear();
    cursor.take(part, payload_);
    fpdu(from, raw, part);
    done += part;
  } while (done < size);
}

void MpaFlow::write(std::uint32_t handle, std::uint64_t offset, std::span<const ByteSpan> data,
                    std::size_t kept) {
  tagged(From::kServer, kWriteOpcode, handle, offset, data, kept);
}

void MpaFlow::read_request(const Read& read) {
  std::array<std::byte, kUntaggedHeader + kReadRequestBody> raw;
  store_be16(raw.data(), raw.size() - kLengthField);
  Untagged header;
  header.opcode = kReadRequestOpcode;
  header.queue = kReadRequestQueue;
  header.sequence = ++read_requests_;
  put_untagged(raw.data(), header);
  std::byte* body = raw.data() + kUntaggedHeader;
  store_be32(body, read.sink_handle);
  store_be64(body + 4, read.sink_offset);
  store_be32(body + 12, read.length);
  store_be32(body + 16, read.source_handle);
  store_be64(body + 20, read.source_offset);
  payload_.clear();
  fpdu(From::kServer, raw, 0);
}

void MpaFlow::read_response(std::uint32_t sink_handle, std::uint64_t sink_offset, ByteSpan data,
                            std::size_t kept) {
  tagged(From::kClient, kReadResponseOpcode, sink_handle, sink_offset, {&data, 1}, kept);
}

void MpaFlow::tagged(From from, std::uint8_t opcode, std::uint32_t handle, std::uint64_t offset,
                     std::span<const ByteSpan> data, std::size_t kept) {
  const std::size_t size = total_size(data);
  PieceCursor cursor(data);
  std::size_t done = 0;
  do {
    const std::size_t part = std::min(size - done, kSegmentPayload);
    const bool last = done + part == size;
    std::array<std::byte, kTaggedHeader> raw;
    store_be16(raw.data(), static_cast<std::uint16_t>(kTaggedHeader - kLengthField + part));
    raw[2] = static_cast<std::byte>(kTagged | (last ? kLast : 0) | kDdpVersion);
    raw[3] = static_cast<std::byte>(kRdmapVersion | opcode);
    store_be32(raw.data() + 4, handle);
    store_be64(raw.data() + 8, offset + done);
    payload_.clear();
    cursor.take(part, payload_);
    const std::size_t kept_here = std::min(kept, part);
    fpdu(from, raw, kept_here);
    kept -= kept_here;
    done += part;
  } while (done < size);
}

}  // namespace nfsrdma
