// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpcrdma/verbs/fake_provider.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nfsrdma::verbs::test {

namespace {

FakeProvider* g_provider = nullptr;

int poll_cq(ibv_cq*, int count, ibv_wc* out) {
  auto& waiting = FakeProvider::current().completions;
  const int got = std::min(count, static_cast<int>(waiting.size()));
  std::copy_n(waiting.begin(), got, out);
  waiting.erase(waiting.begin(), waiting.begin() + got);
  return got;
}

int req_notify_cq(ibv_cq*, int) {
  return 0;
}

int post_send(ibv_qp*, ibv_send_wr* request, ibv_send_wr** bad) {
  FakeProvider& provider = FakeProvider::current();
  for (; request != nullptr; request = request->next) {
    if (const int err = provider.answer(*request); err != 0) {
      *bad = request;
      return err;
    }
    provider.sent.push_back({request->wr_id, request->opcode});
  }
  return 0;
}

int post_recv(ibv_qp* queue_pair, ibv_recv_wr* request, ibv_recv_wr**) {
  FakeProvider::current().receives.push_back({request->wr_id, queue_pair->qp_num});
  return 0;
}

int post_srq_recv(ibv_srq*, ibv_recv_wr* request, ibv_recv_wr**) {
  FakeProvider::current().receives.push_back({request->wr_id, 0});
  return 0;
}

/// Does a command fail that is refused with `err`?
bool fails(int err) {
  if (err != 0) errno = err;
  return err != 0;
}

ibv_mw* alloc_mw(ibv_pd* domain, ibv_mw_type type) {
  if (fails(FakeProvider::current().refuses_windows)) return nullptr;
  auto* window = new ibv_mw{};
  window->context = domain->context;
  window->pd = domain;
  window->type = type;
  return window;
}

int dealloc_mw(ibv_mw* window) {
  delete window;
  return 0;
}

}  // namespace

FakeProvider::FakeProvider() {
  g_provider = this;
  std::strcpy(device.name, "fake0");
  device.transport_type = IBV_TRANSPORT_IB;
  context.device = &device;
  context.cmd_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  context.async_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  context.ops.poll_cq = poll_cq;
  context.ops.req_notify_cq = req_notify_cq;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_recv;
  context.ops.post_srq_recv = post_srq_recv;
  context.ops.alloc_mw = alloc_mw;
  context.ops.dealloc_mw = dealloc_mw;
  attr.vendor_id = 0x0002c9;
  attr.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attr.max_mw = 1000;
  attr.max_qp_wr = 1024;
  attr.max_sge = attr.max_sge_rd = 16;
  attr.max_cqe = 1 << 20;
  attr.max_srq = attr.max_srq_wr = 1024;
  attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = 16;
}

FakeProvider::~FakeProvider() {
  ::close(context.cmd_fd);
  ::close(context.async_fd);
  g_provider = nullptr;
}

FakeProvider& FakeProvider::current() {
  return *g_provider;
}

void FakeProvider::receive_ends(std::uint32_t queue_pair, ibv_wc_status status) {
  const auto found = std::find_if(receives.begin(), receives.end(), [&](const Receive& receive) {
    return receive.queue_pair == queue_pair || receive.queue_pair == 0;
  });
  ibv_wc wc{};
  wc.wr_id = found->wr_id;
  wc.status = status;
  wc.opcode = IBV_WC_RECV;
  wc.qp_num = queue_pair;
  receives.erase(found);
  completions.push_back(wc);
}

void FakeProvider::raise_event() {
  ::eventfd_write(completion_fd, 1);
}

void FakeProvider::last_receive_ended(ibv_qp* queue_pair) {
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
  event.element.qp = queue_pair;
  async_events.push_back(event);
  ::eventfd_write(context.async_fd, 1);
}

void FakeProvider::remove() {
  for (rdma_cm_id* id : ids) {
    rdma_cm_event event{};
    event.id = id;
    event.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
    cm_events.push_back(event);
    ::eventfd_write(id->channel->fd, 1);
  }
}

}  // namespace nfsrdma::verbs::test

// --- the libraries' functions ---

using nfsrdma::verbs::test::FakeProvider;

#undef ibv_get_device_list
#undef ibv_reg_mr

