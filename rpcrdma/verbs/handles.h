// SPDX-License-Identifier: Apache-2.0
// Owners of libibverbs' and librdmacm's objects. One Deleter knows how each is given back, on the
// thread that may (command_thread.h); who declares them orders the members so that reverse
// destruction is right: context users last.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

#include "rpcrdma/verbs/command_thread.h"

namespace nfsrdma::verbs {

struct Deleter {
  CommandThread* commands = nullptr;

  template <typename T>
  void operator()(T* object) const {
    commands->run([object] { destroy(object); });
  }

 private:
  static void destroy(rdma_event_channel* channel) { ::rdma_destroy_event_channel(channel); }
  /// Blocks until every event of the id is acknowledged: acknowledge before dispatching.
  static void destroy(rdma_cm_id* id) {
    if (id->qp != nullptr) ::rdma_destroy_qp(id);
    ::rdma_destroy_id(id);
  }
  static void destroy(ibv_pd* pd) { ::ibv_dealloc_pd(pd); }
  static void destroy(ibv_comp_channel* channel) { ::ibv_destroy_comp_channel(channel); }
  static void destroy(ibv_cq* cq) { ::ibv_destroy_cq(cq); }
  static void destroy(ibv_srq* srq) { ::ibv_destroy_srq(srq); }
};

template <typename T>
using Handle = std::unique_ptr<T, Deleter>;

/// Runs `make` on the command thread and owns what it returns (null: see errno).
template <typename Make>
auto own(CommandThread& commands, Make&& make) {
  auto* object = commands.run(make);
  return Handle<std::remove_pointer_t<decltype(object)>>(object, Deleter{&commands});
}

using EventChannelHandle = Handle<rdma_event_channel>;
using CmIdHandle = Handle<rdma_cm_id>;
using PdHandle = Handle<ibv_pd>;
using CompChannelHandle = Handle<ibv_comp_channel>;
using CqHandle = Handle<ibv_cq>;
using SrqHandle = Handle<ibv_srq>;

}  // namespace nfsrdma::verbs
