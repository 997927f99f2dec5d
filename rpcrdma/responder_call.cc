// SPDX-License-Identifier: Apache-2.0
// ResponderCall: what happens to one message. See responder.h for the states.
#include <algorithm>

#include "rpcrdma/responder.h"

namespace nfsrdma {

namespace {
enum : std::uint32_t { kReadTag, kSendTag };
constexpr std::uint32_t kRpcCall = 0;  // msg_type CALL (RFC 5531)
}  // namespace

ResponderConnection& ResponderCall::responder() const {
  return static_cast<ResponderConnection&>(*connection_);
}

void ResponderCall::arrive(ResponderConnection& connection, const ReceivedMessage& message) {
  connection_ = &connection;
  receive_slot_ = message.slot;
  holds_receive_ = false;
  refusal_ = Refusal::kNone;
  arrived = shard_.server_.loop_.now();
  if (!judge(message)) {
    // Nothing to answer: RDMA_DONE, errors, what is too short, replies to calls never made.
    shard_.endpoint().repost(message.slot);
    shard_.recycle(*this);
    return;
  }
  holds_receive_ = true;
  connection.open_calls_.push_back(*this);
  ++connection.open_count_;
  connection.credits_.on_call(header_.credits, connection.open_count_);
  if (connection.open_count_ > connection.credits_.tolerated()) connection.cut();
  shard_.receive_held(connection);
  on_buffers();
}

void ResponderCall::on_buffers() {
  if (responder().cut_) {
    abandon();
  } else if (take_buffers()) {
    proceed();
  } else {
    state_ = State::kNeedsBuffers;
    shard_.pool().wait_for_buffers(*this, responder().buffer_share, BufferStage::kNewCall);
  }
}

/// Decodes the header and decides whether and how the message is answered; false: not at all.
bool ResponderCall::judge(const ReceivedMessage& message) {
  ResponderConnection& connection = responder();
  const HeaderVerdict verdict = decode_header(message.bytes, header_);
  if (message.bytes.size() < kMinCallHeaderBytes) {
    const bool error = verdict == HeaderVerdict::kOk && header_.proc == RDMA_ERROR;
    if (!error || !connection.take_backward_error(header_)) ++connection.stats_.errors;
    return false;
  }
  xid_ = header_.xid;
  if (verdict == HeaderVerdict::kTooShort) return false;
  if (verdict == HeaderVerdict::kWrongVersion) {
    refusal_ = Refusal::kErrVers;
    return true;
  }
  if (verdict != HeaderVerdict::kOk || header_.proc == RDMA_MSGP) {
    header_.chunks.clear();
    refusal_ = Refusal::kErrChunk;
    return header_.proc != RDMA_ERROR;  // an error is never answered with an error
  }
  if (header_.proc == RDMA_DONE || header_.proc == RDMA_ERROR) {
    const bool error = header_.proc == RDMA_ERROR;
    if (!error || !connection.take_backward_error(header_)) ++connection.stats_.errors;
    return false;
  }
  inline_message_ = message.bytes.subspan(header_.header_bytes);
  if (header_.proc == RDMA_MSG && inline_message_.size() >= 8 &&
      load_be32(inline_message_.data()) == xid_ &&
      load_be32(inline_message_.data() + 4) != kRpcCall) {
    // A reply to a call of ours (RFC 8167; chunks have no place in it), or to none.
    if (!header_.chunks.empty() || !connection.take_backward_reply(header_, inline_message_)) {
      ++connection.stats_.errors;
    }
    return false;
  }
  const bool readable = header_.chunks.read_chunk_count == 0 || connection.outbound_reads_ > 0;
  if (!readable || !chunks_affordable() ||
      !call_chunks_sane(header_, inline_message_.size(), shard_.server_.limits_.max_call) ||
      shard_.server_.poison_.poisoned(connection.peer_, xid_, arrived)) {
    refusal_ = Refusal::kErrChunk;
    return true;
  }
  return true;
}

/// Could the pool ever serve the Read chunks, all at once?
bool ResponderCall::chunks_affordable() const {
  std::size_t total = 0;
  for (const ReadChunk& chunk : header_.chunks.reads()) {
    const std::size_t charge = BufferPool::charge(round_up4(chunk.length));
    if (charge == 0) return false;
    total += charge;
  }
  return total <= shard_.pool().most_data();
}

/// All or nothing: whoever held some while it waits for others could block everybody. With data or
/// without, one line for all: those with data would take each byte that is given back before there
/// is enough for a call without, of which more has to be left free.
bool ResponderCall::take_buffers() {
  BufferPool& pool = shard_.pool();
  if (shard_.memory_is_short()) {
    send_buffer_.reset();
    reply_buffer_.reset();
  }
  const std::size_t send_bytes =
      std::max<std::size_t>(Call::kInlineReply, shard_.server_.limits_.inline_bytes);
  if (!send_buffer_) send_buffer_ = pool.acquire(send_bytes, BufferStage::kNewCall);
  if (!reply_buffer_) reply_buffer_ = pool.acquire(Call::kInlineReply, BufferStage::kNewCall);
  if (send_buffer_ && reply_buffer_ && (refusal_ != Refusal::kNone || take_chunk_buffers())) {
    return true;
  }
  send_buffer_.reset();
  reply_buffer_.reset();
  return false;
}

bool ResponderCall::take_chunk_buffers() {
  const auto chunks = header_.chunks.reads();
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunk_buffers_[i] = shard_.pool().acquire(std::max<std::size_t>(4, round_up4(chunks[i].length)),
                                              BufferStage::kData);
    if (chunk_buffers_[i]) continue;
    for (std::size_t taken = 0; taken < i; ++taken)
      chunk_buffers_[taken].reset();
    return false;
  }
  return true;
}

