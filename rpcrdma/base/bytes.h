// SPDX-License-Identifier: Apache-2.0
// Spans of bytes, big-endian loads and stores, and additions that notice overflow.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nfsrdma {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

static_assert(std::endian::native == std::endian::little, "only little-endian hosts are supported");

inline std::uint16_t load_be16(const std::byte* p) {
  std::uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap16(v);
}
inline std::uint32_t load_be32(const std::byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}
inline std::uint64_t load_be64(const std::byte* p) {
  std::uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap64(v);
}
inline void store_be16(std::byte* p, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be32(std::byte* p, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be64(std::byte* p, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_le32(std::byte* p, std::uint32_t v) {
  std::memcpy(p, &v, sizeof v);
}

/// True, with *sum set, when a + b does not wrap.
template <std::unsigned_integral T>
[[nodiscard]] bool checked_add(T a, T b, T* sum) {
  return !__builtin_add_overflow(a, b, sum);
}

/// Is [offset, offset + length) inside [0, size)? Never wraps.
template <std::unsigned_integral T>
[[nodiscard]] constexpr bool range_inside(T offset, T length, T size) {
  return length <= size && offset <= size - length;
}

/// XDR and MPA round everything to four bytes.
constexpr std::size_t round_up4(std::size_t n) {
  return (n + 3) & ~std::size_t{3};
}
constexpr std::size_t pad4(std::size_t n) {
  return (4 - (n & 3)) & 3;
}

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace nfsrdma
