// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/responder_backward.h"

#include <algorithm>

#include "rpcrdma/responder.h"
#include "rpcrdma/tap_requests.h"

namespace nfsrdma {

ResponderBackward::ResponderBackward(ResponderConnection& connection)
    : connection_(connection),
      calls_(connection.loop(), *this, static_cast<std::uint32_t>(connection.id) << 16,
             BackwardCalls::Flow::kCredits, kMost) {
  for (Send& send : sends_)
    send.owner = this;
}

ResponderBackward::~ResponderBackward() {
  NFSRDMA_CHECK(receives_ == 0);
}

bool ResponderBackward::transmit(std::uint32_t xid, ByteSpan message) {
  ResponderConnection& c = connection_;
  // Replies that wait were there first.
  if (!c.usable() || c.draining_ || !c.senders_.empty() || c.send_queue_.room() == 0) return false;
  auto send = std::find_if(sends_.begin(), sends_.end(), [](Send& s) { return !s.buffer; });
  if (send == sends_.end()) return false;
  // It cannot wait: under load it would never come, and a client that nobody asks for its
  // delegations loses them.
  Buffer buffer = c.shard_.pool().acquire(kMinCallHeaderBytes + message.size());
  if (!buffer) return false;
  c.shard_.cover_credits(1);
  if (c.shard_.ledger().take(1) == 0) return false;
  ++receives_;

  ChunkLists none;
  none.clear();
  const std::size_t header = encode_header(buffer.bytes(), xid, kMost, RDMA_MSG, none);
  std::copy(message.begin(), message.end(), buffer.data() + header);
  store_be32(buffer.data() + header, xid);
  RdmaEndpoint& endpoint = c.shard_.endpoint();
  const Sge sge{buffer.data(), static_cast<std::uint32_t>(header + message.size()),
                endpoint.lkey(buffer)};
  send->buffer = std::move(buffer);
  c.send_queue_.reserve(1);
  c.stats_.inline_bytes += sge.length;
  WorkRequest request;
  request.opcode = WorkOpcode::kSend;
  request.sges = {&sge, 1};
  request.wr_id = endpoint.work().add(*send, 0);
  if (c.tap != nullptr) tap_requests(*c.tap, {&request, 1});
  std::size_t posted = 0;
  if (!c.queue_pair_->post({&request, 1}, &posted).ok()) c.cut();
  return true;
}

void ResponderBackward::Send::on_work_done(std::uint32_t, WorkStatus status) {
  ResponderConnection& c = owner->connection_;
  buffer.reset();
  c.send_queue_.release(1);
  if (status != WorkStatus::kSuccess) c.cut();
  c.pump_sends();
  c.pump_reads();
}

void ResponderBackward::on_answered() {
  --receives_;
  connection_.shard_.ledger().give_back(1);
}

void ResponderBackward::tear_down() {
  for (Send& send : sends_) {
    if (!send.buffer) continue;
    connection_.shard_.endpoint().work().forget(send);
    send.buffer.reset();
  }
  connection_.shard_.ledger().give_back(receives_);
  receives_ = 0;
  calls_.close();
}

}  // namespace nfsrdma
