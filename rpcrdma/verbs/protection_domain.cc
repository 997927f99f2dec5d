// SPDX-License-Identifier: Apache-2.0
// See protection_domain.h; access rights by wire.md 6.4.
#include "rpcrdma/verbs/protection_domain.h"

#include <sys/resource.h>

#include "rpcrdma/base/log.h"

namespace nfsrdma::verbs {

namespace {

int access_flags(Access access, const DeviceTraits& traits) {
  switch (access) {
    case Access::kLocal:
      return IBV_ACCESS_LOCAL_WRITE;
    case Access::kRemoteRead:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    case Access::kRemoteWrite:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    case Access::kReadSink:
      return traits.sink_needs_remote_write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
                                            : IBV_ACCESS_LOCAL_WRITE;
  }
  return IBV_ACCESS_LOCAL_WRITE;
}

/// Says once in a while what an administrator can do about it.
void explain_memlock(std::size_t wanted) {
  static RateLimit limit(1, std::chrono::seconds(60));
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!limit.allow()) return;
  rlimit memlock{};
  ::getrlimit(RLIMIT_MEMLOCK, &memlock);
  log_error(
      "verbs: cannot pin {} bytes: the limit of locked memory is {} bytes. Raise it: "
      "'LimitMEMLOCK=infinity' in the systemd unit, 'ulimit -l unlimited' in a shell, memlock in "
      "/etc/security/limits.conf for users, or give CAP_IPC_LOCK",
      wanted, memlock.rlim_cur);
}

}  // namespace

Result<std::unique_ptr<ProtectionDomain>> VerbsProtectionDomain::create(VerbsDevice& device) {
  PdHandle pd = own(device.commands(), [&] { return ::ibv_alloc_pd(device.context()); });
  if (!pd) return system_error("ibv_alloc_pd");
  return std::unique_ptr<ProtectionDomain>(new VerbsProtectionDomain(device, std::move(pd)));
}

Result<MemoryRegion> VerbsProtectionDomain::register_memory(MutableByteSpan bytes, Access access,
                                                            const QueuePair* scope) {
  NFSRDMA_CHECK(access == Access::kLocal || access == Access::kReadSink || scope != nullptr);
  const int flags = access_flags(access, device_.traits());
  const auto reg = [&](int rights) {
    return device_.commands().run(
        [&] { return ::ibv_reg_mr(pd_.get(), bytes.data(), bytes.size(), rights); });
  };
  ibv_mr* mr = reg(flags);
  if (mr == nullptr && errno == EFAULT && access == Access::kRemoteRead) {
    // The source of a Read may be a read-only mapping.
    mr = reg(IBV_ACCESS_REMOTE_READ);
  }
  if (mr == nullptr) {
    const int err = errno;
    if (err != ENOMEM) return system_error("ibv_reg_mr", err);
    explain_memlock(bytes.size());
    return Error{Errc::kExhausted, err, "ibv_reg_mr (limit of locked memory, ulimit -l)"};
  }
  return MemoryRegion(*this, bytes, mr->lkey, mr->rkey,
                      reinterpret_cast<std::uintptr_t>(bytes.data()),
                      reinterpret_cast<std::uintptr_t>(mr));
}

void VerbsProtectionDomain::deregister(MemoryRegion& region) {
  auto* mr = reinterpret_cast<ibv_mr*>(static_cast<std::uintptr_t>(region.token()));
  if (const int err = device_.commands().run([mr] { return ::ibv_dereg_mr(mr); }); err != 0) {
    // Only after the device is gone; then nobody can reach the bytes any more either.
    log_warning("verbs: {}", system_error("ibv_dereg_mr", err).message());
  }
}

}  // namespace nfsrdma::verbs
