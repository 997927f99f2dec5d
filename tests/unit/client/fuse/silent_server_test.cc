// SPDX-License-Identifier: Apache-2.0
// The mount option softreval: what is known goes on being believed when the server does not answer.
#include <chrono>

#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;

class SilentServer : public FileSystemTest {
 protected:
  void build_soft() {
    FileSystemOptions options;
    options.revalidation_patience = milliseconds(20);
    build(options);
  }
  /// A file that has been looked at, of which nothing is fresh any more, and a server that is
  /// silent.
  NodeRef seen_before(const std::string& name) {
    remote_.add_file(name, "content");
    NodeRef node = look(name);
    EXPECT_EQ(run(fs_->permit(me_, node, access_bits::kRead, false)), 0);
    age(fs_->root);
    age(node);
    remote_.hold();
    return node;
  }
  /// Longer than the patience of build_soft().
  Task<int> pause() { return pause(milliseconds(60)); }
  Task<int> pause(milliseconds time) {
    bool over = false;
    WaitList waiting;
    Timer timer([&] {
      over = true;
      waiting.wake_all();
    });
    timer.arm_after(*loop_, time);
    while (!over)
      co_await waiting.wait();
    co_return 0;
  }
  bool fresh(const NodeRef& node) { return node->timer.fresh(loop_->now()); }
};

TEST_F(SilentServer, AnOpenFileIsAskedForOnceUntilTheAnswerComes) {
  remote_.add_file("file", "content");
  NodeRef node = opened("file");
  age(node);
  remote_.hold();
  remote_.calls.clear();
  // It is looked at every second.
  run(pause(milliseconds(3300)));
  EXPECT_EQ(remote_.calls["getattr"], 1);
  remote_.release();
  EXPECT_TRUE(fresh(node));
  age(node);
  run(pause(milliseconds(1100)));
  EXPECT_EQ(remote_.calls["getattr"], 2);
  close(node);
}

TEST_F(SilentServer, AttributesAndNamesThatAreKnownAreBelieved) {
  build_soft();
  const NodeRef node = seen_before("file");
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(node->attributes.size, 7u);
  EXPECT_TRUE(fresh(node));
  age(node);
  EXPECT_EQ(look("file"), node);
  EXPECT_EQ(last_error_, 0);
  EXPECT_TRUE(fresh(node) && fresh(fs_->root));
}

// The kernel's question before the first one of the mount, and of a caller that was never let in.
TEST_F(SilentServer, WhatIsNotKnownIsWaitedFor) {
  build_soft();
  remote_.add_file("other");
  const NodeRef node = seen_before("file");
  int results[2] = {-1, -1};
  NodeRef found[2];
  start(fs_->lookup(me_, fs_->root, "other", &found[0]), &results[0]);
  start(fs_->lookup(other_, fs_->root, "file", &found[1]), &results[1]);
  // Both would have been given up by the time that this is.
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(results[0], -1);
  EXPECT_EQ(results[1], -1);
  remote_.release();
  EXPECT_EQ(results[0], 0);
  EXPECT_EQ(results[1], 0);
  EXPECT_EQ(found[1], node);
}

TEST_F(SilentServer, RightsThatAreKnownAreBelievedAndNoOthers) {
  build_soft();
  const NodeRef node = seen_before("file");
  node->access.clear();
  node->access.store(me_.caller, access_bits::kRead | access_bits::kModify, access_bits::kRead,
                     loop_->now());
  EXPECT_EQ(run(fs_->permit(me_, node, access_bits::kRead, false)), 0);
  EXPECT_EQ(run(fs_->permit(me_, node, access_bits::kModify, false)), EACCES);
}

TEST_F(SilentServer, AnAbsentNameStaysAbsent) {
  build_soft();
  EXPECT_EQ(look("absent"), nullptr);
  age(fs_->root);
  remote_.hold();
  EXPECT_EQ(look("absent"), nullptr);
  EXPECT_EQ(last_error_, ENOENT);
}

TEST_F(SilentServer, WithoutTheOptionItIsWaitedFor) {
  const NodeRef node = seen_before("file");
  int result = -1;
  start(fs_->refresh(me_, node), &result);
  run(pause());
  EXPECT_EQ(result, -1);
  remote_.release();
  EXPECT_EQ(result, 0);
}

// The request goes on to other calls, and its end ends those.
TEST_F(SilentServer, TheRequestCanStillBeEnded) {
  build_soft();
  const NodeRef node = seen_before("file");
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  EXPECT_EQ(run(fs_->refresh(killed, node)), 0);
  EXPECT_FALSE(interrupt.token->cancelled());
  age(node);
  int result = -1;
  start(fs_->refresh(killed, node), &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
}

TEST_F(SilentServer, TheServersAnswerCountsAgainWhenThereIsOne) {
  build_soft();
  const NodeRef node = seen_before("file");
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  remote_.write_elsewhere(*remote_.root_object()->names.at("file"), "changed meanwhile");
  remote_.release();
  age(node);
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(node->attributes.size, 17u);
}

}  // namespace
}  // namespace nfsrdma
