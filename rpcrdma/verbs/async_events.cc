// SPDX-License-Identifier: Apache-2.0
// See async_events.h. An event is acknowledged right after its owner was posted to:
// ibv_destroy_qp waits for acknowledgements, and the posted item looks at the anchor, which the
// owner clears on its own thread. Events are rare, so looking through all owners is cheap enough.
#include "rpcrdma/verbs/async_events.h"

#include "rpcrdma/base/log.h"

namespace nfsrdma::verbs {

AsyncEvents::Registration::Registration(AsyncEvents& events, ibv_qp* queue_pair,
                                        ibv_context* context, EventLoop& loop, AsyncTarget& target)
    : events_(events), anchor_(std::make_shared<AsyncTarget*>(&target)) {
  std::lock_guard lock(events_.mutex_);
  events_.owners_[anchor_.get()] = Owner{queue_pair, context, &loop, anchor_};
}

AsyncEvents::Registration::~Registration() {
  *anchor_ = nullptr;
  std::lock_guard lock(events_.mutex_);
  events_.owners_.erase(anchor_.get());
}

void AsyncEvents::drain(ibv_context* context) {
  ibv_async_event event;
  while (::ibv_get_async_event(context, &event) == 0) {
    dispatch(event, context);
    ::ibv_ack_async_event(&event);
  }
}

template <typename Concerned>
void AsyncEvents::tell(ibv_event_type type, const void* queue, Concerned concerned) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, owner] : owners_) {
    if (!concerned(owner)) continue;
    owner.loop->post([anchor = owner.anchor, type, queue] {
      if (*anchor != nullptr) (*anchor)->on_async_event(type, queue);
    });
  }
}

void AsyncEvents::dispatch(const ibv_async_event& event, const ibv_context* context) {
  const char* device = context->device->name;
  const char* what = ::ibv_event_type_str(event.event_type);
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return tell(event.event_type, nullptr,
                  [&](const Owner& owner) { return owner.queue_pair == event.element.qp; });
    case IBV_EVENT_CQ_ERR:
      log_error("verbs: {}: {}: its connections end", device, what);
      return tell(event.event_type, event.element.cq, [&](const Owner& owner) {
        return owner.queue_pair == nullptr ? owner.context == context
                                           : owner.queue_pair->send_cq == event.element.cq;
      });
    case IBV_EVENT_SRQ_ERR:
      log_error("verbs: {}: {}: its connections end", device, what);
      return tell(event.event_type, event.element.srq, [&](const Owner& owner) {
        return owner.queue_pair == nullptr ? owner.context == context
                                           : owner.queue_pair->srq == event.element.srq;
      });
    case IBV_EVENT_DEVICE_FATAL:
      log_error("verbs: {}: {}: all its connections end", device, what);
      return tell(event.event_type, nullptr,
                  [&](const Owner& owner) { return owner.context == context; });
    case IBV_EVENT_PORT_ERR:
      log_warning(
          "verbs: {} port {} is down: connections wait for it as long as their retries last",
          device, event.element.port_num);
      return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      log_notice("verbs: {} port {}: {}", device, event.element.port_num, what);
      return;
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
      // The connection goes on, by the other path or by this one.
      log_notice("verbs: {}: {}", device, what);
      return;
    default:
      log_debug("verbs: {}: {}", device, what);
      return;
  }
}

}  // namespace nfsrdma::verbs
