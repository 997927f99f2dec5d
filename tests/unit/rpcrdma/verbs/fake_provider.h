// SPDX-License-Identifier: Apache-2.0
// A device made of lists, in place of libibverbs and librdmacm: fake_provider.cc defines those of
// their functions that rpcrdma/verbs calls, for the program that it is linked into. Tests put into
// it what an adapter would report, and see what was posted. One at a time, on one thread but for
// the command thread's calls, which its users wait for.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <vector>

namespace nfsrdma::verbs::test {

class FakeProvider {
 public:
  FakeProvider();
  ~FakeProvider();
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;
  static FakeProvider& current();

  struct Posted {
    std::uint64_t wr_id = 0;
    ibv_wr_opcode opcode = IBV_WR_SEND;
  };
  struct Receive {
    std::uint64_t wr_id = 0;
    std::uint32_t queue_pair = 0;  // number; 0: an SRQ's
  };

  /// The oldest receive of `queue_pair` (its own, or of the SRQ) ends so.
  void receive_ends(std::uint32_t queue_pair, ibv_wc_status status = IBV_WC_SUCCESS);
  /// Tells the loop of completions.
  void raise_event();
  /// The device tells that `queue_pair` has no receive of the SRQ any more.
  void last_receive_ended(ibv_qp* queue_pair);
  /// Every id hears that the device is being removed.
  void remove();

  ibv_device device{};
  ibv_context context{};
  ibv_device_attr attr{};
  bool resizes_queues = true;
  bool healthy = true;  // its queue pairs, when somebody asks
  bool tells_of_last_receive = true;
  // What a command fails with, unless 0.
  int refuses_regions = 0;
  int refuses_windows = 0;
  int refuses_completion_queues = 0;
  int refuses_queue_pairs = 0;
  /// What ibv_post_send answers to a request; 0 takes it.
  std::function<int(const ibv_send_wr&)> answer = [](const ibv_send_wr&) { return 0; };
  /// What ibv_create_srq of so many receives fails with; 0 makes it.
  std::function<int(std::uint32_t)> srq_answer = [](std::uint32_t) { return 0; };

  std::deque<ibv_wc> completions;  // of all completion queues
  std::vector<Posted> sent;
  std::vector<Receive> receives;
  ibv_qp_cap capacity{};     // that the latest queue pair was asked to have
  int completion_fd = -1;    // of the latest completion channel
  std::vector<int> vectors;  // of the completion queues, as they were made
  int channels = 0;          // of librdmacm's events, that are there
  std::list<rdma_cm_id*> ids;
  std::deque<rdma_cm_event> cm_events;  // that nobody has fetched
  std::deque<ibv_async_event> async_events;
  std::uint32_t next_queue_pair = 100;
};

}  // namespace nfsrdma::verbs::test
