// SPDX-License-Identifier: Apache-2.0
// ParentRegions: what a protection domain keeps registered for windows to be bound on: its own
// local regions, and LastingMemory, which is registered when it is first exposed. No parent gives
// the peer any right by itself. Pure but for the Registrar: tested without a device.
#pragma once

#include <infiniband/verbs.h>

#include <list>
#include <map>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/lasting_memory.h"

namespace nfsrdma::verbs {

class ParentRegions {
 public:
  /// Registers lasting memory, for local access and for binding.
  class Registrar {
   public:
    virtual ~Registrar() = default;
    /// Null when there is no room for it.
    virtual ibv_mr* register_parent(MutableByteSpan bytes) = 0;
    virtual void give_back_parent(ibv_mr* region, MutableByteSpan bytes) = 0;
  };
  struct Parent {
    ibv_mr* region = nullptr;
    LastingMemory::Piece piece;  // without an id: a region of the domain's own
    std::uint32_t windows = 0;   // exposures on it
  };
  /// Lasting memory that a domain keeps registered while nothing of it is exposed.
  static constexpr std::size_t kKeep = std::size_t{64} << 20;

  explicit ParentRegions(Registrar& registrar) : registrar_(registrar) {}
  ~ParentRegions() { clear(); }
  ParentRegions(const ParentRegions&) = delete;
  ParentRegions& operator=(const ParentRegions&) = delete;

  /// A local region of the domain; nothing of it may be exposed when it is removed.
  void add(ibv_mr* region, MutableByteSpan bytes);
  void remove(ibv_mr* region, MutableByteSpan bytes);
  /// The parent that all of `part` lies in, for one exposure; null when there is none.
  Parent* take(ByteSpan part);
  void give(Parent& parent) { --parent.windows; }
  /// Gives lasting memory back; nothing may be exposed.
  void clear();
  std::size_t lasting_bytes() const { return lasting_bytes_; }

 private:
  Parent* own(ByteSpan part);
  /// Gives back what is idle: gone memory, and what exceeds kKeep with `coming` bytes more.
  void sweep(std::size_t coming);
  void drop(std::list<Parent>::iterator parent);

  Registrar& registrar_;
  std::multimap<const std::byte*, Parent> own_;  // by first byte
  std::list<Parent> lasting_;                    // the latest used last
  std::map<std::uint64_t, std::list<Parent>::iterator> by_id_;
  std::size_t lasting_bytes_ = 0;
};

}  // namespace nfsrdma::verbs