void ResponderCall::proceed() {
  if (refusal_ != Refusal::kNone) {
    refuse(refusal_);
    return;
  }
  next_chunk_ = next_segment_ = 0;
  chunk_done_ = 0;
  reads_out_ = 0;
  read_failed_ = false;
  if (header_.chunks.read_chunk_count == 0) {
    deliver();
    return;
  }
  state_ = State::kReading;
  held_since_ = shard_.server_.loop_.now();
  responder().readers_.push_back(*this);
  responder().pump_reads();
}

void ResponderCall::on_work_done(std::uint32_t tag, WorkStatus status) {
  ResponderConnection& connection = responder();
  if (tag == kReadTag) {
    connection.read_ended();
    connection.send_queue_.release(1);
    read_done(status);
    if (status == WorkStatus::kSuccess) {
      connection.pump_reads();
      connection.pump_sends();
    }
    return;
  }
  connection.send_queue_.release(send_entries_);
  if (status == WorkStatus::kSuccess) {
    connection.reply_taken();
  } else {
    connection.cut();
  }
  connection.call_finished(*this);
  connection.pump_sends();
  connection.pump_reads();
}

void ResponderCall::read_done(WorkStatus status) {
  --reads_out_;
  if (status == WorkStatus::kFailed) {
    RdmaServer& server = shard_.server_;
    server.poison_.record_failure(responder().peer_, xid_, server.loop_.now());
  }
  if (status != WorkStatus::kSuccess) {
    read_failed_ = true;  // the queue pair is broken: tear_down() frees the call
    return;
  }
  const bool all_posted = next_chunk_ == header_.chunks.read_chunk_count;
  if (all_posted && reads_out_ == 0 && !read_failed_) all_read();
}

/// Its chunks are here, and nobody can write to them from now on: the handler may look at them.
void ResponderCall::all_read() {
  shard_.server_.poison_.record_success(responder().peer_, xid_);
  drop_sinks();
  for (std::size_t i = 0; i < header_.chunks.read_chunk_count; ++i) {
    if (WireTap* tap = responder().tap.get()) {
      tap->on_read_done({chunk_buffers_[i].data(), header_.chunks.read_chunks[i].length});
    }
  }
  deliver();
}

void ResponderCall::drop_sinks() {
  for (std::size_t i = 0; i < header_.chunks.read_chunk_count; ++i)
    sinks_[i].reset();
}

