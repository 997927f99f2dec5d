// SPDX-License-Identifier: Apache-2.0
// Encoder: writes XDR (RFC 4506) into a buffer of the caller's. It never allocates and never writes
// past the end: what does not fit sets overflowed(), which sticks until rewind().
//
// Payload (DDP-eligible opaque data) is recorded by reference, not copied: payload() writes the
// length word and notes where in the stream the bytes belong. The transport decides whether they
// travel in a chunk or in line; encoded bytes before and after the reference form the head and
// the tail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nfsrdma::xdr {

struct PayloadReference {
  std::size_t head_bytes = 0;        // encoded bytes in the buffer before the payload
  std::span<const std::byte> bytes;  // the payload, without pad
};

class Encoder {
 public:
  /// One COMPOUND may return several payloads; more than this go in line by copy. As many as a call
  /// may have Write chunks for them.
  static constexpr std::size_t kMaxPayloads = 16;

  explicit Encoder(std::span<std::byte> room)
      : begin_(room.data()), cursor_(room.data()), end_(room.data() + room.size()) {}

  bool overflowed() const { return overflowed_; }
  /// Bytes written into the buffer (payload by reference not counted).
  std::size_t size() const { return static_cast<std::size_t>(cursor_ - begin_); }
  std::size_t room() const { return static_cast<std::size_t>(end_ - cursor_); }
  std::span<const std::byte> bytes() const { return {begin_, size()}; }
  std::span<const PayloadReference> payloads() const { return {payloads_.data(), payload_count_}; }

  void u32(std::uint32_t v) {
    if (std::byte* p = take(4)) {
      v = __builtin_bswap32(v);
      std::memcpy(p, &v, 4);
    }
  }
  void i32(std::int32_t v) { u32(static_cast<std::uint32_t>(v)); }
  void u64(std::uint64_t v) {
    if (std::byte* p = take(8)) {
      v = __builtin_bswap64(v);
      std::memcpy(p, &v, 8);
    }
  }
  void boolean(bool v) { u32(v ? 1 : 0); }
  void fixed_opaque(std::span<const std::byte> bytes) {
    std::size_t pad = (4 - (bytes.size() & 3)) & 3;
    if (std::byte* p = take(bytes.size() + pad)) {
      if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());
      std::memset(p + bytes.size(), 0, pad);
    }
  }
  void opaque(std::span<const std::byte> bytes) {
    u32(static_cast<std::uint32_t>(bytes.size()));
    fixed_opaque(bytes);
  }
  void string(std::string_view text) { opaque(std::as_bytes(std::span(text))); }
  /// Length word now, bytes by reference: they must stay in place until the message was sent.
  void payload(std::span<const std::byte> bytes) {
    if (payload_count_ == kMaxPayloads) {
      opaque(bytes);
      return;
    }
    u32(static_cast<std::uint32_t>(bytes.size()));
    if (!overflowed_) payloads_[payload_count_++] = {size(), bytes};
  }

  /// Takes in `n` encoded bytes that the caller put right behind bytes() already.
  void advance(std::size_t n) { take(n); }

  /// Where the next item goes, for patch_u32() and rewind(). A mark taken after an overflow is
  /// good for neither: what overflowed lies before it.
  std::size_t mark() const { return overflowed_ ? kNoMark : size(); }
  void patch_u32(std::size_t mark, std::uint32_t v) {
    // Only after an overflow, whose message is never sent.
    if (size() < 4 || mark > size() - 4) return;
    v = __builtin_bswap32(v);
    std::memcpy(begin_ + mark, &v, 4);
  }
  /// Goes on in `room`, which begins with a copy of bytes() and may be larger.
  void move_to(std::span<std::byte> room) {
    const std::size_t used = size();
    begin_ = room.data();
    cursor_ = begin_ + used;
    end_ = begin_ + room.size();
  }
  /// What payload references have in `from` is at `to` now.
  void move_payloads(std::span<const std::byte> from, const std::byte* to) {
    for (std::size_t i = 0; i < payload_count_; ++i) {
      const std::span<const std::byte> bytes = payloads_[i].bytes;
      if (bytes.data() < from.data() || bytes.data() >= from.data() + from.size()) continue;
      payloads_[i].bytes = {to + (bytes.data() - from.data()), bytes.size()};
    }
  }
  /// Forgets everything written since `mark`, also an overflow that came after it.
  void rewind(std::size_t mark) {
    if (mark > size()) return;
    cursor_ = begin_ + mark;
    overflowed_ = false;
    while (payload_count_ > 0 && payloads_[payload_count_ - 1].head_bytes > mark)
      --payload_count_;
  }

 private:
  static constexpr std::size_t kNoMark = static_cast<std::size_t>(-1);

  std::byte* take(std::size_t n) {
    // Nothing follows an overflow, not even what would fit: rewind() relies on it.
    if (overflowed_ || room() < n) [[unlikely]] {
      overflowed_ = true;
      return nullptr;
    }
    std::byte* p = cursor_;
    cursor_ += n;
    return p;
  }

  std::byte* begin_;
  std::byte* cursor_;
  std::byte* end_;
  std::array<PayloadReference, kMaxPayloads> payloads_;
  std::size_t payload_count_ = 0;
  bool overflowed_ = false;
};

}  // namespace nfsrdma::xdr
