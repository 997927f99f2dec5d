// SPDX-License-Identifier: Apache-2.0
// Reading and writing of one TCP connection of a server. See tcp_connection.h.
#include "rpcrdma/tcp_connection.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

constexpr std::uint32_t kRpcCall = 0;  // msg_type CALL (RFC 5531)
constexpr std::byte kZeros[4]{};
constexpr int kReadsPerEvent = 8;  // then the other connections have their turn

void append(iovec* out, std::size_t* count, std::size_t* skip, const std::byte* data,
            std::size_t length) {
  const std::size_t skipped = std::min(*skip, length);
  *skip -= skipped;
  if (length == skipped) return;
  out[(*count)++] = {const_cast<std::byte*>(data) + skipped, length - skipped};
}

}  // namespace

// --- TcpCall ---

TcpServerConnection& TcpCall::tcp() const {
  return static_cast<TcpServerConnection&>(*connection_);
}

bool TcpCall::reserve_reply(std::size_t bytes) {
  if (bytes <= reply_room().size()) return true;
  Buffer bigger = server_.pool_.acquire(bytes);
  if (!bigger) return false;
  long_reply_buffer_ = std::move(bigger);
  return true;
}

MutableByteSpan TcpCall::reply_room() {
  return long_reply_buffer_ ? long_reply_buffer_.bytes() : reply_buffer_.bytes();
}

/// What it does not need for its reply, which may have to wait for a client that takes it slowly.
void TcpCall::give_back_unused() {
  small_request_.reset();
  large_request_.reset();
  if (long_reply_buffer_) reply_buffer_.reset();
}

void TcpCall::reply(const xdr::Encoder& encoder, Buffer payload) {
  NFSRDMA_CHECK(with_handler_);
  with_handler_ = false;
  give_back_unused();
  encoded_bytes_ = encoder.size();
  payload_count_ = encoder.payloads().size();
  std::copy(encoder.payloads().begin(), encoder.payloads().end(), payloads_.begin());
  payload_ = std::move(payload);
  std::size_t length = encoded_bytes_;
  for (std::size_t i = 0; i < payload_count_; ++i)
    length += round_up4(payloads_[i].bytes.size());
  store_be32(mark_.data(), kLastFragment | static_cast<std::uint32_t>(length));
  record_bytes_ = length + kRecordMarkBytes;
  if (encoder.overflowed()) {  // cannot be sent; the client times out
    ++tcp().stats_.errors;
    tcp().call_finished(*this);
    return;
  }
  tcp().submit(*this);
}

void TcpCall::drop() {
  NFSRDMA_CHECK(with_handler_);
  with_handler_ = false;
  tcp().call_finished(*this);
}

std::size_t TcpCall::pieces(std::size_t skip, iovec* out) const {
  std::size_t count = 0;
  append(out, &count, &skip, mark_.data(), mark_.size());
  const std::byte* encoded = long_reply_buffer_ ? long_reply_buffer_.data() : reply_buffer_.data();
  std::size_t at = 0;
  for (std::size_t i = 0; i < payload_count_; ++i) {
    const xdr::PayloadReference& payload = payloads_[i];
    append(out, &count, &skip, encoded + at, payload.head_bytes - at);
    at = payload.head_bytes;
    append(out, &count, &skip, payload.bytes.data(), payload.bytes.size());
    append(out, &count, &skip, kZeros, pad4(payload.bytes.size()));
  }
  append(out, &count, &skip, encoded + at, encoded_bytes_ - at);
  return count;
}

// --- TcpServerConnection ---

TcpServerConnection::TcpServerConnection(TcpServer& server, UniqueFd socket)
    : server_(server),
      socket_(std::move(socket)),
      since_(server.loop_.now()),
      last_progress_(since_),
      cursor_(server.limits_.max_record) {
  id = next_connection_id();
  buffer_share.holder = this;
}

TcpServerConnection::~TcpServerConnection() {
  NFSRDMA_CHECK(open_calls_ == 0);
}

