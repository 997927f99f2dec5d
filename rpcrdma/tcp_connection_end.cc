// SPDX-License-Identifier: Apache-2.0
// How a connection of TcpServer ends: in order, when the client or the server asks or sends no
// more, or at once. See tcp_connection.h.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <utility>

#include "rpcrdma/base/discard.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/tcp_connection.h"

namespace nfsrdma {

/// It may have closed its direction alone, and wait for the answers of what it has asked.
void TcpServerConnection::client_ended() {
  if (open_calls_ == 0) return fail();
  client_ended_ = true;
  record_.reset();  // nothing comes to complete it
  drain();
  if (backward_ != nullptr) backward_->close();
  tell_closed();
}

void TcpServerConnection::tell_closed() {
  if (!std::exchange(told_closed_, true)) server_.handler_.on_connection_closed(*this);
}

/// All is answered. Whoever closes with calls of the client unread, or before more of them come,
/// makes the kernel throw away what it has not sent yet (RST). So only our direction is closed, and
/// the client does the rest. One that does not look at its connection gets no longer than it takes
/// to acknowledge everything, and TcpServer::shutdown() knows how long to wait for the others.
void TcpServerConnection::leave() {
  if (leaving_ || closing_) return;
  if (client_ended_ || !has_something_to_lose()) return fail();
  leaving_ = true;
  ::shutdown(socket_.get(), SHUT_WR);
  update_interest();
  server_.watch_leaving();
}

bool TcpServerConnection::has_left() {
  return is_leaving() && !std::exchange(heard_, false) && !has_something_to_lose();
}

bool TcpServerConnection::has_something_to_lose() const {
  int unread = 0, unacknowledged = 0;
  return ::ioctl(socket_.get(), SIOCINQ, &unread) != 0 || unread > 0 ||
         ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged > 0;
}

void TcpServerConnection::discard() {
  heard_ = true;
  if (!discard_received(socket_.get())) fail();
}

void TcpServerConnection::drain() {
  draining_ = true;
  server_.loop_.defer(*this);
}

void TcpServerConnection::fail() {
  if (closing_) return;
  closing_ = true;
  server_.loop_.defer(*this);
}

void TcpServerConnection::cut_off(const char* why) {
  static thread_local RateLimit limit(10, std::chrono::seconds(10));
  if (limit.allow()) log_info("{}: {}: closing", peer_.text(), why);
  fail();
}

/// While we do not read it is not for the client that the record is not complete.
HeldBuffers TcpServerConnection::held() {
  HeldBuffers held;
  if (closing_) return held;
  if (!paused()) held.add(record_.size(), record_since_);
  // The small ones too: whoever takes no answers may have hundreds that wait for it.
  out_.for_each([&held](TcpCall& call) {
    held.add(call.payload_.size() + call.reply_buffer_.size() + call.long_reply_buffer_.size(),
             call.answered_);
  });
  return held;
}

void TcpServerConnection::give_way() {
  cut_off("others wait for the memory that it has held for long");
}

void TcpServerConnection::tear_down() {
  if (torn_down_) return;
  closing_ = torn_down_ = true;
  server_.loop_.remove(socket_.get(), *this);
  socket_.reset();
  if (starved_) {
    BufferWaiter::unlink();
    starved_ = false;
    --server_.starved_;
  }
  record_.reset();
  stash_ = {};
  ++open_calls_;  // keeps the connection while its calls go
  while (TcpCall* call = out_.pop_front())
    call_finished(*call);
  if (backward_ != nullptr) backward_->close();
  tell_closed();
  if (--open_calls_ == 0) server_.connection_gone(*this);
}

}  // namespace nfsrdma
