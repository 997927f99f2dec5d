// SPDX-License-Identifier: Apache-2.0
// One end on a FakeProvider: a device, what connections share, and as many of those as a test
// wants.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/verbs/completion_queue.h"
#include "rpcrdma/verbs/queue_pair.h"
#include "rpcrdma/verbs/receive_queue.h"
#include "tests/unit/rpcrdma/verbs/fake_provider.h"

namespace nfsrdma::verbs::test {

class FakeRig : public ::testing::Test, private CompletionHandler, private QueuePairHandler {
 protected:
  static constexpr std::uint32_t kReceives = 8;
  static constexpr std::uint32_t kSends = 16;

  /// Before anything else.
  void start(const VerbsOptions& options = {}, std::uint32_t receives = kReceives) {
    options_ = options;
    channel_ = std::move(CmChannel::create(*loop_, commands_)).value();
    const SocketAddress local = std::move(SocketAddress::parse("192.0.2.1", 0)).value();
    device_ = std::move(VerbsDevice::create(*loop_, *channel_, &provider_.context, local, events_,
                                            commands_, options_))
                  .value();
    domain_ = std::move(device_->create_protection_domain()).value();
    queue_ = std::move(device_->create_completion_queue(*loop_, *this, receives + kSends)).value();
    receives_ = std::move(device_->create_shared_receive_queue(*domain_, receives)).value();
  }
  ~FakeRig() override {
    pairs_.clear();
    receives_.reset();
    queue_.reset();
    domain_.reset();
    device_.reset();
    channel_.reset();
  }
  Result<VerbsQueuePair*> connect(VerbsQueuePair::Role role = VerbsQueuePair::Role::kClient) {
    QueuePairOptions options;
    options.domain = domain_.get();
    options.completions = queue_.get();
    options.receives = receives_.get();
    options.handler = this;
    options.send_depth = kSends;
    NFSRDMA_TRY(CmIdHandle id, channel_->create_id(nobody_));
    NFSRDMA_TRY(std::unique_ptr<VerbsQueuePair> made,
                VerbsQueuePair::create(id.get(), *device_, options, options_, role));
    made->take_id(std::move(id));
    made->set_ready();
    pairs_.push_back(std::move(made));
    return pairs_.back().get();
  }
  /// Posts receives `first` up to `first + count - 1`.
  void post_receives(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i)
      ASSERT_TRUE(receives_->post(i, {memory_.data(), 1, 0}).ok());
  }
  Result<void> send(VerbsQueuePair& pair, WorkOpcode opcode = WorkOpcode::kSend) {
    const Sge sge{memory_.data(), 1, 0};
    WorkRequest request;
    request.opcode = opcode;
    request.sges = {&sge, 1};
    std::size_t posted = 0;
    return pair.post({&request, 1}, &posted);
  }
  void turn() {
    while (loop_->turn(Duration::zero())) {
    }
  }
  void run_handler() { static_cast<CompletionHandler*>(this)->on_completions(); }
  /// Number of the latest queue pair.
  std::uint32_t number() const { return provider_.next_queue_pair - 1; }

  FakeProvider provider_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  CommandThread commands_;
  AsyncEvents events_;
  VerbsOptions options_;
  std::array<std::byte, 64> memory_{};
  std::unique_ptr<CmChannel> channel_;
  std::unique_ptr<VerbsDevice> device_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<SharedReceiveQueue> receives_;
  std::vector<std::unique_ptr<VerbsQueuePair>> pairs_;
  std::vector<WorkCompletion> done_;
  std::size_t batch_ = 16;  // completions that the handler takes in one call; 0: it looks at none
  bool device_gone_ = false;
  int disconnected_ = 0;  // queue pairs that were told

 private:
  struct Nobody final : CmUser {
    void on_cm_event(const CmEvent&) override {}
  };
  void on_completions() override {
    std::array<WorkCompletion, 16> batch;
    const std::size_t got = queue_->poll(std::span(batch).first(batch_));
    done_.insert(done_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(got));
  }
  void on_device_gone() override { device_gone_ = true; }
  void on_disconnected(Error) override { ++disconnected_; }

  Nobody nobody_;
};

}  // namespace nfsrdma::verbs::test
