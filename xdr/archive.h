// SPDX-License-Identifier: Apache-2.0
// One visit() per wire type, many archives over it. A type is a plain struct with
//
//   template <typename A, Is<nfstime3> V>
//   void visit(A& ar, V& v) {
//     ar("seconds", v.seconds);
//     ar("nseconds", v.nseconds);
//   }
//
// and gets encode(), decode() and encoded_size() from here, text from print.h and random values
// from random.h. A union visits its discriminant first and then tests it: every archive has set it
// by then. Decoded values are views into the message and live no longer than its bytes.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "xdr/bitmap.h"
#include "xdr/decoder.h"
#include "xdr/encoded_array.h"
#include "xdr/encoded_list.h"
#include "xdr/encoder.h"
#include "xdr/enum_names.h"

namespace nfsrdma::xdr {

/// V is T or const T: lets one visit() serve archives that read the value and those that fill it.
template <typename V, typename T>
concept Is = std::same_as<std::remove_const_t<V>, T>;

/// An array with room for N elements in place.
template <typename T, std::size_t N>
struct BoundedArray {
  static constexpr std::size_t kCapacity = N;
  std::array<T, N> items{};
  std::uint32_t count = 0;

  std::span<const T> view() const { return {items.data(), count}; }
  /// False, and nothing done, when it is full.
  bool push_back(const T& item) {
    if (count == N) return false;
    items[count++] = item;
    return true;
  }
};

namespace detail {

template <typename T>
struct IsByteArray : std::false_type {};
template <std::size_t N>
struct IsByteArray<std::array<std::byte, N>> : std::true_type {};

/// Sends a field to the archive's function for its kind.
template <typename Derived>
class ArchiveBase {
 public:
  template <typename V>
  void operator()(const char* name, V& v) {
    using T = std::remove_const_t<V>;
    if constexpr (std::is_enum_v<T>) {
      self().enumeration(name, v);
    } else if constexpr (std::same_as<T, bool>) {
      self().boolean(name, v);
    } else if constexpr (std::same_as<T, std::uint32_t>) {
      self().number(name, v);
    } else if constexpr (std::same_as<T, std::uint64_t>) {
      self().number(name, v);
    } else if constexpr (std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>) {
      self().signed_number(name, v);
    } else if constexpr (IsBitmap<T>::value) {
      self().bitmap(name, v);
    } else if constexpr (IsByteArray<T>::value) {
      self().fixed_opaque(name, v);
    } else {
      self().object(name, v);
    }
  }
  /// A number that has one usual value (an RPC version); random.h wants to know it.
  template <typename V>
  void usual(const char* name, V& v, std::uint32_t) {
    self().number(name, v);
  }
  /// The bits of a Bitmap that the values behind it may be for; with others they cannot be read.
  template <std::size_t N>
  void only_bits(const Bitmap<N>&, const Bitmap<N>&) {}

 protected:
  Derived& self() { return static_cast<Derived&>(*this); }
};

class EncodeArchive : public ArchiveBase<EncodeArchive> {
 public:
  explicit EncodeArchive(Encoder& encoder) : encoder_(encoder) {}

  void number(const char*, std::uint32_t v) { encoder_.u32(v); }
  void number(const char*, std::uint64_t v) { encoder_.u64(v); }
  void signed_number(const char*, std::int32_t v) { encoder_.i32(v); }
  void signed_number(const char*, std::int64_t v) { encoder_.u64(static_cast<std::uint64_t>(v)); }
  void boolean(const char*, bool v) { encoder_.boolean(v); }
  template <typename E>
  void enumeration(const char*, E v) {
    encoder_.u32(static_cast<std::uint32_t>(v));
  }
  template <typename E>
  void closed_enum(const char*, E v) {
    encoder_.u32(static_cast<std::uint32_t>(v));
  }
  void fixed_opaque(const char*, std::span<const std::byte> v) { encoder_.fixed_opaque(v); }
  void opaque(const char*, std::span<const std::byte> v, std::size_t) { encoder_.opaque(v); }
  void string(const char*, std::string_view v, std::size_t) { encoder_.string(v); }
  void payload(const char*, const Payload& v, std::size_t) { encoder_.payload(v.bytes); }
  template <typename T>
  void list(const char*, const EncodedList<T>& v, std::size_t) {
    encoder_.fixed_opaque(v.encoded);
    encoder_.boolean(false);
  }
  template <typename T, std::size_t N>
  void array(const char* name, const BoundedArray<T, N>& v) {
    encoder_.u32(v.count);
    for (const T& item : v.view())
      (*this)(name, item);
  }
  template <typename T>
  void counted(const char*, const EncodedArray<T>& v, std::size_t) {
    encoder_.u32(v.count);
    encoder_.fixed_opaque(v.encoded);
  }
  template <std::size_t N>
  void bitmap(const char*, const Bitmap<N>& v) {
    std::uint32_t used = v.used_words();
    encoder_.u32(used);
    for (std::uint32_t i = 0; i < used; ++i)
      encoder_.u32(v.words[i]);
  }
  /// An opaque whose bytes are XDR themselves: body(archive) visits them.
  template <typename Body>
  void enclosed(const char*, std::size_t, Body body) {
    std::size_t mark = encoder_.mark();
    encoder_.u32(0);
    std::size_t start = encoder_.size();
    body(*this);
    if (encoder_.overflowed()) return;
    encoder_.patch_u32(mark, static_cast<std::uint32_t>(encoder_.size() - start));
  }
  template <typename T>
  void object(const char*, const T& v) {
    visit(*this, v);
  }

