// SPDX-License-Identifier: Apache-2.0
// What the notifier tells the kernel, and in which order: with a session whose device is a
// function.
#include "client/fuse/notifier.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nfsrdma {
namespace {

/// Takes what the session writes, and keeps whoever tells it to drop data waiting as the kernel
/// may.
class Kernel {
 public:
  /// Data of the file: waits there until let_go().
  void hold(std::uint64_t node) {
    std::lock_guard lock(mutex_);
    held_[node] = true;
  }
  void let_go(std::uint64_t node) {
    std::lock_guard lock(mutex_);
    held_[node] = false;
    changed_.notify_all();
  }
  bool wait_until_begun(std::uint64_t node, int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return begun_[node] >= times; });
  }
  void let_all_go() {
    std::lock_guard lock(mutex_);
    held_.clear();
    changed_.notify_all();
  }
  int begun(std::uint64_t node) {
    std::lock_guard lock(mutex_);
    return begun_[node];
  }

  static ssize_t write(int, iovec* parts, int count, void* kernel) {
    std::size_t size = 0;
    for (int i = 0; i < count; ++i)
      size += parts[i].iov_len;
    fuse_out_header header{};
    std::memcpy(&header, parts[0].iov_base, sizeof(header));
    if (header.unique == 0 && header.error == FUSE_NOTIFY_INVAL_INODE) {
      fuse_notify_inval_inode_out what{};
      std::memcpy(&what, parts[1].iov_base, sizeof(what));
      static_cast<Kernel*>(kernel)->drop(what.ino);
    }
    return static_cast<ssize_t>(size);
  }

 private:
  void drop(std::uint64_t node) {
    std::unique_lock lock(mutex_);
    ++begun_[node];
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_[node]; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, bool> held_;  // guarded by mutex_
  std::map<std::uint64_t, int> begun_;  // guarded by mutex_
};

class NotifierTest : public ::testing::Test {
 protected:
  NotifierTest() {
    std::array<char*, 1> words{name_.data()};
    fuse_args arguments = FUSE_ARGS_INIT(1, words.data());
    const fuse_lowlevel_ops operations{};
    session_ = fuse_session_new(&arguments, &operations, sizeof(operations), &kernel_);
    fuse_opt_free_args(&arguments);  // it made some of its own
    fuse_custom_io io{};
    io.writev = &Kernel::write;
    io.read = [](int, void*, std::size_t, void*) -> ssize_t { return 0; };
    EXPECT_EQ(fuse_session_custom_io(session_, &io, 0), 0);
    begin();
    notifier_ = std::make_unique<Notifier>(session_);
  }
  ~NotifierTest() override {
    kernel_.let_all_go();  // a test that failed may have left one waiting
    notifier_.reset();
    fuse_session_destroy(session_);
  }

  /// The kernel's first request, without which a session tells it nothing.
  void begin() {
    struct {
      fuse_in_header header;
      fuse_init_in init;
    } request{};
    request.header.len = sizeof(request);
    request.header.opcode = FUSE_INIT;
    request.header.unique = 1;
    request.init.major = FUSE_KERNEL_VERSION;
    request.init.minor = FUSE_KERNEL_MINOR_VERSION;
    request.init.max_readahead = 65536;
    fuse_buf buffer{};
    buffer.mem = &request;
    buffer.size = sizeof(request);
    fuse_session_process_buf(session_, &buffer);
  }

  void invalidate(std::uint64_t node, int number) {
    notifier_->invalidate(node, [this, number] {
      std::lock_guard lock(mutex_);
      done_.push_back(number);
      changed_.notify_all();
    });
  }
  /// While the first dropping of 7 is held, whatever else asks for it. Threads take the lowest
  /// number first: whoever has 8 has been past 7.
  void expect_7_waits_for_its_first() {
    for (int times = 1; times <= 20; ++times) {
      invalidate(8, 2 + times);
      ASSERT_TRUE(kernel_.wait_until_begun(8, times));
    }
    EXPECT_EQ(kernel_.begun(7), 1);
    kernel_.let_go(7);
    EXPECT_TRUE(kernel_.wait_until_begun(7, 2));
  }
  bool wait_until_done(std::vector<int> wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return done_ == wanted; });
  }

  std::string name_ = "test";
  Kernel kernel_;
  fuse_session* session_ = nullptr;
  std::unique_ptr<Notifier> notifier_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> done_;  // guarded by mutex_
};

TEST_F(NotifierTest, AFileThatIsKeptWaitingHoldsUpNoOther) {
  kernel_.hold(7);
  invalidate(7, 1);
  ASSERT_TRUE(kernel_.wait_until_begun(7, 1));
  invalidate(8, 2);
  EXPECT_TRUE(wait_until_done({2}));
  kernel_.let_go(7);
  EXPECT_TRUE(wait_until_done({2, 1}));
}

// Who was told that it is dropped finds nothing dropped behind that: an older request, asked for
// earlier, would come between it and the answer that tells it the file's size.
TEST_F(NotifierTest, OneFileIsDroppedOnceAtATime) {
  kernel_.hold(7);
  invalidate(7, 1);
  ASSERT_TRUE(kernel_.wait_until_begun(7, 1));
  invalidate(7, 2);
  expect_7_waits_for_its_first();
}

// The same of attributes alone, as at the end of a delegation.
TEST_F(NotifierTest, DataIsDroppedBehindTheAttributesThatAreBeingDropped) {
  kernel_.hold(7);
  notifier_->invalidate_attributes_soon(7);
  ASSERT_TRUE(kernel_.wait_until_begun(7, 1));
  invalidate(7, 1);
  expect_7_waits_for_its_first();
}

TEST_F(NotifierTest, AttributesThatWentWithTheDataAreNotDroppedOnceMore) {
  kernel_.hold(6);
  notifier_->invalidate_attributes_soon(6);  // its thread is busy from here on
  ASSERT_TRUE(kernel_.wait_until_begun(6, 1));
  notifier_->invalidate_attributes_soon(7);
  invalidate(7, 1);
  EXPECT_TRUE(wait_until_done({1}));
  notifier_->invalidate_attributes_soon(9);
  kernel_.let_go(6);
  EXPECT_TRUE(kernel_.wait_until_begun(9, 1));
  EXPECT_EQ(kernel_.begun(7), 1);
}

TEST_F(NotifierTest, WhatIsAskedForMeanwhileIsDroppedOnceMoreForAll) {
  kernel_.hold(7);
  invalidate(7, 1);
  ASSERT_TRUE(kernel_.wait_until_begun(7, 1));
  invalidate(7, 2);
  invalidate(7, 3);
  kernel_.let_go(7);
  EXPECT_TRUE(wait_until_done({1, 2, 3}));
  EXPECT_EQ(kernel_.begun(7), 2);
}

TEST_F(NotifierTest, WhoeverStillWaitsAtTheEndIsLetGo) {
  kernel_.hold(7);
  invalidate(7, 1);
  ASSERT_TRUE(kernel_.wait_until_begun(7, 1));
  invalidate(7, 2);
  kernel_.let_go(7);
  notifier_->stop();
  EXPECT_TRUE(wait_until_done({1, 2}));
  invalidate(7, 3);
  EXPECT_TRUE(wait_until_done({1, 2, 3}));
}

}  // namespace
}  // namespace nfsrdma
