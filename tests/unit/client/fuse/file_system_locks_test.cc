// SPDX-License-Identifier: Apache-2.0
// Locks of the mount, and what they mean for data: who locks reads what others wrote, who unlocks
// has written.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

class FileSystemLocksTest : public FileSystemTest {
 protected:
  void SetUp() override {
    FileSystemTest::SetUp();
    remote_.speak_version_4();
    object_ = remote_.add_file("file", "before");
    node_ = opened("file");
    remote_.log.clear();
    remote_.calls.clear();
    invalidated_.clear();
  }
  void TearDown() override {
    for (auto& done : std::exchange(kernel_waits_, {}))
      done();
    if (node_->opens > 0) close(node_);
    node_.reset();
    FileSystemTest::TearDown();
  }
  static FileLock write_lock(LockOwnerId owner, ByteRange range) {
    return {owner, LockKind::kWrite, range};
  }
  int lock(const FileLock& wanted) {
    return run(fs_->lock(me_, node_, wanted, LockWait::kNo, O_RDWR, 77));
  }
  /// Until nothing runs without a request.
  void settle() {
    struct Settle {
      static Task<void> run(TaskGroup& tasks) { co_await tasks.wait(); }
    };
    run_to_completion(*loop_, Settle::run(fs_->tasks));
  }
  std::size_t place(const std::string& entry) const {
    return static_cast<std::size_t>(std::find(remote_.log.begin(), remote_.log.end(), entry) -
                                    remote_.log.begin());
  }

  MemoryRemote::ObjectRef object_;
  NodeRef node_;
};

TEST_F(FileSystemLocksTest, ALockIsAskedForBehindTheUnlockingOfWhoIsGone) {
  ASSERT_EQ(lock(write_lock(1, {0, 9})), 0);
  remote_.hold();
  fs_->let_go_behind(node_, me_.caller, 1);
  int locked = -1;
  start(fs_->lock(me_, node_, write_lock(2, {0, 9}), LockWait::kNo, O_RDWR, 78), &locked);
  std::optional<FileLock> found;
  pid_t pid = 0;
  int tested = -1;
  start(fs_->test_lock(me_, node_, write_lock(3, {20, 29}), &found, &pid), &tested);
  EXPECT_EQ(remote_.calls["lock"], 1) << "its answer would be that of before";
  EXPECT_EQ(remote_.calls["test_lock"], 0);
  remote_.release();
  settle();
  EXPECT_EQ(locked, 0);
  EXPECT_EQ(tested, 0);
  EXPECT_EQ(found, std::nullopt);
}

TEST_F(FileSystemLocksTest, WhoWaitsForTheUnlockingOfOthersCanBeKilled) {
  ASSERT_EQ(lock(write_lock(1, {0, 9})), 0);
  remote_.hold();
  fs_->let_go_behind(node_, me_.caller, 1);
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  int locked = -1;
  start(fs_->lock(killed, node_, write_lock(2, {0, 9}), LockWait::kNo, O_RDWR, 78), &locked);
  EXPECT_EQ(locked, -1);
  interrupt.raise();
  EXPECT_EQ(locked, EINTR);
  remote_.release();
  settle();
  EXPECT_EQ(remote_.calls["lock"], 1);
}

TEST_F(FileSystemLocksTest, ALockMakesTheKernelForgetWhatItHas) {
  hold_kernel_ = true;
  int result = -1;
  start(fs_->lock(me_, node_, write_lock(1, {0, 9}), LockWait::kNo, O_RDWR, 77), &result);
  EXPECT_EQ(result, -1) << "answered before the kernel had let go of its pages";
  ASSERT_EQ(kernel_waits_.size(), 1u);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node_->id});
  kernel_waits_.front()();
  kernel_waits_.clear();
  EXPECT_EQ(result, 0);
}

TEST_F(FileSystemLocksTest, ALockMakesUsAskForAttributes) {
  ASSERT_EQ(run(fs_->getattr(me_, node_)), 0);
  ASSERT_TRUE(node_->timer.fresh(loop_->now()));
  remote_.write_elsewhere(*object_, "longer than before");
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  const std::size_t drops = invalidated_.size();
  ASSERT_EQ(run(fs_->refresh(me_, node_)), 0);
  EXPECT_EQ(fs_->visible(*node_).size, 18u);
  EXPECT_EQ(invalidated_.size(), drops) << "whoever reads just then would do so by the old size";
}

