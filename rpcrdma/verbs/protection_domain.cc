// SPDX-License-Identifier: Apache-2.0
// See protection_domain.h; access rights by wire.md 6.4.
#include "rpcrdma/verbs/protection_domain.h"

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/memlock_account.h"

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

}  // namespace

Result<std::unique_ptr<ProtectionDomain>> VerbsProtectionDomain::create(VerbsDevice& device) {
  PdHandle pd = own(device.commands(), [&] { return ::ibv_alloc_pd(device.context()); });
  if (!pd) return system_error("ibv_alloc_pd");
  std::unique_ptr<VerbsProtectionDomain> domain(new VerbsProtectionDomain(device, std::move(pd)));
  // The capabilities that count are those of the thread that makes the calls.
  domain->limit_ = device.commands().run([] { return memlock_limit(); });
  return std::unique_ptr<ProtectionDomain>(std::move(domain));
}

Result<MemoryRegion> VerbsProtectionDomain::register_memory(MutableByteSpan bytes, Access access,
                                                            const QueuePair* scope) {
  NFSRDMA_CHECK(access == Access::kLocal || access == Access::kReadSink || scope != nullptr);
  const int flags = access_flags(access, device_.traits());
  MemlockAccount& account = MemlockAccount::of_process();
  NFSRDMA_CHECK_OK(account.take(bytes, limit_));
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
    account.give_back(bytes);
    if (err != ENOMEM) return system_error("ibv_reg_mr", err);
    return account.refusal(bytes.size(), limit_);
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
  MemlockAccount::of_process().give_back(region.bytes());
}

}  // namespace nfsrdma::verbs
