// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpcrdma/fabric.h"

namespace nfsrdma::iwarp {

class IwarpDevice;

/// Registration is bookkeeping in this process: local regions cost nothing, others an STag that is
/// good for one connection and one kind of access.
class IwarpDomain final : public ProtectionDomain {
 public:
  explicit IwarpDomain(IwarpDevice& device) : device_(device) {}
  Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access access,
                                       const QueuePair* scope) override;

 private:
  void deregister(MemoryRegion& region) override;

  IwarpDevice& device_;
};

}  // namespace nfsrdma::iwarp
