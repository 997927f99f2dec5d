// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/tcp_driver.h"

#include <sys/socket.h>

#include <algorithm>

#include "rpcrdma/base/file_window.h"
#include "rpcrdma/iwarp/fpdu_size.h"
#include "rpcrdma/iwarp/socket.h"

namespace nfsrdma::iwarp {
namespace {

constexpr std::size_t kFlushNow = 256 * 1024;
/// Per event and connection, so that one does not starve the others of its loop.
constexpr std::size_t kReadQuantum = 4 * 1024 * 1024;
constexpr std::size_t kWriteQuantum = 4 * 1024 * 1024;
constexpr std::uint32_t kRefreshEvery = 1000;
constexpr std::chrono::milliseconds kNudges[] = {
    std::chrono::milliseconds(50), std::chrono::milliseconds(150), std::chrono::milliseconds(800)};
/// No event tells that a window has opened, or that what was sent is acknowledged.
constexpr std::chrono::milliseconds kFirstWindowWait{1};
constexpr std::chrono::milliseconds kMaxWindowWait{64};

}  // namespace

EngineOptions IwarpQueuePair::engine_options(IwarpQueuePair& self, const QueuePairOptions& options,
                                             const Setup& setup) {
  EngineOptions out;
  out.scope = self.number_;
  out.initiator = setup.initiator;
  out.crc = setup.agreed.crc;
  out.ord = setup.agreed.ord;
  out.ird = setup.agreed.ird;
  out.send_depth = options.send_depth;
  out.expected_rtr = setup.initiator ? RtrKind::kNone : setup.agreed.rtr;
  out.coalesce = setup.agreed.own_peer;
  const FpduSizes sizes = fpdu_sizes(segment_size(self.fd_.get()), setup.agreed.own_peer,
                                     setup.agreed.crc, self.device_.fabric().options.max_fpdu);
  out.tagged_payload = sizes.tagged_payload;
  out.untagged_payload = sizes.untagged_payload;
  return out;
}

IwarpQueuePair::IwarpQueuePair(IwarpDevice& device, const QueuePairOptions& options, Setup setup)
    : device_(device),
      completions_(static_cast<IwarpCompletionQueue&>(*options.completions)),
      receives_(static_cast<IwarpReceiveQueue&>(*options.receives)),
      handler_(options.handler),
      waiter_(setup.waiter),
      fd_(std::move(setup.fd)),
      number_(device.attach(*this)),
      tap_(setup.tap),
      engine_(*this, device.stags(), device.work(), engine_options(*this, options, setup)),
      timer_([this] { on_timer(); }),
      window_timer_([this] { device_.loop().defer(*this); }),
      window_wait_(kFirstWindowWait) {
  info_.local = setup.local;
  info_.peer = setup.peer;
  info_.max_outbound_reads = setup.agreed.ord;
  info_.max_inbound_reads = setup.agreed.ird;
  info_.crc = setup.agreed.crc;
  info_.own_peer = setup.agreed.own_peer;
  info_.sends_file_pages = !info_.crc && device_.fabric().tap == nullptr;
  info_.detail = fmt::format("MPA rev {}, FPDU <= {}{}", setup.agreed.revision,
                             engine_.options().tagged_payload + kTaggedHeader + kMpaCrcSize,
                             setup.agreed.own_peer ? ", coalesced" : "");
}

IwarpQueuePair::~IwarpQueuePair() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  waiter_ = nullptr;
  if (fd_) {
    // What is posted still goes out as far as the socket takes it now; the memory may be gone
    // later.
    if (!engine_.failed() && !blocked_) flush();
    device_.loop().remove(fd_.get(), *this);
    if (device_.fabric().tap) device_.fabric().tap->close(tap_);
    device_.linger(std::move(fd_), false);
  }
  device_.detach(number_);
  completions_.forget(*this);
}

Result<void> IwarpQueuePair::start() {
  NFSRDMA_CHECK_OK(device_.loop().add(
      fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | static_cast<std::uint32_t>(EPOLLET), *this));
  if (waiter_ == nullptr) arm_nudge();
  return {};
}

Result<void> IwarpQueuePair::post(std::span<const WorkRequest> requests, std::size_t* posted) {
  *posted = 0;
  if (closing_ || finished_) return Error{Errc::kClosed, 0, "queue pair"};
  Result<void> result = engine_.post(requests, posted);
  if (!blocked_ && engine_.queued_bytes() >= kFlushNow) flush();
  device_.loop().defer(*this);
  return result;
}

void IwarpQueuePair::disconnect() {
  if (closing_ || finished_) return;
  closing_ = true;
  timer_.arm_after(device_.loop(), device_.fabric().options.close_linger);
  device_.loop().defer(*this);
}

void IwarpQueuePair::on_fd_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) blocked_ = false;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    read_socket((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
  }
  flush();
  after_events();
}

