// SPDX-License-Identifier: Apache-2.0
// Devices, memory and connecting of the simulated fabric. sim_queue_pair.cc moves the data.
#include "rpcrdma/sim/sim_fabric.h"

#include <algorithm>

namespace nfsrdma {

// --- memory ---

SimDomain::SimDomain(SimFabric& fabric) : fabric_(fabric) {
  fabric_.domains_.insert(this);
}
SimDomain::~SimDomain() {
  fabric_.domains_.erase(this);
}

Result<MemoryRegion> SimDomain::register_memory(MutableByteSpan bytes, Access access,
                                                const QueuePair* scope) {
  SimNetwork& network = fabric_.network();
  if (network.count_register()) return Error{Errc::kSystem, ENOMEM, "simulated registration"};
  if (access != Access::kLocal && !fabric_.exposes_) {
    return Error{Errc::kClosed, ENODEV, "simulated registration"};
  }
  if (access != Access::kLocal && fabric_.exposed_regions() >= fabric_.max_exposed_) {
    return Error{Errc::kExhausted, ENOMEM, "simulated limit of regions"};
  }
  if (access != Access::kLocal && scope == nullptr) {
    fabric_.violation("remote access without a scope");
  }
  std::uint32_t handle;
  do {
    handle = static_cast<std::uint32_t>(network.random());
  } while (regions_.contains(handle));
  const std::uint64_t offset = network.random() >> 1;  // any number will do: it is opaque
  regions_[handle] = {bytes.data(), bytes.size(), offset, access, scope};
  return MemoryRegion(*this, bytes, handle, handle, offset, handle);
}

void SimDomain::deregister(MemoryRegion& region) {
  regions_.erase(region.handle());
}
void SimDomain::invalidate(std::uint32_t handle) {
  auto found = regions_.find(handle);
  if (found != regions_.end()) found->second.access = Access::kLocal;
}

std::byte* SimDomain::find(std::uint32_t handle, std::uint64_t offset, std::uint64_t length,
                           Access access, const QueuePair* stream) {
  auto found = regions_.find(handle);
  if (found == regions_.end()) return nullptr;
  const SimRegion& region = found->second;
  if (region.access != access || region.scope != stream || offset < region.offset) return nullptr;
  const std::uint64_t at = offset - region.offset;
  if (!range_inside<std::uint64_t>(at, length, region.size)) return nullptr;
  return region.data + at;
}

bool SimDomain::covers_locally(const Sge& sge) const {
  if (sge.length == 0) return true;
  auto found = regions_.find(sge.lkey);
  if (found == regions_.end()) return false;
  const SimRegion& region = found->second;
  return sge.address >= region.data && sge.address + sge.length <= region.data + region.size;
}

std::size_t SimDomain::exposed() const {
  return static_cast<std::size_t>(
      std::count_if(regions_.begin(), regions_.end(),
                    [](const auto& entry) { return entry.second.access != Access::kLocal; }));
}

// --- queues ---

std::size_t SimCompletionQueue::poll(std::span<WorkCompletion> out) {
  std::size_t count = 0;
  while (count < out.size() && !queue_.empty()) {
    out[count++] = queue_.front();
    queue_.pop_front();
  }
  return count;
}

void SimCompletionQueue::push(const WorkCompletion& completion) {
  queue_.push_back(completion);
  if (queue_.size() > 1) return;
  network_.schedule(network_.jitter(), [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired() && !queue_.empty()) handler_.on_completions();
  });
}

Result<void> SimReceiveQueue::post(std::uint64_t wr_id, Sge buffer) {
  if (queue.size() >= depth_) return Error{Errc::kExhausted, 0, "simulated receive queue"};
  queue.push_back({wr_id, buffer});
  return {};
}

// --- device ---

Result<std::unique_ptr<ProtectionDomain>> SimDevice::create_protection_domain() {
  return std::unique_ptr<ProtectionDomain>(std::make_unique<SimDomain>(fabric_));
}
Result<std::unique_ptr<CompletionQueue>> SimDevice::create_completion_queue(
    EventLoop&, CompletionHandler& handler, std::uint32_t) {
  auto queue = std::make_unique<SimCompletionQueue>(fabric_.network(), handler);
  queues_.push_back({queue->life(), &handler});
  return std::unique_ptr<CompletionQueue>(std::move(queue));
}
void SimDevice::tell_gone() {
  for (const Queue& queue : queues_) {
    if (!queue.life.expired()) queue.handler->on_device_gone();
  }
}
Result<std::unique_ptr<SharedReceiveQueue>> SimDevice::create_shared_receive_queue(
    ProtectionDomain&, std::uint32_t depth) {
  return std::unique_ptr<SharedReceiveQueue>(std::make_unique<SimReceiveQueue>(depth));
}

