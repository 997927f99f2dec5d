// SPDX-License-Identifier: Apache-2.0
// An AsyncMount over a fake transport: the test plays the server.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/client/fake_mount.h"
#include "xdr/nfs3.h"

namespace nfsrdma {

inline constexpr std::uint32_t kTestTransfer = 4096;

/// One of a few handles, which live for ever: operations refer to theirs.
inline const FileHandle& test_handle(std::size_t n) {
  static const std::array<FileHandle, 8> kHandles = [] {
    std::array<FileHandle, 8> handles;
    for (std::size_t i = 0; i < handles.size(); ++i) {
      const std::array<std::byte, 4> bytes{std::byte{7}, std::byte{7}, std::byte{7},
                                           static_cast<std::byte>(i)};
      handles[i] = FileHandle(bytes);
    }
    return handles;
  }();
  return kHandles.at(n);
}

class MountedFixture : public testing::Test {
 protected:
  MountedFixture() : loop_(EventLoop::create().value()) {
    FakeMount fake = make_fake_mount(*loop_, test_handle(0), kTestTransfer);
    environment_ = fake.environment;
    mount_ = std::move(fake.mount);
  }
  ~MountedFixture() override { mount_->abort_all(); }

  FakeTransport& transport() {
    if (environment_->transport()->out().empty() && !connected_) {
      environment_->transport()->accept();
      connected_ = true;
    }
    return *environment_->transport();
  }
  /// The connection breaks and comes back; what was out is out again.
  void break_connection() {
    transport().lose();
    environment_->settle();
    environment_->transport()->accept();
  }

  /// The procedure of the oldest call that is out, with its arguments.
  template <typename Args>
  Args next_call(xdr::nfsproc3 procedure, std::size_t index = 0) {
    ClientCall* call = transport().out().at(index);
    message_.assign(call->head.begin(), call->head.end());
    message_.insert(message_.end(), call->payload.begin(), call->payload.end());
    message_.resize((message_.size() + 3) & ~std::size_t{3});
    xdr::Decoder decoder(message_);
    xdr::rpc_msg header;
    EXPECT_TRUE(xdr::decode(decoder, header));
    EXPECT_EQ(header.cbody.proc, static_cast<std::uint32_t>(procedure));
    Args args;
    EXPECT_TRUE(xdr::decode(decoder, args));
    return args;
  }
  template <typename Res>
  void answer(const Res& result) {
    transport().answer([&](xdr::Encoder& encoder) {
      xdr::encode(encoder, result);
      // The fake server sends everything in line.
      for (const xdr::PayloadReference& payload : encoder.payloads()) {
        encoder.fixed_opaque(payload.bytes);
      }
    });
  }

  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }

  std::unique_ptr<EventLoop> loop_;
  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<AsyncMount> mount_;
  OpContext op_;
  TaskGroup group_;
  bool connected_ = false;
  std::vector<std::byte> message_;
};

}  // namespace nfsrdma
