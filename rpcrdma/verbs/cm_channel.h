// SPDX-License-Identifier: Apache-2.0
// CmChannel: one loop's librdmacm event channel. Events are copied and acknowledged before anybody
// hears of them, so that whoever hears may destroy the id at once (rdma_destroy_id waits for
// acknowledgements).
//
// Every id's context is a CmUser on the thread of the channel's loop, or null: events of such an id
// are dropped. The new id of a CONNECT_REQUEST has none until somebody adopts it; a peer that gives
// up before shows as a failing accept.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/verbs/handles.h"

namespace nfsrdma::verbs {

/// A copy of one rdma_cm_event.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;
  rdma_cm_id* id = nullptr;  // CONNECT_REQUEST: the new id
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::vector<std::byte> private_data;
};

class CmUser {
 public:
  virtual ~CmUser() = default;
  /// The id may be destroyed during the call.
  virtual void on_cm_event(const CmEvent& event) = 0;
};

class CmChannel final : private FdWatcher {
 public:
  static Result<std::unique_ptr<CmChannel>> create(EventLoop& loop, CommandThread& commands);
  ~CmChannel() override;
  rdma_event_channel* get() const { return channel_.get(); }
  /// A new id on this channel whose events go to `user`.
  Result<CmIdHandle> create_id(CmUser& user);
  /// Moves `id` (and its coming events) here.
  Result<void> adopt(rdma_cm_id* id, CmUser& user);

 private:
  CmChannel(EventLoop& loop, CommandThread& commands, EventChannelHandle channel)
      : loop_(loop), commands_(commands), channel_(std::move(channel)) {}
  /// The next event, copied and acknowledged, and whose it is; false when there is none.
  bool next_event(CmEvent* copy, CmUser** user);
  void on_fd_ready(std::uint32_t events) override;

  EventLoop& loop_;
  CommandThread& commands_;
  EventChannelHandle channel_;
};

}  // namespace nfsrdma::verbs
