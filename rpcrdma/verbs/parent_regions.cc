// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/parent_regions.h"

#include "rpcrdma/base/check.h"

namespace nfsrdma::verbs {

namespace {

bool holds(MutableByteSpan whole, ByteSpan part) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace

void ParentRegions::clear() {
  while (!lasting_.empty())
    drop(lasting_.begin());
}

void ParentRegions::add(ibv_mr* region, MutableByteSpan bytes) {
  own_.emplace(bytes.data(), Parent{region, {bytes, 0}, 0});
}

void ParentRegions::remove(ibv_mr* region, MutableByteSpan bytes) {
  const auto [first, last] = own_.equal_range(bytes.data());
  for (auto entry = first; entry != last; ++entry) {
    if (entry->second.region != region) continue;
    NFSRDMA_CHECK(entry->second.windows == 0);
    own_.erase(entry);
    return;
  }
}

ParentRegions::Parent* ParentRegions::own(ByteSpan part) {
  auto after = own_.upper_bound(part.data());
  if (after == own_.begin()) return nullptr;
  Parent& candidate = std::prev(after)->second;
  return holds(candidate.piece.bytes, part) ? &candidate : nullptr;
}

ParentRegions::Parent* ParentRegions::take(ByteSpan part) {
  Parent* parent = own(part);
  if (parent == nullptr) {
    const auto piece = LastingMemory::find(part);
    if (!piece) return nullptr;
    auto known = by_id_.find(piece->id);
    if (known == by_id_.end()) {
      sweep(piece->bytes.size());
      ibv_mr* region = registrar_.register_parent(piece->bytes);
      if (region == nullptr) return nullptr;
      lasting_.push_back({region, *piece, 0});
      known = by_id_.emplace(piece->id, std::prev(lasting_.end())).first;
      lasting_bytes_ += piece->bytes.size();
    } else {
      lasting_.splice(lasting_.end(), lasting_, known->second);
    }
    parent = &*known->second;
  }
  ++parent->windows;
  return parent;
}

void ParentRegions::sweep(std::size_t coming) {
  for (auto next = lasting_.begin(); next != lasting_.end();) {
    const auto parent = next++;
    if (parent->windows != 0) continue;
    if (lasting_bytes_ + coming > kKeep || !LastingMemory::lasts(parent->piece)) drop(parent);
  }
}

void ParentRegions::drop(std::list<Parent>::iterator parent) {
  registrar_.give_back_parent(parent->region, parent->piece.bytes);
  lasting_bytes_ -= parent->piece.bytes.size();
  by_id_.erase(parent->piece.id);
  lasting_.erase(parent);
}

}  // namespace nfsrdma::verbs
