// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/terminate.h"

#include <fmt/format.h>

#include "rpcrdma/iwarp/crc32c.h"

namespace nfsrdma::iwarp {
namespace {

constexpr std::uint8_t kHasLength = 0x80;
constexpr std::uint8_t kHasDdpHeader = 0x40;
constexpr std::uint8_t kHasRdmapHeader = 0x20;

struct Text {
  TerminateCode code;
  const char* text;
};

constexpr Text kTexts[] = {
    {kTermRdmapLocal, "RDMAP: local catastrophic error"},
    {kTermRdmapInvalidStag, "RDMAP protection: invalid STag"},
    {kTermRdmapBounds, "RDMAP protection: base or bounds violation"},
    {kTermRdmapAccess, "RDMAP protection: access rights violation"},
    {kTermRdmapStream, "RDMAP protection: STag belongs to another stream"},
    {kTermRdmapOffsetWrap, "RDMAP protection: tagged offset wraps"},
    {{0, 1, 0x09}, "RDMAP protection: STag cannot be invalidated"},
    {{0, 1, 0xff}, "RDMAP protection: unspecified"},
    {kTermRdmapVersion, "RDMAP operation: invalid version"},
    {kTermRdmapOpcode, "RDMAP operation: unexpected opcode"},
    {kTermRdmapStreamFatal, "RDMAP operation: catastrophic for the stream"},
    {{0, 2, 0x08}, "RDMAP operation: catastrophic for the device"},
    {kTermRdmapInvalidate, "RDMAP operation: STag cannot be invalidated"},
    {{0, 2, 0xff}, "RDMAP operation: unspecified"},
    {{1, 0, 0x00}, "DDP: local catastrophic error"},
    {kTermDdpInvalidStag, "DDP tagged: invalid STag"},
    {kTermDdpBounds, "DDP tagged: base or bounds violation"},
    {kTermDdpStream, "DDP tagged: STag belongs to another stream"},
    {kTermDdpOffsetWrap, "DDP tagged: tagged offset wraps"},
    {kTermDdpTaggedVersion, "DDP tagged: invalid version"},
    {kTermDdpInvalidQueue, "DDP untagged: invalid queue number"},
    {kTermDdpNoBuffer, "DDP untagged: no buffer for the message"},
    {kTermDdpMsn, "DDP untagged: message sequence number out of range"},
    {kTermDdpMessageOffset, "DDP untagged: invalid message offset"},
    {kTermDdpTooLong, "DDP untagged: message longer than its buffer"},
    {kTermDdpUntaggedVersion, "DDP untagged: invalid version"},
    {{2, 0, 0x01}, "MPA: TCP connection closed or lost"},
    {kTermMpaCrc, "MPA: CRC error"},
    {kTermMpaLength, "MPA: FPDU length error"},
    {{2, 0, 0x04}, "MPA: bad Request or Reply frame"},
    {{2, 0, 0x05}, "MPA: local catastrophic error"},
    {kTermMpaInsufficientIrd, "MPA: insufficient IRD"},
    {kTermMpaNoRtr, "MPA: no matching RTR option"},
};

}  // namespace

const char* terminate_text(TerminateCode code) {
  for (const Text& entry : kTexts) {
    if (entry.code == code) return entry.text;
  }
  return "unknown Terminate code";
}

std::size_t store_terminate(std::array<std::byte, kMaxTerminateFpdu>& out, TerminateCode code,
                            const FpduHeader* header, const ReadRequestBody* read_request,
                            bool crc) {
  std::byte* body = out.data() + kUntaggedHeader;
  std::size_t size = 4;
  std::uint8_t present = 0;
  if (header != nullptr) {
    present |= kHasLength | kHasDdpHeader;
    store_be16(body + size, header->ulpdu_length);
    // The DDP header goes in without MPA's length in front.
    std::byte raw[kMaxFpduHeader];
    std::size_t header_size = store_fpdu_header(raw, *header) - kMpaLengthSize;
    std::memcpy(body + size + 2, raw + kMpaLengthSize, header_size);
    size += 2 + header_size;
    if (read_request != nullptr) {
      present |= kHasRdmapHeader;
      store_read_request(body + size, *read_request);
      size += kReadRequestBody;
    }
  }
  body[0] = static_cast<std::byte>(code.layer << 4 | code.type);
  body[1] = static_cast<std::byte>(code.code);
  body[2] = static_cast<std::byte>(present);
  body[3] = std::byte{0};

  FpduHeader terminate;
  terminate.ulpdu_length = static_cast<std::uint16_t>(kUntaggedHeader - kMpaLengthSize + size);
  terminate.ddp_control = kDdpLast | kDdpVersion;
  terminate.rdmap_control = kRdmapVersion | static_cast<std::uint8_t>(RdmapOpcode::kTerminate);
  terminate.queue = kQueueTerminate;
  terminate.msn = 1;
  store_fpdu_header(out.data(), terminate);
  std::size_t end = kUntaggedHeader + size;
  std::size_t padded = round_up4(end);
  std::memset(out.data() + end, 0, padded - end + kMpaCrcSize);
  if (crc) {
    Crc32c sum;
    sum.add(out.data(), padded);
    store_le32(out.data() + padded, sum.value());
  }
  return padded + kMpaCrcSize;
}

std::string describe_terminate(ByteSpan body) {
  if (body.size() < 4) return "Terminate without a code";
  auto first = static_cast<std::uint8_t>(body[0]);
  auto third = static_cast<std::uint8_t>(body[2]);
  TerminateCode code{static_cast<std::uint8_t>(first >> 4), static_cast<std::uint8_t>(first & 0xf),
                     static_cast<std::uint8_t>(body[1])};
  const bool swapped =
      code.layer > 2 || (third & 0x07) != 0 ||
      // Without headers nothing in byte 2 tells: take the reading that exists.
      (terminate_text(code) == terminate_text({15, 15, 15}) &&
       terminate_text({code.type, code.layer, code.code}) != terminate_text({15, 15, 15}));
  if (swapped) std::swap(code.layer, code.type);
  return fmt::format("Terminate: {} ({}/{}/{:#04x}{})", terminate_text(code), code.layer, code.type,
                     code.code, swapped ? ", siw's bit order" : "");
}

}  // namespace nfsrdma::iwarp