// --- connecting ---

class SimListener final : public Listener {
 public:
  SimListener(SimFabric& fabric, const SocketAddress& address)
      : fabric_(fabric), address_(address) {}
  ~SimListener() override { fabric_.listeners_.erase(address_.port()); }
  const SocketAddress& address() const override { return address_; }

 private:
  SimFabric& fabric_;
  SocketAddress address_;
};

/// The initiator's end of an attempt; both sides' closures find it only while it lives.
class SimConnector final : public Connector {
 public:
  SimConnector(SimFabric& fabric, EventLoop& loop, const SocketAddress& peer,
               ConnectHandler& handler)
      : fabric_(fabric), loop_(loop), peer_(peer), handler_(handler) {}

  void fail(Errc code, const char* why) {
    handler_.on_connect_failed(Error{code, code == Errc::kRefused ? ECONNREFUSED : 0, "connect"},
                               why);
  }
  void start(const std::shared_ptr<SimConnector*>& self);
  void accepted(std::unique_ptr<SimQueuePair> queue_pair, const std::vector<std::byte>& data) {
    handler_.on_connected(std::move(queue_pair), data);
  }

  SimFabric& fabric_;
  EventLoop& loop_;
  SocketAddress peer_;
  ConnectHandler& handler_;
  QueuePairOptions options_;
  std::vector<std::byte> private_data_;
  std::shared_ptr<SimConnector*> self_;
  ~SimConnector() override {
    if (self_) *self_ = nullptr;
  }
};

class SimConnectRequest final : public ConnectRequest {
 public:
  SimConnectRequest(SimFabric& fabric, EventLoop& loop, std::shared_ptr<SimConnector*> connector,
                    const SocketAddress& peer, std::vector<std::byte> data,
                    std::uint32_t inbound_reads)
      : fabric_(fabric),
        device_(fabric.device_for(loop, true)),
        connector_(std::move(connector)),
        peer_(peer),
        data_(std::move(data)),
        inbound_reads_(inbound_reads) {}
  ~SimConnectRequest() override {
    if (!answered_) reject({});
  }

  Device& device() override { return device_; }
  const SocketAddress& peer() const override { return peer_; }
  ByteSpan private_data() const override { return data_; }
  std::uint32_t peer_inbound_reads() const override { return inbound_reads_; }
  Result<std::unique_ptr<QueuePair>> accept(const QueuePairOptions& options) override;
  void reject(ByteSpan) override {
    answered_ = true;
    fabric_.network().schedule(fabric_.network().jitter(), [connector = connector_] {
      if (*connector != nullptr) (*connector)->fail(Errc::kRefused, "rejected");
    });
  }

 private:
  SimFabric& fabric_;
  Device& device_;
  std::shared_ptr<SimConnector*> connector_;
  SocketAddress peer_;
  std::vector<std::byte> data_;
  std::uint32_t inbound_reads_;
  bool answered_ = false;
};

class SimIncoming final : public Incoming {
 public:
  SimIncoming(SimFabric& fabric, std::shared_ptr<SimConnector*> connector)
      : fabric_(fabric), connector_(std::move(connector)) {}
  void start(EventLoop& loop, AcceptHandler& handler) override {
    if (*connector_ == nullptr) return;
    SimConnector& connector = **connector_;
    handler.on_connect_request(std::make_unique<SimConnectRequest>(
        fabric_, loop, connector_, connector.peer_, connector.private_data_,
        connector.options_.inbound_reads));
  }

 private:
  SimFabric& fabric_;
  std::shared_ptr<SimConnector*> connector_;
};