void ResponderCall::deliver() {
  if (responder().cut_) return abandon();
  const auto chunks = header_.chunks.reads();
  std::size_t first_item = 0;
  message_ = inline_message_;
  if (header_.chunks.has_position_zero()) {
    message_ = ByteSpan(chunk_buffers_[0].data(), chunks[0].length);
    first_item = 1;
  }
  request_bytes_ = message_.size();
  std::size_t count = 0;
  for (std::size_t i = first_item; i < chunks.size(); ++i) {
    items_[count++] = {chunks[i].position, {chunk_buffers_[i].data(), chunks[i].length}};
    request_bytes_ += chunks[i].length;
  }
  reduced_ = {items_.data(), count};
  if (message_.size() < 8 || load_be32(message_.data()) != xid_ ||
      load_be32(message_.data() + 4) != kRpcCall) {
    refuse(Refusal::kErrChunk);
    return;
  }
  ++responder().stats_.calls;
  state_ = State::kWithHandler;
  handler_state = nullptr;
  shard_.server_.handler_.on_call(*this);
}

void ResponderCall::refuse(Refusal refusal) {
  refusal_ = refusal;
  ++responder().stats_.errors;
  give_back_request();
  responder().submit_send(*this);
}

void ResponderCall::abandon() {
  give_back_request();
  responder().call_finished(*this);
}

bool ResponderCall::reserve_reply(std::size_t bytes) {
  if (bytes <= reply_room().size()) return true;
  Buffer bigger = shard_.pool().acquire(bytes);
  if (!bigger) return false;
  long_reply_buffer_ = std::move(bigger);
  return true;
}

MutableByteSpan ResponderCall::reply_room() {
  return long_reply_buffer_ ? long_reply_buffer_.bytes() : reply_buffer_.bytes();
}

/// The request's memory is free before the reply leaves: the client may use the credit at once.
void ResponderCall::give_back_request() {
  for (std::size_t i = 0; i < header_.chunks.read_chunk_count; ++i) {
    sinks_[i].reset();
    chunk_buffers_[i].reset();
  }
  if (std::exchange(holds_receive_, false)) shard_.receive_given_back(responder(), receive_slot_);
}

void ResponderCall::count_held(HeldBuffers& held) const {
  if (state_ != State::kReading && state_ != State::kNeedsSendQueue && state_ != State::kSending) {
    return;  // it waits for us
  }
  // Also of the smallest call: a client can have hundreds of those.
  held.add(send_buffer_.size() + reply_buffer_.size(), held_since_);
  held.add(payload_.size() + long_reply_buffer_.size(), held_since_);
  for (std::size_t i = 0; i < header_.chunks.read_chunk_count; ++i)
    held.add(chunk_buffers_[i].size(), held_since_);
}

void ResponderCall::reply(const xdr::Encoder& encoder, Buffer payload) {
  NFSRDMA_CHECK(state_ == State::kWithHandler);
  ResponderConnection& connection = responder();
  give_back_request();
  if (connection.torn_down_ || connection.disconnected_) {
    connection.call_finished(*this);
    return;
  }
  encoded_bytes_ = encoder.size();
  payload_count_ = encoder.payloads().size();
  std::copy(encoder.payloads().begin(), encoder.payloads().end(), payloads_.begin());
  payload_ = std::move(payload);
  if (encoder.overflowed()) refusal_ = Refusal::kErrChunk;
  ++connection.stats_.replies;
  connection.submit_send(*this);
}

void ResponderCall::drop() {
  NFSRDMA_CHECK(state_ == State::kWithHandler);
  abandon();
}

ReplyParts ResponderCall::parts() {
  ResponderConnection& connection = responder();
  RdmaEndpoint& endpoint = shard_.endpoint();
  const Buffer& room = long_reply_buffer_ ? long_reply_buffer_ : reply_buffer_;
  ReplyParts parts;
  parts.xid = xid_;
  parts.offered = &header_.chunks;
  parts.encoded = ByteSpan(room.data(), encoded_bytes_);
  parts.encoded_lkey = endpoint.lkey(room);
  parts.payloads = {payloads_.data(), payload_count_};
  // Payload without a buffer of its own lies in the reply room (a cached answer, say).
  parts.payload_lkey = payload_ ? endpoint.lkey(payload_) : parts.encoded_lkey;
  parts.send_room = send_buffer_.bytes();
  parts.send_lkey = endpoint.lkey(send_buffer_);
  parts.inline_send = connection.inline_.send;
  parts.max_send_sge = std::max(1u, endpoint.device().info().max_send_sge);
  if (connection.invalidates()) parts.invalidate = invalidation_candidate(header_.chunks);
  return parts;
}

}  // namespace nfsrdma