TEST_F(FileSystemLocksTest, AnAppendBehindALockGoesWhereTheFileEndsNow) {
  remote_.write_elsewhere(*object_, "longer than before");
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  std::uint64_t offset = 6;  // as the kernel remembers
  ASSERT_EQ(run(fs_->append_offset(me_, node_, &offset)), 0);
  EXPECT_EQ(offset, 18u);
}

TEST_F(FileSystemLocksTest, ARefusedLockDropsNothing) {
  ASSERT_EQ(object_->locks.lock(MemoryRemote::first_foreign_owner, LockKind::kRead, {5, 5}),
            ByteRangeLocks::Outcome::kDone);
  EXPECT_EQ(lock(write_lock(1, {0, 9})), EAGAIN);
  EXPECT_TRUE(invalidated_.empty());
}

TEST_F(FileSystemLocksTest, AnUnlockComesBehindStableData) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(write(node_, 0, "written"), 0);
  EXPECT_EQ(run(fs_->unlock(me_, node_, write_lock(1, {0, 9}))), 0);
  EXPECT_EQ(object_->stable_data, "written");
  EXPECT_LT(place("write 0+7 as 0 sync"), place("unlock"));
}

TEST_F(FileSystemLocksTest, ClosingLetsGoOfAllThatTheProcessHas) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(lock(write_lock(1, {20, 29})), 0);
  EXPECT_EQ(lock(write_lock(2, {40, 49})), 0);
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);
  ASSERT_EQ(object_->locks.held().size(), 1u);
  EXPECT_EQ(object_->locks.held()[0].range, (ByteRange{40, 49}));
}

TEST_F(FileSystemLocksTest, ClosingCostsNothingWithoutLocks) {
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);
  EXPECT_EQ(remote_.calls["unlock"], 0);
  close(node_);
  EXPECT_EQ(std::count(remote_.log.begin(), remote_.log.end(), "close"), 0);
}

TEST_F(FileSystemLocksTest, AKilledProcessDoesNotWaitAndItsLocksGoAllTheSame) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(write(node_, 0, "written"), 0);
  remote_.hold();
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  int result = -1;
  start(fs_->let_go(killed, node_, 1), &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  EXPECT_FALSE(object_->locks.empty());
  remote_.release();
  settle();
  EXPECT_TRUE(object_->locks.empty());
  EXPECT_EQ(object_->stable_data, "written");
}

TEST_F(FileSystemLocksTest, WhoIsKilledWhileTheKernelLetsGoKeepsNoLock) {
  hold_kernel_ = true;
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  int result = -1;
  start(fs_->lock(killed, node_, write_lock(1, {0, 9}), LockWait::kNo, O_RDWR, 77), &result);
  ASSERT_FALSE(object_->locks.empty());
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  EXPECT_TRUE(object_->locks.empty());
}

TEST_F(FileSystemLocksTest, TheLastCloseClosesOnTheServerBehindTheData) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(write(node_, 0, "written"), 0);
  close(node_);
  settle();
  EXPECT_EQ(object_->stable_data, "written");
  EXPECT_LT(place("write 0+7 as 0 sync"), place("close"));
  EXPECT_LT(place("close"), remote_.log.size());
  EXPECT_TRUE(node_->lockers.empty());
}

TEST_F(FileSystemLocksTest, TheLastCloseClosesAlsoWhenAllLocksAreGone) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);
  close(node_);
  settle();
  EXPECT_EQ(std::count(remote_.log.begin(), remote_.log.end(), "close"), 1);
}

TEST_F(FileSystemLocksTest, AnOwnersNumberThatComesAgainIsAnotherOwner) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  ASSERT_EQ(object_->locks.held().size(), 1u);
  const LockOwnerId first = object_->locks.held()[0].owner;
  EXPECT_EQ(write(node_, 0, "written"), 0);
  remote_.hold();
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  int result = -1, again = -1;
  start(fs_->let_go(killed, node_, 1), &result);
  interrupt.raise();  // the process is gone, its data and its unlocking are on their way
  start(fs_->lock(me_, node_, write_lock(1, {20, 29}), LockWait::kNo, O_RDWR, 78), &again);
  remote_.release();
  settle();
  EXPECT_EQ(again, 0);
  ASSERT_EQ(object_->locks.held().size(), 1u);
  EXPECT_EQ(object_->locks.held()[0].range, (ByteRange{20, 29}));
  EXPECT_NE(object_->locks.held()[0].owner, first) << "an unlock that is late would take it";
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);
  EXPECT_TRUE(object_->locks.empty());
}