 private:
  Encoder& encoder_;
};

class DecodeArchive : public ArchiveBase<DecodeArchive> {
 public:
  explicit DecodeArchive(Decoder& decoder) : decoder_(decoder) {}

  void number(const char*, std::uint32_t& v) { v = decoder_.u32(); }
  void number(const char*, std::uint64_t& v) { v = decoder_.u64(); }
  void signed_number(const char*, std::int32_t& v) { v = decoder_.i32(); }
  void signed_number(const char*, std::int64_t& v) {
    v = static_cast<std::int64_t>(decoder_.u64());
  }
  void boolean(const char*, bool& v) { v = decoder_.boolean(); }
  template <typename E>
  void enumeration(const char*, E& v) {
    v = static_cast<E>(decoder_.u32());
  }
  /// The discriminant of a union without a default arm: anything unknown is an error.
  template <typename E>
  void closed_enum(const char*, E& v) {
    v = static_cast<E>(decoder_.u32());
    if (!is_known(v)) decoder_.fail();
  }
  void fixed_opaque(const char*, std::span<std::byte> v) {
    auto bytes = decoder_.fixed_opaque(v.size());
    if (bytes.size() == v.size()) {
      std::memcpy(v.data(), bytes.data(), v.size());
    } else {
      std::memset(v.data(), 0, v.size());
    }
  }
  void opaque(const char*, std::span<const std::byte>& v, std::size_t max) {
    v = decoder_.opaque(max);
  }
  void string(const char*, std::string_view& v, std::size_t max) { v = decoder_.string(max); }
  void payload(const char*, Payload& v, std::size_t max) { v.bytes = decoder_.payload(max); }
  /// Walks the whole list once, so that a value that decoded has only sound lists in it.
  template <typename T>
  void list(const char* name, EncodedList<T>& v, std::size_t max) {
    std::span<const std::byte> start = decoder_.rest();
    std::size_t encoded_bytes = 0;
    std::size_t count = 0;
    while (decoder_.boolean()) {
      T item{};
      (*this)(name, item);
      if (++count > max) decoder_.fail();
      encoded_bytes = start.size() - decoder_.remaining();
    }
    v = decoder_.ok() ? EncodedList<T>{start.first(encoded_bytes), count} : EncodedList<T>{};
  }
  template <typename T, std::size_t N>
  void array(const char* name, BoundedArray<T, N>& v) {
    v.count = decoder_.u32();
    if (v.count > N) {
      decoder_.fail();
      v.count = 0;
    }
    for (std::uint32_t i = 0; i < v.count; ++i)
      (*this)(name, v.items[i]);
  }
  /// Walks the whole array once, as list() does.
  template <typename T>
  void counted(const char* name, EncodedArray<T>& v, std::size_t max) {
    std::uint32_t count = decoder_.u32();
    if (count > max) decoder_.fail();
    std::span<const std::byte> start = decoder_.rest();
    for (std::uint32_t i = 0; i < count && decoder_.ok(); ++i) {
      T item{};
      (*this)(name, item);
    }
    v = {};
    if (decoder_.ok()) v = {start.first(start.size() - decoder_.remaining()), count};
  }
  template <std::size_t N>
  void bitmap(const char*, Bitmap<N>& v) {
    v = {};
    std::uint32_t count = decoder_.u32();
    if (count > Bitmap<N>::kMaxWords) decoder_.fail();
    for (std::uint32_t i = 0; i < count && decoder_.ok(); ++i) {
      std::uint32_t word = decoder_.u32();
      if (i < N) {
        v.words[i] = word;
      } else if (word != 0 && v.beyond == 0) {
        v.beyond = i * 32 + static_cast<std::uint32_t>(std::countr_zero(word));
      }
    }
  }
  template <std::size_t N>
  void only_bits(const Bitmap<N>& v, const Bitmap<N>& known) {
    if (!v.without(known).empty()) decoder_.fail();
  }
  template <typename Body>
  void enclosed(const char*, std::size_t max, Body body) {
    Decoder inside(decoder_.opaque(max));
    DecodeArchive archive(inside);
    body(archive);
    if (!inside.at_end()) decoder_.fail();
  }
  template <typename T>
  void object(const char*, T& v) {
    visit(*this, v);
  }

