// SPDX-License-Identifier: Apache-2.0
// Questions from one thread to another: each is answered once, on the thread that asked, and nobody
// waits for one who is gone.
#include "client/fuse/session_errand.h"

#include <gtest/gtest.h>

#include <thread>

#include "client/gate.h"

namespace nfsrdma {
namespace {

/// Answers when it is let, on the main thread.
class Source final : public nfs4::SessionSource {
 public:
  Task<Result<nfs4::MadeSession>> make_session(const OpContext& op, xdr::sessionid4 before,
                                               std::string* detail) override {
    ++asked;
    thread = std::this_thread::get_id();
    last_before = before;
    while (!open) {
      const bool woken = co_await gate.wait(op.cancel);
      if (!woken) {
        ++cancelled;
        co_return Error{Errc::kSystem, EINTR, "interrupted"};
      }
    }
    *detail = "for people";
    nfs4::MadeSession made;
    made.client_id = 4711;
    co_return made;
  }
  void lease_moved() override {
    ++moved;
    thread = std::this_thread::get_id();
  }
  int asked = 0, cancelled = 0, moved = 0;
  bool open = true;
  Gate gate;
  std::thread::id thread;
  xdr::sessionid4 last_before{};
};

class SessionErrandTest : public testing::Test {
 protected:
  SessionErrandTest() : main_(EventLoop::create().value()), other_(EventLoop::create().value()) {
    errands_ = std::make_unique<SessionErrands>(*main_, source_);
    errands_->set_asker(*other_);
    thread_ = std::thread([this] { other_->run(); });
  }
  ~SessionErrandTest() override { end(); }
  void end() {
    if (!thread_.joinable()) return;
    other_->stop();
    thread_.join();
  }
  void ask(CancelToken* cancel = nullptr) {
    other_->post([this, cancel] { tasks_.spawn(asking(cancel)); });
  }
  Task<void> asking(CancelToken* cancel) {
    OpContext op;
    op.cancel = cancel;
    std::string detail;
    xdr::sessionid4 before{std::byte{3}};
    Result<nfs4::MadeSession> made = co_await errands_->make_session(op, before, &detail);
    thread_of_answer_ = std::this_thread::get_id();
    detail_ = detail;
    made_ = made.ok() ? static_cast<int>(made->client_id) : -made.error().sys;
    answers_.fetch_add(1);
    main_->post([] {});
  }
  template <typename Condition>
  void turn_until(Condition condition) {
    while (!condition())
      main_->turn(Duration(-1));
  }

  Source source_;
  std::unique_ptr<EventLoop> main_, other_;
  std::unique_ptr<SessionErrands> errands_;
  TaskGroup tasks_;  // the other thread's, as what stands below until answers_ is set
  std::thread::id thread_of_answer_;
  std::string detail_;
  int made_ = 0;
  std::atomic<int> answers_{0};
  std::thread thread_;
};

TEST_F(SessionErrandTest, TheAnswerComesToWhoAsked) {
  ask();
  turn_until([this] { return answers_ == 1; });
  EXPECT_EQ(made_, 4711);
  EXPECT_EQ(detail_, "for people");
  EXPECT_EQ(thread_of_answer_, thread_.get_id());
  EXPECT_EQ(source_.thread, std::this_thread::get_id());
  EXPECT_EQ(source_.last_before[0], std::byte{3});
}

TEST_F(SessionErrandTest, WordOfMovedLeasesGoesToTheMainThread) {
  other_->post([this] { errands_->lease_moved(); });
  turn_until([this] { return source_.moved == 1; });
  EXPECT_EQ(source_.thread, std::this_thread::get_id());
  other_->post([this] {
    errands_->lease_moved();
    answers_ = 1;
  });
  while (answers_ == 0)
    std::this_thread::yield();
  errands_.reset();  // with that under way
  main_->turn(Duration::zero());
  EXPECT_EQ(source_.moved, 1) << "nobody is there any more who could be told";
}

TEST_F(SessionErrandTest, WhoAsksMayStopWaiting) {
  source_.open = false;
  CancelToken cancel;
  ask(&cancel);
  turn_until([this] { return source_.asked == 1; });
  other_->post([&] { cancel.cancel(); });
  turn_until([this] { return answers_ == 1 && source_.cancelled == 1; });
  EXPECT_EQ(made_, -EINTR);
  source_.open = true;
  ask();
  turn_until([this] { return answers_ == 2; });
  EXPECT_EQ(made_, 4711);
}

TEST_F(SessionErrandTest, TheEndDoesNotWaitForTheSource) {
  source_.open = false;
  CancelToken cancel;
  ask(&cancel);
  turn_until([this] { return source_.asked == 1; });
  // As a data shard ends: what waits there is cancelled, the thread joined, the rest destroyed.
  other_->post([&] {
    cancel.cancel();
    other_->stop();
  });
  thread_.join();
  EXPECT_EQ(answers_, 1);
  errands_.reset();
  EXPECT_EQ(source_.cancelled, 1);
  main_->turn(Duration::zero());
}

TEST_F(SessionErrandTest, AQuestionThatComesTooLateIsNotAsked) {
  CancelToken cancel;
  other_->post([&] {
    tasks_.spawn(asking(&cancel));
    cancel.cancel();
    other_->stop();
  });
  thread_.join();
  errands_.reset();
  for (int i = 0; i < 3; ++i)
    main_->turn(Duration::zero());
  EXPECT_EQ(source_.asked, 0);
  EXPECT_EQ(made_, -EINTR);
}

}  // namespace
}  // namespace nfsrdma
