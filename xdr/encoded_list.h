// SPDX-License-Identifier: Apache-2.0
// EncodedList<T>: an XDR linked list (a TRUE before every element, FALSE at the end) that stays
// encoded. Decoding one checks it whole and keeps a view; a range-for then decodes one element at a
// time, so a list of any length costs no memory. The view lives as long as the message's bytes.
//
//   for (const entry3& entry : result.resok.reply.entries) ...
//
// ListWriter<T> is the other direction: elements straight into an Encoder, as many as a limit lets
// in; an element that does not fit leaves no trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace nfsrdma::xdr {

template <typename T>
[[nodiscard]] bool decode(Decoder& decoder, T& v);
template <typename T>
void encode(Encoder& encoder, const T& v);

namespace detail {

/// Decodes one element at a time; kFlagged: a TRUE stands before each.
template <typename T, bool kFlagged>
class EncodedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = const T&;

  explicit EncodedIterator(std::span<const std::byte> encoded) : decoder_(encoded) { next(); }
  const T& operator*() const& { return item_; }
  const T* operator->() const& { return &item_; }
  // The element is in the iterator: list.begin()->field would outlive it.
  T operator*() && { return item_; }
  const T* operator->() && = delete;
  EncodedIterator& operator++() {
    next();
    return *this;
  }
  void operator++(int) { next(); }
  bool operator==(std::default_sentinel_t) const { return done_; }

 private:
  void next() {
    item_ = T{};
    done_ =
        decoder_.remaining() == 0 || (kFlagged && !decoder_.boolean()) || !decode(decoder_, item_);
  }

  Decoder decoder_;
  T item_{};
  bool done_ = false;
};

}  // namespace detail

template <typename T>
struct EncodedList {
  /// The elements with the TRUE before each, without the FALSE at the end.
  std::span<const std::byte> encoded;
  std::size_t count = 0;

  using iterator = detail::EncodedIterator<T, true>;

  bool empty() const { return count == 0; }
  iterator begin() const { return iterator(encoded); }
  std::default_sentinel_t end() const { return {}; }
};

template <typename T>
class ListWriter {
 public:
  static constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1);

  /// `limit_bytes` bounds everything the encoder holds from here on, finish() included.
  /// `tail_bytes` stay free for what the caller writes behind the list.
  explicit ListWriter(Encoder& encoder, std::size_t limit_bytes = kUnlimited,
                      std::size_t tail_bytes = 0)
      : encoder_(encoder),
        start_(encoder.size()),
        limit_bytes_(limit_bytes),
        end_bytes_(tail_bytes + 4) {}

  /// False, and nothing written, when the element does not fit.
  [[nodiscard]] bool try_add(const T& item) {
    if (encoder_.overflowed()) return false;
    std::size_t mark = encoder_.mark();
    encoder_.boolean(true);
    encode(encoder_, item);
    if (encoder_.overflowed() || encoder_.room() < end_bytes_ || used() > limit_bytes_ ||
        limit_bytes_ - used() < end_bytes_) {
      encoder_.rewind(mark);
      return false;
    }
    ++count_;
    return true;
  }
  /// The end of the list. Fits whenever an element did.
  void finish() { encoder_.boolean(false); }

  std::size_t count() const { return count_; }
  /// What was written, before finish(); for lists inside of other lists.
  EncodedList<T> list() const { return {encoder_.bytes().subspan(start_, used()), count_}; }

 private:
  std::size_t used() const { return encoder_.size() - start_; }

  Encoder& encoder_;
  std::size_t start_;
  std::size_t limit_bytes_;
  std::size_t end_bytes_;
  std::size_t count_ = 0;
};

}  // namespace nfsrdma::xdr
