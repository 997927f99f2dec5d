// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/responder_handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "rpcrdma/iwarp/socket.h"
#include "rpcrdma/iwarp/tcp_driver.h"

namespace nfsrdma::iwarp {
namespace {

struct Asked {
  UniqueFd fd;
  SocketAddress local;
  SocketAddress peer;
  HalfOpenLimit::Slot slot;
  PcapTap::Stream tap;
  MpaFrame request;
};

class IwarpConnectRequest final : public ConnectRequest {
 public:
  IwarpConnectRequest(IwarpDevice& device, Asked asked)
      : device_(device),
        asked_(std::move(asked)),
        private_data_(asked_.request.private_data.begin(), asked_.request.private_data.end()) {}
  ~IwarpConnectRequest() override {
    if (asked_.fd) reject({});
  }

  Device& device() override { return device_; }
  const SocketAddress& peer() const override { return asked_.peer; }
  ByteSpan private_data() const override { return private_data_; }
  std::uint32_t peer_inbound_reads() const override {
    return iwarp::peer_inbound_reads(asked_.request);
  }
  Result<std::unique_ptr<QueuePair>> accept(const QueuePairOptions& options) override;
  void reject(ByteSpan private_data) override;

 private:
  bool send_reply(const MpaFrame& reply, PcapTap::Stream& tap, int fd);

  IwarpDevice& device_;
  Asked asked_;
  std::vector<std::byte> private_data_;
};

bool IwarpConnectRequest::send_reply(const MpaFrame& reply, PcapTap::Stream& tap, int fd) {
  MpaFrameBytes bytes;
  const std::size_t size = encode_mpa_frame(reply, bytes);
  const ByteSpan frame(bytes.data(), size);
  if (size == 0 || !send_frame(fd, frame)) return false;
  if (device_.fabric().tap) device_.fabric().tap->data(tap, true, frame);
  return true;
}

Result<std::unique_ptr<QueuePair>> IwarpConnectRequest::accept(const QueuePairOptions& options) {
  if (!asked_.fd) return Error{Errc::kInvalid, 0, "connect request used twice"};
  const std::uint32_t ird = std::min(options.inbound_reads, device_.info().max_inbound_reads);
  const std::uint32_t ord = std::min(options.outbound_reads, device_.info().max_outbound_reads);
  const MpaLimits limits{device_.fabric().options.require_crc, static_cast<std::uint16_t>(ird),
                         static_cast<std::uint16_t>(ord)};
  if (device_.fabric().options.hide_own_peer) asked_.request.own_peer = false;
  MpaFrame reply;
  IwarpQueuePair::Setup setup;
  setup.agreed = answer_request(asked_.request, limits, &reply);
  reply.private_data = options.private_data;
  setup.fd = std::move(asked_.fd);
  setup.local = asked_.local;
  setup.peer = asked_.peer;
  setup.tap = asked_.tap;
  // Built first, so that nothing that can fail is left once the peer has the Reply.
  auto queue_pair = std::make_unique<IwarpQueuePair>(device_, options, std::move(setup));
  if (!send_reply(reply, queue_pair->tap_stream(), queue_pair->fd())) {
    return Error{Errc::kClosed, 0, "the peer was gone before the MPA Reply"};
  }
  NFSRDMA_CHECK_OK(queue_pair->start());
  asked_.slot = {};
  return queue_pair;
}

void IwarpConnectRequest::reject(ByteSpan private_data) {
  if (!asked_.fd) return;
  MpaFrame reply = reject_request(asked_.request);
  reply.private_data = private_data;
  send_reply(reply, asked_.tap, asked_.fd.get());
  // A FIN together with the Reply would hide it from siw: the peer closes first.
  device_.linger(std::move(asked_.fd), true);
}

}  // namespace

ResponderHandshake::ResponderHandshake(IwarpDevice& device, UniqueFd fd, const SocketAddress& peer,
                                       HalfOpenLimit::Slot slot, AcceptHandler& handler)
    : device_(device),
      fd_(std::move(fd)),
      peer_(peer),
      slot_(std::move(slot)),
      handler_(handler),
      timer_([this] { give_up("no MPA Request in time"); }) {}

ResponderHandshake::~ResponderHandshake() {
  stop_watching();
}

void ResponderHandshake::stop_watching() {
  if (watching_) device_.loop().remove(fd_.get(), *this);
  watching_ = false;
}

void ResponderHandshake::start() {
  set_connection_options(fd_.get());
  if (device_.fabric().tap) {
    auto local = SocketAddress::local_of(fd_.get());
    if (local.ok()) device_.fabric().tap->open(tap_, *local, peer_, false);
  }
  if (!device_.loop().add(fd_.get(), EPOLLIN, *this).ok()) return device_.release(*this);
  watching_ = true;
  timer_.arm_after(device_.loop(), device_.fabric().options.handshake_timeout);
}

void ResponderHandshake::on_fd_ready(std::uint32_t) {
  std::size_t need = kMpaFrameHeader;
  MpaFrame request;
  for (;;) {
    const MpaParse parse = decode_mpa_frame({bytes_.data(), have_}, false, &need, &request);
    if (parse == MpaParse::kDone) return complete(request);
    if (parse != MpaParse::kNeedMore) return give_up(mpa_parse_text(parse));
    const ssize_t n = ::recv(fd_.get(), bytes_.data() + have_, need - have_, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // Port scans and health checks come and go without a word.
    if (n <= 0) return give_up(have_ == 0 ? nullptr : "closed during MPA start-up");
    if (have_ == 0) slot_.heard();
    have_ += static_cast<std::size_t>(n);
  }
}

void ResponderHandshake::give_up(const char* why) {
  if (why != nullptr && device_.may_log()) {
    log_notice("{} on the RDMA port {}: refused", peer_.text(), why);
  }
  stop_watching();
  timer_.cancel();
  slot_ = {};
  fd_.reset();
  device_.release(*this);
}

void ResponderHandshake::complete(const MpaFrame& request) {
  slot_.settle();
  stop_watching();
  timer_.cancel();
  if (device_.fabric().tap) device_.fabric().tap->data(tap_, false, {bytes_.data(), have_});
  Asked asked;
  asked.peer = peer_;
  asked.slot = std::move(slot_);
  asked.tap = tap_;
  asked.request = request;
  auto local = SocketAddress::local_of(fd_.get());
  if (local.ok()) asked.local = *local;
  asked.fd = std::move(fd_);
  AcceptHandler& handler = handler_;
  auto connect_request = std::make_unique<IwarpConnectRequest>(device_, std::move(asked));
  if (const char* fault = request_fault(request)) {
    if (device_.may_log()) log_warning("{}: {}", peer_.text(), fault);
    connect_request->reject({});
    return device_.release(*this);
  }
  device_.release(*this);
  handler.on_connect_request(std::move(connect_request));
}

}  // namespace nfsrdma::iwarp
