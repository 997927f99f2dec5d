// SPDX-License-Identifier: Apache-2.0
// exposure_cost: what it costs to let the peer at a buffer and to end that, on the first RDMA
// device of this machine: by registering the buffer for the operation; by a memory window of type 2
// on a region that stays registered, ended by the peer's Send with Invalidate; and by such a window
// that the peer does not invalidate, so that it is deallocated. Each time with the Send and the
// receive of an empty message, which go on a connection of the process to itself; those alone are
// shown, too. Prints microseconds of time and of this process's CPU. ARCHITECTURE.md has figures of
// it.
//
//   exposure_cost [ROUNDS]
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}
template <typename T>
T* need(T* object, const char* what) {
  if (object == nullptr) give_up(what);
  return object;
}
void need_zero(int result, const char* what) {
  if (result == 0) return;
  errno = result > 0 ? result : errno;
  give_up(what);
}

struct Rig {
  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
  ibv_qp* qp;
  std::vector<std::byte> memory = std::vector<std::byte>(2 << 20, std::byte{1});
};

int usable_gid(ibv_context* context) {
  std::vector<ibv_gid_entry> gids(64);
  const ssize_t count = ::ibv_query_gid_table(context, gids.data(), gids.size(), 0);
  return count > 0 ? static_cast<int>(gids[static_cast<std::size_t>(count) - 1].gid_index) : 0;
}

/// A queue pair that is connected to itself: nothing ever leaves.
void connect_to_itself(Rig& rig) {
  ibv_port_attr port{};
  need_zero(::ibv_query_port(rig.context, 1, &port), "ibv_query_port");
  const int index = usable_gid(rig.context);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  need_zero(::ibv_modify_qp(rig.qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            "INIT");
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = port.active_mtu;
  attr.dest_qp_num = rig.qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.dlid = port.lid;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.hop_limit = 1;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(index);
  need_zero(::ibv_query_gid(rig.context, 1, index, &attr.ah_attr.grh.dgid), "ibv_query_gid");
  need_zero(::ibv_modify_qp(rig.qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "RTR");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  need_zero(::ibv_modify_qp(rig.qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            "RTS");
}

Rig build() {
  int count = 0;
  ibv_device** devices = ::ibv_get_device_list(&count);
  if (devices == nullptr || count == 0) {
    std::fputs("exposure_cost: no RDMA device\n", stderr);
    std::exit(1);
  }
  Rig rig{};
  rig.memory.assign(2 << 20, std::byte{1});
  rig.context = need(::ibv_open_device(devices[0]), "ibv_open_device");
  rig.pd = need(::ibv_alloc_pd(rig.context), "ibv_alloc_pd");
  rig.cq = need(::ibv_create_cq(rig.context, 64, nullptr, nullptr, 0), "ibv_create_cq");
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = rig.cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {32, 4, 1, 1, 0};
  rig.qp = need(::ibv_create_qp(rig.pd, &attr), "ibv_create_qp");
  connect_to_itself(rig);
  ::ibv_free_device_list(devices);
  return rig;
}

void wait_for_one(Rig& rig) {
  ibv_wc wc{};
  while (::ibv_poll_cq(rig.cq, 1, &wc) == 0) {
  }
  if (wc.status != IBV_WC_SUCCESS) {
    std::fprintf(stderr, "exposure_cost: %s\n", ::ibv_wc_status_str(wc.status));
    std::exit(1);
  }
}

/// A Send to itself, behind `first` when that is given; it ends the exposure of `handle` unless 0.
void send(Rig& rig, ibv_send_wr* first, std::uint32_t handle) {
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  need_zero(::ibv_post_recv(rig.qp, &receive, &bad_receive), "ibv_post_recv");
  ibv_send_wr message{}, *bad = nullptr;
  message.opcode = handle != 0 ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
  message.invalidate_rkey = handle;
  message.send_flags = IBV_SEND_SIGNALED;
  if (first != nullptr) first->next = &message;
  need_zero(::ibv_post_send(rig.qp, first != nullptr ? first : &message, &bad), "ibv_post_send");
  wait_for_one(rig);
  wait_for_one(rig);
}

void by_registration(Rig& rig, std::size_t bytes) {
  ibv_mr* mr = need(::ibv_reg_mr(rig.pd, rig.memory.data(), bytes,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                    "ibv_reg_mr");
  send(rig, nullptr, 0);
  need_zero(::ibv_dereg_mr(mr), "ibv_dereg_mr");
}

ibv_send_wr bind_of(Rig& rig, ibv_mr* region, ibv_mw* window, std::size_t bytes) {
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = ::ibv_inc_rkey(window->rkey);
  bind.bind_mw.bind_info = {region, reinterpret_cast<std::uintptr_t>(rig.memory.data()), bytes,
                            IBV_ACCESS_REMOTE_WRITE};
  return bind;
}

void by_window(Rig& rig, ibv_mr* region, ibv_mw* window, std::size_t bytes) {
  ibv_send_wr bind = bind_of(rig, region, window, bytes);
  send(rig, &bind, bind.bind_mw.rkey);
  window->rkey = bind.bind_mw.rkey;
}

void by_window_for_once(Rig& rig, ibv_mr* region, std::size_t bytes) {
  ibv_mw* window = need(::ibv_alloc_mw(rig.pd, IBV_MW_TYPE_2), "ibv_alloc_mw");
  ibv_send_wr bind = bind_of(rig, region, window, bytes);
  send(rig, &bind, 0);
  need_zero(::ibv_dealloc_mw(window), "ibv_dealloc_mw");
}

void measure(const char* what, std::size_t bytes, int rounds, const std::function<void()>& once) {
  for (int i = 0; i < rounds / 10; ++i)
    once();
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  for (int i = 0; i < rounds; ++i)
    once();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  const double used = static_cast<double>(std::clock() - cpu) * 1e6 / CLOCKS_PER_SEC;
  std::printf("%-15s %8zu bytes: %8.2f us, CPU %8.2f us\n", what, bytes, time.count() / rounds,
              used / rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 5000;
  Rig rig = build();
  ibv_mr* region = need(::ibv_reg_mr(rig.pd, rig.memory.data(), rig.memory.size(),
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND),
                        "ibv_reg_mr");
  ibv_mw* window = ::ibv_alloc_mw(rig.pd, IBV_MW_TYPE_2);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{1} << 20}) {
    measure("message alone", bytes, rounds, [&] { send(rig, nullptr, 0); });
    measure("registration", bytes, rounds, [&] { by_registration(rig, bytes); });
    if (window == nullptr) continue;
    measure("window", bytes, rounds, [&] { by_window(rig, region, window, bytes); });
    measure("window for once", bytes, rounds, [&] { by_window_for_once(rig, region, bytes); });
  }
  if (window == nullptr) std::puts("no memory windows of type 2");
}
