// SPDX-License-Identifier: Apache-2.0
// FileLocksTest: locks by Nfs4Operations, against a server that does as it is told.
#pragma once

#include <memory>
#include <vector>

#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {

class FileLocksTest : public SessionTest {
 protected:
  using Outcome = std::optional<Result<void>>;

  explicit FileLocksTest(bool soft = false) : SessionTest(soft) { EXPECT_TRUE(begin().ok()); }

  void start_lock(Outcome* out, const FileLock& wanted, LockWait wait = LockWait::kNo,
                  CancelToken* cancel = nullptr) {
    const std::uint32_t open_for = access_bits::kRead;
    op_as_.push_back(std::make_unique<OpContext>(op_));
    op_as_.back()->cancel = cancel;
    group_.spawn(keep(nfs_->lock(*op_as_.back(), file_, wanted, wait, open_for), out));
    environment_->settle();
  }
  /// 0, or the errno.
  int lock(const FileLock& wanted, LockWait wait = LockWait::kNo) {
    Outcome done;
    start_lock(&done, wanted, wait);
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  int unlock(LockOwnerId owner, ByteRange range) {
    Outcome done;
    group_.spawn(keep(nfs_->unlock(op_, file_, {owner, LockKind::kRead, range}), &done));
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  int read() {
    std::optional<Result<ReadResult>> done;
    group_.spawn(keep(nfs_->read_once(op_, file_, 0, room_), &done));
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  void close() {
    nfs_->close(file_);
    server_->serve_for(std::chrono::seconds(2));
  }
  void expect_getattr_works_soon() {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(std::chrono::milliseconds(200));
    ASSERT_TRUE(got.has_value() && got->ok());
  }

  std::vector<std::unique_ptr<OpContext>> op_as_;
  std::array<std::byte, 16> room_{};
};

}  // namespace nfsrdma
