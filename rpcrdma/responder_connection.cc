// SPDX-License-Identifier: Apache-2.0
// ResponderConnection: posts the Reads and replies of its calls within the limits of the queue
// pair (ORD, send queue depth), in order of arrival, and takes everything apart when it ends.
#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/tap_requests.h"

namespace nfsrdma {

namespace {
enum : std::uint32_t { kReadTag, kSendTag };

TransportKind transport_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::kVerbs:
      return TransportKind::kVerbs;
    case FabricKind::kIwarp:
      return TransportKind::kIwarp;
    case FabricKind::kSimulated:
      break;
  }
  return TransportKind::kSimulated;
}
}  // namespace

ResponderConnection::ResponderConnection(ResponderShard& shard, const SocketAddress& peer,
                                         const PrivateData& theirs)
    : shard_(shard),
      peer_(peer),
      since_(shard.server().loop_.now()),
      last_heard_(since_),
      send_queue_(std::min(shard.server().limits_.send_depth, shard.device_.info().max_send_depth)),
      credits_(shard.ledger()),
      read_watch_([this] { watch_reads(); }),
      sink_timer_([this] { pump_reads(); }) {
  const RdmaServerLimits& limits = shard.server().limits_;
  const PrivateData ours{limits.inline_bytes, limits.inline_bytes, true};
  inline_ = InlineThresholds::negotiate(ours, theirs);
  invalidate_ = limits.remote_invalidation && theirs.remote_invalidation;
  id = next_connection_id();
  buffer_share.holder = this;
}

ResponderConnection::~ResponderConnection() {
  NFSRDMA_CHECK(open_count_ == 0);
}

bool ResponderConnection::reserve_credits() {
  shard_.cover_credits(shard_.ledger().limits().initial);
  return credits_.open();
}

void ResponderConnection::start(std::unique_ptr<QueuePair> queue_pair) {
  queue_pair_ = std::move(queue_pair);
  queue_pair_->context = this;
  info_ = queue_pair_->info();
  outbound_reads_ = std::min(info_.max_outbound_reads, shard_.server().limits_.outbound_reads);
  buffers().add_holder(*this);
  shard_.server().handler_.on_connection_opened(*this);
}

bool ResponderConnection::invalidates() const {
  return invalidate_ && shard_.device_.info().send_with_invalidate;
}

TransportKind ResponderConnection::transport() const {
  return transport_of(shard_.device_.info().kind);
}
EventLoop& ResponderConnection::loop() {
  return shard_.server().loop_;
}
BufferPool& ResponderConnection::buffers() {
  return shard_.pool();
}

ConnectionInfo ResponderConnection::describe() const {
  ConnectionInfo out;
  out.id = id;
  out.transport = transport();
  out.device = shard_.device_.info().name;
  out.local = info_.local;
  out.peer = peer_;
  out.inline_send = inline_.send;
  out.inline_recv = inline_.receive;
  out.credits = credits_.granted();
  out.calls_in_progress = open_count_;
  out.ord = outbound_reads_;
  out.ird = info_.max_inbound_reads;
  out.remote_invalidation = invalidates();
  out.crc = info_.crc;
  out.detail = info_.detail;
  out.age_seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(shard_.server_.loop_.now() - since_)
          .count());
  out.stats = stats_;
  return out;
}

Result<void> ResponderConnection::send_backward(BackwardCall& call) {
  if (!usable() || draining_) return Error{Errc::kClosed, 0, "backward call"};
  if (call.message.size() > max_backward_call()) {
    return Error{Errc::kInvalid, EMSGSIZE, "backward call: longer than the inline threshold"};
  }
  if (backward_ == nullptr) backward_ = std::make_unique<ResponderBackward>(*this);
  return backward_->calls().submit(call);
}

std::size_t ResponderConnection::max_backward_call() const {
  return std::min(inline_.send, ResponderBackward::kMaxMessage) - kMinCallHeaderBytes;
}

