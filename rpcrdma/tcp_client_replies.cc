// SPDX-License-Identifier: Apache-2.0
// TcpClient: replies. See tcp_client_connection.h for where their bytes go.
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "rpcrdma/tcp_client_connection.h"

namespace nfsrdma {

namespace {
constexpr std::uint32_t kRpcCall = 0;  // msg_type (RFC 5531)
constexpr std::uint32_t kRpcReply = 1;
}  // namespace

/// One system call; false when there is nothing more to read now.
bool TcpClient::read_once() {
  if (scratch_begin_ == scratch_end_) scratch_begin_ = scratch_end_ = 0;
  if (scratch_begin_ > 0) {
    std::memmove(scratch_.get(), scratch_.get() + scratch_begin_, scratch_end_ - scratch_begin_);
    scratch_end_ -= scratch_begin_;
    scratch_begin_ = 0;
  }
  iovec parts[2];
  int count = 0;
  std::size_t direct = 0;
  if (in_long_ && scratch_end_ == 0) {
    if (target_ != nullptr && placed_ < place_->length) {
      direct = place_->length - placed_;
      parts[count++] = {target_->call->sink.data() + placed_, direct};
    } else if (!place_) {
      direct = cursor_.fragment_left();
      parts[count++] = {record_.data() + record_have_, direct};
    }
  }
  // With data under way for a sink, little is read ahead: what lands here must be copied.
  const std::size_t limit = large_sinks_ > 0 || direct > 0 ? kSpillBytes : kScratchBytes;
  const std::size_t spill = std::min(limit, kScratchBytes - scratch_end_);
  parts[count++] = {scratch_.get() + scratch_end_, spill};
  const ssize_t n = ::readv(socket_.get(), parts, count);
  if (n <= 0) {
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    shut(n == 0 ? Error{Errc::kClosed, 0, "receive"} : system_error("receive"),
         n == 0 ? "the server closed the connection" : "connection lost");
    return false;
  }
  const std::size_t got = static_cast<std::size_t>(n);
  stats_.inline_bytes += got;
  last_heard_ = loop_.now();
  const std::size_t taken = std::min(got, direct);
  if (taken > 0) {
    cursor_.take(taken);
    (place_ ? placed_ : record_have_) += taken;
  }
  scratch_end_ += got - taken;
  parse();
  return got == direct + spill;
}

void TcpClient::parse() {
  while (state_ == State::kReady && parse_record()) {
  }
}

/// One step over what the scratch buffer holds; false when it needs more.
bool TcpClient::parse_record() {
  ByteSpan available(scratch_.get() + scratch_begin_, scratch_end_ - scratch_begin_);
  if (in_long_ && !cursor_.at_mark()) {
    take_long(&available);
    scratch_begin_ = scratch_end_ - available.size();
    if (cursor_.complete()) {
      finish_long();
      return true;
    }
    return cursor_.at_mark();
  }
  if (cursor_.at_mark()) {
    if (available.size() < kRecordMarkBytes) return false;
    if (!cursor_.take_mark(load_be32(available.data()))) {
      shut(Error{Errc::kProtocol, EMSGSIZE, "record mark"}, "the server sent an endless record");
      return false;
    }
    scratch_begin_ += kRecordMarkBytes;
    available = available.subspan(kRecordMarkBytes);
    if (in_long_) {  // a further fragment of a record that is being put together
      record_.resize(record_have_ + cursor_.fragment_left());
      if (cursor_.complete()) finish_long();
      return true;
    }
  }
  const std::size_t length = cursor_.fragment_left();
  if (cursor_.last_fragment() && available.size() >= length) {
    const ByteSpan reply = available.first(length);
    scratch_begin_ += length;
    cursor_.reset();
    deliver(reply, {});
    return true;
  }
  return begin_long_reply(available);
}

/// The record is not all here. Decides where it goes; false when more must be seen first.
bool TcpClient::begin_long_reply(ByteSpan available) {
  const std::size_t length = cursor_.fragment_left();
  place_.reset();
  target_ = nullptr;
  if (cursor_.last_fragment()) {
    if (available.size() < 8) return false;
    Slot* slot = find(load_be32(available.data()));
    if (slot != nullptr && slot->call != nullptr && !slot->call->sink.empty()) {
      place_ = find_result(slot->call->head, available);
      if (!place_ && available.size() < kResultPrefix) return false;
      const bool fits = place_ && place_->length <= slot->call->sink.size() &&
                        place_->position + round_up4(place_->length) == length;
      if (fits) {
        target_ = slot;
      } else {
        place_.reset();
      }
    }
  }
  in_long_ = true;
  placed_ = record_have_ = 0;
  record_.resize(place_ ? place_->position : length);
  return true;
}

/// Copies what is here of a long reply to where it belongs.
void TcpClient::take_long(ByteSpan* available) {
  auto take = [&](std::byte* to, std::size_t limit) {
    const std::size_t n = std::min({limit, available->size(), cursor_.fragment_left()});
    if (n > 0 && to != nullptr) std::memcpy(to, available->data(), n);
    *available = available->subspan(n);
    cursor_.take(n);
    return n;
  };
  record_have_ += take(record_.data() + record_have_, record_.size() - record_have_);
  if (!place_) return;
  // Head complete: the rest of the record is data, then its pad.
  std::byte* sink = target_ != nullptr ? target_->call->sink.data() + placed_ : nullptr;
  placed_ += take(sink, place_->length - placed_);
  if (placed_ == place_->length) take(nullptr, cursor_.fragment_left());
}

void TcpClient::finish_long() {
  in_long_ = false;
  cursor_.reset();
  const ByteSpan reply = ByteSpan(record_).first(record_have_);
  if (place_ && target_ != nullptr) {
    reduced_ = {place_->position, ByteSpan(target_->call->sink).first(place_->length)};
    target_ = nullptr;
    deliver(reply, {&reduced_, 1});
  } else {
    deliver(reply, {});
  }
}

TcpClient::Slot* TcpClient::find(std::uint32_t xid) {
  Slot* found = nullptr;
  sent_.for_each([&](Slot& slot) {
    if (found == nullptr && slot.xid == xid) found = &slot;
  });
  return found;
}

/// The backward direction: a record is a call of the server's own when its RPC type says so.
void TcpClient::answer_backward_call(ByteSpan rpc) {
  auto reply = std::find_if(backward_replies_.begin(), backward_replies_.end(),
                            [](const Slot& slot) { return slot.copy.empty(); });
  if (reply == backward_replies_.end()) {
    ++stats_.errors;
    return;
  }
  std::vector<std::byte> record(kRecordMarkBytes + kMaxBackwardReply);
  const std::size_t length =
      handler_.on_backward_call(rpc, MutableByteSpan(record).subspan(kRecordMarkBytes));
  if (length == 0) ++stats_.errors;
  // Whoever took the call may have given this connection up.
  if (length == 0 || state_ != State::kReady) return;
  store_be32(record.data(), kLastFragment | static_cast<std::uint32_t>(length));
  record.resize(kRecordMarkBytes + length);
  reply->record_bytes = record.size();
  reply->copy = std::move(record);
  out_.push_back(*reply);
  loop_.defer(*this);
}

void TcpClient::deliver(ByteSpan reply, std::span<const xdr::ReducedItem> reduced) {
  if (reply.size() >= 8 && load_be32(reply.data() + 4) == kRpcCall) {
    answer_backward_call(reply);
    return;
  }
  Slot* slot = reply.size() < 8 ? nullptr : find(load_be32(reply.data()));
  if (slot == nullptr || load_be32(reply.data() + 4) != kRpcReply) {
    ++stats_.errors;
    return;
  }
  ClientCall* call = slot->call;
  release(*slot);
  if (call == nullptr) return;  // cancelled
  ++stats_.replies;
  call->transport_state = nullptr;
  call->ok = true;
  call->error = Error{};
  call->reply = reply;
  call->reduced = reduced;
  call->on_complete();
}

}  // namespace nfsrdma
