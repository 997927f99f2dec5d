// SPDX-License-Identifier: Apache-2.0
// The server's half of cm.h.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/unique_fd.h"
#include "rpcrdma/verbs/addresses.h"
#include "rpcrdma/verbs/cm.h"

namespace nfsrdma::verbs {

namespace {

constexpr std::chrono::seconds kListenAgain{1};

void reject_id(CommandThread& commands, rdma_cm_id* id, ByteSpan private_data) {
  commands.run([&] {
    return ::rdma_reject(id, private_data.data(), static_cast<std::uint8_t>(private_data.size()));
  });
}

/// Null, or the step that failed (with errno).
const char* bind_and_listen(rdma_cm_id* id, SocketAddress address, int backlog) {
  int on = 1;
  ::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
  if (address.is_v6()) {
    // IPv4 has a listener of its own.
    ::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on);
  }
  if (::rdma_bind_addr(id, address.data()) != 0) return "rdma_bind_addr";
  return ::rdma_listen(id, backlog) == 0 ? nullptr : "rdma_listen";
}

bool host_has(SocketAddress address) {
  address.set_port(0);
  UniqueFd socket(::socket(address.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), address.data(), address.length()) == 0;
}

/// Of a port that is taken the kernel says EADDRNOTAVAIL, too, when one of the two listens on all
/// addresses (cma_check_port() in its cma.c).
Error listen_error(const char* step, const SocketAddress& address) {
  const int err = errno;
  return system_error(step, err == EADDRNOTAVAIL && host_has(address) ? EADDRINUSE : err);
}

}  // namespace

VerbsListener::VerbsListener(LoopResources& resources, EventLoop& loop,
                             const SocketAddress& address, IncomingHandler& handler)
    : resources_(resources), loop_(loop), handler_(handler), address_(address), retry_([this] {
        open_again();
      }) {}

Result<std::unique_ptr<Listener>> VerbsListener::create(LoopResources& resources, EventLoop& loop,
                                                        const SocketAddress& address,
                                                        IncomingHandler& handler) {
  std::unique_ptr<VerbsListener> listener(new VerbsListener(resources, loop, address, handler));
  NFSRDMA_CHECK_OK(listener->open());
  return std::unique_ptr<Listener>(std::move(listener));
}

Result<void> VerbsListener::open() {
  NFSRDMA_TRY(CmChannel * channel, resources_.channel(loop_));
  for (int tries = 1;; ++tries) {
    NFSRDMA_TRY(CmIdHandle made, channel->create_id(*this));
    rdma_cm_id* id = made.get();
    const char* failed = resources_.commands().run(
        [&] { return bind_and_listen(id, address_, resources_.options().backlog); });
    if (failed == nullptr) {
      address_.set_port(ntohs(::rdma_get_src_port(id)));
      id_ = std::move(made);
      return {};
    }
    const Error error = listen_error(failed, address_);
    if (address_.port() != 0 || !port_is_taken(error) || tries == kPortTries) return error;
  }
}

void VerbsListener::on_cm_event(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    handler_.on_incoming(std::make_unique<VerbsIncoming>(resources_, event));
    return;
  }
  // A listener bound to one address hears of its device's end, and that the address moved to
  // another port; for one on the wildcard the kernel takes care of both.
  log_warning("verbs: listener {}: {}; waiting for a device with that address", address_.text(),
              ::rdma_event_str(event.type));
  id_.reset();
  open_again();
}

void VerbsListener::open_again() {
  if (auto opened = open(); !opened.ok()) {
    log_debug("verbs: listener {}: {}", address_.text(), opened.error().message());
    retry_.arm_after(loop_, kListenAgain);
    return;
  }
  log_notice("verbs: listening on {} again", address_.text());
}

VerbsIncoming::~VerbsIncoming() {
  if (id_) reject_id(resources_.commands(), id_.get(), {});
}

