// SPDX-License-Identifier: Apache-2.0
// See device.h. Limits of the transports: wire.md 6.5.
#include "rpcrdma/verbs/device.h"

#include <fcntl.h>

#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/completion_queue.h"
#include "rpcrdma/verbs/device_vendor.h"
#include "rpcrdma/verbs/memlock_account.h"
#include "rpcrdma/verbs/protection_domain.h"
#include "rpcrdma/verbs/receive_queue.h"

namespace nfsrdma::verbs {

namespace {

// More never helps: one reply is a header, a body and a pad.
constexpr std::uint32_t kMaxSges = 16;
// rdma_conn_param counts Reads in eight bits.
constexpr std::uint32_t kMaxReads = 255;

DeviceTraits traits_of(const ibv_context& context, const ibv_device_attr& attr,
                       const VerbsOptions& options) {
  DeviceTraits traits;
  traits.iwarp = context.device->transport_type == IBV_TRANSPORT_IWARP;
  traits.siw = traits.iwarp && attr.vendor_id == kSiwVendor;
  traits.posts_by_system_call =
      traits.siw || attr.vendor_id == kRxeVendor || attr.vendor_id == kOmniPathVendor;
  if (traits.siw) traits.doorbell_driver = RDMA_DRIVER_SIW;
  if (attr.vendor_id == kRxeVendor) traits.doorbell_driver = RDMA_DRIVER_RXE;
  traits.shared_receive_queue =
      attr.max_srq > 0 && attr.max_srq_wr > 0 && !options.per_queue_pair_receives;
  traits.max_receive_depth = static_cast<std::uint32_t>(
      std::max(traits.shared_receive_queue ? attr.max_srq_wr : attr.max_qp_wr, 1));
  traits.max_completions = static_cast<std::uint32_t>(std::max(attr.max_cqe, 1));
  // iWARP: 512 bytes by the RFC, 256 with siw and cxgb4, four of which hold IRD and ORD.
  traits.connect_room = traits.iwarp ? 252 : 56;
  traits.accept_room = traits.iwarp ? 252 : 196;
  traits.reject_room = traits.iwarp ? 252 : 148;
  traits.sink_needs_remote_write = traits.iwarp && !traits.siw;
  traits.invalidated_flag = IBV_WC_WITH_INV;
  // rxe gives programs the kernel's flags, where libibverbs has the one that never comes on a
  // connection.
  if (attr.vendor_id == kRxeVendor) traits.invalidated_flag |= IBV_WC_IP_CSUM_OK;
  return traits;
}

bool wants_windows(const ibv_device_attr& attr, WindowUse use) {
  const unsigned promises = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  if ((attr.device_cap_flags & promises) == 0 || attr.max_mw <= 0) return false;
  return use == WindowUse::kAlways || (use == WindowUse::kSafe && windows_are_safe(attr.vendor_id));
}

}  // namespace

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::create(
    EventLoop& loop, CmChannel& channel, ibv_context* context, const SocketAddress& local,
    AsyncEvents& async, CommandThread& commands, const VerbsOptions& options) {
  std::unique_ptr<VerbsDevice> device(new VerbsDevice(loop, context, async, commands, options));
  device->use_.emplace(context, commands);
  NFSRDMA_CHECK_OK(device->probe());
  const int flags = ::fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return system_error("async event fd: O_NONBLOCK");
  }
  NFSRDMA_CHECK_OK(loop.add(context->async_fd, EPOLLIN, *device));
  device->watching_ = true;
  device->registered_.emplace(async, context, loop, static_cast<AsyncTarget&>(*device));
  device->hold(channel, local);
  return device;
}

VerbsDevice::~VerbsDevice() {
  stop_watching();
}

void VerbsDevice::hold(CmChannel& channel, const SocketAddress& local) {
  auto id = channel.create_id(*this);
  if (!id.ok()) return;
  SocketAddress address = local;
  address.set_port(0);
  const int bound =
      commands_.run([&] { return ::rdma_bind_addr(id.value().get(), address.data()); });
  if (bound == 0 && id.value()->verbs == context_) {
    held_ = std::move(id).value();
    use_->set_alive();
    return;
  }
  // Two devices on one network interface: the address leads to the other one.
  log_debug("verbs: {} is not told of its removal while it has no connection", info_.name);
}

void VerbsDevice::stop_watching() {
  if (std::exchange(watching_, false)) loop_.remove(context_->async_fd, *this);
}

void VerbsDevice::lose(const char* why) {
  if (std::exchange(gone_, true)) return;
  log_error("verbs: {}: {}", info_.name, why);
  stop_watching();
  const std::vector<Completions> told = completion_queues_;
  for (const Completions& completions : told)
    completions.handler->on_device_gone();
  if (users_ == 0) loop_.defer(*this);
}

void VerbsDevice::on_cm_event(const CmEvent& event) {
  if (event.type != RDMA_CM_EVENT_DEVICE_REMOVAL) return;
  // Other drivers take the device from under its users, and librdmacm may keep what it has.
  if (traits_.posts_by_system_call) use_->close_with_last();
  lose("the device was removed");
}

/// A queue that is broken can only be made anew, with all that stands on it.
void VerbsDevice::on_async_event(ibv_event_type type, const void* queue) {
  if (queue == nullptr || has(queue)) lose(::ibv_event_type_str(type));
}

bool VerbsDevice::has(const void* queue) const {
  const auto completes = [&](const Completions& completions) { return completions.queue == queue; };
  const auto receives = [&](const auto& entry) { return entry.second->srq() == queue; };
  return std::any_of(completion_queues_.begin(), completion_queues_.end(), completes) ||
         std::any_of(receive_queues_.begin(), receive_queues_.end(), receives);
}

