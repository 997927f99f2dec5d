// SPDX-License-Identifier: Apache-2.0
// One end of a connection for tests that work on the fabric seam itself.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma::test {

/// One end of a connection: its queues and what came out of them.
class ContractEnd final : public CompletionHandler, public QueuePairHandler {
 public:
  static constexpr std::uint32_t kDepth = 64;

  Result<QueuePairOptions> prepare(EventLoop& loop, Device& the_device) {
    device = &the_device;
    // Those of an attempt that came to nothing.
    receives.reset();
    completions.reset();
    domain.reset();
    NFSRDMA_TRY(domain, the_device.create_protection_domain());
    NFSRDMA_TRY(completions, the_device.create_completion_queue(loop, *this, 256));
    NFSRDMA_TRY(receives, the_device.create_shared_receive_queue(*domain, kDepth));
    QueuePairOptions options;
    options.domain = domain.get();
    options.completions = completions.get();
    options.receives = receives.get();
    options.handler = this;
    options.send_depth = send_depth;
    options.inbound_reads = inbound_reads;
    options.outbound_reads = outbound_reads;
    options.private_data = private_data;
    return options;
  }

  void on_completions() override {
    WorkCompletion batch[16];
    for (;;) {
      const std::size_t n = completions->poll(batch);
      for (std::size_t i = 0; i < n; ++i) {
        // What arrived may be overwritten by the next message: keep the bytes.
        if (batch[i].opcode == WorkOpcode::kReceive && batch[i].status == WorkStatus::kSuccess) {
          const std::byte* data = buffers.at(batch[i].wr_id)->data();
          messages.emplace_back(reinterpret_cast<const char*>(data), batch[i].byte_count);
        }
        done.push_back(batch[i]);
      }
      if (n < std::size(batch)) return;
    }
  }
  void on_established() override { ++established; }
  void on_disconnected(Error why) override {
    ++disconnected;
    reason = why;
    completions_at_disconnect = done.size();
  }

  /// The peer may be told of what was exposed without a Send.
  std::function<void()> on_exposed;

  void post_receives(std::size_t count, std::size_t size = 4096) {
    for (std::size_t i = 0; i < count; ++i) {
      buffers.push_back(std::make_unique<std::vector<std::byte>>(size));
      std::vector<std::byte>& buffer = *buffers.back();
      auto region = domain->register_memory(buffer, Access::kLocal, nullptr);
      ASSERT_TRUE(region.ok());
      regions.push_back(std::move(region).value());
      ASSERT_TRUE(receives
                      ->post(buffers.size() - 1, {buffer.data(), static_cast<std::uint32_t>(size),
                                                  regions.back().lkey()})
                      .ok());
    }
  }
  /// Local memory with `text`; lives as long as this.
  Sge text(const std::string& text) {
    local.push_back(std::make_unique<std::vector<std::byte>>(text.size()));
    std::vector<std::byte>& bytes = *local.back();
    if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    auto region = domain->register_memory(bytes, Access::kLocal, nullptr);
    EXPECT_TRUE(region.ok());
    regions.push_back(std::move(region).value());
    return {bytes.data(), static_cast<std::uint32_t>(bytes.size()), regions.back().lkey()};
  }
  MemoryRegion expose(MutableByteSpan bytes, Access access) {
    auto region = domain->register_memory(bytes, access, queue_pair.get());
    EXPECT_TRUE(region.ok());
    if (on_exposed) on_exposed();
    return region.ok() ? std::move(region).value() : MemoryRegion();
  }
  Result<void> post(const WorkRequest& request) {
    std::size_t posted = 0;
    return queue_pair->post({&request, 1}, &posted);
  }
  Result<void> send(std::uint64_t id, const Sge& sge, bool signaled = true) {
    WorkRequest request;
    request.wr_id = id;
    request.signaled = signaled;
    request.sges = {&sge, 1};
    return post(request);
  }
  Result<void> write(std::uint64_t id, const Sge& sge, const MemoryRegion& target,
                     std::uint64_t at = 0, bool signaled = true) {
    WorkRequest request;
    request.wr_id = id;
    request.opcode = WorkOpcode::kWrite;
    request.signaled = signaled;
    request.sges = {&sge, 1};
    request.remote_handle = target.handle();
    request.remote_offset = target.remote_offset() + at;
    return post(request);
  }
  Result<void> read(std::uint64_t id, const MemoryRegion& sink, std::uint32_t at,
                    std::uint32_t size, const MemoryRegion& source, std::uint64_t source_at = 0) {
    const Sge sge{sink.bytes().data() + at, size, sink.lkey()};
    WorkRequest request;
    request.wr_id = id;
    request.opcode = WorkOpcode::kRead;
    request.sges = {&sge, 1};
    request.read_sink = &sink;
    request.remote_handle = source.handle();
    request.remote_offset = source.remote_offset() + source_at;
    return post(request);
  }
  std::vector<std::uint64_t> completed_ids(WorkStatus status) const {
    std::vector<std::uint64_t> ids;
    for (const WorkCompletion& completion : done) {
      if (completion.opcode != WorkOpcode::kReceive && completion.status == status) {
        ids.push_back(completion.wr_id);
      }
    }
    return ids;
  }
  std::size_t sends_done() const {
    return static_cast<std::size_t>(
        std::count_if(done.begin(), done.end(), [](const WorkCompletion& completion) {
          return completion.opcode != WorkOpcode::kReceive;
        }));
  }

  // settings
  std::uint32_t send_depth = 64;
  std::uint32_t inbound_reads = 8;
  std::uint32_t outbound_reads = 8;
  std::vector<std::byte> private_data;

  Device* device = nullptr;
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers;
  std::vector<std::unique_ptr<std::vector<std::byte>>> local;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<SharedReceiveQueue> receives;
  std::vector<MemoryRegion> regions;
  std::unique_ptr<QueuePair> queue_pair;

  std::vector<WorkCompletion> done;
  std::vector<std::string> messages;
  int established = 0;
  int disconnected = 0;
  Error reason{};
  std::size_t completions_at_disconnect = 0;
};

}  // namespace nfsrdma::test
