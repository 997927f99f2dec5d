// SPDX-License-Identifier: Apache-2.0
// The client's half of cm.h: address, route, queue pair, handshake.
#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/cm.h"

namespace nfsrdma::verbs {

namespace {

constexpr int kResolveTimeoutMs = 3000;
// siw's accept can miss a first message that comes right behind its reply: 20 ms avoided that in 80
// of 80 connections in the lab. The iWARP engine, whose peers may be anywhere, nudges instead and
// waits for nothing (rpcrdma/iwarp/README.md). Here a nudge would be a Write of no bytes by
// whatever provider there is, for a siw that another siw connects to; what is missed nevertheless,
// any later call wakes, at the latest when the first is sent again (timeo).
constexpr std::chrono::milliseconds kSiwSettle{20};

std::uint8_t reads(std::uint32_t wanted, std::uint32_t limit) {
  return static_cast<std::uint8_t>(std::min({wanted, limit, 255U}));
}

}  // namespace

VerbsConnector::VerbsConnector(LoopResources& resources, EventLoop& loop, const SocketAddress& peer,
                               ConnectHandler& handler)
    : resources_(resources),
      loop_(loop),
      peer_(peer),
      handler_(handler),
      deadline_([this] {
        fail({Errc::kTimedOut, ETIMEDOUT, "connect"},
             fmt::format("verbs: no answer from {}", peer_.text()));
      }),
      settle_([this] { hand_over(); }) {}

Result<std::unique_ptr<Connector>> VerbsConnector::create(LoopResources& resources, EventLoop& loop,
                                                          const SocketAddress& peer,
                                                          ConnectHandler& handler) {
  std::unique_ptr<VerbsConnector> connector(new VerbsConnector(resources, loop, peer, handler));
  NFSRDMA_CHECK_OK(connector->start());
  connector->deadline_.arm_after(loop, resources.options().connect_timeout);
  return std::unique_ptr<Connector>(std::move(connector));
}

Result<void> VerbsConnector::start() {
  NFSRDMA_TRY(CmChannel * channel, resources_.channel(loop_));
  NFSRDMA_TRY(id_, channel->create_id(*this));
  SocketAddress to = peer_;
  if (resources_.commands().run([&] {
        return ::rdma_resolve_addr(id_.get(), nullptr, to.data(), kResolveTimeoutMs);
      }) != 0) {
    return system_error("rdma_resolve_addr");
  }
  return {};
}

void VerbsConnector::on_cm_event(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return on_address_resolved();
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return on_route_resolved();
    case RDMA_CM_EVENT_ESTABLISHED:
      return on_established(event);
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return;
    default:
      return fail_by(event);
  }
}

void VerbsConnector::on_address_resolved() {
  if (const std::uint8_t tos = resources_.options().type_of_service; tos != 0) {
    std::uint8_t value = tos;
    resources_.commands().run([&] {
      return ::rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, sizeof value);
    });
  }
  if (resources_.commands().run(
          [this] { return ::rdma_resolve_route(id_.get(), kResolveTimeoutMs); }) != 0) {
    fail(system_error("rdma_resolve_route"), "verbs: no route to " + peer_.text());
  }
}

void VerbsConnector::on_route_resolved() {
  auto device = resources_.device(loop_, id_.get());
  if (!device.ok()) return fail(device.error(), "verbs: the device cannot be used");
  device_ = *device;
  auto options = handler_.on_device(*device_);
  if (!options.ok()) return fail(options.error(), "verbs: " + options.error().message());
  if (options->private_data.size() > device_->traits().connect_room) {
    return fail({Errc::kInvalid, 0, "private data of the connect"}, "verbs: private data too long");
  }
  auto created = VerbsQueuePair::create(id_.get(), *device_, *options, resources_.options(),
                                        VerbsQueuePair::Role::kClient);
  if (!created.ok()) return fail(created.error(), "verbs: " + created.error().message());
  queue_pair_ = std::move(created).value();
  rdma_conn_param param{};
  param.private_data = options->private_data.data();
  param.private_data_len = static_cast<std::uint8_t>(options->private_data.size());
  // The kernel's server refuses a client that lets it read nothing.
  inbound_reads_ = reads(std::max(options->inbound_reads, 1U), device_->info().max_inbound_reads);
  outbound_reads_ = reads(options->outbound_reads, device_->info().max_outbound_reads);
  param.responder_resources = inbound_reads_;
  param.initiator_depth = outbound_reads_;
  param.retry_count = 6;
  param.rnr_retry_count = 7;
  if (resources_.commands().run([&] { return ::rdma_connect(id_.get(), &param); }) == 0) return;
  Error error = system_error("rdma_connect");
  if (port_is_taken(error) && ++ports_taken_ < kPortTries) {
    queue_pair_.reset();  // before the id that it stands on
    id_.reset();
    const Result<void> again = start();
    if (again.ok()) return;
    error = again.error();
  }
  fail(error, fmt::format("verbs: cannot connect to {}: {}", peer_.text(), error.message()));
}

void VerbsConnector::on_established(const CmEvent& event) {
  deadline_.cancel();
  // The peer's limits, where the transport tells them.
  if (event.initiator_depth != 0 || event.responder_resources != 0) {
    outbound_reads_ = std::min(outbound_reads_, event.initiator_depth);
    inbound_reads_ = std::min(inbound_reads_, event.responder_resources);
  }
  queue_pair_->set_reads(outbound_reads_, inbound_reads_);
  private_data_ = event.private_data;
  if (device_->traits().siw) {
    settle_.arm_after(loop_, kSiwSettle);
  } else {
    hand_over();
  }
}

void VerbsConnector::hand_over() {
  queue_pair_->take_id(std::move(id_));
  queue_pair_->set_ready();
  // The handler may destroy us: nothing of ours is touched after the call.
  const std::vector<std::byte> data = std::move(private_data_);
  handler_.on_connected(std::move(queue_pair_), data);
}

void VerbsConnector::fail_by(const CmEvent& event) {
  const int err = event.status < 0 ? -event.status : 0;
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:
      return fail({Errc::kRefused, ECONNREFUSED, "connect"},
                  fmt::format("verbs: {} refused (nothing listens there, or it does not want us)",
                              peer_.text()));
    case RDMA_CM_EVENT_ADDR_ERROR:
      return fail({Errc::kUnsupported, err, "rdma_resolve_addr"},
                  fmt::format("verbs: no RDMA device on the route to {}", peer_.text()));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return fail({Errc::kSystem, err, "rdma_resolve_route"},
                  fmt::format("verbs: no RDMA path to {}", peer_.text()));
    case RDMA_CM_EVENT_UNREACHABLE:
      return fail({Errc::kTimedOut, err, "connect"},
                  fmt::format("verbs: {} does not answer", peer_.text()));
    default:
      return fail({Errc::kClosed, err, "connect"},
                  fmt::format("verbs: {}: {}", peer_.text(), ::rdma_event_str(event.type)));
  }
}

void VerbsConnector::fail(Error error, const std::string& detail) {
  deadline_.cancel();
  settle_.cancel();
  queue_pair_.reset();  // before the id that it stands on
  id_.reset();
  handler_.on_connect_failed(error, detail);
}

}  // namespace nfsrdma::verbs
