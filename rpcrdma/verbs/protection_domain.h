// SPDX-License-Identifier: Apache-2.0
// VerbsProtectionDomain: registration of memory with one adapter. Plain memory regions: `scope` is
// not a limit here, every queue pair of the domain reaches what is exposed (SECURITY.md).
#pragma once

#include "rpcrdma/verbs/device.h"
#include "rpcrdma/verbs/memlock.h"

namespace nfsrdma::verbs {

class VerbsProtectionDomain final : public ProtectionDomain {
 public:
  static Result<std::unique_ptr<ProtectionDomain>> create(VerbsDevice& device);
  ~VerbsProtectionDomain() override {
    pd_.reset();
    device_.remove_user();
  }
  Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access access,
                                       const QueuePair* scope) override;
  ibv_pd* get() const { return pd_.get(); }

 protected:
  void deregister(MemoryRegion& region) override;

 private:
  VerbsProtectionDomain(VerbsDevice& device, PdHandle pd) : device_(device), pd_(std::move(pd)) {
    device.add_user();
  }
  VerbsDevice& device_;
  PdHandle pd_;
  MemlockLimit limit_;
};

}  // namespace nfsrdma::verbs
