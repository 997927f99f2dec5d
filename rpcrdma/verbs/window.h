// SPDX-License-Identifier: Apache-2.0
// Window: one memory window of type 2 and the exposure that it is used for. VerbsProtectionDomain
// owns it; a VerbsQueuePair binds it and hears of its end.
//
//   kFree     of no exposure
//   kWaiting  to be bound by the queue pair's next post; nobody can reach the memory yet
//   kBound    the bind is posted: the peer reaches the memory by `handle`
//   kEnded    by the peer's Send with Invalidate, or by the end of the queue pair
//
// A bound window is ended from here by deallocating it: that is done when the call returns, however
// full the send queue is, whereas a local invalidation waits behind what the peer has not
// acknowledged. Peers that know remote invalidation make that rare.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/verbs/parent_regions.h"

namespace nfsrdma::verbs {

class VerbsQueuePair;

/// Binds that may be posted beside `sends` of whoever exposes memory: a call has one exposure,
/// seldom two; the longest calls have five.
inline constexpr std::uint32_t binds_beside(std::uint32_t sends) {
  return 2 * sends + 8;
}

struct Window {
  enum class State : std::uint8_t { kFree, kWaiting, kBound, kEnded };

  ibv_mw* mw = nullptr;  // null: allocated when it is used next
  State state = State::kFree;
  std::uint32_t handle = 0;    // with a fresh key for each exposure
  std::uint32_t sequence = 0;  // of its bind on the send queue
  VerbsQueuePair* queue_pair = nullptr;
  ParentRegions::Parent* parent = nullptr;
  ibv_mr* own_region = nullptr;  // without a parent: registered for this exposure
  MutableByteSpan bytes;
  int access = 0;
};

/// The windows of one queue pair.
class WindowList {
 public:
  void wait(Window& window) {
    window.state = Window::State::kWaiting;
    waiting_.push_back(&window);
  }
  /// In the order in which they are to be bound.
  std::span<Window* const> waiting() const { return waiting_; }
  /// The first `count` of those are bound now.
  void bound(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      waiting_[i]->state = Window::State::kBound;
    bound_.insert(bound_.end(), waiting_.begin(), waiting_.begin() + as_offset(count));
    waiting_.erase(waiting_.begin(), waiting_.begin() + as_offset(count));
  }
  /// The peer ended what is bound as `handle`. False when nothing is.
  bool ended(std::uint32_t handle) {
    auto found = std::find_if(bound_.begin(), bound_.end(),
                              [&](const Window* window) { return window->handle == handle; });
    if (found == bound_.end()) return false;
    (*found)->state = Window::State::kEnded;
    bound_.erase(found);
    return true;
  }
  /// Nobody here needs it any more. True when the peer cannot use it either; false when it has to
  /// be deallocated for that.
  bool forget(Window& window) {
    std::erase(waiting_, &window);
    std::erase(bound_, &window);
    return window.state != Window::State::kBound;
  }
  /// All of them; none is left.
  std::vector<Window*> take() {
    std::vector<Window*> all = std::move(bound_);
    all.insert(all.end(), waiting_.begin(), waiting_.end());
    bound_.clear();
    waiting_.clear();
    return all;
  }

 private:
  static std::ptrdiff_t as_offset(std::size_t count) { return static_cast<std::ptrdiff_t>(count); }
  std::vector<Window*> waiting_;
  std::vector<Window*> bound_;  // in the order of binding: the peer ends the oldest first, mostly
};

}  // namespace nfsrdma::verbs
