// SPDX-License-Identifier: Apache-2.0
// TcpClient's connection and its sending side; tcp_client_replies.cc receives.
#include "rpcrdma/tcp_client.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>

#include "rpcrdma/tcp_client_connection.h"

namespace nfsrdma {

namespace {

constexpr std::byte kZeros[4]{};
constexpr int kReadsPerEvent = 16;
// The ports that Linux's client takes, too: below 665 are those of well-known services.
constexpr std::uint16_t kLastReserved = 1023;
constexpr std::uint16_t kReservedPorts = kLastReserved - 665 + 1;
constexpr const char* kNoPort = "all ports below 1024 are in use (noresvport does without)";

/// A port below 1024, as `secure` exports want it; without privilege any port. False: others have
/// all of them, and a connection by another one would be refused by these exports for as long as it
/// lasts. `rather`: that port, where it is free; 0: none.
bool bind_local(int fd, const SocketAddress& server, const TcpClientOptions& options,
                std::uint16_t rather) {
  SocketAddress local = server.is_v6() ? SocketAddress::any_v6(0) : SocketAddress::any_v4(0);
  if (options.local.family() == server.family()) local = options.local;
  if (rather != 0) {
    local.set_port(rather);
    if (::bind(fd, local.data(), local.length()) == 0) return true;
  }
  local.set_port(0);
  if (!options.reserved_port) {
    static_cast<void>(::bind(fd, local.data(), local.length()));
    return true;
  }
  // Those of connections that are over, which keep them for a minute, will do (SO_REUSEADDR). To
  // the same server such a one may not: begin elsewhere each time.
  static std::atomic<std::uint16_t> last{static_cast<std::uint16_t>(::getpid())};
  const std::uint16_t first = last.fetch_add(1, std::memory_order_relaxed);
  for (std::uint16_t i = 0; i < kReservedPorts; ++i) {
    const auto place = static_cast<std::uint16_t>((first + i) % kReservedPorts);
    local.set_port(static_cast<std::uint16_t>(kLastReserved - place));
    if (::bind(fd, local.data(), local.length()) == 0 || errno != EADDRINUSE) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<ClientTransport> make_tcp_transport(EventLoop& loop, const SocketAddress& server,
                                                    const TcpClientOptions& options,
                                                    ClientTransportHandler& handler) {
  auto client = std::make_unique<TcpClient>(loop, server, options, handler);
  client->start();
  return client;
}

TcpClient::TcpClient(EventLoop& loop, const SocketAddress& server, const TcpClientOptions& options,
                     ClientTransportHandler& handler)
    : loop_(loop),
      server_(server),
      options_(options),
      handler_(handler),
      id_(next_connection_id()),
      connect_timer_([this] {
        shut(Error{Errc::kTimedOut, ETIMEDOUT, "connect"}, "no answer");
      }),
      scratch_(new std::byte[kScratchBytes]),
      cursor_(options.max_record),
      since_(loop.now()),
      last_heard_(since_) {
  for (Slot& reply : backward_replies_)
    reply.backward = true;
  idle_.reserve(options_.max_calls);
  slots_.reserve(options_.max_calls);
}

TcpClient::~TcpClient() {
  state_ = State::kClosed;
  if (socket_) loop_.remove(socket_.get(), *this);
  socket_.reset();
  if (why_.where[0] == '\0') why_ = Error{Errc::kClosed, 0, "transport destroyed"};
  fail_calls();
}

void TcpClient::start() {
  connect_timer_.arm_after(loop_, options_.connect_timeout);
  // That another connection to that server has the port is said by connect() alone.
  const int most = (options_.reserved_port ? kReservedPorts : 1) + (options_.local_port != 0);
  bool port_taken = true;
  for (int i = 0; i < most && port_taken; ++i) {
    port_taken = false;
    if (!begin_connecting(&port_taken)) return;
  }
  if (port_taken) return shut(system_error("connect", EADDRNOTAVAIL), kNoPort);
  interest_ = EPOLLOUT;
  auto added = loop_.add(socket_.get(), interest_, *this);
  if (!added.ok()) shut(added.error(), "cannot watch the socket");
}

/// From the next port. False: it is over.
bool TcpClient::begin_connecting(bool* port_taken) {
  socket_.reset(::socket(server_.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) {
    shut(system_error("socket"), "cannot make a socket");
    return false;
  }
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // For the one that is to come back from this port, too.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const std::uint16_t rather = std::exchange(options_.local_port, std::uint16_t{0});
  const bool binds = rather != 0 || options_.reserved_port || options_.local.family() != AF_UNSPEC;
  if (binds && !bind_local(socket_.get(), server_, options_, rather)) {
    shut({Errc::kExhausted, EADDRINUSE, "bind"}, kNoPort);
    return false;
  }
  if (::connect(socket_.get(), server_.data(), server_.length()) == 0 || errno == EINPROGRESS) {
    return true;
  }
  *port_taken = errno == EADDRNOTAVAIL && (rather != 0 || options_.reserved_port);
  if (!*port_taken) shut(system_error("connect"), "cannot connect to " + server_.text());
  return *port_taken;
}

void TcpClient::finish_connecting() {
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) {
    shut(system_error("connect", failure), "cannot connect to " + server_.text());
    return;
  }
  connect_timer_.cancel();
  state_ = State::kReady;
  since_ = last_heard_ = loop_.now();
  if (auto local = SocketAddress::local_of(socket_.get()); local.ok()) local_ = *local;
  update_interest();
  handler_.on_transport_ready();
}

/// The end of it all, reported from the loop.
void TcpClient::shut(Error why, std::string detail) {
  if (state_ == State::kClosed) return;
  connect_timer_.cancel();
  state_ = State::kClosed;
  why_ = why;
  detail_ = std::move(detail);
  loop_.defer(*this);
}

void TcpClient::close() {
  shut(Error{Errc::kClosed, 0, "close"}, "closed");
}

void TcpClient::run_deferred() {
  if (state_ != State::kClosed) {
    flush();
    return;
  }
  if (socket_) loop_.remove(socket_.get(), *this);
  socket_.reset();
  fail_calls();
  handler_.on_transport_closed(why_, detail_);
}

void TcpClient::fail_calls() {
  const Error gone{Errc::kClosed, why_.sys, "connection"};
  target_ = nullptr;
  for (auto& slot : slots_) {
    ClientCall* call = std::exchange(slot->call, nullptr);
    if (call == nullptr) continue;
    call->transport_state = nullptr;
    call->ok = false;
    call->error = gone;
    call->on_complete();
  }
  while (ClientCall* call = waiting_.pop_front()) {
    call->ok = false;
    call->error = gone;
    call->on_complete();
  }
}

void TcpClient::on_fd_ready(std::uint32_t events) {
  if (state_ == State::kConnecting) {
    finish_connecting();
    return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    // Bounded: a peer that never stops sending does not have the loop for itself. What is left over
    // is there in the loop's next turn.
    for (int i = 0; i < kReadsPerEvent && state_ == State::kReady && read_once(); ++i) {
    }
  }
  if ((events & EPOLLOUT) != 0 && state_ == State::kReady) flush();
}

void TcpClient::submit(ClientCall& call) {
  call.transport_state = nullptr;
  call.ok = false;
  if (state_ != State::kReady) {
    call.error = Error{Errc::kClosed, 0, "submit"};
    call.on_complete();
    return;
  }
  ++stats_.calls;
  if (idle_.empty() && slots_.size() == options_.max_calls) ++stats_.credit_waits;
  waiting_.push_back(call);
  loop_.defer(*this);
}

void TcpClient::cancel(ClientCall& call) {
  call.ListNode<ClientCall>::unlink();
  auto* slot = static_cast<Slot*>(std::exchange(call.transport_state, nullptr));
  if (slot == nullptr) return;
  const bool half_sent = out_.front() == slot && out_offset_ > 0;
  bool unsent = false;
  out_.for_each([&](Slot& other) { unsent = unsent || (&other == slot && !half_sent); });
  if (half_sent) {
    // The stream must go on; the caller's memory may not be touched any more.
    iovec parts[kMaxPieces];
    const std::size_t count = pieces(*slot, 0, parts);
    std::vector<std::byte> copy;
    for (std::size_t i = 0; i < count; ++i) {
      const auto* from = static_cast<const std::byte*>(parts[i].iov_base);
      copy.insert(copy.end(), from, from + parts[i].iov_len);
    }
    slot->copy = std::move(copy);
  }
  if (target_ == slot) {
    // What is still to come of the data goes nowhere; parse keeps count in place_.
    target_ = nullptr;
  }
  slot->call = nullptr;
  if (unsent) release(*slot);
}

void TcpClient::release(Slot& slot) {
  slot.unlink();
  if (slot.large_sink) --large_sinks_;
  slot.large_sink = false;
  slot.call = nullptr;
  slot.copy = {};
  if (slot.backward) return;
  idle_.push_back(&slot);
  if (!waiting_.empty()) loop_.defer(*this);
}

/// Moves waiting calls into the output while there are slots.
void TcpClient::fill_output() {
  while (!waiting_.empty()) {
    if (idle_.empty()) {
      if (slots_.size() >= options_.max_calls) return;
      slots_.push_back(std::make_unique<Slot>());
      idle_.push_back(slots_.back().get());
    }
    ClientCall& call = *waiting_.pop_front();
    const std::size_t length = call.head.size() + round_up4(call.payload.size()) + call.tail.size();
    Slot& slot = *idle_.back();
    idle_.pop_back();
    slot.call = &call;
    slot.xid = call.xid;
    slot.record_bytes = length + kRecordMarkBytes;
    slot.large_sink = call.sink.size() >= kLargeSink;
    if (slot.large_sink) ++large_sinks_;
    store_be32(slot.mark, kLastFragment | static_cast<std::uint32_t>(length));
    call.transport_state = &slot;
    out_.push_back(slot);
  }
}

std::size_t TcpClient::pieces(const Slot& slot, std::size_t skip, iovec* out) {
  std::size_t count = 0;
  auto append = [&](ByteSpan bytes) {
    const std::size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    if (bytes.size() == skipped) return;
    out[count++] = {const_cast<std::byte*>(bytes.data()) + skipped, bytes.size() - skipped};
  };
  if (slot.call == nullptr) {
    append(slot.copy);
    return count;
  }
  append({slot.mark, kRecordMarkBytes});
  append(slot.call->head);
  append(slot.call->payload);
  append({kZeros, pad4(slot.call->payload.size())});
  append(slot.call->tail);
  return count;
}

void TcpClient::flush() {
  constexpr std::size_t kBatch = 256;
  iovec parts[kBatch];
  fill_output();
  while (!out_.empty()) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    std::size_t skip = out_offset_;
    out_.for_each([&](Slot& slot) {
      if (count + kMaxPieces > kBatch) return;
      count += pieces(slot, skip, parts + count);
      bytes += slot.record_bytes - skip;
      skip = 0;
    });
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) shut(system_error("send"), "connection lost");
      break;
    }
    sent(static_cast<std::size_t>(n));
    if (static_cast<std::size_t>(n) < bytes) break;
  }
  update_interest();
}

void TcpClient::sent(std::size_t bytes) {
  stats_.inline_bytes += bytes;
  bytes += out_offset_;
  while (Slot* slot = out_.front()) {
    if (bytes < slot->record_bytes) break;
    bytes -= slot->record_bytes;
    if (slot->call != nullptr) slot->call->sent = true;
    if (slot->backward) {
      release(*slot);
    } else {
      sent_.push_back(*slot);
    }
  }
  out_offset_ = bytes;
}

void TcpClient::update_interest() {
  if (state_ != State::kReady) return;
  const std::uint32_t wanted = EPOLLIN | (out_.empty() ? 0u : static_cast<std::uint32_t>(EPOLLOUT));
  if (wanted == interest_) return;
  interest_ = wanted;
  auto modified = loop_.modify(socket_.get(), wanted, *this);
  if (!modified.ok()) shut(modified.error(), "cannot watch the socket");
}

ConnectionInfo TcpClient::describe() const {
  ConnectionInfo out;
  out.id = id_;
  out.transport = TransportKind::kTcp;
  out.local = local_;
  out.peer = server_;
  out.credits = options_.max_calls;
  out.age_seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(loop_.now() - since_).count());
  out.stats = stats_;
  return out;
}

}  // namespace nfsrdma
