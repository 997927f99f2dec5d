// SPDX-License-Identifier: Apache-2.0
// VerbsProtectionDomain: registration of memory with one adapter, and exposure to a peer. Exposure
// is by a memory window where the queue pair says so, which only its own peer can use; else by a
// memory region, which every queue pair of the domain reaches (SECURITY.md).
//
// A window is bound on a region that holds the bytes (ParentRegions) or, where none does, on one
// that is registered for this exposure. A peer that may invalidate never gets to see the handle of
// a region: invalidating one breaks the connection, or worse.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "rpcrdma/verbs/device.h"
#include "rpcrdma/verbs/memlock.h"
#include "rpcrdma/verbs/parent_regions.h"
#include "rpcrdma/verbs/window.h"

namespace nfsrdma::verbs {

class VerbsProtectionDomain final : public ProtectionDomain, private ParentRegions::Registrar {
 public:
  static Result<std::unique_ptr<ProtectionDomain>> create(VerbsDevice& device);
  ~VerbsProtectionDomain() override;
  Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access access,
                                       const QueuePair* scope) override;
  ibv_pd* get() const { return pd_.get(); }

 protected:
  void deregister(MemoryRegion& region) override;

 private:
  VerbsProtectionDomain(VerbsDevice& device, PdHandle pd);
  Result<MemoryRegion> make_region(MutableByteSpan bytes, Access access);
  Result<ibv_mr*> add_region(MutableByteSpan bytes, int rights, Access access);
  void remove_region(ibv_mr* region, MutableByteSpan bytes);
  Result<MemoryRegion> expose_by_window(MutableByteSpan bytes, Access access,
                                        VerbsQueuePair& queue_pair);
  Result<Window*> free_window();
  Result<void> give_region(Window& window, Access access);
  void end(Window& window);
  ibv_mr* register_parent(MutableByteSpan bytes) override;
  void give_back_parent(ibv_mr* region, MutableByteSpan bytes) override;

  VerbsDevice& device_;
  PdHandle pd_;
  MemlockLimit limit_;
  ParentRegions parents_{*this};
  std::vector<std::unique_ptr<Window>> windows_;
  std::deque<Window*> free_;  // the longest idle first: its keys come round late
};

}  // namespace nfsrdma::verbs
