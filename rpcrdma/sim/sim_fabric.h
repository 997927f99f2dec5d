// SPDX-License-Identifier: Apache-2.0
// SimFabric: the seam (fabric.h) inside one process and one thread, on a SimNetwork. It checks
// what a real adapter checks (handles, bounds, access, scope, ORD, message sizes) and what a test
// wants to know besides: whether anybody broke a rule (violations()).
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rpcrdma/fabric.h"
#include "rpcrdma/sim/sim_network.h"

namespace nfsrdma {

class SimDevice;
class SimFabric;
class SimQueuePair;

/// A registered region as the "adapter" sees it.
struct SimRegion {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::uint64_t offset = 0;
  Access access = Access::kLocal;
  const QueuePair* scope = nullptr;
};

class SimDomain final : public ProtectionDomain {
 public:
  explicit SimDomain(SimFabric& fabric);
  ~SimDomain() override;
  Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access access,
                                       const QueuePair* scope) override;
  /// The bytes behind a remote reference; nullptr when it must be refused.
  std::byte* find(std::uint32_t handle, std::uint64_t offset, std::uint64_t length, Access access,
                  const QueuePair* stream);
  void invalidate(std::uint32_t handle);
  bool covers_locally(const Sge& sge) const;
  /// Regions that the peer could reach now.
  std::size_t exposed() const;

 private:
  void deregister(MemoryRegion& region) override;

  SimFabric& fabric_;
  std::map<std::uint32_t, SimRegion> regions_;
};

class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(SimNetwork& network, CompletionHandler& handler)
      : network_(network), handler_(handler), alive_(std::make_shared<bool>(true)) {}
  std::size_t poll(std::span<WorkCompletion> out) override;
  void push(const WorkCompletion& completion);
  /// Expires with the queue.
  std::weak_ptr<bool> life() const { return alive_; }
  /// Tells the handler now what it would hear later.
  void notify() {
    if (!queue_.empty()) handler_.on_completions();
  }

 private:
  SimNetwork& network_;
  CompletionHandler& handler_;
  std::deque<WorkCompletion> queue_;
  std::shared_ptr<bool> alive_;
};

class SimReceiveQueue final : public SharedReceiveQueue {
 public:
  struct Posted {
    std::uint64_t wr_id;
    Sge buffer;
  };
  explicit SimReceiveQueue(std::uint32_t depth) : depth_(depth) {}
  Result<void> post(std::uint64_t wr_id, Sge buffer) override;
  std::uint32_t depth() const override { return depth_; }
  std::deque<Posted> queue;

 private:
  std::uint32_t depth_;
};

class SimDevice final : public Device {
 public:
  SimDevice(SimFabric& fabric, DeviceInfo info) : fabric_(fabric), info_(std::move(info)) {}
  const DeviceInfo& info() const override { return info_; }
  DeviceInfo& info() { return info_; }
  Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() override;
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(EventLoop& loop,
                                                                   CompletionHandler& handler,
                                                                   std::uint32_t depth) override;
  Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(
      ProtectionDomain& domain, std::uint32_t depth) override;
  /// Tells who made completion queues that the device is gone.
  void tell_gone();

 private:
  struct Queue {
    std::weak_ptr<bool> life;
    CompletionHandler* handler;
  };
  std::vector<Queue> queues_;
  SimFabric& fabric_;
  DeviceInfo info_;
};

/// One of the two ends of a connection.
class SimQueuePair final : public QueuePair {
 public:
  SimQueuePair(SimFabric& fabric, const QueuePairOptions& options, const QueuePairInfo& info);
  ~SimQueuePair() override;

  Result<void> post(std::span<const WorkRequest> requests, std::size_t* posted) override;
  void disconnect() override;
  const QueuePairInfo& info() const override { return info_; }

  void connect_to(SimQueuePair& peer);
  /// Responder: the handler hears of the peer's first message.
  void expect_first_message() { awaits_first_message_ = true; }
  void break_down(Errc why);
  SimDomain& domain() { return domain_; }
  std::uint64_t id() const { return id_; }

