// SPDX-License-Identifier: Apache-2.0
// The unreduced XDR stream of what an Encoder holds: payload copied in behind its length word, with
// its pad. For tests and for the paths where a copy does not matter; transports gather instead.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "xdr/encoder.h"

namespace nfsrdma::xdr {

/// Bytes of the unreduced stream.
inline std::size_t flattened_size(const Encoder& encoder) {
  std::size_t bytes = encoder.size();
  for (const PayloadReference& payload : encoder.payloads()) {
    bytes += (payload.bytes.size() + 3) & ~std::size_t{3};
  }
  return bytes;
}

/// Writes the unreduced stream to `out`; returns its bytes, or 0 when it does not fit.
inline std::size_t flatten(const Encoder& encoder, std::span<std::byte> out) {
  if (encoder.overflowed() || flattened_size(encoder) > out.size()) return 0;
  std::span<const std::byte> head = encoder.bytes();
  std::size_t taken = 0;
  std::byte* to = out.data();
  auto append = [&to](std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  };
  for (const PayloadReference& payload : encoder.payloads()) {
    append(head.subspan(taken, payload.head_bytes - taken));
    taken = payload.head_bytes;
    append(payload.bytes);
    constexpr std::byte kZeros[3] = {};
    append({kZeros, (4 - (payload.bytes.size() & 3)) & 3});
  }
  append(head.subspan(taken));
  return static_cast<std::size_t>(to - out.data());
}

}  // namespace nfsrdma::xdr
