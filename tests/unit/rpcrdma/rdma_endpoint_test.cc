// SPDX-License-Identifier: Apache-2.0
// RdmaEndpoint on a device whose completion queue is never empty, or holds what a test puts there.
#include "rpcrdma/rdma_endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/support/loop_owner.h"

namespace nfsrdma::test {
namespace {

/// Its completions are links of chains, which nobody has to be told of.
struct BusyDevice final : Device {
  std::size_t waiting = 0;
  std::size_t taken = 0;
  CompletionHandler* handler = nullptr;
  DeviceInfo device_info;

  struct Domain final : ProtectionDomain {
    Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access, const QueuePair*) override {
      return MemoryRegion(*this, bytes, 1, 1, 0, 1);
    }
    void deregister(MemoryRegion&) override {}
  };
  struct Completions final : CompletionQueue {
    explicit Completions(BusyDevice& d) : device(d) {}
    std::size_t poll(std::span<WorkCompletion> out) override {
      const std::size_t count = std::min(out.size(), device.waiting);
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = {};
        out[i].wr_id = make_wr_id(WorkKind::kLink, 0, 0);
      }
      device.waiting -= count;
      device.taken += count;
      return count;
    }
    BusyDevice& device;
  };
  struct Receives final : SharedReceiveQueue {
    Result<void> post(std::uint64_t, Sge) override { return {}; }
    std::uint32_t depth() const override { return 16; }
  };
  struct Connection final : QueuePair {
    Result<void> post(std::span<const WorkRequest>, std::size_t*) override { return {}; }
    void disconnect() override {}
    const QueuePairInfo& info() const override { return qp_info; }
    QueuePairInfo qp_info;
  };

  const DeviceInfo& info() const override { return device_info; }
  Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() override {
    return std::unique_ptr<ProtectionDomain>(std::make_unique<Domain>());
  }
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(EventLoop&, CompletionHandler& h,
                                                                   std::uint32_t) override {
    handler = &h;
    return std::unique_ptr<CompletionQueue>(std::make_unique<Completions>(*this));
  }
  Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(ProtectionDomain&,
                                                                          std::uint32_t) override {
    return std::unique_ptr<SharedReceiveQueue>(std::make_unique<Receives>());
  }
};

class RdmaEndpointTest : public ::testing::Test, protected LoopOwner, private MessageHandler {
 protected:
  static constexpr std::size_t kMuch = 100'000;

  void on_message(const ReceivedMessage&) override {}

  BusyDevice device_;
  BufferPool pool_{*loop_, 4u << 20};
  std::unique_ptr<RdmaEndpoint> endpoint_ =
      std::move(RdmaEndpoint::create(*loop_, device_, pool_, {}, *this)).value();
};

TEST_F(RdmaEndpointTest, OthersHaveTheirTurnWhileCompletionsNeverEnd) {
  device_.waiting = kMuch;
  device_.handler->on_completions();
  EXPECT_GT(device_.taken, 0u);
  EXPECT_LT(device_.taken, kMuch / 10);
  const std::size_t before = device_.taken;
  bool posted = false;
  loop_->post([&] { posted = true; });
  loop_->turn(Duration::zero());
  EXPECT_TRUE(posted);
  EXPECT_LT(device_.taken - before, kMuch / 10);
}

TEST_F(RdmaEndpointTest, WhatWasLeftIsTakenWithoutBeingToldOfAgain) {
  device_.waiting = kMuch;
  device_.handler->on_completions();
  EXPECT_TRUE(turn_until([&] { return device_.waiting == 0; }));
  EXPECT_EQ(device_.taken, kMuch);
  EXPECT_EQ(endpoint_->stale_completions(), 0u);
}

TEST_F(RdmaEndpointTest, ARetiredConnectionLeavesNoneBehind) {
  device_.waiting = kMuch;
  endpoint_->retire(std::make_unique<BusyDevice::Connection>());
  EXPECT_EQ(device_.taken, kMuch);
}

TEST_F(RdmaEndpointTest, AnEndpointThatGoesIsNotComeBackTo) {
  device_.waiting = kMuch;
  device_.handler->on_completions();
  endpoint_.reset();
  const std::size_t before = device_.taken;
  loop_->turn(Duration::zero());
  EXPECT_EQ(device_.taken, before);
}

}  // namespace
}  // namespace nfsrdma::test
