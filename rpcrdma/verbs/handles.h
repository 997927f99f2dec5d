// SPDX-License-Identifier: Apache-2.0
// Owners of libibverbs' and librdmacm's objects. One Deleter knows how each is given back; who
// declares them orders the members so that reverse destruction is right: context users last.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace nfsrdma::verbs {

struct Deleter {
  void operator()(rdma_event_channel* channel) const { ::rdma_destroy_event_channel(channel); }
  /// Blocks until every event of the id is acknowledged: acknowledge before dispatching.
  void operator()(rdma_cm_id* id) const {
    if (id->qp != nullptr) ::rdma_destroy_qp(id);
    ::rdma_destroy_id(id);
  }
  void operator()(ibv_pd* pd) const { ::ibv_dealloc_pd(pd); }
  void operator()(ibv_comp_channel* channel) const { ::ibv_destroy_comp_channel(channel); }
  void operator()(ibv_cq* cq) const { ::ibv_destroy_cq(cq); }
  void operator()(ibv_srq* srq) const { ::ibv_destroy_srq(srq); }
};

template <typename T>
using Handle = std::unique_ptr<T, Deleter>;

using EventChannelHandle = Handle<rdma_event_channel>;
using CmIdHandle = Handle<rdma_cm_id>;
using PdHandle = Handle<ibv_pd>;
using CompChannelHandle = Handle<ibv_comp_channel>;
using CqHandle = Handle<ibv_cq>;
using SrqHandle = Handle<ibv_srq>;

}  // namespace nfsrdma::verbs