bool ResponderConnection::take_backward_reply(const TransportHeader& header, ByteSpan rpc) {
  if (backward_ == nullptr) return false;
  backward_->calls().on_grant(header.credits);
  return backward_->calls().on_reply(rpc);
}

bool ResponderConnection::take_backward_error(const TransportHeader& header) {
  return backward_ != nullptr && backward_->calls().on_refused(header.xid);
}

void ResponderConnection::on_message(const ReceivedMessage& message) {
  last_heard_ = loop().now();
  stats_.inline_bytes += message.bytes.size();
  if (tap != nullptr) tap->on_receive(message.bytes);
  if (disconnected_ || draining_) {
    shard_.endpoint().repost(message.slot);
    return;
  }
  shard_.take_call()->arrive(*this, message);
}

/// Posts Reads while the peer's IRD and the send queue have room, oldest call first.
void ResponderConnection::pump_reads() {
  while (usable() && reads_out_ < outbound_reads_) {
    ResponderCall* call = readers_.front();
    if (call == nullptr || send_queue_.room() == 0) return;
    if (!add_read(*call)) return;
  }
}

/// Posts the next segment of `call`, or delivers it when there is none and nothing is under way:
/// its segments may be empty, or the last of them, behind those that are here. False when nothing
/// can be posted: it waits for a sink, or that failed.
bool ResponderConnection::add_read(ResponderCall& call) {
  const ChunkLists& chunks = call.header_.chunks;
  while (call.next_chunk_ < chunks.read_chunk_count) {
    const ReadChunk& chunk = chunks.read_chunks[call.next_chunk_];
    if (call.next_segment_ == chunk.count) {
      ++call.next_chunk_;
      call.next_segment_ = 0;
      call.chunk_done_ = 0;
      continue;
    }
    const Segment& segment = chunks.segments(chunk)[call.next_segment_];
    if (segment.length > 0) break;
    ++call.next_segment_;  // legal, nothing to fetch
  }
  if (call.next_chunk_ == chunks.read_chunk_count) {
    call.ListNode<WaitingTag>::unlink();
    if (call.reads_out_ == 0) call.all_read();
    return true;
  }

  const std::uint16_t chunk_index = call.next_chunk_;
  const ReadChunk& chunk = chunks.read_chunks[chunk_index];
  const Segment& segment = chunks.segments(chunk)[call.next_segment_];
  Buffer& buffer = call.chunk_buffers_[chunk_index];
  RdmaEndpoint& endpoint = shard_.endpoint();
  MemoryRegion& sink = call.sinks_[chunk_index];
  if (endpoint.device().info().read_sink_needs_handle && !sink) {
    // Calls that keep one and wait for another could stop each other.
    if (call.reads_out_ == 0) call.drop_sinks();
    auto region = endpoint.domain().register_memory({buffer.data(), chunk.length},
                                                    Access::kReadSink, queue_pair_.get());
    if (!region.ok()) {
      if (region.error().code == Errc::kExhausted) {
        wait_for_sink();
      } else {
        cut();
      }
      return false;
    }
    no_sink_since_.reset();
    sink = std::move(region).value();
  }
  const Sge sge{buffer.data() + call.chunk_done_, segment.length, endpoint.lkey(buffer)};
  call.chunk_done_ += segment.length;
  ++call.next_segment_;
  // Past the last segment of all, so that the completion knows that nothing is left to post.
  if (call.next_segment_ == chunk.count) {
    ++call.next_chunk_;
    call.next_segment_ = 0;
    call.chunk_done_ = 0;
  }
  if (call.next_chunk_ == chunks.read_chunk_count) call.ListNode<WaitingTag>::unlink();

  WorkRequest request;
  request.opcode = WorkOpcode::kRead;
  request.sges = {&sge, 1};
  request.remote_handle = segment.handle;
  request.remote_offset = segment.offset;
  request.read_sink = sink ? &sink : nullptr;
  request.wr_id = endpoint.work().add(call, kReadTag);
  send_queue_.reserve(1);
  read_posted();
  ++call.reads_out_;
  ++stats_.rdma_reads;
  stats_.rdma_read_bytes += segment.length;
  if (tap != nullptr) tap_requests(*tap, {&request, 1});
  std::size_t posted = 0;
  if (!queue_pair_->post({&request, 1}, &posted).ok()) {
    cut();
    return false;
  }
  return true;
}