TEST_F(FileSystemLocksTest, ASignalBehindTheGrantTakesNothing) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  hold_kernel_ = true;
  Interrupt interrupt;
  interrupt.by_any_signal = true;
  const RequestContext waiting{me_.caller, &interrupt};
  int result = -1;
  start(fs_->lock(waiting, node_, write_lock(1, {20, 29}), LockWait::kYes, O_RDWR, 77), &result);
  EXPECT_FALSE(interrupt.by_any_signal);
  for (auto& done : std::exchange(kernel_waits_, {}))
    done();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(object_->locks.held().size(), 2u);
}

TEST_F(FileSystemLocksTest, WhoIsKilledBehindTheGrantLosesTheNewLockAlone) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  hold_kernel_ = true;
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  int result = -1;
  start(fs_->lock(killed, node_, write_lock(1, {20, 29}), LockWait::kNo, O_RDWR, 77), &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  ASSERT_EQ(object_->locks.held().size(), 1u);
  EXPECT_EQ(object_->locks.held()[0].range, (ByteRange{0, 9}));
}

TEST_F(FileSystemLocksTest, ALesserLockComesBehindStableData) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(write(node_, 0, "written"), 0);
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  EXPECT_LT(place("write 0+7 as 0 sync"), place("lock read"));
  EXPECT_LT(place("lock read"), remote_.log.size());
}

TEST_F(FileSystemLocksTest, TheEndOfTheMountDoesNotWaitForTheKernel) {
  hold_kernel_ = true;
  int result = -1;
  start(fs_->lock(me_, node_, write_lock(1, {0, 9}), LockWait::kNo, O_RDWR, 77), &result);
  EXPECT_EQ(result, -1);
  close(node_);
  run(fs_->finish());
  EXPECT_EQ(result, 0);
}

TEST_F(FileSystemLocksTest, AFileThatIsOpenAgainIsNotClosed) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(write(node_, 0, "written"), 0);
  remote_.hold();
  close(node_);
  fs_->adopt_open(*node_, me_.caller, O_RDWR);
  remote_.release();
  settle();
  EXPECT_EQ(std::count(remote_.log.begin(), remote_.log.end(), "close"), 0);
}

// Version 4.0 opens files by their names.
TEST_F(FileSystemLocksTest, ALockSaysWhereTheFileIs) {
  EXPECT_EQ(lock(write_lock(1, {0, 9})), 0);
  EXPECT_EQ(remote_.place_of_lock, "");
  remote_.by_name = true;
  remote_.add_file("other");
  NodeRef other = opened("other");
  const auto place_of = [&](const NodeRef& node) {
    EXPECT_EQ(run(fs_->lock(me_, node, write_lock(1, {0, 9}), LockWait::kNo, O_RDWR, 77)), 0);
    return remote_.place_of_lock;
  };
  EXPECT_EQ(place_of(other), "other");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "other", fs_->root, "moved")), 0);
  EXPECT_EQ(place_of(other), "moved");
  ASSERT_EQ(run(fs_->link(me_, other, fs_->root, "second")), 0);
  EXPECT_EQ(place_of(other), "moved");
  close(other);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "moved")), 0);
  EXPECT_EQ(place_of(other), "second");
  // What is removed while it is open has a silly name.
  fs_->adopt_open(*other, me_.caller, O_RDWR);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "second")), 0);
  EXPECT_EQ(place_of(other).substr(0, 4), ".nfs");
  close(other);
  settle();
}

TEST_F(FileSystemLocksTest, TestNamesTheProcessOfThisHost) {
  EXPECT_EQ(lock(write_lock(1, {10, 19})), 0);
  object_->locks.lock(MemoryRemote::first_foreign_owner, LockKind::kRead, {30, 39});
  std::optional<FileLock> found;
  pid_t pid = -1;
  EXPECT_EQ(run(fs_->test_lock(me_, node_, write_lock(2, {0, 99}), &found, &pid)), 0);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->range, (ByteRange{10, 19}));
  EXPECT_EQ(pid, 77);
  EXPECT_EQ(run(fs_->test_lock(me_, node_, write_lock(2, {30, 99}), &found, &pid)), 0);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(pid, 0);
  EXPECT_EQ(run(fs_->test_lock(me_, node_, write_lock(2, {50, 99}), &found, &pid)), 0);
  EXPECT_FALSE(found.has_value());
}

