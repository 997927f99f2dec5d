// SPDX-License-Identifier: Apache-2.0
// MemlockAccount: what this process has pinned by registering memory, so that a registration that
// the limit forbids is refused before the kernel is asked, and with the remedy. The kernel counts
// per process and some drivers' queues as well, so it may still say no (ENOMEM).
#pragma once

#include <atomic>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/verbs/memlock.h"

namespace nfsrdma::verbs {

class MemlockAccount {
 public:
  MemlockAccount() = default;
  MemlockAccount(const MemlockAccount&) = delete;
  MemlockAccount& operator=(const MemlockAccount&) = delete;
  static MemlockAccount& of_process();

  /// Counts the pages of `bytes`; kExhausted, and nothing is counted, when `limit` forbids them.
  /// Any thread.
  Result<void> take(ByteSpan bytes, const MemlockLimit& limit);
  void give_back(ByteSpan bytes);
  /// Would they leave half of what the limit allows to others?
  bool has_plenty_for(ByteSpan bytes, const MemlockLimit& limit) const;
  std::uint64_t pinned() const { return pinned_.load(std::memory_order_relaxed); }

  /// The error of a registration that the limit forbids, by our count or by the kernel's (ENOMEM).
  /// Once in a while it also logs the numbers.
  Error refusal(std::uint64_t wanted, const MemlockLimit& limit);
  /// The error of `call`, which made no queue of an adapter: `err`, or what refusal() says where
  /// the limit may be the reason. Drivers pin their queues, which is not in our count.
  Error queue_refusal(const char* call, int err, const MemlockLimit& limit);

 private:
  std::atomic<std::uint64_t> pinned_{0};  // bytes, in whole pages
};

}  // namespace nfsrdma::verbs