 private:
  struct Work {
    WorkRequest request;
    std::vector<Sge> sges;
    std::optional<WorkStatus> done;
  };
  void pump();
  void execute();
  void execute_read();
  WorkStatus run(Work& work);
  WorkStatus run_send(Work& work);
  WorkStatus run_write(Work& work);
  WorkStatus run_read(Work& work);
  void finish(Work& work, WorkStatus status);
  void report();
  void fail_peer();
  SimQueuePair* peer();

  SimFabric& fabric_;
  SimDomain& domain_;
  SimCompletionQueue& completions_;
  SimReceiveQueue& receives_;
  QueuePairHandler& handler_;
  QueuePairInfo info_;
  std::uint32_t send_depth_;
  std::uint64_t id_;
  std::uint64_t peer_id_ = 0;
  std::deque<Work> works_;         // posted and not reported, in order
  std::size_t started_ = 0;        // of works_: handed to the "wire"
  std::deque<std::size_t> reads_;  // indices (absolute) of Reads under way
  std::uint64_t retired_ = 0;      // works reported so far: works_[i] has absolute index retired_+i
  bool pump_scheduled_ = false;
  bool broken_ = false;
  bool awaits_first_message_ = false;
};

class SimFabric final : public Fabric {
 public:
  explicit SimFabric(SimNetwork& network);
  ~SimFabric() override;

  /// What devices made from now on can do.
  DeviceInfo& device_info() { return device_info_; }
  SimNetwork& network() { return network_; }
  /// Rules that users of the fabric broke: sent without a receive posted, too many Reads, ...
  const std::vector<std::string>& violations() const { return violations_; }
  void violation(std::string what) { violations_.push_back(std::move(what)); }
  /// From now on at most `count` regions can be reachable at the same time (a limit of the device).
  void limit_exposed_regions(std::size_t count) { max_exposed_ = count; }
  /// From now on nothing can be exposed, as with a device that is gone when nobody has been told
  /// yet.
  void refuse_exposure() { exposes_ = false; }
  /// Takes the device of `loop`'s server side away, with every connection. The next connection
  /// finds another one.
  void remove_server_device(EventLoop& loop);
  /// The device of `loop`'s server side, once it has one: what it says of itself may change.
  DeviceInfo& server_device_info(EventLoop& loop) { return devices_.at({&loop, true})->info(); }
  std::size_t domains() const { return domains_.size(); }
  /// Breaks every connection, as a dead network does.
  void cut_all();
  using Fabric::exposed_regions;
  /// Regions of any domain that a peer could reach now.
  std::size_t exposed_regions() const;
  std::size_t queue_pairs() const { return queue_pairs_.size(); }

  FabricKind kind() const override { return FabricKind::kSimulated; }
  Result<void> available() const override { return {}; }
  Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const SocketAddress& address,
                                           IncomingHandler& handler) override;
  Result<std::unique_ptr<Connector>> connect(EventLoop& loop, const SocketAddress& peer,
                                             ConnectHandler& handler) override;
  /// By hand alone: a test's loops last as long as this.
  void forget(EventLoop& loop) override;

 private:
  friend class SimDomain;
  friend class SimQueuePair;
  friend class SimListener;
  friend class SimConnector;
  friend class SimConnectRequest;

  Device& device_for(EventLoop& loop, bool server);

  SimNetwork& network_;
  DeviceInfo device_info_;
  std::map<std::pair<EventLoop*, bool>, std::unique_ptr<SimDevice>> devices_;
  std::vector<std::unique_ptr<SimDevice>> removed_;
  std::map<std::uint16_t, IncomingHandler*> listeners_;
  std::unordered_map<std::uint64_t, SimQueuePair*> queue_pairs_;
  std::set<SimDomain*> domains_;
  std::uint64_t next_id_ = 1;
  std::size_t max_exposed_ = SIZE_MAX;
  bool exposes_ = true;
  std::vector<std::string> violations_;
};

}  // namespace nfsrdma