TEST_F(FileSystemLocksTest, ProcessesThatWouldWaitForEachOtherForEverAreTold) {
  remote_.add_file("second", "");
  NodeRef second = opened("second");
  const auto locked = [&](LockOwnerId owner, const NodeRef& node, ByteRange range) {
    return run(
        fs_->lock(me_, node, write_lock(owner, range), LockWait::kNo, O_RDWR, 70 + int(owner)));
  };
  const auto wait = [&](LockOwnerId owner, const NodeRef& node, ByteRange range, int* done) {
    start(fs_->lock_in_the_end(me_, node, write_lock(owner, range), O_RDWR, 70 + int(owner)), done);
  };
  ASSERT_EQ(locked(1, node_, {0, 9}), 0);
  ASSERT_EQ(locked(2, second, {0, 9}), 0);
  ASSERT_EQ(locked(3, node_, {20, 29}), 0);
  int first_waits = -1, third_waits = -1, second_waits = -1;
  wait(1, second, {5, 5}, &first_waits);
  // Waits for one that waits itself, but for nobody who waits for it.
  wait(3, node_, {0, 0}, &third_waits);
  EXPECT_EQ(first_waits, -1);
  EXPECT_EQ(third_waits, -1);
  wait(2, node_, {25, 25}, &second_waits);
  EXPECT_EQ(second_waits, EDEADLK);
  // So is who would wait for several, one of whom will not go on.
  int fourth_waits = -1;
  ASSERT_EQ(locked(4, second, {50, 59}), 0);
  ASSERT_EQ(locked(2, second, {60, 69}), 0);
  int for_the_fourth = -1;
  wait(2, second, {55, 55}, &for_the_fourth);
  EXPECT_EQ(for_the_fourth, -1);
  ASSERT_EQ(locked(5, node_, {70, 79}), 0);
  ASSERT_EQ(locked(2, node_, {80, 89}), 0);
  wait(4, node_, {75, 85}, &fourth_waits);
  EXPECT_EQ(fourth_waits, EDEADLK);
  EXPECT_EQ(run(fs_->unlock(me_, second, write_lock(4, {50, 59}))), 0);
  EXPECT_EQ(for_the_fourth, 0);
  // Without that lock the others go on.
  EXPECT_EQ(run(fs_->unlock(me_, second, write_lock(2, {0, 9}))), 0);
  EXPECT_EQ(first_waits, 0);
  EXPECT_EQ(run(fs_->unlock(me_, node_, write_lock(1, {0, 9}))), 0);
  settle();
  EXPECT_EQ(third_waits, 0);
  // Another host's locks are waited for.
  object_->locks.lock(MemoryRemote::first_foreign_owner, LockKind::kWrite, {50, 59});
  int patient = -1;
  wait(1, node_, {50, 50}, &patient);
  EXPECT_EQ(patient, -1);
  object_->locks.release(MemoryRemote::first_foreign_owner);
  remote_.wake_lockers();
  settle();
  EXPECT_EQ(patient, 0);
  close(second);
}

TEST_F(FileSystemLocksTest, ALockBehindACloseOfTheSameProcessCanBeUnlocked) {
  EXPECT_EQ(lock(write_lock(2, {0, 9})), 0);
  int waiting = -1;
  start(fs_->lock(me_, node_, write_lock(1, {0, 9}), LockWait::kYes, O_RDWR, 77), &waiting);
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);  // another thread closes the file
  EXPECT_EQ(run(fs_->unlock(me_, node_, write_lock(2, {0, 9}))), 0);
  settle();
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(lock(write_lock(1, {5, 9})), 0) << "its own is not in its way";
  EXPECT_EQ(run(fs_->unlock(me_, node_, write_lock(1, {0, 9}))), 0);
  EXPECT_TRUE(object_->locks.empty());
}

TEST_F(FileSystemLocksTest, SoCanOneThatCameBehindALaterOneOfThatProcess) {
  EXPECT_EQ(lock(write_lock(2, {0, 9})), 0);
  int waiting = -1;
  start(fs_->lock(me_, node_, write_lock(1, {0, 9}), LockWait::kYes, O_RDWR, 77), &waiting);
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);
  EXPECT_EQ(lock(write_lock(1, {20, 29})), 0);  // and locks again, by a new number
  EXPECT_EQ(run(fs_->unlock(me_, node_, write_lock(2, {0, 9}))), 0);
  settle();
  EXPECT_EQ(waiting, 0);
  ASSERT_EQ(object_->locks.held().size(), 2u);
  EXPECT_EQ(object_->locks.held()[0].owner, object_->locks.held()[1].owner);
  EXPECT_EQ(run(fs_->let_go(me_, node_, 1)), 0);
  EXPECT_TRUE(object_->locks.empty());
}

}  // namespace
}  // namespace nfsrdma
