// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/connector.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "rpcrdma/iwarp/socket.h"

namespace nfsrdma::iwarp {
namespace {

std::string hex(ByteSpan bytes) {
  std::string text;
  for (std::byte b : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

bool worth_another_kind(const Error& error) {
  return error.code == Errc::kClosed ||
         (error.code == Errc::kSystem && (error.sys == ECONNRESET || error.sys == EPIPE));
}

}  // namespace

IwarpConnector::IwarpConnector(IwarpDevice& device, const SocketAddress& peer,
                               ConnectHandler& handler)
    : device_(device),
      peer_(peer),
      handler_(handler),
      timer_([this] { on_timer(); }),
      attempt_(device.fabric().remembered_attempt(peer, device.loop().now())) {}

IwarpConnector::~IwarpConnector() {
  close_socket();
  queue_pair_.reset();
}

void IwarpConnector::start() {
  connect();
}

void IwarpConnector::close_socket() {
  if (watching_) device_.loop().remove(fd_.get(), *this);
  watching_ = false;
  fd_.reset();
}

void IwarpConnector::connect() {
  close_socket();
  step_ = Step::kConnect;
  have_ = 0;
  fd_.reset(::socket(peer_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_) return fail_soon(system_error("socket"), "connect");
  timer_.arm_after(device_.loop(), device_.fabric().options.connect_timeout);
  if (::connect(fd_.get(), peer_.data(), peer_.length()) != 0 && errno != EINPROGRESS) {
    return fail_soon(system_error("connect"), "connect");
  }
  Result<void> added = device_.loop().add(fd_.get(), EPOLLOUT, *this);
  if (!added.ok()) return fail_soon(added.error(), "connect");
  watching_ = true;
}

void IwarpConnector::fail_soon(Error error, const char* step) {
  pending_error_ = error;
  pending_step_ = step;
  timer_.arm_after(device_.loop(), Duration::zero());
}

void IwarpConnector::on_timer() {
  if (pending_step_ != nullptr) return fail(pending_error_, pending_step_);
  if (step_ == Step::kConnect) return fail({Errc::kTimedOut, 0, "connect"}, "no answer to connect");
  fail({Errc::kTimedOut, 0, "MPA start-up"}, "no MPA Reply in time");
}

void IwarpConnector::on_fd_ready(std::uint32_t) {
  if (step_ == Step::kConnect) {
    const int error = pending_error(fd_.get());
    if (error != 0) return fail(system_error("connect", error), "TCP connect");
    return connected();
  }
  if (step_ == Step::kReply) read_reply();
}

void IwarpConnector::connected() {
  set_connection_options(fd_.get());
  if (!asked_device_) {
    asked_device_ = true;
    auto options = handler_.on_device(device_);
    if (!options.ok()) return fail(options.error(), "given up");
    options_ = *options;
    our_data_.assign(options_.private_data.begin(), options_.private_data.end());
    options_.private_data = our_data_;
  }
  step_ = Step::kRequest;
  Result<void> sent = send_request();
  if (!sent.ok()) return start_up_failed(sent.error());
  step_ = Step::kReply;
  timer_.arm_after(device_.loop(), device_.fabric().options.handshake_timeout);
  Result<void> watched = device_.loop().modify(fd_.get(), EPOLLIN, *this);
  if (!watched.ok()) fail(watched.error(), "MPA start-up");
}

Result<void> IwarpConnector::send_request() {
  const auto most = [](std::uint32_t wanted, std::uint32_t limit) {
    return static_cast<std::uint16_t>(std::min(wanted, limit));
  };
  const MpaLimits limits{device_.fabric().options.require_crc,
                         most(options_.inbound_reads, device_.info().max_inbound_reads),
                         most(options_.outbound_reads, device_.info().max_outbound_reads)};
  request_ = make_request(attempt_, limits);
  request_.own_peer = !device_.fabric().options.hide_own_peer;
  request_.private_data = our_data_;
  MpaFrameBytes bytes;
  const std::size_t size = encode_mpa_frame(request_, bytes);
  if (size == 0) return Error{Errc::kInvalid, 0, "private data too long"};
  const ByteSpan frame(bytes.data(), size);
  if (device_.fabric().tap) {
    auto local = SocketAddress::local_of(fd_.get());
    if (local.ok()) device_.fabric().tap->open(tap_, *local, peer_, true);
    device_.fabric().tap->data(tap_, true, frame);
  }
  if (!send_frame(fd_.get(), frame)) return system_error("send MPA Request");
  return {};
}

void IwarpConnector::read_reply() {
  std::size_t need = kMpaFrameHeader;
  MpaFrame reply;
  for (;;) {
    const MpaParse parse = decode_mpa_frame({bytes_.data(), have_}, true, &need, &reply);
    if (parse == MpaParse::kDone) return evaluate(reply);
    if (parse != MpaParse::kNeedMore) {
      return fail({Errc::kProtocol, 0, mpa_parse_text(parse)}, "not an MPA Reply");
    }
    const ssize_t n = ::recv(fd_.get(), bytes_.data() + have_, need - have_, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) return start_up_failed(system_error("read MPA Reply"));
    if (n == 0) return start_up_failed({Errc::kClosed, 0, "closed during MPA start-up"});
    have_ += static_cast<std::size_t>(n);
  }
}

void IwarpConnector::evaluate(const MpaFrame& reply) {
  if (device_.fabric().tap) device_.fabric().tap->data(tap_, false, {bytes_.data(), have_});
  const MpaLimits limits{device_.fabric().options.require_crc,
                         static_cast<std::uint16_t>(request_.ird),
                         static_cast<std::uint16_t>(request_.ord)};
  auto agreed = conclude_reply(request_, reply, limits);
  if (!agreed.ok()) {
    std::string what = agreed.error().where;
    if (!reply.private_data.empty()) what += ", private data " + hex(reply.private_data);
    return fail(agreed.error(), what);
  }
  device_.fabric().remember_attempt(peer_, attempt_, device_.loop().now());
  build(*agreed, reply.private_data);
}

void IwarpConnector::build(const MpaAgreement& agreed, ByteSpan private_data) {
  their_data_.assign(private_data.begin(), private_data.end());
  device_.loop().remove(fd_.get(), *this);
  watching_ = false;
  IwarpQueuePair::Setup setup;
  auto local = SocketAddress::local_of(fd_.get());
  if (local.ok()) setup.local = *local;
  setup.fd = std::move(fd_);
  setup.peer = peer_;
  setup.agreed = agreed;
  if (device_.fabric().options.hide_own_peer) setup.agreed.own_peer = false;
  setup.initiator = true;
  setup.tap = tap_;
  setup.waiter = agreed.rtr == RtrKind::kNone ? nullptr : static_cast<RtrWaiter*>(this);
  step_ = Step::kReady;
  queue_pair_ = std::make_unique<IwarpQueuePair>(device_, options_, std::move(setup));
  if (agreed.rtr != RtrKind::kNone) queue_pair_->post_rtr(agreed.rtr);
  Result<void> started = queue_pair_->start();
  if (!started.ok()) {
    queue_pair_.reset();
    return fail(started.error(), "MPA start-up");
  }
  if (agreed.rtr == RtrKind::kNone) succeed();
}

void IwarpConnector::on_rtr_done() {
  succeed();
}

void IwarpConnector::on_rtr_failed(Error error) {
  // Called from inside the queue pair, which goes with this object or at the end of the turn.
  fail(error, "the connection ended during MPA start-up");
}

void IwarpConnector::succeed() {
  timer_.cancel();
  step_ = Step::kDone;
  ConnectHandler& handler = handler_;
  auto queue_pair = std::move(queue_pair_);
  const std::vector<std::byte> private_data = std::move(their_data_);
  handler.on_connected(std::move(queue_pair), private_data);
}

void IwarpConnector::start_up_failed(Error error) {
  const bool more = attempts_ < kMpaAttempts && worth_another_kind(error);
  if (!more) return fail(error, "MPA start-up");
  ++attempts_;
  attempt_ = next_attempt(attempt_);
  connect();
}

void IwarpConnector::fail(Error error, const std::string& what) {
  timer_.cancel();
  close_socket();
  step_ = Step::kDone;
  const std::string detail =
      fmt::format("iwarp {}: {}{}{}", peer_.text(), what, what == error.message() ? "" : ": ",
                  what == error.message() ? "" : error.message());
  ConnectHandler& handler = handler_;
  handler.on_connect_failed(error, detail);
}

}  // namespace nfsrdma::iwarp