extern "C" {

int access(const char* path, int mode) {
  if (std::strcmp(path, "/dev/infiniband/rdma_cm") == 0) return 0;
  return ::faccessat(AT_FDCWD, path, mode, 0);
}

ibv_device** ibv_get_device_list(int* count) {
  *count = 1;
  return new ibv_device* [2] { &FakeProvider::current().device, nullptr };
}
void ibv_free_device_list(ibv_device** list) {
  delete[] list;
}
const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = FakeProvider::current().attr;
  return 0;
}
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  auto& waiting = FakeProvider::current().async_events;
  if (waiting.empty()) {
    eventfd_t count = 0;
    ::eventfd_read(context->async_fd, &count);
    errno = EAGAIN;
    return -1;
  }
  *event = waiting.front();
  waiting.pop_front();
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int) {
  if (nfsrdma::verbs::test::fails(FakeProvider::current().refuses_regions)) return nullptr;
  auto* region = new ibv_mr{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  return region;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t, unsigned int) {
  return ibv_reg_mr(domain, address, length, 0);
}
int ibv_dereg_mr(ibv_mr* region) {
  delete region;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  FakeProvider::current().completion_fd = fd;
  return new ibv_comp_channel{context, fd, 0};
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  delete channel;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int size, void*, ibv_comp_channel* channel,
                      int vector) {
  if (nfsrdma::verbs::test::fails(FakeProvider::current().refuses_completion_queues)) {
    return nullptr;
  }
  auto* queue = new ibv_cq{};
  queue->context = context;
  queue->channel = channel;
  queue->cqe = size;
  FakeProvider::current().vectors.push_back(vector);
  return queue;
}
int ibv_resize_cq(ibv_cq* queue, int size) {
  if (!FakeProvider::current().resizes_queues) return ENOSYS;
  queue->cqe = size;
  return 0;
}
int ibv_destroy_cq(ibv_cq* queue) {
  delete queue;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq**, void**) {
  eventfd_t count = 0;
  return ::eventfd_read(channel->fd, &count);
}
void ibv_ack_cq_events(ibv_cq*, unsigned int) {}
ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* attr) {
  if (nfsrdma::verbs::test::fails(FakeProvider::current().srq_answer(attr->attr.max_wr))) {
    return nullptr;
  }
  auto* queue = new ibv_srq{};
  queue->context = domain->context;
  return queue;
}
int ibv_destroy_srq(ibv_srq* queue) {
  delete queue;
  return 0;
}
int ibv_query_qp(ibv_qp*, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  attr->qp_state = FakeProvider::current().healthy ? IBV_QPS_RTS : IBV_QPS_ERR;
  return 0;
}

rdma_event_channel* rdma_create_event_channel() {
  ++FakeProvider::current().channels;
  return new rdma_event_channel{::eventfd(0, EFD_CLOEXEC)};
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  --FakeProvider::current().channels;
  ::close(channel->fd);
  delete channel;
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space) {
  *id = new rdma_cm_id{};
  (*id)->channel = channel;
  (*id)->context = context;
  FakeProvider::current().ids.push_back(*id);
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  FakeProvider::current().ids.remove(id);
  delete id;
  return 0;
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr*) {
  id->verbs = &FakeProvider::current().context;
  return 0;
}
int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr*, int) {
  return rdma_bind_addr(id, nullptr);
}
int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* attr) {
  if (nfsrdma::verbs::test::fails(FakeProvider::current().refuses_queue_pairs)) return -1;
  auto* queue_pair = new ibv_qp{};
  queue_pair->context = domain->context;
  queue_pair->send_cq = attr->send_cq;
  queue_pair->recv_cq = attr->recv_cq;
  queue_pair->srq = attr->srq;
  queue_pair->qp_num = FakeProvider::current().next_queue_pair++;
  FakeProvider::current().capacity = attr->cap;
  id->qp = queue_pair;
  return 0;
}
/// As hardware drivers: what it has not reported yet it never does.
void rdma_destroy_qp(rdma_cm_id* id) {
  FakeProvider& provider = FakeProvider::current();
  const std::uint32_t number = id->qp->qp_num;
  std::erase_if(provider.completions, [&](const ibv_wc& wc) { return wc.qp_num == number; });
  std::erase_if(provider.receives, [&](const auto& r) { return r.queue_pair == number; });
  delete id->qp;
  id->qp = nullptr;
}
int rdma_disconnect(rdma_cm_id* id) {
  FakeProvider& provider = FakeProvider::current();
  if (provider.tells_of_last_receive && id->qp != nullptr) provider.last_receive_ended(id->qp);
  return 0;
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  auto& waiting = FakeProvider::current().cm_events;
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const rdma_cm_event& one) {
    return one.id->channel == channel;
  });
  if (found == waiting.end()) {
    eventfd_t count = 0;
    ::eventfd_read(channel->fd, &count);
    errno = EAGAIN;
    return -1;
  }
  *event = new rdma_cm_event(*found);
  waiting.erase(found);
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return 0;
}

}  // extern "C"