 private:
  Decoder& decoder_;
};

class SizeArchive : public ArchiveBase<SizeArchive> {
 public:
  std::size_t total_bytes() const { return inline_bytes_ + payload_bytes_; }
  std::size_t inline_bytes() const { return inline_bytes_; }

  void number(const char*, std::uint32_t) { inline_bytes_ += 4; }
  void number(const char*, std::uint64_t) { inline_bytes_ += 8; }
  void signed_number(const char*, std::int32_t) { inline_bytes_ += 4; }
  void signed_number(const char*, std::int64_t) { inline_bytes_ += 8; }
  void boolean(const char*, bool) { inline_bytes_ += 4; }
  template <typename E>
  void enumeration(const char*, E) {
    inline_bytes_ += 4;
  }
  template <typename E>
  void closed_enum(const char*, E) {
    inline_bytes_ += 4;
  }
  void fixed_opaque(const char*, std::span<const std::byte> v) {
    inline_bytes_ += padded(v.size());
  }
  void opaque(const char*, std::span<const std::byte> v, std::size_t) {
    inline_bytes_ += 4 + padded(v.size());
  }
  void string(const char*, std::string_view v, std::size_t) {
    inline_bytes_ += 4 + padded(v.size());
  }
  void payload(const char*, const Payload& v, std::size_t) {
    inline_bytes_ += 4;
    payload_bytes_ += padded(v.bytes.size());
  }
  template <typename T>
  void list(const char*, const EncodedList<T>& v, std::size_t) {
    inline_bytes_ += v.encoded.size() + 4;
  }
  template <typename T, std::size_t N>
  void array(const char* name, const BoundedArray<T, N>& v) {
    inline_bytes_ += 4;
    for (const T& item : v.view())
      (*this)(name, item);
  }
  template <typename T>
  void counted(const char*, const EncodedArray<T>& v, std::size_t) {
    inline_bytes_ += 4 + v.encoded.size();
  }
  template <std::size_t N>
  void bitmap(const char*, const Bitmap<N>& v) {
    inline_bytes_ += 4 + 4 * v.used_words();
  }
  template <typename Body>
  void enclosed(const char*, std::size_t, Body body) {
    inline_bytes_ += 4;
    body(*this);
  }
  template <typename T>
  void object(const char*, const T& v) {
    visit(*this, v);
  }

 private:
  static std::size_t padded(std::size_t n) { return (n + 3) & ~std::size_t{3}; }

  std::size_t inline_bytes_ = 0;
  std::size_t payload_bytes_ = 0;
};

}  // namespace detail

/// Writes `v`; look at encoder.overflowed() when done. Payload goes in by reference.
template <typename T>
void encode(Encoder& encoder, const T& v) {
  detail::EncodeArchive archive(encoder);
  archive("", v);
}

/// Reads `v`. False, with decoder.ok() false from then on, when the bytes are no T; what `v` holds
/// then is safe to look at but means nothing. Trailing bytes are left for the caller.
template <typename T>
[[nodiscard]] bool decode(Decoder& decoder, T& v) {
  detail::DecodeArchive archive(decoder);
  archive("", v);
  return decoder.ok();
}

/// Bytes of `v` in the unreduced stream, payload and pads included.
template <typename T>
[[nodiscard]] std::size_t encoded_size(const T& v) {
  detail::SizeArchive archive;
  archive("", v);
  return archive.total_bytes();
}

/// Bytes that encode() writes into the Encoder's room, i.e. without payload.
template <typename T>
[[nodiscard]] std::size_t encoded_size_without_payload(const T& v) {
  detail::SizeArchive archive;
  archive("", v);
  return archive.inline_bytes();
}

}  // namespace nfsrdma::xdr
