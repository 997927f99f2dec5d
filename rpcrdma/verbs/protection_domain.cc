// SPDX-License-Identifier: Apache-2.0
// See protection_domain.h; access rights by wire.md 6.4.
#include "rpcrdma/verbs/protection_domain.h"

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/memlock_account.h"
#include "rpcrdma/verbs/queue_pair.h"

namespace nfsrdma::verbs {

namespace {

int access_flags(Access access, const DeviceTraits& traits) {
  switch (access) {
    case Access::kLocal:
      // Binding is what this process does; it gives the peer nothing.
      return traits.memory_windows ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND
                                   : IBV_ACCESS_LOCAL_WRITE;
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

// MemoryRegion's token: an ibv_mr, or a Window with the lowest bit set.
constexpr std::uint64_t kIsWindow = 1;
std::uint64_t token_of(const ibv_mr* region) {
  return reinterpret_cast<std::uintptr_t>(region);
}
std::uint64_t token_of(const Window* window) {
  return reinterpret_cast<std::uintptr_t>(window) | kIsWindow;
}

}  // namespace

VerbsProtectionDomain::VerbsProtectionDomain(VerbsDevice& device, PdHandle pd)
    : device_(device), pd_(std::move(pd)) {
  device.add_user();
}

Result<std::unique_ptr<ProtectionDomain>> VerbsProtectionDomain::create(VerbsDevice& device) {
  PdHandle pd = own(device.commands(), [&] { return ::ibv_alloc_pd(device.context()); });
  if (!pd) return system_error("ibv_alloc_pd");
  std::unique_ptr<VerbsProtectionDomain> domain(new VerbsProtectionDomain(device, std::move(pd)));
  // The capabilities that count are those of the thread that makes the calls.
  domain->limit_ = device.commands().run([] { return memlock_limit(); });
  return std::unique_ptr<ProtectionDomain>(std::move(domain));
}

VerbsProtectionDomain::~VerbsProtectionDomain() {
  device_.commands().run([this] {
    for (const auto& window : windows_) {
      if (window->mw != nullptr) ::ibv_dealloc_mw(window->mw);
    }
  });
  parents_.clear();
  pd_.reset();
  device_.remove_user();
}

Result<MemoryRegion> VerbsProtectionDomain::register_memory(MutableByteSpan bytes, Access access,
                                                            const QueuePair* scope) {
  const bool remote = access == Access::kRemoteRead || access == Access::kRemoteWrite;
  NFSRDMA_CHECK(!remote || scope != nullptr);
  // Binding and ending are the queue pair's work, although callers need not know.
  auto* queue_pair = static_cast<VerbsQueuePair*>(const_cast<QueuePair*>(scope));
  auto made = remote && queue_pair->exposes_by_window()
                  ? expose_by_window(bytes, access, *queue_pair)
                  : make_region(bytes, access);
  if (made.ok() || !means_broken(made.error().sys)) return made;
  // No fault of whoever wants it, and not to be told as one: the connection ends, as it would with
  // the event, and what it was for goes by the next.
  const Error gone{Errc::kClosed, made.error().sys, "the RDMA device was removed or is broken"};
  if (queue_pair != nullptr) queue_pair->device_failed(gone);
  return gone;
}

Result<MemoryRegion> VerbsProtectionDomain::make_region(MutableByteSpan bytes, Access access) {
  NFSRDMA_TRY(ibv_mr * mr, add_region(bytes, access_flags(access, device_.traits()), access));
  if (access == Access::kLocal && device_.traits().memory_windows) parents_.add(mr, bytes);
  return MemoryRegion(*this, bytes, mr->lkey, mr->rkey,
                      reinterpret_cast<std::uintptr_t>(bytes.data()), token_of(mr));
}

Result<ibv_mr*> VerbsProtectionDomain::add_region(MutableByteSpan bytes, int rights,
                                                  Access access) {
  MemlockAccount& account = MemlockAccount::of_process();
  NFSRDMA_CHECK_OK(account.take(bytes, limit_));
  const auto reg = [&](int allowed) {
    return device_.commands().run(
        [&] { return ::ibv_reg_mr(pd_.get(), bytes.data(), bytes.size(), allowed); });
  };
  ibv_mr* mr = reg(rights);
  if (mr == nullptr && errno == EFAULT && access == Access::kRemoteRead) {
    // The source of a Read may be a read-only mapping.
    mr = reg(rights & ~IBV_ACCESS_LOCAL_WRITE);
  }
  if (mr != nullptr) return mr;
  const int err = errno;
  account.give_back(bytes);
  if (err != ENOMEM) return system_error("ibv_reg_mr", err);
  return account.refusal(bytes.size(), limit_);
}

void VerbsProtectionDomain::remove_region(ibv_mr* region, MutableByteSpan bytes) {
  const int err = device_.commands().run([region] { return ::ibv_dereg_mr(region); });
  if (err != 0) {
    // Only after the device is gone; then nobody can reach the bytes any more either.
    log_warning("verbs: {}", system_error("ibv_dereg_mr", err).message());
  }
  MemlockAccount::of_process().give_back(bytes);
}

void VerbsProtectionDomain::deregister(MemoryRegion& region) {
  if ((region.token() & kIsWindow) != 0) {
    return end(*reinterpret_cast<Window*>(static_cast<std::uintptr_t>(region.token() - kIsWindow)));
  }
  auto* mr = reinterpret_cast<ibv_mr*>(static_cast<std::uintptr_t>(region.token()));
  parents_.remove(mr, region.bytes());
  remove_region(mr, region.bytes());
}

// --- windows ---

Result<Window*> VerbsProtectionDomain::free_window() {
  if (free_.empty()) {
    windows_.push_back(std::make_unique<Window>());
    free_.push_back(windows_.back().get());
  }
  Window* window = free_.front();
  if (window->mw == nullptr) {
    window->mw = device_.commands().run([&] { return ::ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2); });
    if (window->mw == nullptr) return Error{Errc::kExhausted, errno, "ibv_alloc_mw"};
  }
  free_.pop_front();
  return window;
}

/// What the window is to be bound on.
Result<void> VerbsProtectionDomain::give_region(Window& window, Access access) {
  window.parent = parents_.take(window.bytes);
  if (window.parent != nullptr) return {};
  NFSRDMA_TRY(window.own_region,
              add_region(window.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, access));
  return {};
}

Result<MemoryRegion> VerbsProtectionDomain::expose_by_window(MutableByteSpan bytes, Access access,
                                                             VerbsQueuePair& queue_pair) {
  NFSRDMA_TRY(Window * window, free_window());
  window->bytes = bytes;
  window->access = access == Access::kRemoteRead ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  window->handle = ::ibv_inc_rkey(window->mw->rkey);
  Result<void> ready = give_region(*window, access);
  if (ready.ok()) ready = queue_pair.bind(*window);
  if (!ready.ok()) {
    end(*window);
    return ready.error();
  }
  return MemoryRegion(*this, bytes, 0, window->handle,
                      reinterpret_cast<std::uintptr_t>(bytes.data()), token_of(window));
}

/// When this returns the peer reaches nothing by the window, and it can be used for something else.
void VerbsProtectionDomain::end(Window& window) {
  using State = Window::State;
  const bool known = window.state == State::kWaiting || window.state == State::kBound;
  if (known && !window.queue_pair->unbind(window)) {
    ibv_mw* mw = std::exchange(window.mw, nullptr);
    const int err = device_.commands().run([mw] { return ::ibv_dealloc_mw(mw); });
    if (err != 0) log_warning("verbs: {}", system_error("ibv_dealloc_mw", err).message());
  }
  if (window.parent != nullptr) parents_.give(*std::exchange(window.parent, nullptr));
  if (window.own_region != nullptr) {
    remove_region(std::exchange(window.own_region, nullptr), window.bytes);
  }
  window.state = State::kFree;
  window.queue_pair = nullptr;
  free_.push_back(&window);
}

ibv_mr* VerbsProtectionDomain::register_parent(MutableByteSpan bytes) {
  // What stays registered must not be what stops others.
  if (!MemlockAccount::of_process().has_plenty_for(bytes, limit_)) return nullptr;
  auto region = add_region(bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, Access::kLocal);
  return region.ok() ? *region : nullptr;
}

void VerbsProtectionDomain::give_back_parent(ibv_mr* region, MutableByteSpan bytes) {
  remove_region(region, bytes);
}

}  // namespace nfsrdma::verbs
