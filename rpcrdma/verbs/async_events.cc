// SPDX-License-Identifier: Apache-2.0
// See async_events.h. An event is acknowledged right after its owner was posted to:
// ibv_destroy_qp waits for acknowledgements, and the posted item looks at the anchor, which the
// owner clears on its own thread.
#include "rpcrdma/verbs/async_events.h"

#include "rpcrdma/base/log.h"

namespace nfsrdma::verbs {

AsyncEvents::Registration::Registration(AsyncEvents& events, ibv_qp* queue_pair, EventLoop& loop,
                                        AsyncTarget& target)
    : events_(events), queue_pair_(queue_pair), anchor_(std::make_shared<AsyncTarget*>(&target)) {
  std::lock_guard lock(events_.mutex_);
  events_.owners_[queue_pair] = Owner{&loop, anchor_};
}

AsyncEvents::Registration::~Registration() {
  *anchor_ = nullptr;
  std::lock_guard lock(events_.mutex_);
  events_.owners_.erase(queue_pair_);
}

void AsyncEvents::drain(ibv_context* context) {
  ibv_async_event event;
  while (::ibv_get_async_event(context, &event) == 0) {
    dispatch(event, ::ibv_get_device_name(context->device));
    ::ibv_ack_async_event(&event);
  }
}

void AsyncEvents::dispatch(const ibv_async_event& event, const char* device) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_COMM_EST: {
      std::lock_guard lock(mutex_);
      auto owner = owners_.find(event.element.qp);
      if (owner == owners_.end()) return;
      owner->second.loop->post([anchor = owner->second.anchor, type = event.event_type] {
        if (*anchor != nullptr) (*anchor)->on_async_event(type);
      });
      return;
    }
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      // Every connection also hears of it from the connection manager or by failing work.
      log_error("verbs: {}: {}", device, ::ibv_event_type_str(event.event_type));
      return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      log_notice("verbs: {} port {}: {}", device, event.element.port_num,
                 ::ibv_event_type_str(event.event_type));
      return;
    default:
      log_debug("verbs: {}: {}", device, ::ibv_event_type_str(event.event_type));
      return;
  }
}

}  // namespace nfsrdma::verbs