void ResponderConnection::wait_for_sink() {
  constexpr std::chrono::milliseconds kLookAgain{20};
  const TimePoint now = loop().now();
  if (!no_sink_since_) no_sink_since_ = now;
  if (now - *no_sink_since_ >= shard_.server().limits_.stalled_after) {
    return cut_off("no memory could be registered for its data for a long time");
  }
  if (!sink_timer_.armed()) sink_timer_.arm_after(loop(), kLookAgain);
}

void ResponderConnection::read_posted() {
  if (reads_out_++ > 0) return;
  read_progress_ = loop().now();
  if (!read_watch_.armed()) read_watch_.arm_after(loop(), shard_.server().limits_.stalled_after);
}

void ResponderConnection::read_ended() {
  --reads_out_;
  read_progress_ = loop().now();
}

/// Reads go out behind the replies that were posted before them, which a slow link takes long for:
/// until those are gone nobody could have answered.
void ResponderConnection::reply_taken() {
  read_progress_ = loop().now();
}

void ResponderConnection::watch_reads() {
  if (reads_out_ == 0 || !usable()) return;
  const TimePoint due = read_progress_ + shard_.server().limits_.stalled_after;
  if (loop().now() < due) {
    read_watch_.arm(loop(), due);
    return;
  }
  if (shard_.receives_left() == 0) {
    // Where a message has no receive what comes behind it waits, Read Responses as well.
    read_watch_.arm_after(loop(), shard_.server().limits_.stalled_after);
    return;
  }
  static thread_local RateLimit limit(10, std::chrono::seconds(10));
  if (limit.allow()) {
    const LogField fields[] = {{"NFS_RDMA_CLIENT", peer_.host_text()}};
    log_event(LogLevel::kWarning, fields,
              "{}: none of {} RDMA Reads from it has ended for a long time: closing", peer_.text(),
              reads_out_);
  }
  cut();
}

HeldBuffers ResponderConnection::held() {
  HeldBuffers held;
  if (usable() && !draining_)
    open_calls_.for_each([&held](ResponderCall& call) { call.count_held(held); });
  return held;
}

void ResponderConnection::give_way() {
  cut_off("others wait for the memory that it has held for long");
}

void ResponderConnection::cut_off(const char* why) {
  static thread_local RateLimit limit(10, std::chrono::seconds(10));
  if (limit.allow()) {
    const LogField fields[] = {{"NFS_RDMA_CLIENT", peer_.host_text()}};
    log_event(LogLevel::kWarning, fields, "{}: {}: closing", peer_.text(), why);
  }
  cut();
}

void ResponderConnection::submit_send(ResponderCall& call) {
  call.held_since_ = loop().now();
  if (senders_.empty() && try_send(call)) return;
  call.state_ = ResponderCall::State::kNeedsSendQueue;
  senders_.push_back(call);
}

void ResponderConnection::pump_sends() {
  while (usable()) {
    ResponderCall* call = senders_.front();
    if (call == nullptr) break;
    call->ListNode<WaitingTag>::unlink();
    if (!try_send(*call)) {
      senders_.push_front(*call);
      return;
    }
  }
  if (backward_ != nullptr && usable()) backward_->calls().pump();
}

