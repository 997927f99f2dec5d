// SPDX-License-Identifier: Apache-2.0
// Who hears of which asynchronous event. Devices and queue pairs are empty shells.
#include "rpcrdma/verbs/async_events.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace nfsrdma::verbs {
namespace {

struct Ear final : AsyncTarget {
  void on_async_event(ibv_event_type type, const void* queue) override {
    heard.push_back(type);
    broken = queue;
  }
  std::vector<ibv_event_type> heard;
  const void* broken = nullptr;
};

class AsyncEventsTest : public ::testing::Test {
 protected:
  AsyncEventsTest() {
    context_.device = &device_;
    other_context_.device = &device_;
    first_.context = second_.context = &context_;
    first_.send_cq = &cq_;
    second_.srq = &srq_;
    elsewhere_.context = &other_context_;
  }
  /// What each of first, second, elsewhere and the device heard, as counts.
  std::vector<std::size_t> after(const ibv_async_event& event) {
    for (Ear* ear : {&first_ear_, &second_ear_, &elsewhere_ear_, &device_ear_})
      ear->heard.clear();
    events_.dispatch(event, &context_);
    while (loop_->turn(Duration::zero())) {
    }
    return {first_ear_.heard.size(), second_ear_.heard.size(), elsewhere_ear_.heard.size(),
            device_ear_.heard.size()};
  }
  ibv_async_event event(ibv_event_type type) {
    ibv_async_event made{};
    made.event_type = type;
    return made;
  }
  ibv_async_event of_first(ibv_event_type type) {
    ibv_async_event made = event(type);
    made.element.qp = &first_;
    return made;
  }
  using Counts = std::vector<std::size_t>;

  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  AsyncEvents events_;
  ibv_device device_{};
  ibv_context context_{}, other_context_{};
  ibv_cq cq_{};
  ibv_srq srq_{};
  ibv_qp first_{}, second_{}, elsewhere_{};
  Ear first_ear_, second_ear_, elsewhere_ear_, device_ear_;
  AsyncEvents::Registration first_registered_{events_, (first_.context = &context_, &first_),
                                              *loop_, first_ear_};
  AsyncEvents::Registration second_registered_{events_, (second_.context = &context_, &second_),
                                               *loop_, second_ear_};
  AsyncEvents::Registration elsewhere_registered_{
      events_, (elsewhere_.context = &other_context_, &elsewhere_), *loop_, elsewhere_ear_};
  AsyncEvents::Registration device_registered_{events_, &context_, *loop_, device_ear_};
};

TEST_F(AsyncEventsTest, WhatIsAboutAQueuePairIsItsOwn) {
  for (auto type : {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
                    IBV_EVENT_COMM_EST, IBV_EVENT_QP_LAST_WQE_REACHED}) {
    EXPECT_EQ(after(of_first(type)), (Counts{1, 0, 0, 0})) << type;
  }
}

TEST_F(AsyncEventsTest, ADeadDeviceEndsAllThatIsOnIt) {
  EXPECT_EQ(after(event(IBV_EVENT_DEVICE_FATAL)), (Counts{1, 1, 0, 1}));
  EXPECT_EQ(first_ear_.heard.front(), IBV_EVENT_DEVICE_FATAL);
}

TEST_F(AsyncEventsTest, ABrokenCompletionQueueEndsItsQueuePairs) {
  ibv_async_event broken = event(IBV_EVENT_CQ_ERR);
  broken.element.cq = &cq_;
  EXPECT_EQ(after(broken), (Counts{1, 0, 0, 1}));
  EXPECT_EQ(device_ear_.broken, &cq_);
}

TEST_F(AsyncEventsTest, ABrokenReceiveQueueEndsItsQueuePairs) {
  ibv_async_event broken = event(IBV_EVENT_SRQ_ERR);
  broken.element.srq = &srq_;
  EXPECT_EQ(after(broken), (Counts{0, 1, 0, 1}));
  EXPECT_EQ(device_ear_.broken, &srq_);
}

TEST_F(AsyncEventsTest, ConnectionsSurviveWhatMayPass) {
  for (auto type : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_GID_CHANGE,
                    IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_CLIENT_REREGISTER}) {
    EXPECT_EQ(after(event(type)), (Counts{0, 0, 0, 0})) << type;
  }
  EXPECT_EQ(after(of_first(IBV_EVENT_PATH_MIG)), (Counts{0, 0, 0, 0}));
  EXPECT_EQ(after(of_first(IBV_EVENT_PATH_MIG_ERR)), (Counts{0, 0, 0, 0}));
}

TEST_F(AsyncEventsTest, NobodyHearsAfterItsEnd) {
  Ear ear;
  {
    AsyncEvents::Registration registered(events_, &second_, *loop_, ear);
    events_.dispatch(event(IBV_EVENT_DEVICE_FATAL), &context_);
  }
  while (loop_->turn(Duration::zero())) {
  }
  EXPECT_TRUE(ear.heard.empty());
}

}  // namespace
}  // namespace nfsrdma::verbs
