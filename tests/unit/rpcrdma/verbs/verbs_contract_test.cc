// SPDX-License-Identifier: Apache-2.0
// The contract of the seam on verbs, on the device of NFSRDMA_VERBS_ADDR: with a shared receive
// queue, with receives dealt out to the queue pairs, in a loop that polls, and with exposure by
// memory windows, where the device has them (NFSRDMA_VERBS_WINDOWS=1 says that it must).
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <vector>

#include "rpcrdma/base/lasting_memory.h"
#include "rpcrdma/base/unique_fd.h"
#include "rpcrdma/verbs/memlock_account.h"
#include "rpcrdma/verbs/verbs_fabric.h"
#include "tests/support/fabric_contract.h"

namespace nfsrdma::test {
namespace {

using namespace std::chrono_literals;

class VerbsWorld final : public ContractWorld {
 public:
  VerbsWorld(SocketAddress address, const verbs::VerbsOptions& options, Duration spin)
      : address_(address),
        loop_(std::move(EventLoop::create()).value()),
        fabric_(verbs::make_fabric(options)) {
    loop_->set_spin(spin);
  }
  EventLoop& loop() override { return *loop_; }
  Fabric& fabric() override { return *fabric_; }
  SocketAddress listen_address() override { return address_; }
  bool step() override {
    // A while: longer than the time in which a broken connection must drain.
    const auto end = std::chrono::steady_clock::now() + 4s;
    while (std::chrono::steady_clock::now() < end) {
      if (loop_->turn(100ms)) return true;
    }
    return false;
  }
  void exposed() override {
    // Windows are bound when the loop comes round.
    while (loop_->turn(Duration::zero())) {
    }
  }

