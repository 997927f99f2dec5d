// SPDX-License-Identifier: Apache-2.0
// Minor0Life: all that a client of NFSv4.0 does to a server, from its first call on. Each step of
// it has to end, whatever the server does meanwhile, and behind the last one nothing may be left
// over.
#pragma once

#include "tests/unit/client/nfs4/minor0_fixture.h"

namespace nfsrdma {

class Minor0Life : public Minor0Test {
 protected:
  explicit Minor0Life(bool soft = false) : Minor0Test(soft) {
    make_callable();
    connect();
    server_->grants = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
    session().set_lease(std::chrono::seconds(20));
    server_->contents["f0"];
  }

  /// The steps that ended with an error.
  std::vector<std::string> live() {
    using std::chrono::seconds;
    failed_.clear();
    for (int i = 0; i < 3 && !begun_; ++i)  // else there is no mount
      begun_ = step("begin", nfs_->begin(op_, &detail_));
    step("GETATTR", nfs_->getattr(op_, file_));
    locker_.place = &place_;
    if (server_->can_call()) (void)server_->probe();
    step("OPEN for a delegation",
         nfs_->open(locker_, file_, 0x3f, {access_bits::kRead, /*delegation=*/true}));
    step("READ by it", nfs_->read_once(op_, file_, 10, MutableByteSpan(room_).first(4)));
    server_->serve_for(seconds(1));  // CLOSE
    server_->recall_all();
    server_->serve_for(seconds(1));  // DELEGRETURN
    lock_step({1, LockKind::kWrite, {10, 19}});
    read_what_is_written();
    lock_step({1, LockKind::kRead, {30, 39}});
    lock_step({2, LockKind::kWrite, {50, 59}});
    step("LOCKT", nfs_->test_lock(op_, file_, {3, LockKind::kWrite, {80, 80}}));
    server_->serve_for(seconds(12));  // until RENEW is due
    unlock_step({1, LockKind::kWrite, {10, 14}});
    unlock_step({1, LockKind::kWrite, {0, UINT64_MAX}});
    for (const CreateMode how : {CreateMode::kGuarded, CreateMode::kExclusive}) {
      const SetAttributes set;
      step("OPEN that creates", nfs_->create(op_, directory_, "new", how, set));
      server_->serve_for(seconds(1));  // CLOSE
      step("REMOVE", nfs_->remove(op_, directory_, "new", nullptr));
    }
    nfs_->close(file_);
    server_->serve_for(seconds(1));
    return failed_;
  }
  /// The server behaves. What it was told once is told again by and by.
  void expect_nothing_left_here() {
    server_->serve_for(std::chrono::seconds(180));
    EXPECT_EQ(nfs_->files_open(), 0u);
    EXPECT_EQ(nfs_->locks_held(), 0u);
    // One whose answer could not be read is heard of when it is recalled.
    EXPECT_LE(nfs_->delegations_held(), server_->standing());
    server_->recall_all();
    server_->serve_for(std::chrono::seconds(60));
    EXPECT_FALSE(nfs_->holds(file_));
    EXPECT_EQ(session().slots().taken(), 0u);
    EXPECT_EQ(rpc_->outstanding(), 0u);
  }
  void expect_nothing_left_there() {
    EXPECT_EQ(server_->opens(), 0u);
    EXPECT_EQ(server_->lock_stateids(), 0u);
    EXPECT_EQ(server_->standing(), 0u);
    EXPECT_TRUE(server_->locks["f0"].held().empty());
  }
  /// Of a life in which a step may have failed.
  void clear_up() {
    server_->names.erase("new");
    server_->forget_miscounted();
  }

 private:
  template <typename T>
  bool step(const std::string& what, Task<Result<T>> task) {
    if (hangs_) return false;
    auto done = std::make_shared<std::optional<Result<T>>>();
    group_.spawn(keep_shared(std::move(task), done));
    for (int i = 0; i < 6000 && !done->has_value(); ++i)
      server_->serve_for(std::chrono::milliseconds(50));
    if (!done->has_value()) {
      ADD_FAILURE() << what << " hangs";
      hangs_ = true;
      nfs_->abort();
      rpc_->abort_all();
      return false;
    }
    if (!(*done)->ok()) failed_.push_back(what + ": " + (*done)->error().message());
    return (*done)->ok();
  }
  template <typename T>
  static Task<void> keep_shared(Task<Result<T>> task,
                                std::shared_ptr<std::optional<Result<T>>> out) {
    out->emplace(co_await std::move(task));
  }
  void lock_step(const FileLock& wanted) {
    step("LOCK", nfs_->lock(locker_, file_, wanted, LockWait::kNo, access_bits::kRead));
  }
  void unlock_step(const FileLock& what) { step("LOCKU", nfs_->unlock(op_, file_, what)); }
  void read_what_is_written() {
    const char text = static_cast<char>('a' + ++written_ % 26);
    const std::string data(4, text);
    const bool wrote =
        step("WRITE", nfs_->write_once(op_, file_, 10, as_bytes(data), Stability::kFileSync));
    room_.fill(std::byte{0});
    const MutableByteSpan into = MutableByteSpan(room_).first(4);
    const bool got = step("READ", nfs_->read_once(op_, file_, 10, into));
    if (wrote && got && !server_->quiet) {
      EXPECT_EQ(as_text(into), data);
    }
    for (const std::byte behind : ByteSpan(room_).subspan(4))
      EXPECT_EQ(behind, std::byte{0});
  }

  std::vector<std::string> failed_;
  unsigned written_ = 0;
  bool begun_ = false;
  bool hangs_ = false;
};

}  // namespace nfsrdma