Result<void> TcpServerConnection::start() {
  NFSRDMA_TRY(peer_, SocketAddress::peer_of(socket_.get()));
  NFSRDMA_TRY(local_, SocketAddress::local_of(socket_.get()));
  const int on = 1;
  const int idle = 60, interval = 10, count = 6;
  const unsigned unacknowledged_ms = 60'000;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
               sizeof unacknowledged_ms);
  interest_ = EPOLLIN;
  NFSRDMA_CHECK_OK(server_.loop_.add(socket_.get(), interest_, *this));
  server_.pool_.add_holder(*this);
  server_.handler_.on_connection_opened(*this);
  return {};
}

EventLoop& TcpServerConnection::loop() {
  return server_.loop_;
}
BufferPool& TcpServerConnection::buffers() {
  return server_.pool_;
}

ConnectionInfo TcpServerConnection::describe() const {
  ConnectionInfo out;
  out.id = id;
  out.transport = TransportKind::kTcp;
  out.local = local_;
  out.peer = peer_;
  out.credits = static_cast<std::uint32_t>(server_.limits_.max_calls);
  out.calls_in_progress = static_cast<std::uint32_t>(open_calls_);
  out.age_seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(server_.loop_.now() - since_).count());
  out.stats = stats_;
  return out;
}

void TcpServerConnection::on_fd_ready(std::uint32_t events) {
  if (closing_) return;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    fail();
    return;
  }
  if ((events & EPOLLOUT) != 0) flush();
  if ((events & EPOLLIN) != 0) read_ready();
}

void TcpServerConnection::read_ready() {
  if (leaving_) return discard();
  for (int i = 0; i < kReadsPerEvent && !closing_ && !paused(); ++i) {
    if (!read_once()) break;
  }
  update_interest();
}

bool TcpServerConnection::read_once() {
  std::size_t spill =
      large_memory_ > 0 || server_.starved_ > 0 ? kSpillBytes : TcpServer::kScratchBytes;
  iovec parts[2];
  int count = 0;
  std::size_t direct = 0;
  if (cursor_.fragment_left() >= kDirectBytes && pins_large_buffer()) {
    direct = std::min(cursor_.fragment_left(), record_.size() - record_have_);
    parts[count++] = {record_.data() + record_have_, direct};
    spill = kSpillBytes;
  }
  parts[count++] = {server_.scratch_.get(), spill};
  const ssize_t n = ::readv(socket_.get(), parts, count);
  if (n <= 0) {
    if (n == 0) {
      client_ended();
    } else if (errno != EAGAIN && errno != EINTR) {
      fail();
    }
    return false;
  }
  const std::size_t got = static_cast<std::size_t>(n);
  stats_.inline_bytes += got;
  last_progress_ = server_.loop_.now();
  const std::size_t placed = std::min(got, direct);
  cursor_.take(placed);
  record_have_ += placed;
  const bool finished_record = placed > 0 && cursor_.complete();
  if (finished_record && !deliver_record()) {
    stash_.assign(server_.scratch_.get(), server_.scratch_.get() + (got - placed));
    starve(BufferStage::kWholeCall);
    return false;
  }
  if (got > placed) consume({server_.scratch_.get(), got - placed});
  return got == direct + spill;  // less: the socket is drained
}

void TcpServerConnection::consume(ByteSpan data) {
  while (!data.empty() && !closing_ && !paused()) {
    const std::size_t taken = consume_some(data);
    if (taken == 0) break;
    data = data.subspan(taken);
  }
  if (!closing_ && !data.empty()) stash_.assign(data.begin(), data.end());
}

/// One step; 0 when the connection must wait for buffers (or is closing).
std::size_t TcpServerConnection::consume_some(ByteSpan data) {
  if (!cursor_.started() && mark_have_ == 0) {
    const std::size_t taken = take_whole_record(data);
    if (taken != 0 || starved_ || closing_) return taken;
  }
  if (cursor_.complete()) {  // was complete but could not be delivered
    if (!deliver_record()) starve(BufferStage::kWholeCall);
    return starved_ ? 0 : consume_some(data);
  }
  if (cursor_.at_mark()) return take_mark(data);
  const std::size_t length = std::min(data.size(), cursor_.fragment_left());
  if (!make_room(length)) {
    starve(record_ ? BufferStage::kData : BufferStage::kNewCall);
    return 0;
  }
  std::memcpy(record_.data() + record_have_, data.data(), length);
  record_have_ += length;
  cursor_.take(length);
  if (cursor_.complete() && !deliver_record()) starve(BufferStage::kWholeCall);
  return length;
}