void IwarpQueuePair::run_deferred() {
  if (finished_) return;
  if (read_again_) {
    read_again_ = false;
    read_socket(true);
  }
  flush();
  after_events();
}

/// Tells the users what happened. They may destroy this object.
void IwarpQueuePair::after_events() {
  if (finished_) return;
  bool gone = false;
  bool* const outer = std::exchange(destroyed_, &gone);
  auto leave = [&] {
    if (gone) {
      if (outer != nullptr) *outer = true;
      return true;
    }
    return false;
  };
  if (std::exchange(established_now_, false)) {
    handler_->on_established();
    if (leave()) return;
  }
  if (std::exchange(rtr_done_now_, false) && waiter_ != nullptr && !engine_.failed()) {
    arm_nudge();
    std::exchange(waiter_, nullptr)->on_rtr_done();
    if (leave()) return;
  }
  completions_.notify();
  if (leave()) return;
  destroyed_ = outer;
  if (closing_ && !engine_.failed() && engine_.drained()) {
    engine_.fail(Error{Errc::kClosed, 0, "disconnected"});
  }
  if (engine_.failed()) finish();
}

void IwarpQueuePair::read_socket(bool to_the_end) {
  FpduReceiver& receiver = engine_.receiver();
  ReceiveScratch& scratch = device_.receive_scratch();
  std::size_t taken = 0;
  // Nothing that a connection on its way out still sends waits for the peer, once that has spoken;
  // what comes is thrown away behind our FIN (IwarpDevice::linger()).
  while (fd_ && !engine_.failed() && !receiver.waiting() && !(closing_ && engine_.started())) {
    if (taken >= kReadQuantum) {
      read_again_ = true;
      device_.loop().defer(*this);
      return;
    }
    receiver.plan(scratch);
    const ssize_t n = ::readv(fd_.get(), scratch.iov.data(), scratch.count);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) engine_.fail(system_error("read from the peer"));
      return;
    }
    if (n == 0) return peer_closed();
    const auto bytes = static_cast<std::size_t>(n);
    if (device_.fabric().tap) {
      device_.fabric().tap->data(tap_, false, scratch.iov.data(), bytes);
    }
    const bool filled = bytes == scratch.bytes;
    if (!received(receiver.on_bytes(scratch, bytes))) return;
    // A read that came back short emptied the socket, unless the end of the stream is behind it.
    if (!filled && !to_the_end) return;
    taken += bytes;
  }
}

/// False: stop reading.
bool IwarpQueuePair::received(ReceiveStatus status) {
  if (status == ReceiveStatus::kMore) return true;
  if (status == ReceiveStatus::kWait) receives_.wait(*this);
  if (!engine_.terminate_received().empty() && device_.may_log()) {
    log_warning("{}: {}", info_.peer.text(), engine_.terminate_received());
  }
  return false;
}

void IwarpQueuePair::peer_closed() {
  const bool between = engine_.receiver().at_boundary();
  engine_.fail(Error{Errc::kClosed, 0,
                     between ? "the peer closed the connection"
                             : "the peer closed the connection inside an FPDU"});
}

void IwarpQueuePair::resume_receiving() {
  if (!fd_ || engine_.failed()) return;
  if (received(engine_.receiver().resume())) read_socket(true);
  device_.loop().defer(*this);
}

void IwarpQueuePair::send_overdue() {
  if (engine_.failed()) return;
  if (device_.may_log()) {
    log_warning("{}: has not ended a Send for {} s, and others wait for receives: closing",
                info_.peer.text(), IwarpReceiveQueue::kMostForASend.count());
  }
  engine_.fail(Error{Errc::kTimedOut, 0, "a Send that others wait for"});
}

void IwarpQueuePair::flush() {
  std::size_t sent = 0;
  while (fd_ && !blocked_ && !engine_.failed()) {
    TransmitScratch& batch = device_.transmit_scratch();
    engine_.fill(batch);
    if (batch.fpdu_count == 0) return;
    if (sent >= kWriteQuantum) {
      device_.loop().defer(*this);
      return;
    }
    ssize_t n = engine_.options().coalesce ? send_coalesced(batch) : send_separately(batch);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EFAULT && FileWindow::settle({batch.iov.data(), batch.iov_count})) continue;
      if (errno != EAGAIN) return engine_.fail(system_error("send to the peer"));
      n = 0;
      // Not after a short write: that may have met a page of a file that is gone.
      blocked_ = true;
    }
    const auto bytes = static_cast<std::size_t>(n);
    if (bytes > 0 && device_.fabric().tap) {
      device_.fabric().tap->data(tap_, true, batch.iov.data(), bytes);
    }
    engine_.on_sent(bytes);
    sent += bytes;
    fpdus_until_refresh_ += static_cast<std::uint32_t>(batch.fpdu_count);
    if (fpdus_until_refresh_ >= kRefreshEvery) refresh_segment_size();
  }
}

