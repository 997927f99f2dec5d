// SPDX-License-Identifier: Apache-2.0
// The private data that both ends exchange while connecting (RFC 8797): the largest Send each
// makes and takes, and whether it accepts Send with Invalidate.
#pragma once

#include <array>
#include <cstdint>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

/// Without private data both ends must assume this (RFC 8166, section 3.3.2).
inline constexpr std::uint32_t kDefaultInlineThreshold = 1024;
inline constexpr std::uint32_t kMinInlineThreshold = 1024;
inline constexpr std::uint32_t kMaxInlineThreshold = 65536;

struct PrivateData {
  std::uint32_t send_size = kDefaultInlineThreshold;
  std::uint32_t receive_size = kDefaultInlineThreshold;
  bool remote_invalidation = false;

  static constexpr std::size_t kBytes = 8;
  std::array<std::byte, kBytes> encode() const;
  /// Looks for the format identifier at every 4-byte offset; without one (or with a version that
  /// we do not know) the defaults.
  static PrivateData parse(ByteSpan bytes);
};

/// What both ends may send, from each other's announcements.
struct InlineThresholds {
  std::uint32_t send = kDefaultInlineThreshold;     // largest Send that we may make
  std::uint32_t receive = kDefaultInlineThreshold;  // largest Send that the peer may make
  static InlineThresholds negotiate(const PrivateData& ours, const PrivateData& theirs);
};

/// The nearest size that RFC 8797 can express, inside our limits.
std::uint32_t valid_inline_size(std::uint32_t bytes);

}  // namespace nfsrdma