/// The common case: a whole record of one fragment that is cheaper to copy than to read by itself.
/// 0: not that.
std::size_t TcpServerConnection::take_whole_record(ByteSpan data) {
  if (data.size() < kRecordMarkBytes) return 0;
  const std::uint32_t mark = load_be32(data.data());
  const std::size_t length = mark & ~kLastFragment;
  if ((mark & kLastFragment) == 0 || length > kCopyBytes ||
      data.size() - kRecordMarkBytes < length) {
    return 0;
  }
  if (!deliver_copy(data.subspan(kRecordMarkBytes, length))) {
    starve(BufferStage::kNewCall);
    return 0;
  }
  if (large_memory_ > 0) --large_memory_;
  return kRecordMarkBytes + length;
}

std::size_t TcpServerConnection::take_mark(ByteSpan data) {
  const std::size_t length = std::min(data.size(), kRecordMarkBytes - mark_have_);
  std::memcpy(mark_.data() + mark_have_, data.data(), length);
  mark_have_ += length;
  if (mark_have_ < kRecordMarkBytes) return length;
  mark_have_ = 0;
  if (!cursor_.take_mark(load_be32(mark_.data()))) {
    static thread_local RateLimit limit(10, std::chrono::seconds(10));
    if (limit.allow()) {
      log_info("{}: a record of more than {} bytes: closing", peer_.text(),
               server_.limits_.max_record);
    }
    ++stats_.errors;
    fail();
    return 0;
  }
  if (cursor_.complete() && !deliver_record()) starve(BufferStage::kWholeCall);
  return length;
}

/// Room for `bytes` more of the record: a small buffer first, also when much comes at once, since
/// who holds nothing yet stands in line with all others who begin; then one for all of it. For the
/// largest when it is not known how long it gets: with a middle one in hand it would wait for those
/// who wait for theirs in the same way.
bool TcpServerConnection::make_room(std::size_t bytes) {
  const std::size_t needed = record_have_ + bytes;
  if (needed <= record_.size()) return true;
  if (!record_) {
    record_ = server_.pool_.acquire(kStageBytes, BufferStage::kNewCall);
    if (!record_) return false;
    record_since_ = server_.loop_.now();
    if (needed <= kStageBytes) return true;
  }
  const std::size_t whole =
      cursor_.last_fragment() ? cursor_.known_bytes() : server_.limits_.max_record;
  Buffer bigger = server_.pool_.acquire(whole, BufferStage::kData);
  if (!bigger) return false;
  if (record_have_ > 0) std::memcpy(bigger.data(), record_.data(), record_have_);
  record_ = std::move(bigger);
  record_since_ = server_.loop_.now();
  if (pins_large_buffer()) {
    if (cursor_.known_bytes() > kCopyBytes) large_memory_ = kLargeMemory;
    server_.watch_stalls();
  }
  return true;
}

bool TcpServerConnection::deliver_copy(ByteSpan record) {
  TcpCall* call = server_.take_call(BufferStage::kNewCall);
  if (call == nullptr) return false;
  Buffer* into = &call->small_request_;
  if (record.size() > into->size()) {
    into = &call->large_request_;
    *into = server_.pool_.acquire(record.size(), BufferStage::kNewCall);
    if (!*into) {
      server_.recycle(*call);
      return false;
    }
  }
  std::memcpy(into->data(), record.data(), record.size());
  deliver(*call, {into->data(), record.size()});
  return true;
}

bool TcpServerConnection::deliver_record() {
  TcpCall* call = server_.take_call(BufferStage::kWholeCall);
  if (call == nullptr) return false;
  if (BufferPool::charge(record_have_) < record_.size()) shrink_record();
  call->large_request_ = std::move(record_);
  const ByteSpan record(call->large_request_.data(), record_have_);
  record_have_ = 0;
  cursor_.reset();
  deliver(*call, record);
  return true;
}

