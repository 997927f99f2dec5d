// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/private_data.h"

#include <algorithm>

namespace nfsrdma {

namespace {
constexpr std::uint32_t kFormatIdentifier = 0xf6ab0e18;
constexpr std::byte kVersion{1};
constexpr std::byte kRemoteInvalidation{1};

// Sizes travel as multiples of 1024, less one.
std::byte code_size(std::uint32_t bytes) {
  return static_cast<std::byte>(bytes / 1024 - 1);
}
std::uint32_t decode_size(std::byte code) {
  return (std::to_integer<std::uint32_t>(code) + 1) * 1024;
}
}  // namespace

std::array<std::byte, PrivateData::kBytes> PrivateData::encode() const {
  std::array<std::byte, kBytes> bytes{};
  store_be32(bytes.data(), kFormatIdentifier);
  bytes[4] = kVersion;
  bytes[5] = remote_invalidation ? kRemoteInvalidation : std::byte{0};
  bytes[6] = code_size(send_size);
  bytes[7] = code_size(receive_size);
  return bytes;
}

PrivateData PrivateData::parse(ByteSpan bytes) {
  for (std::size_t at = 0; at + kBytes <= bytes.size(); at += 4) {
    const std::byte* p = bytes.data() + at;
    if (load_be32(p) != kFormatIdentifier || p[4] != kVersion) continue;
    PrivateData data;
    data.remote_invalidation = (p[5] & kRemoteInvalidation) != std::byte{0};
    data.send_size = decode_size(p[6]);
    data.receive_size = decode_size(p[7]);
    return data;
  }
  return {};
}

InlineThresholds InlineThresholds::negotiate(const PrivateData& ours, const PrivateData& theirs) {
  return {std::min(ours.send_size, theirs.receive_size),
          std::min(ours.receive_size, theirs.send_size)};
}

std::uint32_t valid_inline_size(std::uint32_t bytes) {
  return std::clamp(bytes & ~1023u, kMinInlineThreshold, kMaxInlineThreshold);
}

}  // namespace nfsrdma
