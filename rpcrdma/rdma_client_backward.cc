// SPDX-License-Identifier: Apache-2.0
// RdmaClient: the backward direction (RFC 8167). A call of the server's own is an RDMA_MSG without
// chunks whose RPC type is CALL; its xids are the server's and mean nothing among ours. The reply
// goes the same way, and grants kBackwardCredits calls.
#include <algorithm>

#include "rpcrdma/rdma_client.h"

namespace nfsrdma {

namespace {
constexpr std::uint32_t kRpcCall = 0;  // msg_type (RFC 5531)
constexpr std::uint32_t kRpcReply = 1;
constexpr std::size_t kMaxReplies = kSpareReceives;
}  // namespace

bool RdmaClient::is_backward_call(HeaderVerdict verdict, ByteSpan rpc) const {
  return verdict == HeaderVerdict::kOk && header_.proc == RDMA_MSG && header_.chunks.empty() &&
         rpc.size() >= 8 && load_be32(rpc.data() + 4) != kRpcReply;
}

void RdmaClient::answer_backward_call(ByteSpan rpc) {
  if (state_ != State::kReady) return;
  const std::uint32_t xid = load_be32(rpc.data());
  if (load_be32(rpc.data() + 4) != kRpcCall || xid != header_.xid) {
    ++unmatched_;
    return;
  }
  auto reply = std::find_if(backward_replies_.begin(), backward_replies_.end(),
                            [](const auto& one) { return !one->message_; });
  if (reply == backward_replies_.end()) {
    // Only a server that keeps no account of its credits gets here: it has sent calls while all
    // our replies wait for it to take them.
    if (backward_replies_.size() == kMaxReplies) {
      ++unmatched_;
      return;
    }
    reply = backward_replies_.insert(reply, std::make_unique<BackwardReply>(*this));
  }
  const std::size_t room =
      std::min<std::size_t>(inline_.send - kMinCallHeaderBytes, kMaxBackwardReply);
  Buffer message = pool_->acquire(kMinCallHeaderBytes + room);
  if (!message) {
    ++unmatched_;
    return;
  }
  ChunkLists none;
  none.clear();
  const std::size_t header = encode_header(message.bytes(), xid, kBackwardCredits, RDMA_MSG, none);
  const std::size_t length = handler_.on_backward_call(rpc, message.bytes().subspan(header, room));
  if (length == 0) ++unmatched_;
  // Whoever took the call may have given this connection up.
  if (length == 0 || state_ != State::kReady) return;
  const Sge sge{message.data(), static_cast<std::uint32_t>(header + length),
                endpoint_->lkey(message)};
  (*reply)->message_ = std::move(message);
  WorkRequest request;
  request.opcode = WorkOpcode::kSend;
  request.sges = {&sge, 1};
  request.wr_id = endpoint_->work().add(**reply, 0);
  stats_.inline_bytes += sge.length;
  std::size_t posted = 0;
  if (!queue_pair_->post({&request, 1}, &posted).ok()) queue_pair_->disconnect();
}

void BackwardReply::on_work_done(std::uint32_t, WorkStatus) {
  message_.reset();  // when it failed, on_disconnected() follows
}

}  // namespace nfsrdma