/// It turned out to be shorter than it might have been. Stays as it is when memory is short.
void TcpServerConnection::shrink_record() {
  Buffer fitting = server_.pool_.acquire(record_have_, BufferStage::kNewCall);
  if (!fitting) return;
  std::memcpy(fitting.data(), record_.data(), record_have_);
  record_ = std::move(fitting);
}

void TcpServerConnection::deliver(TcpCall& call, ByteSpan record) {
  call.connection_ = this;
  ++open_calls_;
  had_turn_ = its_turn_;
  if (tap != nullptr) tap->on_receive(record);
  if (record.size() < 8 || load_be32(record.data() + 4) != kRpcCall) {
    // A reply to a call of ours, or nothing that could be answered.
    if (backward_ == nullptr || !backward_->on_reply(record)) ++stats_.errors;
    call_finished(call);
    return;
  }
  call.message_ = record;
  call.reduced_ = {};
  call.request_bytes_ = record.size();
  call.xid_ = load_be32(record.data());
  call.arrived = server_.loop_.now();
  call.handler_state = nullptr;
  call.with_handler_ = true;
  ++stats_.calls;
  server_.handler_.on_call(call);
}

void TcpServerConnection::starve(BufferStage stage) {
  if (starved_) return;
  starved_ = true;
  ++server_.starved_;
  server_.pool_.wait_for_buffers(*this, buffer_share, stage);
}

void TcpServerConnection::on_buffers() {
  starved_ = false;
  --server_.starved_;
  its_turn_ = true;
  resume();
  its_turn_ = had_turn_ = false;
  server_.loop_.defer(*this);  // what else has come, behind those who wait as well
}

/// Goes on after a pause, with what was read before it.
void TcpServerConnection::resume() {
  if (closing_ || paused()) return;
  if (cursor_.complete() && !deliver_record()) {
    starve(BufferStage::kWholeCall);
    return;
  }
  if (!stash_.empty() && !paused()) {
    std::vector<std::byte> stash = std::move(stash_);
    stash_.clear();
    consume(stash);
  }
  update_interest();
}

bool TcpServerConnection::paused() const {
  return starved_ || had_turn_ || draining_ || open_calls_ >= server_.limits_.max_calls ||
         out_bytes_ >= server_.limits_.max_output;
}

void TcpServerConnection::update_interest() {
  if (closing_ || torn_down_) return;
  std::uint32_t wanted = 0;
  if (leaving_ || (!paused() && stash_.empty())) wanted |= EPOLLIN;
  // Not for output that has yet to be tried: most is taken at once.
  if (blocked_) wanted |= EPOLLOUT;
  if (wanted == interest_) return;
  // The time that a pause of ours took is none of the client's.
  if ((wanted & ~interest_ & EPOLLIN) != 0) record_since_ = server_.loop_.now();
  interest_ = wanted;
  if (!server_.loop_.modify(socket_.get(), interest_, *this).ok()) fail();
}

void TcpServerConnection::submit(TcpCall& call) {
  if (closing_ || torn_down_) {
    call_finished(call);
    return;
  }
  ++stats_.replies;
  enqueue(call);
}

void TcpServerConnection::enqueue(TcpCall& call) {
  // Without the data of a file that cannot be read: sending it will fail as well.
  if (tap != nullptr && call.payload_.settle()) {
    iovec parts[TcpCall::kMaxPieces];
    const std::size_t count = call.pieces(kRecordMarkBytes, parts);
    std::vector<ByteSpan> pieces;
    for (std::size_t i = 0; i < count; ++i)
      pieces.emplace_back(static_cast<const std::byte*>(parts[i].iov_base), parts[i].iov_len);
    tap->on_send(pieces, std::nullopt);
  }
  if (out_.empty()) last_sent_ = server_.loop_.now();
  out_.push_back(call);
  out_bytes_ += call.record_bytes_;
  call.answered_ = server_.loop_.now();
  server_.loop_.defer(*this);
}

