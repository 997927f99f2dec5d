// SPDX-License-Identifier: Apache-2.0
// StubCall: an RPC call without a transport, so that tests can run procedures directly.
#pragma once

#include <memory>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"

namespace nfsrdma::test {

/// Head, payloads with pads and tail of what `encoder` holds, as they would go over TCP.
inline std::vector<std::byte> flatten(const xdr::Encoder& encoder) {
  std::vector<std::byte> out;
  std::size_t done = 0;
  for (const xdr::PayloadReference& payload : encoder.payloads()) {
    const auto head = encoder.bytes().subspan(done, payload.head_bytes - done);
    out.insert(out.end(), head.begin(), head.end());
    out.insert(out.end(), payload.bytes.begin(), payload.bytes.end());
    out.resize(out.size() + pad4(payload.bytes.size()));
    done = payload.head_bytes;
  }
  const auto tail = encoder.bytes().subspan(done);
  out.insert(out.end(), tail.begin(), tail.end());
  return out;
}

class StubConnection final : public ServerConnection {
 public:
  explicit StubConnection(SocketAddress peer, TransportKind kind = TransportKind::kIwarp)
      : peer_(peer),
        kind_(kind),
        loop_(EventLoop::create().value()),
        pool_(std::make_unique<BufferPool>(*loop_, std::size_t{64} << 20)) {
    static std::uint64_t next = 1;
    id = next++;
  }
  const SocketAddress& peer() const override { return peer_; }
  TransportKind transport() const override { return kind_; }
  void set_transport(TransportKind kind) { kind_ = kind; }
  void set_peer(const SocketAddress& peer) { peer_ = peer; }
  EventLoop& loop() override { return *loop_; }
  BufferPool& buffers() override { return *pool_; }
  bool sends_file_pages() const override { return file_pages; }
  ConnectionInfo describe() const override { return {}; }
  void close() override {}
  Result<void> send_backward(BackwardCall& call) override {
    if (call.message.size() > max_backward) return Error{Errc::kInvalid, 0, "backward call"};
    backward.push_back(&call);
    return {};
  }
  std::size_t max_backward_call() const override { return max_backward; }

  /// As a socket that nothing else looks into.
  bool file_pages = false;
  /// 0: the client cannot be called.
  std::size_t max_backward = 0;
  /// Calls to the client, in their order. Whoever completes one takes it out before.
  std::vector<BackwardCall*> backward;

 private:
  SocketAddress peer_;
  TransportKind kind_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<BufferPool> pool_;
};

class StubCall final : public Call {
 public:
  StubCall(ServerConnection& connection, std::vector<std::byte> arguments)
      : arguments_(std::move(arguments)) {
    connection_ = &connection;
    message_ = arguments_;
  }
  bool reserve_reply(std::size_t bytes) override { return bytes <= kRoom; }
  ~StubCall() override {
    if (room_ != nullptr) spare_room() = std::move(room_);
  }
  MutableByteSpan reply_room() override {
    if (room_ == nullptr) room_ = std::move(spare_room());
    if (room_ == nullptr) room_ = std::make_unique_for_overwrite<std::byte[]>(kRoom);
    return {room_.get(), kRoom};
  }
  void reply(const xdr::Encoder&, Buffer) override {}
  void drop() override {}

 private:
  static constexpr std::size_t kRoom = std::size_t{2} << 20;
  static std::unique_ptr<std::byte[]>& spare_room() {
    static thread_local std::unique_ptr<std::byte[]> spare;
    return spare;
  }
  std::vector<std::byte> arguments_;
  // Neither cleared nor made anew for each call, which would take most of a test's time.
  std::unique_ptr<std::byte[]> room_;
};

}  // namespace nfsrdma::test
