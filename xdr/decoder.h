// SPDX-License-Identifier: Apache-2.0
// Decoder: a bounded cursor over the bytes of one XDR message (RFC 4506). It never allocates and
// never reads outside of what it was given; variable-length items come out as views into the
// message. The first error sticks: later reads give zeros and ok() stays false, so a run of
// fields needs one check at its end.
//
// Reduced items: RPC-over-RDMA moves the payload of a READ or WRITE outside of the message. A
// Decoder that is told about them (position in the unreduced stream, bytes) hands such an item
// out from payload() as if it had been in line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nfsrdma::xdr {

/// A payload that was moved outside of the message: it belongs at byte `xdr_position` of the
/// unreduced XDR stream (right behind its length word).
struct ReducedItem {
  std::size_t xdr_position = 0;
  std::span<const std::byte> bytes;
};

/// DDP-eligible opaque data: never copied, may travel in chunks.
struct Payload {
  std::span<const std::byte> bytes;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> message, std::span<const ReducedItem> reduced = {})
      : cursor_(message.data()),
        end_(message.data() + message.size()),
        reduced_(reduced),
        begin_(message.data()) {}

  bool ok() const { return ok_; }
  void fail() {
    ok_ = false;
    cursor_ = end_;
  }
  /// Bytes of the message not yet consumed.
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - cursor_); }
  /// All consumed, nothing wrong.
  bool at_end() const { return ok_ && cursor_ == end_; }
  /// Position in the unreduced stream, in bytes.
  std::size_t xdr_position() const {
    return static_cast<std::size_t>(cursor_ - begin_) + reduced_bytes_;
  }

  std::uint32_t u32() {
    if (remaining() < 4) [[unlikely]] {
      fail();
      return 0;
    }
    std::uint32_t v;
    std::memcpy(&v, cursor_, 4);
    cursor_ += 4;
    return __builtin_bswap32(v);
  }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::uint64_t u64() {
    if (remaining() < 8) [[unlikely]] {
      fail();
      return 0;
    }
    std::uint64_t v;
    std::memcpy(&v, cursor_, 8);
    cursor_ += 8;
    return __builtin_bswap64(v);
  }
  /// Strict: anything but 0 and 1 is an error (RFC 4506, 4.4).
  bool boolean() {
    std::uint32_t v = u32();
    if (v > 1) fail();
    return v == 1;
  }
  /// `n` bytes and their pad (pad content is not looked at).
  std::span<const std::byte> fixed_opaque(std::size_t n) {
    std::size_t padded = n + ((4 - (n & 3)) & 3);
    if (padded < n || remaining() < padded) [[unlikely]] {
      fail();
      return {};
    }
    std::span<const std::byte> bytes(cursor_, n);
    cursor_ += padded;
    return bytes;
  }
  /// Length word, bytes, pad; longer than `max` is an error.
  std::span<const std::byte> opaque(std::size_t max) {
    std::uint32_t n = u32();
    if (n > max) [[unlikely]] {
      fail();
      return {};
    }
    return fixed_opaque(n);
  }
  std::string_view string(std::size_t max) {
    auto bytes = opaque(max);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A DDP-eligible opaque: from the reduced item that belongs here, or in line.
  std::span<const std::byte> payload(std::size_t max) {
    std::uint32_t n = u32();
    if (!ok_) return {};
    if (!reduced_.empty() && reduced_.front().xdr_position == xdr_position()) {
      std::span<const std::byte> bytes = reduced_.front().bytes;
      reduced_ = reduced_.subspan(1);
      // The chunk may hold the pad as well; never less than the data.
      if (n > max || bytes.size() < n) {
        fail();
        return {};
      }
      reduced_bytes_ += (static_cast<std::size_t>(n) + 3) & ~std::size_t{3};
      return bytes.first(n);
    }
    if (n > max) {
      fail();
      return {};
    }
    return fixed_opaque(n);
  }
  /// Reduced items that no payload() has asked for yet. Some left at the end: a chunk whose
  /// position is not that of a payload.
  std::size_t reduced_left() const { return reduced_.size(); }
  /// Everything that is left, unparsed.
  std::span<const std::byte> rest() const { return {cursor_, remaining()}; }

 private:
  const std::byte* cursor_;
  const std::byte* end_;
  std::span<const ReducedItem> reduced_;
  const std::byte* begin_;
  std::size_t reduced_bytes_ = 0;
  bool ok_ = true;
};

}  // namespace nfsrdma::xdr
