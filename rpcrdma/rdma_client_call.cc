// SPDX-License-Identifier: Apache-2.0
// RdmaClient: calls out, replies in (RFC 8166, sections 3.5 and 4; wire.md 5).
#include <algorithm>
#include <cstring>

#include "rpcrdma/base/log.h"
#include "rpcrdma/rdma_client.h"

namespace nfsrdma {

namespace {

constexpr std::uint32_t kRpcReply = 1;  // msg_type REPLY (RFC 5531)
constexpr std::byte kZeros[4]{};

Error protocol(const char* what) {
  return Error{Errc::kProtocol, EPROTO, what};
}
constexpr Error kNoError{Errc::kSystem, 0, nullptr};
bool is_error(const Error& error) {
  return error.where != nullptr;
}

/// `bytes` at *to, moving it on. The message buffer is as long as the inline threshold.
void put(std::byte*& to, ByteSpan bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  to += bytes.size();
}

}  // namespace

// --- Exchange ---

void Exchange::withdraw() {
  for (MemoryRegion& source : sources_)
    source.reset();
  sink_.reset();
  long_reply_.reset();
}

void Exchange::on_work_done(std::uint32_t, WorkStatus status) {
  sending_ = false;
  if (free()) client_.idle_.push_back(this);
  if (status != WorkStatus::kSuccess) return;  // on_disconnected() follows
  if (!client_.waiting_.empty()) client_.pump();
}

// --- submitting ---

void RdmaClient::submit(ClientCall& call) {
  call.transport_state = nullptr;
  call.ok = false;
  if (state_ != State::kReady) {
    call.error = Error{Errc::kClosed, 0, "submit"};
    call.on_complete();
    return;
  }
  ++stats_.calls;
  waiting_.push_back(call);
  if (outstanding_ >= credits_) ++stats_.credit_waits;
  pump();
}

void RdmaClient::cancel(ClientCall& call) {
  call.ListNode<ClientCall>::unlink();
  auto* exchange = static_cast<Exchange*>(std::exchange(call.transport_state, nullptr));
  if (exchange == nullptr) return;
  exchange->withdraw();
  exchange->call_ = nullptr;
}

/// Sends what waits while there are credits.
void RdmaClient::pump() {
  if (pumping_) return;  // a call that fails at once may submit the next from on_complete()
  pumping_ = true;
  while (state_ == State::kReady && outstanding_ < credits_ && !waiting_.empty()) {
    Exchange* exchange = idle_exchange();
    if (exchange == nullptr && !exchanges_.empty()) break;  // Sends not yet complete hold them all
    ClientCall& call = *waiting_.pop_front();
    if (exchange == nullptr) {
      call.error = Error{Errc::kExhausted, ENOMEM, "message buffers"};
      call.on_complete();
      continue;
    }
    const Sent sent = send(*exchange, call);
    if (sent == Sent::kYes) continue;
    idle_.push_back(exchange);
    if (sent == Sent::kNotNow) {
      // What the calls under way have registered comes back with their replies; or it is the end of
      // the connection, and of those who wait with it.
      waiting_.push_front(call);
      break;
    }
  }
  pumping_ = false;
}

Exchange* RdmaClient::idle_exchange() {
  if (!idle_.empty()) {
    Exchange* exchange = idle_.back();
    idle_.pop_back();
    return exchange;
  }
  if (exchanges_.size() >= options_.max_credits) return nullptr;
  auto made = std::make_unique<Exchange>(*this);
  made->message_ = pool_->acquire(options_.inline_bytes);
  if (!made->message_) return nullptr;
  idle_.reserve(options_.max_credits);
  exchanges_.push_back(std::move(made));
  return exchanges_.back().get();
}

/// Unless kYes the exchange is still idle. kFailed: the call completed with an error; kNotNow: it
/// may go later, nothing has happened to it.
RdmaClient::Sent RdmaClient::send(Exchange& exchange, ClientCall& call) {
  // The reply needs a receive before the call leaves.
  endpoint_->ensure_receives(std::min(credits_, options_.max_credits) + kSpareReceives);
  auto size = endpoint_->receive_count() > outstanding_
                  ? marshal(exchange, call)
                  : Result<std::size_t>(Error{Errc::kExhausted, ENOMEM, "receive buffers"});
  if (!size.ok()) {
    exchange.withdraw();
    if (size.error().code == Errc::kExhausted && wait_for_room()) return Sent::kNotNow;
    if (size.error().code == Errc::kClosed) {
      // The device went, or the connection, and we have not been told yet.
      queue_pair_->disconnect();
      return Sent::kNotNow;
    }
    call.error = size.error();
    call.on_complete();
    return Sent::kFailed;
  }
  no_room_since_.reset();
  exchange.call_ = &call;
  exchange.xid_ = call.xid;
  exchange.awaiting_reply_ = exchange.sending_ = true;
  call.transport_state = &exchange;
  ++outstanding_;
  const Sge sge{exchange.message_.data(), static_cast<std::uint32_t>(*size),
                endpoint_->lkey(exchange.message_)};
  WorkRequest request;
  request.opcode = WorkOpcode::kSend;
  request.sges = {&sge, 1};
  request.wr_id = endpoint_->work().add(exchange, 0);
  count_sent(*size);
  std::size_t posted = 0;
  call.sent = true;
  // On failure the connection is over; the call completes with it.
  if (!queue_pair_->post({&request, 1}, &posted).ok()) queue_pair_->disconnect();
  return Sent::kYes;
}

/// Until what is under way comes back; and where nothing is, as long as other connections of this
/// process (RLIMIT_MEMLOCK), or other processes (an adapter's regions), may take to be done.
bool RdmaClient::wait_for_room() {
  if (outstanding_ > 0) return true;
  constexpr std::chrono::seconds kForOthers{1};
  constexpr std::chrono::milliseconds kLookAgain{20};
  const TimePoint now = loop_.now();
  // Another time: whoever waited then has given up, or failed.
  constexpr std::chrono::seconds kAnotherTime{10};
  if (now - looked_for_room_ >= kAnotherTime) no_room_since_.reset();
  looked_for_room_ = now;
  if (!no_room_since_) no_room_since_ = now;
  if (now - *no_room_since_ >= kForOthers) return false;
  room_timer_.arm_after(loop_, kLookAgain);
  return true;
}

/// What marshal() has built goes out. Not before: it may have to be built several times.
void RdmaClient::count_sent(std::size_t inline_bytes) {
  stats_.inline_bytes += inline_bytes;
  stats_.rdma_writes += chunks_.write_chunk_count;
  stats_.rdma_reads += chunks_.read_segment_count;
  for (const ReadChunk& chunk : chunks_.reads())
    stats_.rdma_read_bytes += chunk.length;
}

Result<MemoryRegion> RdmaClient::expose(ByteSpan bytes, Access access) {
  // For kRemoteRead nobody writes there; regions have one type for both directions.
  MutableByteSpan writable(const_cast<std::byte*>(bytes.data()), bytes.size());
  return endpoint_->domain().register_memory(writable, access, queue_pair_.get());
}

Segment RdmaClient::segment_of(const MemoryRegion& region) const {
  return {region.handle(), static_cast<std::uint32_t>(region.bytes().size()),
          region.remote_offset()};
}

/// Builds the message and exposes what it refers to; gives its size.
Result<std::size_t> RdmaClient::marshal(Exchange& exchange, ClientCall& call) {
  chunks_.clear();
  exchange.long_reply_bytes_ = {};
  exchange.sink_offered_ = false;
  NFSRDMA_CHECK_OK(offer_room(exchange, call));
  std::size_t header = kMinCallHeaderBytes +
                       chunks_.write_chunk_count * (kWriteChunkBytes + kSegmentBytes) +
                       (chunks_.has_reply_chunk ? 4 + kSegmentBytes : 0);
  const std::size_t fixed = call.head.size() + call.tail.size();
  const bool payload_inline = header + fixed + round_up4(call.payload.size()) <= inline_.send;
  rdma_proc proc = RDMA_MSG;
  if (!payload_inline) {
    header += kReadSegmentBytes;
    if (call.has_payload && !call.payload.empty() && header + fixed <= inline_.send) {
      NFSRDMA_CHECK_OK(offer_payload(exchange, call));
    } else {
      NFSRDMA_CHECK_OK(offer_whole_call(exchange, call));
      proc = RDMA_NOMSG;
    }
  }
  const std::size_t encoded = encode_header({exchange.message_.data(), inline_.send}, call.xid,
                                            options_.max_credits, proc, chunks_);
  if (encoded == 0) return Error{Errc::kInvalid, EMSGSIZE, "RPC-over-RDMA header"};
  std::byte* to = exchange.message_.data() + encoded;
  if (proc == RDMA_MSG) {
    put(to, call.head);
    if (payload_inline) {
      put(to, call.payload);
      put(to, ByteSpan(kZeros, pad4(call.payload.size())));
    }
    put(to, call.tail);
  }
  return static_cast<std::size_t>(to - exchange.message_.data());
}

/// Room for a reply that may not fit inline: for its data (a Write chunk) or else for all of it (a
/// Reply chunk). Never both in one call: RFC 8166 has it, but knfsd ends the connection when it is
/// to fill both (Linux 6.1), which its own client never asks for.
Result<void> RdmaClient::offer_room(Exchange& exchange, ClientCall& call) {
  const std::size_t data = round_up4(call.sink.size());
  if (kMinCallHeaderBytes + call.max_reply + data <= inline_.receive) return {};  // cheapest
  constexpr std::size_t kWithWriteChunk = kMinCallHeaderBytes + kWriteChunkBytes + kSegmentBytes;
  if (data > 0 && kWithWriteChunk + call.max_reply <= inline_.receive) {
    return offer_sink(exchange, call);
  }
  return offer_long_reply(exchange, call, call.max_reply + data);
}

Result<void> RdmaClient::offer_sink(Exchange& exchange, ClientCall& call) {
  NFSRDMA_TRY(exchange.sink_, expose(call.sink, Access::kRemoteWrite));
  exchange.sink_offered_ = true;
  chunks_.begin_write_chunk();
  chunks_.add_write_segment(segment_of(exchange.sink_));
  return {};
}

Result<void> RdmaClient::offer_long_reply(Exchange& exchange, ClientCall& call, std::size_t size) {
  exchange.long_reply_bytes_ = call.long_reply;
  if (call.long_reply.size() < size || call.long_reply.empty()) {
    size = std::max<std::size_t>(size, 1);
    if (exchange.own_long_reply_.size() < size) exchange.own_long_reply_.resize(size);
    exchange.long_reply_bytes_ = {exchange.own_long_reply_.data(), size};
  }
  NFSRDMA_TRY(exchange.long_reply_, expose(exchange.long_reply_bytes_, Access::kRemoteWrite));
  chunks_.add_reply_segment(segment_of(exchange.long_reply_));
  return {};
}

/// A Read chunk of the payload alone. Its pad is in no chunk and not in line.
Result<void> RdmaClient::offer_payload(Exchange& exchange, ClientCall& call) {
  NFSRDMA_TRY(exchange.sources_[0], expose(call.payload, Access::kRemoteRead));
  chunks_.add_read_segment(static_cast<std::uint32_t>(call.head.size()),
                           segment_of(exchange.sources_[0]));
  return {};
}

/// A Position-Zero Read chunk: the whole call, pad included.
Result<void> RdmaClient::offer_whole_call(Exchange& exchange, ClientCall& call) {
  std::size_t count = 0;
  auto add = [&](ByteSpan bytes) -> Result<void> {
    if (bytes.empty()) return {};
    NFSRDMA_TRY(exchange.sources_[count], expose(bytes, Access::kRemoteRead));
    chunks_.add_read_segment(0, segment_of(exchange.sources_[count++]));
    return {};
  };
  NFSRDMA_CHECK_OK(add(call.head));
  NFSRDMA_CHECK_OK(add(call.payload));
  exchange.own_tail_.assign(pad4(call.payload.size()), std::byte{0});
  exchange.own_tail_.insert(exchange.own_tail_.end(), call.tail.begin(), call.tail.end());
  return add(exchange.own_tail_);
}

// --- replies ---

void RdmaClient::on_message(const ReceivedMessage& message) {
  last_heard_ = loop_.now();
  stats_.inline_bytes += message.bytes.size();
  if (message.invalidated) ++stats_.invalidations;
  handle_reply(message);  // also when the connection broke right behind it
  endpoint_->repost(message.slot);
  if (!waiting_.empty()) pump();
}

Exchange* RdmaClient::find(std::uint32_t xid) {
  for (auto& exchange : exchanges_) {
    if (exchange->awaiting_reply_ && exchange->xid_ == xid) return exchange.get();
  }
  return nullptr;
}

void RdmaClient::handle_reply(const ReceivedMessage& message) {
  const HeaderVerdict verdict = decode_header(message.bytes, header_);
  const ByteSpan rpc = message.bytes.subspan(std::min(header_.header_bytes, message.bytes.size()));
  if (is_backward_call(verdict, rpc)) {
    answer_backward_call(rpc);
    return;
  }
  Exchange* exchange = verdict == HeaderVerdict::kTooShort ? nullptr : find(header_.xid);
  if (exchange == nullptr) {
    ++unmatched_;
    return;
  }
  if (verdict == HeaderVerdict::kOk) note_credits(header_.credits);
  ClientCall* call = exchange->call_;
  exchange->awaiting_reply_ = false;
  --outstanding_;
  // From here on nobody can write into what we look at.
  exchange->withdraw();
  Error error = kNoError;
  if (call != nullptr) {
    error = verdict == HeaderVerdict::kOk ? take_reply(*exchange, *call, message)
                                          : protocol("reply header");
    complete(*exchange, *call, error);
  }
  if (exchange->free()) idle_.push_back(exchange);
}

void RdmaClient::note_credits(std::uint32_t granted) {
  credits_ = std::clamp(granted, 1u, options_.max_credits);
}

Error RdmaClient::take_reply(Exchange& exchange, ClientCall& call, const ReceivedMessage& message) {
  call.reduced = {};
  switch (header_.proc) {
    case RDMA_MSG:
      return take_inline(exchange, call, message.bytes.subspan(header_.header_bytes));
    case RDMA_NOMSG:
      return take_long(exchange, call);
    case RDMA_ERROR:
      if (header_.error == ERR_VERS) {
        return Error{Errc::kUnsupported, EPROTONOSUPPORT, "server refused our version (ERR_VERS)"};
      }
      return Error{Errc::kRefused, EREMOTEIO, "server refused the chunks (ERR_CHUNK)"};
    default:
      return protocol("reply of an unknown type");
  }
}

Error RdmaClient::take_inline(Exchange& exchange, ClientCall& call, ByteSpan rpc) {
  if (header_.chunks.reply_length != 0) return protocol("data in the Reply chunk of a short reply");
  return place_result(exchange, call, rpc);
}

Error RdmaClient::take_long(Exchange& exchange, ClientCall& call) {
  const std::uint64_t length = header_.chunks.reply_length;
  const bool offered = !exchange.long_reply_bytes_.empty();
  if (!offered || length == 0 || length > exchange.long_reply_bytes_.size() ||
      header_.chunks.reply_segment_count != 1) {
    return protocol("Reply chunk of a long reply");
  }
  stats_.rdma_write_bytes += length;
  return place_result(exchange, call, ByteSpan(exchange.long_reply_bytes_).first(length));
}

/// Checks what the server says it wrote to the sink and gives the call its reply.
Error RdmaClient::place_result(const Exchange& exchange, ClientCall& call, ByteSpan rpc) {
  if (rpc.size() < 8 || load_be32(rpc.data()) != call.xid ||
      load_be32(rpc.data() + 4) != kRpcReply) {
    return protocol("RPC reply");
  }
  const ChunkLists& chunks = header_.chunks;
  const std::size_t offered = exchange.sink_offered_ ? 1 : 0;
  if (chunks.read_chunk_count != 0 || chunks.write_chunk_count > offered) {
    return protocol("chunk lists of a reply");
  }
  call.reply = rpc;
  const std::uint64_t placed = chunks.write_chunk_count > 0 ? chunks.write_chunks[0].length : 0;
  if (placed == 0) return kNoError;
  if (placed > call.sink.size() || chunks.write_segment_count != 1) {
    return protocol("Write chunk longer than offered");
  }
  stats_.rdma_write_bytes += placed;
  // The result stands at the end of the reply (RFC 8267: READ and READLINK of version 3; in NFSv4
  // the client puts READ last).
  reduced_ = {rpc.size(), ByteSpan(call.sink).first(placed)};
  call.reduced = {&reduced_, 1};
  return kNoError;
}

void RdmaClient::complete(Exchange& exchange, ClientCall& call, Error error) {
  exchange.call_ = nullptr;
  exchange.long_reply_bytes_ = {};
  call.transport_state = nullptr;
  call.ok = !is_error(error);
  if (call.ok) {
    ++stats_.replies;
    call.error = Error{};
  } else {
    ++stats_.errors;
    call.error = error;
    call.reply = {};
    call.reduced = {};
  }
  call.on_complete();
}

}  // namespace nfsrdma
