// SPDX-License-Identifier: Apache-2.0
// Bitmap<N>: a set of small numbers that travels as an array of words, bit n in word n / 32, as
// NFSv4's bitmap4 does. A value: N words in place, no view into the message.
//
// A peer may send more words than we know bits for. Those are read over and only the lowest of
// their bits is remembered (`beyond`), enough to answer that it is not supported. They are never
// written, and words without a bit at the end of the array are not either.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace nfsrdma::xdr {

template <std::size_t N>
struct Bitmap {
  static constexpr std::uint32_t kBits = N * 32;
  /// Words that are taken from the wire: room for bit 2047.
  static constexpr std::uint32_t kMaxWords = 64;

  std::array<std::uint32_t, N> words{};
  std::uint32_t beyond = 0;  // the lowest bit that was received and has no place; 0: none

  template <typename E>
  static constexpr Bitmap of(std::initializer_list<E> bits) {
    Bitmap map;
    for (E bit : bits)
      map.set(bit);
    return map;
  }
  template <typename E>
  constexpr bool has(E bit) const {
    std::uint32_t n = number(bit);
    return n < kBits && (words[n / 32] >> (n % 32) & 1) != 0;
  }
  /// `bit` must be below kBits.
  template <typename E>
  constexpr void set(E bit) {
    words[number(bit) / 32] |= std::uint32_t{1} << (number(bit) % 32);
  }
  template <typename E>
  constexpr void clear(E bit) {
    words[number(bit) / 32] &= ~(std::uint32_t{1} << (number(bit) % 32));
  }
  constexpr bool empty() const { return *this == Bitmap{}; }
  /// The lowest bit, those without a place included; kBits or more and not `beyond`: there is none.
  constexpr std::uint32_t lowest() const {
    for (std::uint32_t i = 0; i < N; ++i) {
      if (words[i] != 0) return i * 32 + static_cast<std::uint32_t>(std::countr_zero(words[i]));
    }
    return beyond != 0 ? beyond : kBits;
  }
  /// Words up to the last one with a bit.
  constexpr std::uint32_t used_words() const {
    std::uint32_t n = N;
    while (n > 0 && words[n - 1] == 0)
      --n;
    return n;
  }
  /// Calls f(number) for every bit that is set, lowest first.
  template <typename F>
  constexpr void for_each(F f) const {
    for (std::uint32_t i = 0; i < N; ++i) {
      for (std::uint32_t left = words[i]; left != 0; left &= left - 1)
        f(i * 32 + static_cast<std::uint32_t>(std::countr_zero(left)));
    }
  }

  /// What is in both; nothing beyond.
  constexpr Bitmap operator&(const Bitmap& other) const {
    Bitmap result;
    for (std::size_t i = 0; i < N; ++i)
      result.words[i] = words[i] & other.words[i];
    return result;
  }
  constexpr Bitmap operator|(const Bitmap& other) const {
    Bitmap result;
    for (std::size_t i = 0; i < N; ++i)
      result.words[i] = words[i] | other.words[i];
    return result;
  }
  /// What is in this one only, `beyond` included.
  constexpr Bitmap without(const Bitmap& other) const {
    Bitmap result;
    for (std::size_t i = 0; i < N; ++i)
      result.words[i] = words[i] & ~other.words[i];
    result.beyond = beyond;
    return result;
  }
  constexpr bool operator==(const Bitmap&) const = default;

 private:
  template <typename E>
  static constexpr std::uint32_t number(E bit) {
    return static_cast<std::uint32_t>(bit);
  }
};

namespace detail {
template <typename T>
struct IsBitmap : std::false_type {};
template <std::size_t N>
struct IsBitmap<Bitmap<N>> : std::true_type {};
}  // namespace detail

}  // namespace nfsrdma::xdr
