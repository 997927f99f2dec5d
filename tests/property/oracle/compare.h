// SPDX-License-Identifier: Apache-2.0
// The comparisons that every oracle test makes between our codec and libtirpc's.
//
// The oracle allocates what the bytes claim, before it reads them. limit_memory() keeps a damaged
// message from taking the machine with it; the .x files have bounds for the same reason.
#pragma once

#include <gtest/gtest.h>
#include <rpc/rpc.h>
#include <sys/resource.h>

#include <cstring>
#include <vector>

#include "tests/property/oracle/convert.h"
#include "tests/support/xdr_bytes.h"
#include "xdr/print.h"
#include "xdr/random.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NFSRDMA_ORACLE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NFSRDMA_ORACLE_SANITIZED 1
#endif

namespace nfsrdma::oracle {

inline void limit_memory() {
#ifndef NFSRDMA_ORACLE_SANITIZED  // sanitizers reserve terabytes of address space
  rlimit limit{1u << 30, 1u << 30};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

/// kForgetsBits: as kSame, but ours drops the bits of a bitmap that it has no place for.
enum class Limits { kSame, kOracleHasOthers, kForgetsBits };

/// A type of ours, the oracle's struct for it and the function that encodes that.
template <typename OursType, typename TheirsType, auto kProc, Limits kLimitsValue = Limits::kSame>
struct Pair {
  static constexpr Limits kLimits = kLimitsValue;
  using Ours = OursType;
  using Theirs = TheirsType;
  static bool_t run(XDR* xdrs, Theirs* value) { return kProc(xdrs, value); }
};

/// The oracle's bytes of `value`; empty when it cannot encode it.
template <typename P>
std::vector<std::byte> oracle_encode(typename P::Theirs& value, std::size_t room) {
  std::vector<std::byte> bytes(room);
  XDR xdrs;
  xdrmem_create(&xdrs, reinterpret_cast<char*>(bytes.data()), static_cast<unsigned>(room),
                XDR_ENCODE);
  bool ok = P::run(&xdrs, &value) != 0;
  bytes.resize(ok ? xdr_getpos(&xdrs) : 0);
  return bytes;
}

/// What the oracle decoded from `bytes`. Freed with it.
template <typename P>
class OracleValue {
 public:
  explicit OracleValue(std::span<const std::byte> bytes) {
    std::memset(static_cast<void*>(&value_), 0, sizeof value_);
    XDR xdrs;
    xdrmem_create(&xdrs, reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data())),
                  static_cast<unsigned>(bytes.size()), XDR_DECODE);
    ok_ = P::run(&xdrs, &value_) != 0;
    consumed_ = xdr_getpos(&xdrs);
  }
  ~OracleValue() {
    XDR xdrs;
    std::memset(&xdrs, 0, sizeof xdrs);
    xdrs.x_op = XDR_FREE;
    P::run(&xdrs, &value_);
  }
  OracleValue(const OracleValue&) = delete;
  OracleValue& operator=(const OracleValue&) = delete;

  bool ok() const { return ok_; }
  std::size_t consumed() const { return consumed_; }
  typename P::Theirs& value() { return value_; }

 private:
  typename P::Theirs value_;
  bool ok_ = false;
  std::size_t consumed_ = 0;
};

/// Same value, same bytes; and the oracle reads ours, all of them, as what it would have written.
template <typename P>
void expect_same_bytes(const typename P::Ours& ours) {
  std::vector<std::byte> bytes = testing::encode_flat(ours);
  Arena arena;
  typename P::Theirs theirs;
  std::memset(static_cast<void*>(&theirs), 0, sizeof theirs);
  convert(arena, ours, theirs);
  ASSERT_EQ(oracle_encode<P>(theirs, bytes.size() + 64), bytes) << xdr::print(ours);

  OracleValue<P> read(bytes);
  ASSERT_TRUE(read.ok()) << xdr::print(ours);
  ASSERT_EQ(read.consumed(), bytes.size()) << xdr::print(ours);
  ASSERT_EQ(oracle_encode<P>(read.value(), bytes.size() + 64), bytes) << xdr::print(ours);
}

/// What we accept the oracle accepts; and what it accepts we read once it wrote it in its own way
/// (it takes any number for TRUE).
template <typename P>
void expect_same_judgement(std::span<const std::byte> bytes) {
  xdr::Decoder decoder(bytes);
  typename P::Ours ours{};
  bool accepted = xdr::decode(decoder, ours);
  OracleValue<P> theirs(bytes);
  if (accepted) {
    ASSERT_TRUE(theirs.ok()) << xdr::print(ours);
    ASSERT_EQ(theirs.consumed(), bytes.size() - decoder.remaining()) << xdr::print(ours);
  }
  if (!theirs.ok() || P::kLimits == Limits::kOracleHasOthers) return;
  std::vector<std::byte> canonical = oracle_encode<P>(theirs.value(), bytes.size() + 64);
  typename P::Ours back{};
  ASSERT_TRUE(testing::decode_exactly(canonical, back));
  std::vector<std::byte> again = testing::encode_flat(back);
  if (P::kLimits == Limits::kForgetsBits && again.size() < canonical.size()) return;
  ASSERT_EQ(again, canonical);
}

template <typename P>
void compare_random_values(std::uint64_t rounds) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    SCOPED_TRACE(seed);
    xdr::RandomSource random(seed);
    expect_same_bytes<P>(random.make<typename P::Ours>());
    if (::testing::Test::HasFatalFailure()) return;
  }
}

template <typename P>
void compare_damaged_bytes(std::uint64_t rounds) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    SCOPED_TRACE(seed);
    xdr::RandomSource random(seed, 64);
    std::vector<std::byte> bytes = testing::encode_flat(random.make<typename P::Ours>());
    for (std::size_t i = random.below(3); i < 3 && !bytes.empty(); ++i) {
      // Small changes in the low byte of a word hit lengths and discriminants more often.
      std::size_t at = random.below(bytes.size());
      if (random.below(2) == 0) at |= 3;
      bytes[std::min(at, bytes.size() - 1)] = static_cast<std::byte>(random.below(256));
    }
    expect_same_judgement<P>(bytes);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace nfsrdma::oracle