void VerbsIncoming::start(EventLoop& loop, AcceptHandler& handler) {
  auto make = [&]() -> Result<std::unique_ptr<ConnectRequest>> {
    NFSRDMA_TRY(CmChannel * channel, resources_.channel(loop));
    NFSRDMA_TRY(VerbsDevice * device, resources_.device(loop, id_.get()));
    return VerbsConnectRequest::create(resources_, *channel, *device, std::move(event_),
                                       std::move(id_));
  };
  auto request = make();
  if (request.ok()) {
    handler.on_connect_request(std::move(request).value());
    return;
  }
  static thread_local RateLimit limit(10, std::chrono::seconds(10));
  if (!limit.allow()) return;
  log_warning("verbs: a connection request cannot be served: {}", request.error().message());
}

VerbsConnectRequest::VerbsConnectRequest(LoopResources& resources, VerbsDevice& device,
                                         CmEvent event, CmIdHandle id)
    : resources_(resources),
      device_(device),
      event_(std::move(event)),
      peer_(address_of(::rdma_get_peer_addr(id.get()))),
      id_(std::move(id)) {}

Result<std::unique_ptr<ConnectRequest>> VerbsConnectRequest::create(LoopResources& resources,
                                                                    CmChannel& channel,
                                                                    VerbsDevice& device,
                                                                    CmEvent event, CmIdHandle id) {
  std::unique_ptr<VerbsConnectRequest> request(
      new VerbsConnectRequest(resources, device, std::move(event), std::move(id)));
  NFSRDMA_CHECK_OK(channel.adopt(request->id_.get(), *request));
  return std::unique_ptr<ConnectRequest>(std::move(request));
}

VerbsConnectRequest::~VerbsConnectRequest() {
  if (id_) reject_id(resources_.commands(), id_.get(), {});
}

void VerbsConnectRequest::on_cm_event(const CmEvent& event) {
  log_debug("verbs: {} gave up: {}", peer_.text(), ::rdma_event_str(event.type));
  gone_ = true;
}

void VerbsConnectRequest::reject(ByteSpan private_data) {
  if (!id_) return;
  if (private_data.size() > device_.traits().reject_room) private_data = {};
  reject_id(resources_.commands(), id_.get(), private_data);
  id_.reset();
}

Result<std::unique_ptr<QueuePair>> VerbsConnectRequest::accept(const QueuePairOptions& options) {
  if (!id_ || gone_) return Error{Errc::kClosed, 0, "the peer gave up"};
  if (options.private_data.size() > device_.traits().accept_room) {
    return Error{Errc::kInvalid, 0, "private data of the accept"};
  }
  auto created = VerbsQueuePair::create(id_.get(), device_, options, resources_.options(),
                                        VerbsQueuePair::Role::kServer);
  if (!created.ok()) return created.error();
  std::unique_ptr<VerbsQueuePair> queue_pair = std::move(created).value();
  const DeviceInfo& device = device_.info();
  rdma_conn_param param{};
  param.private_data = options.private_data.data();
  param.private_data_len = static_cast<std::uint8_t>(options.private_data.size());
  param.initiator_depth = static_cast<std::uint8_t>(std::min<std::uint32_t>(
      {event_.initiator_depth, device.max_outbound_reads, options.outbound_reads}));
  param.responder_resources = static_cast<std::uint8_t>(std::min<std::uint32_t>(
      {event_.responder_resources, device.max_inbound_reads, options.inbound_reads}));
  param.rnr_retry_count = 7;  // we never run out of receives within credits; 7 waits for ever
  queue_pair->set_reads(param.initiator_depth, param.responder_resources);
  rdma_cm_id* id = id_.get();
  queue_pair->take_id(std::move(id_));
  NFSRDMA_CHECK_OK(handshake(id, param));
  queue_pair->accepted();
  return std::unique_ptr<QueuePair>(std::move(queue_pair));
}

Result<void> VerbsConnectRequest::handshake(rdma_cm_id* id, rdma_conn_param param) {
  const auto accept_it = [&] {
    return resources_.commands().run([&] { return ::rdma_accept(id, &param); });
  };
  if (accept_it() == 0) return {};
  if (errno != EINVAL || param.responder_resources != 0) return system_error("rdma_accept");
  param.responder_resources = 1;  // some providers refuse 0
  if (accept_it() != 0) return system_error("rdma_accept");
  return {};
}

}  // namespace nfsrdma::verbs
