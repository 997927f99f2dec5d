// SPDX-License-Identifier: Apache-2.0
// EncodedArray<T>: a counted XDR array that stays encoded, as EncodedList is for linked lists.
// Decoding one checks it whole and keeps a view; a range-for then decodes one element at a time.
//
//   for (const nfsace4& ace : acl.na41_aces) ...
//
// To send one, encode its elements somewhere with encode_array(), or straight into the message with
// ArrayWriter<T>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "xdr/encoded_list.h"
#include "xdr/encoder.h"

namespace nfsrdma::xdr {

template <typename T>
struct EncodedArray {
  /// The elements, without the count before them.
  std::span<const std::byte> encoded;
  std::uint32_t count = 0;

  using iterator = detail::EncodedIterator<T, false>;

  bool empty() const { return count == 0; }
  iterator begin() const { return iterator(encoded); }
  std::default_sentinel_t end() const { return {}; }
};

/// Encodes `items` into `scratch`, whose bytes the result refers to. Look at scratch.overflowed().
template <typename T>
EncodedArray<T> encode_array(Encoder& scratch, std::span<const T> items) {
  std::size_t start = scratch.size();
  for (const T& item : items)
    encode(scratch, item);
  if (scratch.overflowed()) return {};
  return {scratch.bytes().subspan(start), static_cast<std::uint32_t>(items.size())};
}

/// Elements straight into a message, as many as a limit lets in; one that does not fit leaves no
/// trace. finish() sets the count.
template <typename T>
class ArrayWriter {
 public:
  static constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1);

  /// `limit_bytes` bounds everything the encoder holds from here on, the count included;
  /// `tail_bytes` stay free for what the caller writes behind the array.
  explicit ArrayWriter(Encoder& encoder, std::size_t limit_bytes = kUnlimited,
                       std::size_t tail_bytes = 0)
      : encoder_(encoder),
        start_(encoder.size()),
        count_mark_(encoder.mark()),
        limit_bytes_(limit_bytes),
        tail_bytes_(tail_bytes) {
    encoder_.u32(0);
  }

  /// False, and nothing written, when the element does not fit.
  [[nodiscard]] bool try_add(const T& item) {
    if (encoder_.overflowed()) return false;
    std::size_t mark = encoder_.mark();
    encode(encoder_, item);
    std::size_t used = encoder_.size() - start_;
    if (encoder_.overflowed() || encoder_.room() < tail_bytes_ || used > limit_bytes_ ||
        limit_bytes_ - used < tail_bytes_) {
      encoder_.rewind(mark);
      return false;
    }
    ++count_;
    return true;
  }
  void finish() {
    if (!encoder_.overflowed()) encoder_.patch_u32(count_mark_, count_);
  }
  std::uint32_t count() const { return count_; }

 private:
  Encoder& encoder_;
  std::size_t start_;
  std::size_t count_mark_;
  std::size_t limit_bytes_;
  std::size_t tail_bytes_;
  std::uint32_t count_ = 0;
};

}  // namespace nfsrdma::xdr