 private:
  SocketAddress address_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Fabric> fabric_;
};

ContractFabric fabric_with(const char* name, const verbs::VerbsOptions& options,
                           Duration spin = {}) {
  return {name, [options, spin]() -> std::unique_ptr<ContractWorld> {
            const char* address = std::getenv("NFSRDMA_VERBS_ADDR");
            if (address == nullptr) return nullptr;
            auto parsed = SocketAddress::parse(address, 0);
            if (!parsed.ok()) return nullptr;
            return std::make_unique<VerbsWorld>(*parsed, options, spin);
          }};
}

verbs::VerbsOptions per_queue_pair() {
  verbs::VerbsOptions options;
  options.per_queue_pair_receives = true;
  return options;
}
verbs::VerbsOptions with_windows() {
  verbs::VerbsOptions options;
  options.windows = verbs::WindowUse::kAlways;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Verbs, FabricContract,
                         testing::Values(fabric_with("shared", {}),
                                         fabric_with("per_queue_pair", per_queue_pair()),
                                         fabric_with("polled", {}, 10ms),
                                         fabric_with("windows", with_windows())),
                         contract_name);

/// What is so with memory windows alone.
class VerbsWindows : public FabricContract {
 protected:
  void SetUp() override {
    FabricContract::SetUp();
    if (world_ == nullptr) return;
    establish(60);
    if (client_.device->info().remote_invalidation) return;
    ASSERT_EQ(std::getenv("NFSRDMA_VERBS_WINDOWS"), nullptr) << "the device has no windows";
    GTEST_SKIP() << "the device has no memory windows of type 2";
  }
  /// The peer writes there; does it get away with it?
  bool peer_writes(std::uint32_t handle, std::uint64_t offset) {
    const Sge sge = server_.text("written");
    WorkRequest request;
    request.wr_id = 900;
    request.opcode = WorkOpcode::kWrite;
    request.sges = {&sge, 1};
    request.remote_handle = handle;
    request.remote_offset = offset;
    server_.done.clear();
    EXPECT_TRUE(server_.post(request).ok());
    EXPECT_TRUE(until([&] { return !server_.done.empty() && server_.done.back().wr_id == 900; }));
    return server_.done.back().status == WorkStatus::kSuccess;
  }
  bool peer_writes(const MemoryRegion& region) {
    return peer_writes(region.handle(), region.remote_offset());
  }
  void peer_invalidates(const MemoryRegion& region) {
    const std::size_t before = client_.messages.size();
    const Sge sge = server_.text("gone");
    WorkRequest request;
    request.opcode = WorkOpcode::kSendWithInvalidate;
    request.sges = {&sge, 1};
    request.remote_handle = region.handle();
    ASSERT_TRUE(server_.post(request).ok());
    ASSERT_TRUE(until([&] { return client_.messages.size() > before; }));
  }
};

TEST_P(VerbsWindows, ABoundWindowThatIsWithdrawnIsOutOfReach) {
  std::vector<std::byte> target(4096);
  MemoryRegion region = client_.expose(target, Access::kRemoteWrite);
  ASSERT_TRUE(peer_writes(region));
  EXPECT_EQ(target[0], std::byte{'w'});
  target.assign(4096, std::byte{});
  const std::uint32_t handle = region.handle();
  const std::uint64_t offset = region.remote_offset();
  region.reset();
  EXPECT_FALSE(peer_writes(handle, offset));
  EXPECT_EQ(target, std::vector<std::byte>(4096));
}

TEST_P(VerbsWindows, WithdrawingOneLeavesTheOthers) {
  std::vector<std::byte> first(100), second(100);
  MemoryRegion one = client_.expose(first, Access::kRemoteWrite);
  const MemoryRegion other = client_.expose(second, Access::kRemoteWrite);
  one.reset();
  EXPECT_TRUE(peer_writes(other));
  EXPECT_EQ(second[0], std::byte{'w'});
  EXPECT_EQ(client_.disconnected, 0);
}

TEST_P(VerbsWindows, ThePeerInvalidatesOftenAndEachHandleOnce) {
  std::vector<std::byte> target(100);
  std::set<std::uint32_t> handles;
  for (int i = 0; i < 40; ++i) {
    MemoryRegion region = client_.expose(target, Access::kRemoteWrite);
    EXPECT_TRUE(handles.insert(region.handle()).second) << "a handle came back";
    ASSERT_TRUE(peer_writes(region));
    peer_invalidates(region);
    EXPECT_TRUE(client_.done.back().invalidated);
    EXPECT_EQ(client_.done.back().invalidated_handle, region.handle());
  }
  EXPECT_EQ(client_.disconnected, 0);
}

TEST_P(VerbsWindows, LastingMemoryIsExposedInPartsAndRegisteredOnce) {
  std::vector<std::byte> block(1 << 20);
  const LastingMemory lasting(block);
  const std::uint64_t before = verbs::MemlockAccount::of_process().pinned();
  std::uint64_t with_block = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const MutableByteSpan part = MutableByteSpan(block).subspan(i * 65536, 65536);
    const MemoryRegion region = client_.expose(part, Access::kRemoteWrite);
    const std::uint64_t now = verbs::MemlockAccount::of_process().pinned();
    if (i == 0) with_block = now;
    EXPECT_GE(now, before + block.size());
    EXPECT_GT(with_block + block.size(), now) << "registered again";
    ASSERT_TRUE(peer_writes(region));
    EXPECT_EQ(part[0], std::byte{'w'});
    peer_invalidates(region);
  }
  // rxe looks at the bounds of the region alone, which is why nothing but this test has windows
  // there.
  if (client_.device->info().name.starts_with("rxe")) return;
  const MemoryRegion region =
      client_.expose(MutableByteSpan(block).first(100), Access::kRemoteWrite);
  block[100] = std::byte{};
  EXPECT_FALSE(peer_writes(region.handle(), region.remote_offset() + 98))
      << "the rest of the block is in reach";
  EXPECT_EQ(block[100], std::byte{});
}

TEST_P(VerbsWindows, MemoryThatIsExposedByItselfIsPinnedNoLonger) {
  std::vector<std::byte> target(1 << 20);
  const std::uint64_t before = verbs::MemlockAccount::of_process().pinned();
  {
    const MemoryRegion region = client_.expose(target, Access::kRemoteWrite);
    EXPECT_GE(verbs::MemlockAccount::of_process().pinned(), before + target.size());
    ASSERT_TRUE(peer_writes(region));
  }
  // server_.text() of the write stays.
  EXPECT_LT(verbs::MemlockAccount::of_process().pinned(), before + target.size());
}

TEST_P(VerbsWindows, WhatIsWithdrawnBeforeItIsBoundNeverWas) {
  std::vector<std::byte> target(100);
  auto region =
      client_.domain->register_memory(target, Access::kRemoteWrite, client_.queue_pair.get());
  ASSERT_TRUE(region.ok());
  const std::uint32_t handle = region->handle();
  const std::uint64_t offset = region->remote_offset();
  region->reset();
  ASSERT_TRUE(client_.send(1, client_.text("x")).ok());
  ASSERT_TRUE(until([&] { return server_.messages.size() == 1; }));
  EXPECT_FALSE(peer_writes(handle, offset));
  EXPECT_EQ(target, std::vector<std::byte>(100));
}

TEST_P(VerbsWindows, MoreThanAChainOfThemIsBoundBeforeTheSend) {
  std::vector<std::byte> target(64 * 100);
  std::vector<MemoryRegion> regions;
  for (std::size_t i = 0; i < 64; ++i) {
    auto region = client_.domain->register_memory(MutableByteSpan(target).subspan(i * 100, 100),
                                                  Access::kRemoteWrite, client_.queue_pair.get());
    ASSERT_TRUE(region.ok());
    regions.push_back(std::move(region).value());
  }
  ASSERT_TRUE(client_.send(1, client_.text("x")).ok());
  ASSERT_TRUE(until([&] { return server_.messages.size() == 1; }));
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(peer_writes(regions[i]));
    EXPECT_EQ(target[i * 100], std::byte{'w'});
  }
}

