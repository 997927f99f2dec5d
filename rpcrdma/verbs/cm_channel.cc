// SPDX-License-Identifier: Apache-2.0
// See cm_channel.h. wire.md 6.1 has the order of calls; rdma_get_cm_event(3) the rules of
// acknowledgement.
#include "rpcrdma/verbs/cm_channel.h"

#include <fcntl.h>

#include "rpcrdma/base/log.h"

namespace nfsrdma::verbs {

namespace {

CmEvent copy_event(const rdma_cm_event& event) {
  CmEvent copy;
  copy.type = event.event;
  copy.status = event.status;
  copy.id = event.id;
  switch (event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_REJECTED: {
      const rdma_conn_param& conn = event.param.conn;
      copy.responder_resources = conn.responder_resources;
      copy.initiator_depth = conn.initiator_depth;
      if (conn.private_data != nullptr) {
        const auto* data = static_cast<const std::byte*>(conn.private_data);
        copy.private_data.assign(data, data + conn.private_data_len);
      }
      break;
    }
    default:
      break;
  }
  return copy;
}

}  // namespace

Result<std::unique_ptr<CmChannel>> CmChannel::create(EventLoop& loop, CommandThread& commands) {
  EventChannelHandle raw = own(commands, [] { return ::rdma_create_event_channel(); });
  if (!raw) return system_error("rdma_create_event_channel");
  const int flags = ::fcntl(raw->fd, F_GETFL);
  if (flags < 0 || ::fcntl(raw->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return system_error("event channel: O_NONBLOCK");
  }
  std::unique_ptr<CmChannel> channel(new CmChannel(loop, commands, std::move(raw)));
  NFSRDMA_CHECK_OK(loop.add(channel->channel_->fd, EPOLLIN, *channel));
  return channel;
}

CmChannel::~CmChannel() {
  loop_.remove(channel_->fd, *this);
}

Result<CmIdHandle> CmChannel::create_id(CmUser& user) {
  CmIdHandle id = own(commands_, [&] {
    rdma_cm_id* raw = nullptr;
    return ::rdma_create_id(channel_.get(), &raw, &user, RDMA_PS_TCP) == 0 ? raw : nullptr;
  });
  if (!id) return system_error("rdma_create_id");
  return id;
}

Result<void> CmChannel::adopt(rdma_cm_id* id, CmUser& user) {
  if (id->channel != channel_.get() &&
      commands_.run([&] { return ::rdma_migrate_id(id, channel_.get()); }) != 0) {
    return system_error("rdma_migrate_id");
  }
  id->context = &user;
  return {};
}

bool CmChannel::next_event(CmEvent* copy, CmUser** user) {
  rdma_cm_event* event = nullptr;
  if (::rdma_get_cm_event(channel_.get(), &event) != 0) return false;
  *copy = copy_event(*event);
  rdma_cm_id* addressee = event->id;
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    addressee = event->listen_id;
    event->id->context = nullptr;  // librdmacm lets it inherit the listener's
  }
  // Read before the acknowledgement: from then on another thread may adopt the id.
  *user = addressee == nullptr ? nullptr : static_cast<CmUser*>(addressee->context);
  ::rdma_ack_cm_event(event);
  return true;
}

void CmChannel::on_fd_ready(std::uint32_t) {
  // Bounded per turn: a flood of connection events must not starve the loop's other work; the fd
  // stays readable.
  constexpr int kEventsPerTurn = 32;
  for (int i = 0; i < kEventsPerTurn; ++i) {
    CmEvent event;
    CmUser* user = nullptr;
    if (!commands_.run([&] { return next_event(&event, &user); })) {
      if (errno != EAGAIN && errno != EINTR) {
        log_debug("verbs: {}", system_error("rdma_get_cm_event").message());
      }
      return;
    }
    log_debug("verbs: {} status {}", ::rdma_event_str(event.type), event.status);
    if (user != nullptr) user->on_cm_event(event);
  }
}

}  // namespace nfsrdma::verbs
