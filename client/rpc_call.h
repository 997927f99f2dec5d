// SPDX-License-Identifier: Apache-2.0
// RpcCall: one RPC call of the client from its arguments to its decoded reply, across as many
// connections as that takes. Pooled by RpcClient; used through an RpcCallLease:
//
//   RpcCallLease call = rpc.prepare(kNfsProgram, kNfsV3, procedure, op);
//   call->arguments(LOOKUP3args{...});
//   NFSRDMA_CO_CHECK_OK(co_await call->run());
//   decode(call->results(), result);        // at once: the reply is gone at the next co_await
#pragma once

#include <array>
#include <coroutine>
#include <optional>
#include <vector>

#include "client/op_context.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/client_transport.h"
#include "xdr/archive.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace nfsrdma {

class RpcClient;
class RpcConnection;

class RpcCall final : public ClientCall, public Cancellable, public ListNode<RpcCall> {
 public:
  /// Room for the RPC header (at most about 440 bytes) and the arguments without payload: two
  /// handles and two names of the longest.
  static constexpr std::size_t kHeadBytes = 3072;
  static constexpr std::size_t kMaxHeaderBytes = 512;

  explicit RpcCall(RpcClient& client) : client_(client) {}

  /// Encodes the arguments behind the header. Payload in them is sent from where it lies.
  template <typename T>
  void arguments(const T& value) {
    xdr::encode(*encoder_, value);
  }
  /// At the arguments, for those that are encoded piece by piece.
  xdr::Encoder& encoder() { return *encoder_; }
  /// READ data and link texts go here.
  void set_sink(MutableByteSpan bytes) { sink = bytes; }
  /// Bytes that the results can take besides what goes into the sink.
  void set_max_results(std::size_t bytes) { max_reply = kReplyHeaderBytes + bytes; }
  /// By this connection and no other: when that is lost, the call fails with Errc::kClosed.
  void set_way(RpcConnection& only) { only_by_ = &only; }

  struct Awaiter {
    RpcCall& call;
    bool await_ready() const { return call.start(); }
    void await_suspend(std::coroutine_handle<> waiter) const { call.waiter_ = waiter; }
    Result<void> await_resume() const { return call.outcome(); }
  };
  /// Sends it and waits for the answer. Succeeds when the server accepted and ran the procedure.
  Awaiter run() { return Awaiter{*this}; }

  /// At the results. Valid until the coroutine next suspends.
  xdr::Decoder& results() { return *results_; }
  /// It may have run by way of a connection that was lost: the answer may be that of a second
  /// execution.
  bool resent() const { return may_have_run_; }

 private:
  friend class RpcClient;
  friend class RpcConnection;
  friend class RpcCallLease;
  static constexpr std::size_t kReplyHeaderBytes = 64;  // RFC 5531, AUTH_NONE verifier, some more

  enum class State : std::uint8_t { kIdle, kWaiting, kSubmitted, kDone };

  bool start();
  Result<void> outcome() const;
  void on_complete() override;
  void on_cancel() override;
  /// Ends it, now, and resumes who waits.
  void finish();
  void finish(Error why);
  void parse_reply();

  RpcClient& client_;
  RpcConnection* connection_ = nullptr;
  RpcConnection* only_by_ = nullptr;
  CancelToken* cancel_ = nullptr;
  std::coroutine_handle<> waiter_;
  State state_ = State::kIdle;
  bool may_have_run_ = false;  // by way of a connection that was lost
  TimePoint started_{};
  TimePoint submitted_{};
  bool failed_ = false;
  Error failure_{};
  std::optional<xdr::Encoder> encoder_;
  std::optional<xdr::Decoder> results_;
  std::array<std::byte, kHeadBytes> head_room_;
  std::vector<std::byte> long_head_room_;  // in use when it has bytes
};

/// Gives the call back when it goes. Only while the call is not under way.
class [[nodiscard]] RpcCallLease {
 public:
  explicit RpcCallLease(RpcCall& call) : call_(&call) {}
  RpcCallLease(RpcCallLease&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  RpcCallLease& operator=(RpcCallLease&&) = delete;
  ~RpcCallLease();
  RpcCall* operator->() const { return call_; }
  RpcCall& operator*() const { return *call_; }

 private:
  RpcCall* call_;
};

}  // namespace nfsrdma
