// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/memlock_account.h"

#include <unistd.h>

#include <chrono>
#include <mutex>

#include "rpcrdma/base/log.h"

namespace nfsrdma::verbs {

namespace {

std::uint64_t pages_of(ByteSpan bytes) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / page;
  const auto end =
      (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size() + page - 1) / page;
  return (end - first) * page;
}

/// May the numbers be logged once more?
bool is_time_to_tell() {
  static RateLimit rate(1, std::chrono::seconds(60));
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  return rate.allow();
}

}  // namespace

MemlockAccount& MemlockAccount::of_process() {
  static MemlockAccount account;
  return account;
}

Result<void> MemlockAccount::take(ByteSpan bytes, const MemlockLimit& limit) {
  const std::uint64_t more = pages_of(bytes);
  const std::uint64_t before = pinned_.fetch_add(more, std::memory_order_relaxed);
  if (!limit.binds() || before + more <= limit.bytes) return {};
  pinned_.fetch_sub(more, std::memory_order_relaxed);
  return refusal(bytes.size(), limit);
}

void MemlockAccount::give_back(ByteSpan bytes) {
  pinned_.fetch_sub(pages_of(bytes), std::memory_order_relaxed);
}

bool MemlockAccount::has_plenty_for(ByteSpan bytes, const MemlockLimit& limit) const {
  return !limit.binds() || pinned() + pages_of(bytes) <= limit.bytes / 2;
}

Error MemlockAccount::refusal(std::uint64_t wanted, const MemlockLimit& limit) {
  if (limit.unlimited) {
    return Error{Errc::kExhausted, ENOMEM,
                 "the device or the kernel has no room for another region"};
  }
  if (is_time_to_tell()) {
    log_error("verbs: cannot register {} bytes: {} bytes are locked and the limit is {}; {}",
              wanted, pinned(), limit.bytes, memlock_remedy());
  }
  return Error{Errc::kExhausted, ENOMEM,
               "registering memory needs a higher limit of locked memory ('ulimit -l unlimited', "
               "LimitMEMLOCK=infinity in the systemd unit, or CAP_IPC_LOCK)"};
}

Error MemlockAccount::queue_refusal(const char* call, int err, const MemlockLimit& limit) {
  // EPERM: of older kernels, where nothing at all may be locked.
  if (!limit.binds() || (err != ENOMEM && err != EPERM)) return system_error(call, err);
  if (is_time_to_tell()) {
    log_error(
        "verbs: cannot make a queue of the adapter ({}): {} bytes are locked beside its queues and "
        "the limit is {}; {}",
        call, pinned(), limit.bytes, memlock_remedy());
  }
  return Error{Errc::kExhausted, err,
               "a queue of the adapter needs a higher limit of locked memory ('ulimit -l "
               "unlimited', LimitMEMLOCK=infinity in the systemd unit, or CAP_IPC_LOCK)"};
}

}  // namespace nfsrdma::verbs