void VerbsDevice::remove_user() {
  if (--users_ == 0 && gone_) loop_.defer(*this);
}

void VerbsDevice::remove_completion_queue(const ibv_cq* queue) {
  std::erase_if(completion_queues_,
                [&](const Completions& completions) { return completions.queue == queue; });
}

/// Lets go of a device that is gone and that nobody uses any more.
void VerbsDevice::run_deferred() {
  if (!gone_ || users_ != 0 || released_) return;
  released_ = true;
  registered_.reset();
  use_.reset();
  held_.reset();
}

Result<void> VerbsDevice::probe() {
  ibv_device_attr attr{};
  if (const int err = commands_.run([&] { return ::ibv_query_device(context_, &attr); });
      err != 0) {
    return system_error("ibv_query_device", err);
  }
  traits_ = traits_of(*context_, attr, options_);
  info_.name = ::ibv_get_device_name(context_->device);
  info_.kind = FabricKind::kVerbs;
  const auto sges = static_cast<std::uint32_t>(std::max(attr.max_sge, 1));
  info_.max_send_sge = std::min(sges, kMaxSges);
  info_.max_read_sge = traits_.iwarp ? 1
                                     : std::clamp(static_cast<std::uint32_t>(attr.max_sge_rd), 1U,
                                                  info_.max_send_sge);
  const auto reads = [](int limit) {
    return std::min(static_cast<std::uint32_t>(std::max(limit, 0)), kMaxReads);
  };
  info_.max_inbound_reads = reads(attr.max_qp_rd_atom);
  info_.max_outbound_reads = reads(attr.max_qp_init_rd_atom);
  info_.max_send_depth = static_cast<std::uint32_t>(std::max(attr.max_qp_wr, 1));
  info_.send_with_invalidate = (attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0;
  traits_.memory_windows = wants_windows(attr, options_.windows) && try_memory_window();
  // Without windows regions here are plain memory regions. Invalidating those from afar makes some
  // providers lose them without a report (siw), so peers are not offered it.
  info_.remote_invalidation = traits_.memory_windows;
  info_.read_sink_needs_handle = traits_.sink_needs_remote_write;
  log_info("verbs: {} ({}): {} SGEs, {} for Reads, IRD {}, ORD {}, {}{}", info_.name,
           traits_.siw     ? "siw"
           : traits_.iwarp ? "iWARP"
                           : "IB/RoCE",
           info_.max_send_sge, info_.max_read_sge, info_.max_inbound_reads,
           info_.max_outbound_reads,
           traits_.shared_receive_queue ? "shared receive queues" : "receives per queue pair",
           traits_.memory_windows ? ", memory windows" : "");
  return {};
}

/// Not every device that promises windows can make one.
bool VerbsDevice::try_memory_window() {
  return commands_.run([this] {
    ibv_pd* domain = ::ibv_alloc_pd(context_);
    if (domain == nullptr) return false;
    ibv_mw* window = ::ibv_alloc_mw(domain, IBV_MW_TYPE_2);
    if (window != nullptr) ::ibv_dealloc_mw(window);
    ::ibv_dealloc_pd(domain);
    return window != nullptr;
  });
}

Error VerbsDevice::queue_refusal(const char* call, int err) {
  // The capabilities that count are those of the thread that made the call.
  const MemlockLimit limit = commands_.run([] { return memlock_limit(); });
  return MemlockAccount::of_process().queue_refusal(call, err, limit);
}

void VerbsDevice::forget_memory_windows() {
  if (!traits_.memory_windows) return;
  traits_.memory_windows = info_.remote_invalidation = false;
  log_notice("verbs: {} cannot bind memory windows: registration from now on", info_.name);
}

void VerbsDevice::forget_shared_receive_queues(const Error& why) {
  if (!traits_.shared_receive_queue) return;
  traits_.shared_receive_queue = false;
  traits_.max_receive_depth = info_.max_send_depth;
  log_notice("verbs: {} makes no shared receive queue ({}): receives per queue pair from now on",
             info_.name, why.message());
}

void VerbsDevice::forget_send_with_invalidate() {
  if (!info_.send_with_invalidate) return;
  info_.send_with_invalidate = false;
  log_notice("verbs: {} refuses Send with Invalidate: plain Sends from now on", info_.name);
}

Result<std::unique_ptr<ProtectionDomain>> VerbsDevice::create_protection_domain() {
  if (gone_) return Error{Errc::kClosed, ENODEV, "the RDMA device was removed"};
  return VerbsProtectionDomain::create(*this);
}

Result<std::unique_ptr<CompletionQueue>> VerbsDevice::create_completion_queue(
    EventLoop& loop, CompletionHandler& handler, std::uint32_t depth) {
  return VerbsCompletionQueue::create(*this, loop, handler, depth);
}

Result<std::unique_ptr<SharedReceiveQueue>> VerbsDevice::create_shared_receive_queue(
    ProtectionDomain& domain, std::uint32_t depth) {
  auto& ours = static_cast<VerbsProtectionDomain&>(domain);
  return ReceiveQueue::create(*this, ours, depth, next_receive_queue_++);
}

void VerbsDevice::on_fd_ready(std::uint32_t events) {
  if ((events & EPOLLIN) != 0) {
    async_.drain(context_);
  } else {
    lose("the device was unplugged");  // its fd reports errors for ever
  }
}

}  // namespace nfsrdma::verbs
