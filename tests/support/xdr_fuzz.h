// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets of wire types do with bytes. A target of several types takes the type's
// index from the first byte.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "tests/support/xdr_bytes.h"
#include "tests/support/xdr_types.h"
#include "xdr/print.h"

namespace nfsrdma::testing {

[[noreturn]] inline void fuzz_failed(const char* rule, const std::string& value) {
  std::fprintf(stderr, "%s: %s\n", rule, value.c_str());
  std::abort();
}

/// kMay: types with bitmaps, whose empty words at the end are not written again.
enum class Shrinks { kNever, kMay };

/// Whatever decodes must encode to bytes that decode to the same value.
template <typename T, Shrinks kShrinks = Shrinks::kNever>
void fuzz_round_trip(std::span<const std::byte> bytes) {
  xdr::Decoder decoder(bytes);
  T value{};
  bool decoded = xdr::decode(decoder, value);
  std::string text = xdr::print(value);  // also after a failure: the value must be safe to look at
  if (!decoded) return;
  std::vector<std::byte> again = encode_flat(value);
  if (again.size() != xdr::encoded_size(value)) fuzz_failed("size is exact", text);
  std::size_t consumed = bytes.size() - decoder.remaining();
  bool shrunk = kShrinks == Shrinks::kMay && again.size() < consumed;
  if (again.size() != consumed && !shrunk) fuzz_failed("size is that read", text);
  T back{};
  if (!decode_exactly(again, back)) fuzz_failed("what was encoded decodes", text);
  if (xdr::print(back) != text && !shrunk) fuzz_failed("the value is the same", text);
  if (encode_flat(back) != again) fuzz_failed("the bytes are the same", text);
}

/// The type is number bytes[0] of the list.
template <Shrinks kShrinks = Shrinks::kNever, typename... T>
void fuzz_one_of(TypeList<T...>, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::size_t chosen = static_cast<std::size_t>(bytes[0]) % sizeof...(T);
  std::size_t index = 0;
  ((index++ == chosen ? fuzz_round_trip<T, kShrinks>(bytes.subspan(1)) : void()), ...);
}

}  // namespace nfsrdma::testing