bool ResponderConnection::try_send(ResponderCall& call) {
  if (!usable()) return false;  // tear_down() finds it among the waiting ones
  ReplyChain& chain = shard_.chain();
  const ReplyParts parts = call.parts();
  const bool err_vers = call.refusal_ == ResponderCall::Refusal::kErrVers;
  if (call.refusal_ != ResponderCall::Refusal::kNone) {
    chain.build_send(parts, err_vers ? encode_err_vers(parts.send_room, call.xid_, 1)
                                     : encode_err_chunk(parts.send_room, call.xid_, 1));
  } else if (chain.build(parts) == ReplyForm::kErrChunk) {
    ++stats_.errors;
  }
  if (chain.requests().size() > send_queue_.depth()) {
    // It would never fit: more segments than our send queue has entries.
    chain.build_send(parts, encode_err_chunk(parts.send_room, call.xid_, 1));
    ++stats_.errors;
  }
  std::span<WorkRequest> requests = chain.requests();
  if (!send_queue_.reserve(static_cast<std::uint32_t>(requests.size()))) return false;

  call.state_ = ResponderCall::State::kSending;
  call.send_entries_ = static_cast<std::uint32_t>(requests.size());
  if (const std::uint32_t wanted = credits_.wish(); wanted > 0) shard_.cover_credits(wanted);
  store_be32(parts.send_room.data() + kCreditsOffset, credits_.on_reply());

  const std::uint64_t wr_id = shard_.endpoint().work().add(call, kSendTag);
  for (WorkRequest& request : requests)
    request.wr_id = WorkTable::link(wr_id);
  requests.back().wr_id = wr_id;
  stats_.rdma_writes += requests.size() - 1;
  stats_.rdma_write_bytes += chain.written_bytes();
  stats_.inline_bytes += chain.sent_bytes();
  if (requests.back().opcode == WorkOpcode::kSendWithInvalidate) ++stats_.invalidations;
  // Without the data of a file that cannot be read: sending it will fail as well.
  if (tap != nullptr && call.payload_.settle()) tap_requests(*tap, requests);
  std::size_t posted = 0;
  if (!queue_pair_->post(requests, &posted).ok()) cut();
  return true;
}

void ResponderConnection::call_finished(ResponderCall& call) {
  call.ListNode<OpenTag>::unlink();
  --open_count_;
  shard_.recycle(call);
  if (open_count_ > 0) return;
  if (torn_down_) {
    shard_.server().connection_gone(*this);
  } else if (draining_) {
    cut();
  }
}

void ResponderConnection::drain() {
  draining_ = true;
  if (open_count_ == 0) cut();
}

void ResponderConnection::cut() {
  cut_ = draining_ = true;
  if (usable()) queue_pair_->disconnect();
}

void ResponderConnection::on_disconnected(Error why) {
  if (disconnected_) return;
  disconnected_ = true;
  static thread_local RateLimit limit(10, std::chrono::seconds(10));
  if (why.code != Errc::kClosed && limit.allow()) {
    const LogField fields[] = {{"NFS_RDMA_CLIENT", peer_.host_text()}};
    log_event(LogLevel::kInfo, fields, "{}: connection lost: {}", peer_.text(), why.message());
  }
  loop().defer(*this);
}

void ResponderConnection::tear_down() {
  if (torn_down_) return;
  disconnected_ = true;
  read_watch_.cancel();
  sink_timer_.cancel();
  shard_.endpoint().retire(std::move(queue_pair_));
  torn_down_ = true;
  ++open_count_;  // keeps the connection while its calls go
  open_calls_.for_each([this](ResponderCall& call) {
    if (call.state_ == ResponderCall::State::kWithHandler) return;
    shard_.endpoint().work().forget(call);
    call.give_back_request();
    call_finished(call);
  });
  if (backward_ != nullptr) backward_->tear_down();
  shard_.server().handler_.on_connection_closed(*this);
  if (--open_count_ == 0) shard_.server().connection_gone(*this);
}

}  // namespace nfsrdma