TEST_P(VerbsWindows, TooManyWaitForRoom) {
  std::vector<std::byte> target(100);
  std::vector<MemoryRegion> regions;
  for (;;) {
    auto region =
        client_.domain->register_memory(target, Access::kRemoteWrite, client_.queue_pair.get());
    if (!region.ok()) {
      EXPECT_EQ(region.error().code, Errc::kExhausted);
      break;
    }
    regions.push_back(std::move(region).value());
    ASSERT_LT(regions.size(), 10000U);
  }
  EXPECT_GE(regions.size(), 2 * client_.send_depth);
  // A Send has its place nevertheless, and when it is done there is room again.
  ASSERT_TRUE(client_.send(1, client_.text("x")).ok());
  ASSERT_TRUE(until([&] { return client_.sends_done() == 1; }));
  regions.push_back(client_.expose(target, Access::kRemoteWrite));
  EXPECT_TRUE(peer_writes(regions.back()));
}

TEST_P(VerbsWindows, TheEndOfTheConnectionEndsThem) {
  std::vector<std::byte> target(100);
  MemoryRegion bound = client_.expose(target, Access::kRemoteWrite);
  auto waiting =
      client_.domain->register_memory(target, Access::kRemoteWrite, client_.queue_pair.get());
  ASSERT_TRUE(waiting.ok());
  client_.queue_pair.reset();
  ASSERT_TRUE(until([&] { return server_.disconnected == 1; }));
  bound.reset();
  waiting->reset();
}

INSTANTIATE_TEST_SUITE_P(Verbs, VerbsWindows,
                         testing::Values(fabric_with("windows", with_windows())), contract_name);

/// Every seventh of the ports that Linux picks from, held by TCP.
std::vector<UniqueFd> hold_ports(SocketAddress address) {
  const rlimit limit{8192, 8192};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> held;
  for (std::uint16_t port = 32768; port < 61000; port += 7) {
    address.set_port(port);
    UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(fd.get(), address.data(), address.length()) == 0) held.push_back(std::move(fd));
  }
  EXPECT_GT(held.size(), 2000U);
  return held;
}

/// siw needs TCP's port of the number that the kernel's RDMA connection manager has picked.
class VerbsPorts : public FabricContract {};

TEST_P(VerbsPorts, ThoseThatTcpHasAreGoneRound) {
  const std::vector<UniqueFd> held = hold_ports(world_->listen_address());
  for (int round = 0; round < 30; ++round) {
    connected_ = false;
    ASSERT_NO_FATAL_FAILURE(establish()) << "round " << round;
    client_.queue_pair.reset();
    server_.queue_pair.reset();
    connector_.reset();
    for (ContractEnd* end : {&client_, &server_}) {
      release(*end);
      end->buffers.clear();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verbs, VerbsPorts,
                         testing::Values(fabric_with("per_queue_pair", per_queue_pair())),
                         contract_name);

}  // namespace
}  // namespace nfsrdma::test