ssize_t IwarpQueuePair::send_coalesced(const TransmitScratch& batch) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(batch.iov.data());
  message.msg_iovlen = batch.iov_count;
  return ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// One FPDU per message, each closed by MSG_EOR: the kernel then starts the next in a new segment,
/// as siw's parser needs. A short write's rest goes out first the next time, with MSG_EOR as well.
ssize_t IwarpQueuePair::send_separately(const TransmitScratch& batch) {
  std::array<mmsghdr, TransmitScratch::kMaxFpdus> messages;
  for (std::size_t i = 0; i < batch.fpdu_count; ++i) {
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = const_cast<iovec*>(batch.iov.data()) + batch.first_iov[i];
    messages[i].msg_hdr.msg_iovlen = batch.first_iov[i + 1] - batch.first_iov[i];
  }
  const int n = ::sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(batch.fpdu_count),
                           MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);
  if (n < 0) return -1;
  ssize_t bytes = 0;
  for (int i = 0; i < n; ++i)
    bytes += messages[static_cast<std::size_t>(i)].msg_len;
  return bytes;
}

void IwarpQueuePair::refresh_segment_size() {
  fpdus_until_refresh_ = 0;
  const FpduSizes sizes = fpdu_sizes(segment_size(fd_.get()), info_.own_peer, info_.crc,
                                     device_.fabric().options.max_fpdu);
  engine_.set_payload_sizes(sizes.tagged_payload, sizes.untagged_payload);
}

void IwarpQueuePair::finish() {
  finished_ = true;
  timer_.cancel();
  window_timer_.cancel();
  Deferred::unlink();
  Starved::unlink();
  if (ByteSpan last = engine_.terminate();
      !last.empty() && send_frame(fd_.get(), last) && device_.fabric().tap) {
    device_.fabric().tap->data(tap_, true, last);
  }
  if (engine_.failure().code == Errc::kProtocol && engine_.terminate_received().empty() &&
      device_.may_log()) {
    log_warning("{}: {}", info_.peer.text(), engine_.failure().where);
  }
  if (device_.fabric().tap) device_.fabric().tap->close(tap_);
  device_.loop().remove(fd_.get(), *this);
  device_.linger(std::move(fd_), false);
  engine_.flush();

  bool gone = false;
  bool* const outer = std::exchange(destroyed_, &gone);
  completions_.notify();
  if (gone) {
    if (outer != nullptr) *outer = true;
    return;
  }
  destroyed_ = outer;
  if (waiter_ != nullptr) {
    std::exchange(waiter_, nullptr)->on_rtr_failed(engine_.failure());
  } else {
    handler_->on_disconnected(engine_.failure());
  }
}

void IwarpQueuePair::arm_nudge() {
  const bool wanted = engine_.options().initiator && !info_.own_peer && !closing_ &&
                      nudges_ < std::size(kNudges) && engine_.receiver().fpdus() == 0;
  if (wanted) timer_.arm_after(device_.loop(), kNudges[nudges_]);
}

void IwarpQueuePair::on_timer() {
  if (closing_) {
    engine_.fail(Error{Errc::kClosed, 0, "disconnected"});
    device_.loop().defer(*this);
    return;
  }
  if (engine_.failed() || engine_.receiver().fpdus() != 0) return;
  // siw may have overlooked what came right behind its Reply: more data wakes it.
  engine_.post_nudge();
  ++nudges_;
  arm_nudge();
  device_.loop().defer(*this);
}

void IwarpQueuePair::on_completion(const WorkCompletion& completion) {
  if (completion.opcode == WorkOpcode::kReceive) BegunSend::unlink();
  WorkCompletion copy = completion;
  copy.queue_pair = this;
  completions_.push(copy);
}

bool IwarpQueuePair::take_receive(std::uint64_t* wr_id, Sge* buffer) {
  return receives_.take(*this, wr_id, buffer);
}

void IwarpQueuePair::return_receive(std::uint64_t wr_id, Sge buffer) {
  BegunSend::unlink();
  receives_.give_back(wr_id, buffer);
}

void IwarpQueuePair::on_first_fpdu() {
  if (!engine_.options().initiator) established_now_ = true;
}

void IwarpQueuePair::on_rtr_done() {
  rtr_done_now_ = true;
  device_.loop().defer(*this);
}

/// When the kernel probes a small window, it cuts off what fits; siw's parser writes past a kernel
/// structure when that end is in a Read Request.
bool IwarpQueuePair::may_send_read(std::size_t ahead) {
  if (info_.own_peer || sent_in_one_piece(fd_.get(), ahead)) {
    window_wait_ = kFirstWindowWait;
    return true;
  }
  // What goes ahead of it in this batch brings the question up again.
  if (ahead > 0) return false;
  window_timer_.arm_after(device_.loop(), window_wait_);
  window_wait_ = std::min(2 * window_wait_, kMaxWindowWait);
  return false;
}

void IwarpQueuePair::on_engine_failed() {
  device_.loop().defer(*this);
}

}  // namespace nfsrdma::iwarp
