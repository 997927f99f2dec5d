// SPDX-License-Identifier: Apache-2.0
// What must hold for random values of every wire type, one function per rule.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/xdr_bytes.h"
#include "xdr/print.h"
#include "xdr/random.h"

namespace nfsrdma::testing {

inline constexpr std::uint64_t kRuleRounds = 200;

template <typename T>
void decoding_gives_the_value_that_was_encoded() {
  for (std::uint64_t seed = 0; seed < kRuleRounds; ++seed) {
    xdr::RandomSource random(seed);
    auto value = random.make<T>();
    std::vector<std::byte> bytes = encode_flat(value);
    T back{};
    ASSERT_TRUE(decode_exactly(bytes, back)) << "seed " << seed << " " << xdr::print(value);
    ASSERT_EQ(xdr::print(back), xdr::print(value)) << "seed " << seed;
    ASSERT_EQ(encode_flat(back), bytes) << "seed " << seed << " " << xdr::print(value);
  }
}

template <typename T>
void size_is_known_beforehand() {
  for (std::uint64_t seed = 0; seed < kRuleRounds; ++seed) {
    xdr::RandomSource random(seed);
    auto value = random.make<T>();
    ASSERT_EQ(xdr::encoded_size(value), encode_flat(value).size()) << "seed " << seed;
  }
}

template <typename T>
void every_truncation_is_an_error() {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    xdr::RandomSource random(seed, 64);
    std::vector<std::byte> bytes = encode_flat(random.make<T>());
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      // A copy of its own, so that AddressSanitizer sees a read behind its end.
      std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      xdr::Decoder decoder(cut);
      T value{};
      ASSERT_FALSE(xdr::decode(decoder, value)) << "seed " << seed << ", " << n << " bytes";
    }
  }
}

template <typename T>
void too_little_room_is_an_overflow() {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    xdr::RandomSource random(seed, 64);
    auto value = random.make<T>();
    std::size_t needed = xdr::encoded_size_without_payload(value);
    for (std::size_t n = 0; n < needed; ++n) {
      std::vector<std::byte> room(n);
      xdr::Encoder encoder(room);
      xdr::encode(encoder, value);
      ASSERT_TRUE(encoder.overflowed()) << "seed " << seed << ", " << n << " bytes";
    }
  }
}

template <typename T>
void payload_may_come_outside_of_the_message() {
  for (std::uint64_t seed = 0; seed < kRuleRounds; ++seed) {
    xdr::RandomSource random(seed);
    auto value = random.make<T>();
    std::vector<std::byte> room(xdr::encoded_size_without_payload(value));
    xdr::Encoder encoder(room);
    xdr::encode(encoder, value);
    std::vector<xdr::ReducedItem> reduced;
    std::size_t payload_bytes = 0;
    for (const xdr::PayloadReference& payload : encoder.payloads()) {
      reduced.push_back({payload.head_bytes + payload_bytes, payload.bytes});
      payload_bytes += (payload.bytes.size() + 3) & ~std::size_t{3};
    }
    xdr::Decoder decoder(encoder.bytes(), reduced);
    T back{};
    ASSERT_TRUE(xdr::decode(decoder, back)) << "seed " << seed;
    ASSERT_TRUE(decoder.at_end()) << "seed " << seed;
    ASSERT_EQ(decoder.reduced_left(), 0u) << "seed " << seed;
    ASSERT_EQ(encode_flat(back), encode_flat(value)) << "seed " << seed;
  }
}

template <typename T>
void damaged_bytes_that_decode_are_a_value_of_their_own() {
  for (std::uint64_t seed = 0; seed < kRuleRounds; ++seed) {
    xdr::RandomSource random(seed, 64);
    std::vector<std::byte> bytes = encode_flat(random.make<T>());
    for (int round = 0; round < 8 && !bytes.empty(); ++round) {
      std::vector<std::byte> damaged = bytes;
      damaged[random.below(bytes.size())] ^= static_cast<std::byte>(1 + random.below(255));
      xdr::Decoder decoder(damaged);
      T value{};
      if (!xdr::decode(decoder, value)) continue;
      std::vector<std::byte> again = encode_flat(value);
      T back{};
      ASSERT_TRUE(decode_exactly(again, back)) << "seed " << seed << " " << xdr::print(value);
      ASSERT_EQ(xdr::print(back), xdr::print(value)) << "seed " << seed;
    }
  }
}

}  // namespace nfsrdma::testing
