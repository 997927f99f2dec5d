// SPDX-License-Identifier: Apache-2.0
// The write verifier: a client that sees it change rewrites whatever it had not committed. Random
// at process start; renewed after a failed fsync, since the kernel may have dropped dirty pages
// that only the client still has.
#pragma once

#include <sodium.h>

#include <atomic>
#include <cstdint>

namespace nfsrdma {

class WriteVerifier {
 public:
  WriteVerifier() { renew(); }
  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }
  void renew() {
    std::uint64_t fresh = 0;
    do {
      randombytes_buf(&fresh, sizeof fresh);
    } while (fresh == value_.load(std::memory_order_relaxed));
    value_.store(fresh, std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace nfsrdma
