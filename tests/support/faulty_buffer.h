// SPDX-License-Identifier: Apache-2.0
// Reads that fail in the middle, as at a bad sector.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "rpcrdma/buffer_pool.h"

namespace nfsrdma::test {

/// While it lives, of the buffer that the pool gives next for kSize bytes the second half cannot be
/// written to: what is read into it ends there with EFAULT.
class FaultyBuffer {
 public:
  static constexpr std::size_t kSize = 256 << 10;  // that very class of sizes
  static constexpr std::size_t kGood = kSize / 2;

  explicit FaultyBuffer(BufferPool& pool) {
    const Buffer buffer = pool.acquire(kSize);  // the last one in is the first one out
    EXPECT_EQ(buffer.size(), kSize);
    bad_ = buffer.data() + kGood;
    EXPECT_EQ(::mprotect(bad_, kSize - kGood, PROT_NONE), 0);
  }
  ~FaultyBuffer() { EXPECT_EQ(::mprotect(bad_, kSize - kGood, PROT_READ | PROT_WRITE), 0); }
  FaultyBuffer(const FaultyBuffer&) = delete;
  FaultyBuffer& operator=(const FaultyBuffer&) = delete;

 private:
  std::byte* bad_ = nullptr;
};

}  // namespace nfsrdma::test