Result<void> TcpServerConnection::send_backward(BackwardCall& call) {
  if (closing_ || draining_) return Error{Errc::kClosed, 0, "backward call"};
  if (call.message.size() > kMaxBackward) {
    return Error{Errc::kInvalid, EMSGSIZE, "backward call: too long"};
  }
  if (backward_ == nullptr) {
    BackwardLink& link = *this;
    backward_ =
        std::make_unique<BackwardCalls>(server_.loop_, link, static_cast<std::uint32_t>(id) << 16,
                                        BackwardCalls::Flow::kFree, kMostBackward);
  }
  return backward_->submit(call);
}

/// As the reply of a call that nobody made: a TcpCall carries it.
bool TcpServerConnection::transmit(std::uint32_t xid, ByteSpan message) {
  if (closing_ || draining_) return false;
  // It cannot wait: under load it would never come, and a client that nobody asks for its
  // delegations loses them.
  TcpCall* carrier = server_.take_call(BufferStage::kWithHandler);
  if (carrier == nullptr) return false;
  if (message.size() > Call::kInlineReply) {
    carrier->long_reply_buffer_ = server_.pool_.acquire(message.size());
    if (!carrier->long_reply_buffer_) {
      server_.recycle(*carrier);
      return false;
    }
  }
  carrier->give_back_unused();
  carrier->connection_ = this;
  std::memcpy(carrier->reply_room().data(), message.data(), message.size());
  store_be32(carrier->reply_room().data(), xid);
  carrier->encoded_bytes_ = message.size();
  carrier->payload_count_ = 0;
  store_be32(carrier->mark_.data(), kLastFragment | static_cast<std::uint32_t>(message.size()));
  carrier->record_bytes_ = message.size() + kRecordMarkBytes;
  ++open_calls_;
  enqueue(*carrier);
  return true;
}

void TcpServerConnection::run_deferred() {
  if (closing_) {
    tear_down();
    return;
  }
  flush();
  resume();
  update_interest();
  if (draining_ && open_calls_ == 0) leave();
}

void TcpServerConnection::flush() {
  constexpr std::size_t kBatch = 256;
  iovec parts[kBatch];
  blocked_ = false;
  while (!out_.empty() && !closing_) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    std::size_t skip = out_offset_;
    out_.for_each([&](TcpCall& call) {
      if (count + TcpCall::kMaxPieces > kBatch) return;
      count += call.pieces(skip, parts + count);
      bytes += call.record_bytes_ - skip;
      skip = 0;
    });
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EFAULT && FileWindow::settle({parts, count})) continue;
      if (errno == EAGAIN || errno == EINTR) {
        blocked_ = true;
        server_.watch_stalls();
      } else {
        fail();
      }
      return;
    }
    sent(static_cast<std::size_t>(n));
    // The socket is full, or a page of a file is gone. The next try tells.
    if (static_cast<std::size_t>(n) < bytes && out_.front()->payload_.window() == nullptr) {
      blocked_ = true;
      server_.watch_stalls();
      return;
    }
  }
}

void TcpServerConnection::sent(std::size_t bytes) {
  stats_.inline_bytes += bytes;
  last_sent_ = server_.loop_.now();
  bytes += out_offset_;
  while (TcpCall* call = out_.front()) {
    if (bytes < call->record_bytes_) break;
    bytes -= call->record_bytes_;
    out_bytes_ -= call->record_bytes_;
    call->ListNode<TcpOutTag>::unlink();
    call_finished(*call);
  }
  out_offset_ = bytes;
}

/// The socket takes more only when a third of its buffer is free again. That may be megabytes, and
/// minutes for a slow client, whose acknowledgements count as well.
TimePoint TcpServerConnection::last_taken() {
  int left = 0;
  if (::ioctl(socket_.get(), SIOCOUTQ, &left) == 0) {
    if (left < std::exchange(unacknowledged_, left)) last_sent_ = server_.loop_.now();
  }
  return last_sent_;
}

void TcpServerConnection::call_finished(TcpCall& call) {
  server_.recycle(call);
  --open_calls_;
  if (torn_down_ && open_calls_ == 0) {
    server_.connection_gone(*this);
  } else if (!torn_down_ && (draining_ || interest_ != EPOLLIN)) {
    server_.loop_.defer(*this);  // there may be room again, or nothing left to do
  }
}

}  // namespace nfsrdma
