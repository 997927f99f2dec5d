// SPDX-License-Identifier: Apache-2.0
// Random values of every wire type, for property tests and for the seeds of fuzz corpora. A
// RandomSource owns the memory that the views of its values point into: it must outlive them.
//
// Sizes are small most of the time and go up to the type's limit now and then, or to
// `max_variable_bytes` where that is less. Numbers favour the ends of their range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "xdr/archive.h"

namespace nfsrdma::xdr {

class RandomSource : public detail::ArchiveBase<RandomSource> {
 public:
  explicit RandomSource(std::uint64_t seed, std::size_t max_variable_bytes = 4096)
      : engine_(seed), max_variable_bytes_(max_variable_bytes) {}

  template <typename T>
  T make() {
    T value{};
    (*this)("", value);
    return value;
  }
  /// 0 <= result < bound.
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }

  // The archive.
  void number(const char*, std::uint32_t& v) { v = static_cast<std::uint32_t>(any_number()); }
  void number(const char*, std::uint64_t& v) { v = any_number(); }
  void signed_number(const char*, std::int32_t& v) { v = static_cast<std::int32_t>(any_number()); }
  void signed_number(const char*, std::int64_t& v) { v = static_cast<std::int64_t>(any_number()); }
  void boolean(const char*, bool& v) { v = below(2) == 1; }
  void usual(const char* name, std::uint32_t& v, std::uint32_t usual_value) {
    v = usual_value;
    if (below(16) == 0) number(name, v);
  }
  template <typename E>
  void enumeration(const char* name, E& v) {
    closed_enum(name, v);
    if (below(32) == 0) v = static_cast<E>(any_number());
  }
  template <typename E>
  void closed_enum(const char*, E& v) {
    auto known = enum_names(v);
    // The first one opens most unions: half of all.
    v = static_cast<E>(known[below(2) == 0 ? 0 : below(known.size())].value);
  }
  void fixed_opaque(const char*, std::span<std::byte> v) { fill(v); }
  void opaque(const char*, std::span<const std::byte>& v, std::size_t max) {
    auto bytes = allocate(any_size(max));
    fill(bytes);
    v = bytes;
  }
  void string(const char*, std::string_view& v, std::size_t max) {
    auto bytes = allocate(any_size(max));
    // No zeros: the oracle's strings are C's.
    for (std::byte& b : bytes)
      b = static_cast<std::byte>(1 + below(255));
    v = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void payload(const char* name, Payload& v, std::size_t max) { opaque(name, v.bytes, max); }
  template <typename T>
  void list(const char*, EncodedList<T>& v, std::size_t max) {
    std::vector<T> items = some<T>(max);
    auto room = allocate(4 * items.size() + encoded_bytes(items));
    Encoder encoder(room);
    for (const T& item : items) {
      encoder.boolean(true);
      encode(encoder, item);
    }
    v = {encoder.bytes(), items.size()};
  }
  template <typename T>
  void counted(const char*, EncodedArray<T>& v, std::size_t max) {
    std::vector<T> items = some<T>(max);
    Encoder encoder(allocate(encoded_bytes(items)));
    v = encode_array<T>(encoder, items);
  }
  template <std::size_t N>
  void bitmap(const char*, Bitmap<N>& v) {
    v = {};
    if (below(8) == 0) {
      for (std::uint32_t& word : v.words)
        word = static_cast<std::uint32_t>(any_number());
      return;
    }
    for (std::uint64_t left = below(8); left > 0; --left)
      v.set(below(N * 32));
  }
  template <std::size_t N>
  void only_bits(Bitmap<N>& v, const Bitmap<N>& known) {
    v = v & known;
  }
  template <typename Body>
  void enclosed(const char*, std::size_t, Body body) {
    body(*this);
  }
  template <typename T, std::size_t N>
  void array(const char* name, BoundedArray<T, N>& v) {
    v.count = static_cast<std::uint32_t>(below(N + 1));
    for (std::uint32_t i = 0; i < v.count; ++i)
      (*this)(name, v.items[i]);
  }
  template <typename T>
  void object(const char*, T& v) {
    visit(*this, v);
  }

 private:
  std::uint64_t any_number() {
    switch (below(8)) {
      case 0:
        return 0;
      case 1:
        return ~std::uint64_t{0};
      case 2:
        return below(16);
      default:
        return engine_();
    }
  }
  std::size_t any_size(std::size_t max) {
    max = std::min(max, max_variable_bytes_);
    switch (below(16)) {
      case 0:
        return 0;
      case 1:
        return max;
      case 2:
        return below(max + 1);
      default:
        return below(std::min<std::size_t>(max, 24) + 1);
    }
  }
  template <typename T>
  std::vector<T> some(std::size_t max) {
    std::vector<T> items;
    for (std::size_t wanted = std::min<std::size_t>(below(5), max); items.size() < wanted;)
      items.push_back(make<T>());
    return items;
  }
  template <typename T>
  static std::size_t encoded_bytes(const std::vector<T>& items) {
    std::size_t bytes = 0;
    for (const T& item : items)
      bytes += encoded_size(item);
    return bytes;
  }
  void fill(std::span<std::byte> v) {
    for (std::byte& b : v)
      b = static_cast<std::byte>(engine_());
  }
  std::span<std::byte> allocate(std::size_t n) { return memory_.emplace_back(n); }

  std::mt19937_64 engine_;
  std::size_t max_variable_bytes_;
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace nfsrdma::xdr
