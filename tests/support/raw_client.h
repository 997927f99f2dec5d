// SPDX-License-Identifier: Apache-2.0
// A client that sends whatever bytes a test wants over a simulated connection: for messages that
// ours never sends, and for hostile ones.
#pragma once

#include <memory>
#include <vector>

#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/rdma_endpoint.h"
#include "tests/support/sim_pair.h"

namespace nfsrdma::test {

class RawClient : private ConnectHandler,
                  private QueuePairHandler,
                  private MessageHandler,
                  private WorkOwner {
 public:
  RawClient(SimPair& pair, bool private_data = true, std::uint32_t inbound_reads = 16)
      : pair_(pair), private_data_(private_data), inbound_reads_(inbound_reads) {
    pool_ = std::make_unique<BufferPool>(*pair.loop, 32u << 20);
    connector_ = std::move(pair.fabric.connect(*pair.loop, SimPair::address(), *this)).value();
    pair_.run();
  }
  ~RawClient() override {
    connector_.reset();
    if (endpoint_) endpoint_->retire(std::move(queue_pair_));
    regions.clear();
    sent_.clear();
    endpoint_.reset();
  }

  bool connected() const { return queue_pair_ != nullptr; }
  bool disconnected = false;
  std::vector<std::vector<std::byte>> inbox;
  std::vector<std::uint32_t> invalidated;
  std::vector<MemoryRegion> regions;

  /// Sends and runs until nothing moves.
  void send(ByteSpan bytes) {
    send_only(bytes);
    pair_.run();
  }
  void send_only(ByteSpan bytes) {
    if (disconnected) return;
    Buffer buffer = pool_->acquire(std::max<std::size_t>(bytes.size(), 1));
    std::copy(bytes.begin(), bytes.end(), buffer.data());
    const Sge sge{buffer.data(), static_cast<std::uint32_t>(bytes.size()), endpoint_->lkey(buffer)};
    WorkRequest request;
    request.sges = {&sge, 1};
    request.wr_id = endpoint_->work().add(*this, 0);
    std::size_t posted = 0;
    (void)queue_pair_->post({&request, 1}, &posted).ok();
    sent_.push_back(std::move(buffer));
  }
  /// Exposes memory; the segment that names it.
  Segment expose(MutableByteSpan bytes, Access access) {
    regions.push_back(
        std::move(endpoint_->domain().register_memory(bytes, access, queue_pair_.get())).value());
    const MemoryRegion& region = regions.back();
    return {region.handle(), static_cast<std::uint32_t>(bytes.size()), region.remote_offset()};
  }
  void cut() { queue_pair_->disconnect(); }

 private:
  Result<QueuePairOptions> on_device(Device& device) override {
    endpoint_ =
        std::move(RdmaEndpoint::create(*pair_.loop, device, *pool_, {8192, 256, 1024}, *this))
            .value();
    endpoint_->ensure_receives(200);
    QueuePairOptions options;
    options.domain = &endpoint_->domain();
    options.completions = &endpoint_->completions();
    options.receives = &endpoint_->receives();
    options.handler = this;
    options.inbound_reads = inbound_reads_;
    data_ = PrivateData{4096, 4096, true}.encode();
    if (private_data_) options.private_data = data_;
    return options;
  }
  void on_connected(std::unique_ptr<QueuePair> queue_pair, ByteSpan) override {
    queue_pair_ = std::move(queue_pair);
  }
  void on_connect_failed(Error, const std::string&) override {}
  void on_disconnected(Error) override { disconnected = true; }
  void on_message(const ReceivedMessage& message) override {
    inbox.emplace_back(message.bytes.begin(), message.bytes.end());
    if (message.invalidated) invalidated.push_back(message.invalidated_handle);
    endpoint_->repost(message.slot);
  }
  void on_work_done(std::uint32_t, WorkStatus) override {}

  SimPair& pair_;
  bool private_data_;
  std::uint32_t inbound_reads_;
  std::array<std::byte, 8> data_{};
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<RdmaEndpoint> endpoint_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::vector<Buffer> sent_;
};

}  // namespace nfsrdma::test
