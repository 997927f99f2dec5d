// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/protection_domain.h"

#include "rpcrdma/iwarp/device.h"
#include "rpcrdma/iwarp/tcp_driver.h"

namespace nfsrdma::iwarp {
namespace {
constexpr std::uint64_t kLocalToken = 0;
constexpr std::uint64_t kStagToken = 1;
}  // namespace

Result<MemoryRegion> IwarpDomain::register_memory(MutableByteSpan bytes, Access access,
                                                  const QueuePair* scope) {
  if (access == Access::kLocal) return MemoryRegion(*this, bytes, 0, 0, 0, kLocalToken);
  if (scope == nullptr) return Error{Errc::kInvalid, 0, "remote access without a connection"};
  const auto number = static_cast<const IwarpQueuePair*>(scope)->number();
  StagTable::Added added;
  if (!device_.stags().add(bytes, access, number, &added)) {
    return Error{Errc::kExhausted, 0, "STag table full"};
  }
  return MemoryRegion(*this, bytes, added.stag, added.stag, added.offset, kStagToken);
}

void IwarpDomain::deregister(MemoryRegion& region) {
  if (region.token() == kLocalToken) return;
  const std::uint64_t number = device_.stags().remove(region.handle());
  if (IwarpQueuePair* queue_pair = device_.find(number)) queue_pair->region_gone(region.handle());
}

}  // namespace nfsrdma::iwarp