Result<std::unique_ptr<QueuePair>> SimConnectRequest::accept(const QueuePairOptions& options) {
  answered_ = true;
  if (*connector_ == nullptr) return Error{Errc::kClosed, 0, "simulated accept"};
  SimConnector& connector = **connector_;
  QueuePairInfo info;
  info.peer = peer_;
  info.detail = "simulated";
  info.max_outbound_reads = std::min(options.outbound_reads, inbound_reads_);
  auto server = std::make_unique<SimQueuePair>(fabric_, options, info);
  info.max_outbound_reads = 0;
  info.max_inbound_reads = inbound_reads_;
  auto client = std::make_shared<std::unique_ptr<SimQueuePair>>(
      std::make_unique<SimQueuePair>(fabric_, connector.options_, info));
  server->connect_to(**client);
  (*client)->connect_to(*server);
  server->expect_first_message();
  std::vector<std::byte> data(options.private_data.begin(), options.private_data.end());
  fabric_.network().schedule(fabric_.network().jitter(), [c = connector_, client, data] {
    if (*c != nullptr) (*c)->accepted(std::move(*client), data);
  });
  return std::unique_ptr<QueuePair>(std::move(server));
}

void SimConnector::start(const std::shared_ptr<SimConnector*>& self) {
  self_ = self;
  if (fabric_.network_.count_connect()) {
    fail(Errc::kTimedOut, "simulated");
    return;
  }
  auto listener = fabric_.listeners_.find(peer_.port());
  if (listener == fabric_.listeners_.end()) {
    fail(Errc::kRefused, "nobody listens");
    return;
  }
  auto options = handler_.on_device(fabric_.device_for(loop_, false));
  if (!options.ok()) {
    fail(options.error().code, "given up");
    return;
  }
  options_ = *options;
  private_data_.assign(options_.private_data.begin(), options_.private_data.end());
  fabric_.network_.schedule(
      fabric_.network_.jitter(), [&fabric = fabric_, self, port = peer_.port()] {
        auto found = fabric.listeners_.find(port);
        if (*self == nullptr || found == fabric.listeners_.end()) return;
        found->second->on_incoming(std::make_unique<SimIncoming>(fabric, self));
      });
}

SimFabric::SimFabric(SimNetwork& network) : network_(network) {
  device_info_.name = "sim";
  device_info_.kind = FabricKind::kSimulated;
  device_info_.max_send_sge = 16;
  device_info_.max_read_sge = 1;
  device_info_.max_inbound_reads = 128;
  device_info_.max_outbound_reads = 128;
  device_info_.max_send_depth = 4096;
  device_info_.send_with_invalidate = true;
  device_info_.remote_invalidation = true;
  device_info_.read_sink_needs_handle = true;
  network_.on_cut([this] { cut_all(); });
}

SimFabric::~SimFabric() {
  network_.on_cut({});
}

Device& SimFabric::device_for(EventLoop& loop, bool server) {
  auto& device = devices_[{&loop, server}];
  if (!device) device = std::make_unique<SimDevice>(*this, device_info_);
  return *device;
}

void SimFabric::remove_server_device(EventLoop& loop) {
  auto found = devices_.find({&loop, true});
  if (found == devices_.end()) return;
  removed_.push_back(std::move(found->second));
  devices_.erase(found);
  removed_.back()->tell_gone();
  cut_all();
}

Result<std::unique_ptr<Listener>> SimFabric::listen(EventLoop&, const SocketAddress& address,
                                                    IncomingHandler& handler) {
  if (!listeners_.emplace(address.port(), &handler).second) {
    return system_error("listen", EADDRINUSE);
  }
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(*this, address));
}

Result<std::unique_ptr<Connector>> SimFabric::connect(EventLoop& loop, const SocketAddress& peer,
                                                      ConnectHandler& handler) {
  auto connector = std::make_unique<SimConnector>(*this, loop, peer, handler);
  auto self = std::make_shared<SimConnector*>(connector.get());
  connector->self_ = self;
  network_.schedule(network_.jitter(), [self] {
    if (*self != nullptr) (*self)->start(self);
  });
  return std::unique_ptr<Connector>(std::move(connector));
}

void SimFabric::forget(EventLoop& loop) {
  devices_.erase({&loop, true});
  devices_.erase({&loop, false});
}

std::size_t SimFabric::exposed_regions() const {
  std::size_t count = 0;
  for (const SimDomain* domain : domains_)
    count += domain->exposed();
  return count;
}

void SimFabric::cut_all() {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, queue_pair] : queue_pairs_)
    ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (std::uint64_t id : ids) {
    auto found = queue_pairs_.find(id);
    if (found != queue_pairs_.end()) found->second->break_down(Errc::kSystem);
  }
}

}  // namespace nfsrdma
