// SPDX-License-Identifier: Apache-2.0
// Reclaims that the server puts off (NFS4ERR_DELAY): its time of grace goes by, for all other files
// as well (RFC 8881, 8.4.2.1).
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/unit/client/nfs4/file_locks_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::seconds;

constexpr ByteRange kAll{0, UINT64_MAX};
constexpr ByteRange kFirst{0, 9};
constexpr ByteRange kSecond{20, 29};

class PutOffReclaims : public FileLocksTest {
 protected:
  PutOffReclaims() { lock_both(); }

  void lock_both() {
    file_ = first_;
    EXPECT_EQ(lock({1, LockKind::kWrite, kFirst}), 0);
    file_ = second_;
    EXPECT_EQ(lock({2, LockKind::kWrite, kSecond}), 0);
  }
  /// That operation, of that file, until go_on().
  void put_off(const FileHandle& file, Op operation) {
    server_->instead_of_answering = [this, file, operation] {
      const auto& head = environment_->transport()->out().front()->head;
      const ByteSpan bytes = file.bytes();
      const bool its =
          std::search(head.begin(), head.end(), bytes.begin(), bytes.end()) != head.end();
      auto& errors = operation == Op::OP_OPEN ? server_->open_errors : server_->lock_errors;
      errors.assign(its ? 1 : 0, Stat::NFS4ERR_DELAY);
      return false;
    };
  }
  void go_on() {
    server_->instead_of_answering = nullptr;
    server_->open_errors.clear();
    server_->lock_errors.clear();
  }
  int read(const FileHandle& file) {
    file_ = file;
    return FileLocksTest::read();
  }
  void expect_held_there(std::vector<ByteRange> ranges) {
    std::vector<ByteRange> held;
    for (const ByteRangeLocks::Held& one : server_->locks.held())
      held.push_back(one.range);
    EXPECT_EQ(held, ranges);
  }

  FileHandle first_ = FileHandle(as_bytes("the first file"));
  FileHandle second_ = FileHandle(as_bytes("the second one"));
};

/// Whichever the client begins with.
TEST_F(PutOffReclaims, OfOneFileKeepNoOtherFromItsOwnAndAreGivenUpForThatFileAlone) {
  for (const bool first : {true, false}) {
    const FileHandle bad = first ? first_ : second_;
    const FileHandle good = first ? second_ : first_;
    put_off(bad, Op::OP_OPEN);
    restart();  // five seconds of grace
    expect_held_there({first ? kSecond : kFirst});
    server_->serve_for(seconds(90));  // the lease
    expect_getattr_works_soon();
    go_on();
    EXPECT_EQ(read(good), 0);
    EXPECT_EQ(read(bad), EIO);
    EXPECT_EQ(unlock(first ? 1 : 2, kAll), 0);
    EXPECT_EQ(read(bad), 0);
    lock_both();
  }
}

TEST_F(PutOffReclaims, GoOnWhereTheyWere) {
  server_->open_errors = {Stat::NFS4ERR_DELAY};
  server_->lock_errors = {Stat::NFS4ERR_DELAY, Stat::NFS4_OK, Stat::NFS4ERR_DELAY};
  const std::size_t opens = server_->opens_seen.size();
  restart();
  expect_held_there({kFirst, kSecond});
  EXPECT_EQ(server_->opens_seen.size(), opens + 3);
  EXPECT_EQ(server_->lock_reclaims, 4u);
  EXPECT_EQ(read(first_), 0);
  EXPECT_EQ(read(second_), 0);
}

TEST_F(PutOffReclaims, OfLocksLoseThoseAlone) {
  put_off(first_, Op::OP_LOCK);
  restart();
  server_->serve_for(seconds(90));
  go_on();
  expect_held_there({kSecond});
  EXPECT_EQ(read(second_), 0);
  EXPECT_EQ(read(first_), EIO);
  EXPECT_EQ(unlock(1, kAll), 0);
  const std::size_t opens = server_->opens_seen.size();
  EXPECT_EQ(lock({1, LockKind::kWrite, kFirst}), 0);
  EXPECT_EQ(server_->opens_seen.size(), opens) << "the open stands";
}

TEST_F(PutOffReclaims, OfEveryFileAreOfAServerThatIsNotReady) {
  server_->restart();
  server_->in_grace = true;
  server_->open_errors.assign(1000, Stat::NFS4ERR_DELAY);
  environment_->transport()->lose();
  server_->serve_for(seconds(200));
  go_on();
  server_->serve_for(seconds(30));
  server_->in_grace = false;
  expect_held_there({kFirst, kSecond});
  EXPECT_EQ(read(first_), 0);
  EXPECT_EQ(read(second_), 0);
}

}  // namespace
}  // namespace nfsrdma
