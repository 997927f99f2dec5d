// SPDX-License-Identifier: Apache-2.0
#include "client/call_endpoint.h"

#include <algorithm>
#include <array>
#include <vector>

#include "rpcrdma/tcp_server.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

/// A server needs one. Anybody can connect: who comes last gets in, in place of whoever has never
/// called well, or else of the oldest.
constexpr std::size_t kMostConnections = 16;
/// More than any callback has.
constexpr std::size_t kLongestCall = 16 << 10;
constexpr std::size_t kBuffers = 1 << 20;

TcpServerLimits limits() {
  TcpServerLimits out;
  out.max_record = kLongestCall;
  out.max_connections = 2 * kMostConnections;  // those that are about to end included
  out.max_calls = 16;
  out.max_output = 64 << 10;
  return out;
}

class TcpCallEndpoint final : public CallEndpoint, private CallHandler {
 public:
  TcpCallEndpoint(EventLoop& loop, CallAnswer answer)
      : answer_(std::move(answer)), pool_(loop, kBuffers), server_(loop, pool_, *this, limits()) {}

  Result<void> listen(EventLoop& loop, const SocketAddress& address) {
    auto accepted = [this](UniqueFd socket) { server_.adopt(std::move(socket)); };
    NFSRDMA_TRY(listener_, TcpListener::listen(loop, address, std::move(accepted)));
    return {};
  }
  const SocketAddress& address() const override { return listener_->address(); }

 private:
  struct Caller {
    ServerConnection* connection;
    bool answered = false;
  };

  void on_connection_opened(ServerConnection& connection) override {
    if (callers_.size() >= kMostConnections) {
      auto leaves = std::find_if(callers_.begin(), callers_.end(),
                                 [](const Caller& caller) { return !caller.answered; });
      if (leaves == callers_.end()) leaves = callers_.begin();
      leaves->connection->close();
      callers_.erase(leaves);
    }
    callers_.push_back({&connection});
  }
  void on_connection_closed(ServerConnection& connection) override {
    std::erase_if(callers_, [&](const Caller& one) { return one.connection == &connection; });
  }
  void on_call(Call& call) override {
    std::array<std::byte, Call::kInlineReply> answer;
    const std::size_t bytes = answer_(call.message(), answer);
    if (bytes == 0) return call.drop();
    if (is_success(ByteSpan(answer).first(bytes))) note_answered(call.connection());
    xdr::Encoder reply(call.reply_room());
    reply.fixed_opaque(ByteSpan(answer).first(bytes));
    call.reply(reply, {});
  }

  static bool is_success(ByteSpan reply) {
    xdr::Decoder in(reply);
    xdr::rpc_msg message;
    if (!xdr::decode(in, message) || message.rbody.stat != xdr::reply_stat::MSG_ACCEPTED)
      return false;
    return message.rbody.areply.stat == xdr::accept_stat::SUCCESS;
  }
  void note_answered(const ServerConnection& connection) {
    for (Caller& caller : callers_)
      caller.answered |= caller.connection == &connection;
  }

  CallAnswer answer_;
  std::vector<Caller> callers_;  // the oldest first
  BufferPool pool_;
  TcpServer server_;
  std::unique_ptr<TcpListener> listener_;
};

}  // namespace

Result<std::unique_ptr<CallEndpoint>> make_tcp_call_endpoint(EventLoop& loop,
                                                             const SocketAddress& address,
                                                             CallAnswer answer) {
  auto made = std::make_unique<TcpCallEndpoint>(loop, std::move(answer));
  NFSRDMA_CHECK_OK(made->listen(loop, address));
  return std::unique_ptr<CallEndpoint>(std::move(made));
}

}  // namespace nfsrdma
