// SPDX-License-Identifier: Apache-2.0
// Wire values as plain vectors of bytes, and the list of every wire type, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "xdr/archive.h"
#include "xdr/flatten.h"

namespace nfsrdma::testing {

/// The unreduced stream of `v`, payload in line.
template <typename T>
std::vector<std::byte> encode_flat(const T& v) {
  std::vector<std::byte> room(xdr::encoded_size_without_payload(v));
  xdr::Encoder encoder(room);
  xdr::encode(encoder, v);
  std::vector<std::byte> flat(xdr::flattened_size(encoder));
  flat.resize(xdr::flatten(encoder, flat));
  return flat;
}

/// Decodes a T that must fill `bytes` exactly.
template <typename T>
bool decode_exactly(std::span<const std::byte> bytes, T& v) {
  xdr::Decoder decoder(bytes);
  return xdr::decode(decoder, v) && decoder.at_end();
}

/// Bytes of 32-bit words, as they appear on the wire.
inline std::vector<std::byte> words(std::initializer_list<std::uint32_t> values) {
  std::vector<std::byte> bytes(values.size() * 4);
  xdr::Encoder encoder(bytes);
  for (std::uint32_t v : values)
    encoder.u32(v);
  return bytes;
}

}  // namespace nfsrdma::testing
