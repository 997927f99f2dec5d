// SPDX-License-Identifier: Apache-2.0
// A server that says that some of what it held for this client is another server's business now,
// and not what (SEQ4_STATUS_LEASE_MOVED, NFS4ERR_LEASE_MOVED): what is asked, who hears of it, and
// what becomes of those who wanted something meanwhile.
#include "client/nfs4/recovery.h"
#include "client/referral.h"
#include "tests/unit/client/nfs4/minor0_fixture.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Operations = std::vector<Op>;
using std::chrono::minutes;
using std::chrono::seconds;
using namespace access_bits;

/// Who follows: what is handed over is nobody's business here any more.
struct Follower final : DelegationHolder {
  void give_up(const FileHandle&) override {}
  std::optional<HeldAttributes> held_attributes(const FileHandle&) override { return {}; }
  void has_moved(const FileHandle& file) override {
    told.push_back(file);
    if (follow) follow();
  }
  const Attributes* last_attributes(const FileHandle& file) const override {
    const auto known = attributes.find(file);
    return known == attributes.end() ? nullptr : &known->second;
  }
  std::vector<FileHandle> told;
  std::function<void()> follow;
  std::unordered_map<FileHandle, Attributes, FileHandleHash> attributes;
};

std::unique_ptr<MovedState> hand_over_all(NfsOperations& nfs) {
  return nfs.hand_over([](const FileHandle&) { return true; });
}

class MovedLeaseTest : public OpensTest {
 protected:
  MovedLeaseTest() : OpensTest(false) { nfs_->set_delegation_holder(&follower_); }
  ~MovedLeaseTest() override { nfs_->set_delegation_holder(nullptr); }

  void say_so() {
    server_->seen.clear();
    server_->status_flags |= xdr::SEQ4_STATUS_LEASE_MOVED;
  }
  /// A call of somebody's about something else.
  void ask_for_something(Duration time = seconds(2)) {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(time);
  }
  void say_so_again() { server_->status_flags |= xdr::SEQ4_STATUS_LEASE_MOVED; }
  const Operations kAsked{Op::OP_SEQUENCE, Op::OP_PUTFH, Op::OP_GETATTR};
  Follower follower_;
};

TEST_F(MovedLeaseTest, WhatIsOpenIsAskedForAndWhoFollowsHearsOfIt) {
  ASSERT_EQ(open({.access = kRead}), 0);
  server_->moved = true;
  say_so();
  server_->serve_for(minutes(1));  // nobody wants anything, but that the lease is kept
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_});
  ASSERT_GE(server_->seen.size(), 3u);
  EXPECT_EQ(server_->seen[0], Operations{Op::OP_SEQUENCE});
  EXPECT_EQ(server_->seen[1], kAsked);
  EXPECT_EQ(server_->seen[2], kAsked) << "where to";
  EXPECT_EQ(server_->status_flags & xdr::SEQ4_STATUS_LEASE_MOVED, 0u);
}

TEST_F(MovedLeaseTest, DelegationsCountAsWell) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  ASSERT_EQ(open({.access = kRead, .delegation = true}), 0);
  ASSERT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
  nfs_->close(file_);
  server_->serve_for(seconds(2));
  ASSERT_EQ(nfs_->files_open(), 0u);
  server_->moved = true;
  say_so();
  ask_for_something();
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_});
}

/// As the mount does: what was followed is not asked for at this server any more.
TEST_F(MovedLeaseTest, WhatIsFollowedMeanwhileIsNotAskedFor) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  ASSERT_EQ(open({.access = kRead, .delegation = true}), 0);
  ASSERT_EQ(nfs_->files_open(), 1u);
  std::unique_ptr<MovedState> state;
  follower_.follow = [&] { state = hand_over_all(*nfs_); };
  server_->moved = true;
  say_so();
  ask_for_something();
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_}) << "once, though it is held twice";
  EXPECT_NE(state, nullptr);
}

TEST_F(MovedLeaseTest, AServerThatSaysSoForNothingIsAskedLessAndLess) {
  ASSERT_EQ(open({.access = kRead}), 0);
  say_so();
  std::size_t looks = 0;
  for (int i = 0; i < 600; ++i) {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(seconds(1));
    ASSERT_TRUE(got && got->ok());
  }
  EXPECT_TRUE(follower_.told.empty());
  looks = times(Op::OP_GETATTR) - 600;
  EXPECT_GE(looks, 5u);
  EXPECT_LE(looks, 12u) << "in ten minutes";
}

/// Nor one where something has moved indeed, which nobody follows.
TEST_F(MovedLeaseTest, NorForWhatItKeepsSaying) {
  ASSERT_EQ(open({.access = kRead}), 0);
  server_->moved = true;
  for (int i = 0; i < 600; ++i) {
    say_so_again();
    ask_for_something(seconds(1));
  }
  EXPECT_GE(follower_.told.size(), 5u);
  EXPECT_LE(follower_.told.size(), 12u) << "in ten minutes";
}

/// The mount has gone there, and nothing of it is held here any more.
TEST_F(MovedLeaseTest, WhatWasNotAcknowledgedIsWhenItIsSaidAgain) {
  ASSERT_EQ(open({.access = kRead}), 0);
  std::unique_ptr<MovedState> state;
  follower_.follow = [&] { state = hand_over_all(*nfs_); };
  server_->moved = true;
  say_so();
  server_->refuse_locations = 1;
  ask_for_something();
  ASSERT_EQ(follower_.told.size(), 1u);
  ASSERT_NE(server_->status_flags & xdr::SEQ4_STATUS_LEASE_MOVED, 0u);
  ask_for_something();
  ask_for_something();
  EXPECT_EQ(server_->status_flags & xdr::SEQ4_STATUS_LEASE_MOVED, 0u);
}

/// Of each file system one is asked for first: it tells of the others.
TEST_F(MovedLeaseTest, OneFileTellsOfItsFileSystem) {
  for (std::uint8_t i = 0; i < 5; ++i) {
    const std::array<std::byte, 2> bytes{std::byte{7}, std::byte{i}};
    file_ = FileHandle(bytes);
    ASSERT_EQ(open({.access = kRead}), 0);
    follower_.attributes[file_].fsid = 7;
  }
  server_->moved = true;
  say_so();
  ask_for_something();
  EXPECT_EQ(follower_.told.size(), 1u);
}

/// Without a mount that could go there, the server hears all the same that it is known.
TEST_F(MovedLeaseTest, TheServerHearsThatItIsKnownWhoeverFollows) {
  nfs_->set_delegation_holder(nullptr);
  ASSERT_EQ(open({.access = kRead}), 0);
  server_->moved = true;
  say_so();
  ask_for_something();
  EXPECT_EQ(server_->status_flags & xdr::SEQ4_STATUS_LEASE_MOVED, 0u);
  EXPECT_EQ(read(op_), EREMOTE);
}

TEST_F(MovedLeaseTest, MayEndWhileItIsAsked) {
  ASSERT_EQ(open({.access = kRead}), 0);
  say_so();
  server_->moved = true;
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  ASSERT_TRUE(server_->serve_one());
  environment_->settle();
  ASSERT_FALSE(server_->connected()->out().empty()) << "it is being looked for";
  nfs_->abort();
  EXPECT_TRUE(follower_.told.empty());
}

class MovedLeaseTest0 : public Minor0Test {
 protected:
  MovedLeaseTest0() { nfs_->set_delegation_holder(&follower_); }
  ~MovedLeaseTest0() override { nfs_->set_delegation_holder(nullptr); }
  const Operations kPresent{Op::OP_PUTFH, Op::OP_GETATTR};
  const Operations kWhereTo{Op::OP_PUTFH, Op::OP_GETATTR, Op::OP_RENEW};
  Follower follower_;
};

TEST_F(MovedLeaseTest0, IsNoAnswerToWhatHasNothingToDoWithIt) {
  ASSERT_EQ(begin(), 0);
  ASSERT_EQ(lock(1, {0, 9}), 0);
  server_->seen.clear();
  server_->moved = {"f0"};
  server_->lease_moved = true;
  std::unique_ptr<MovedState> state;
  follower_.follow = [&] { state = hand_over_all(*nfs_); };
  EXPECT_EQ(create("another"), 0);
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_});
  EXPECT_FALSE(server_->lease_moved);
  EXPECT_EQ(std::count(server_->seen.begin(), server_->seen.end(), kPresent), 1);
  EXPECT_EQ(std::count(server_->seen.begin(), server_->seen.end(), kWhereTo), 1);
}

/// Nobody does anything: RENEW brings it to light.
TEST_F(MovedLeaseTest0, IsFoundWhenTheLeaseIsRenewed) {
  ASSERT_EQ(begin(), 0);
  ASSERT_EQ(lock(1, {0, 9}), 0);
  server_->moved = {"f0"};
  server_->lease_moved = true;
  server_->serve_for(minutes(1));
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_});
  EXPECT_FALSE(server_->lease_moved);
  EXPECT_NE(session().client_id(), 0u);
  EXPECT_EQ(server_->times(Op::OP_SETCLIENTID), 1u) << "the client id stands";
}

/// Followed because somebody used it: then nothing of it is held any more that could be asked for.
TEST_F(MovedLeaseTest0, WhoAsksWhereToSaysWhoHeIs) {
  ASSERT_EQ(begin(), 0);
  server_->moved = {"f0"};
  server_->lease_moved = true;
  std::optional<Result<Referral>> found;
  group_.spawn(keep(nfs_->referral(op_, file_, ""), &found));
  server_->serve_for(seconds(2));
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(server_->lease_moved);
  EXPECT_EQ(server_->seen.back(), kWhereTo);
}

/// A server that answers the very question like that.
TEST_F(MovedLeaseTest0, TheQuestionIsNotAskedWithoutAnEnd) {
  ASSERT_EQ(begin(), 0);
  ASSERT_EQ(lock(1, {0, 9}), 0);
  server_->errors[Op::OP_PUTFH].assign(40, Stat::NFS4ERR_LEASE_MOVED);
  server_->errors[Op::OP_READ] = {Stat::NFS4ERR_LEASE_MOVED};
  std::optional<Result<ReadResult>> done;
  group_.spawn(keep(nfs_->read_once(op_, file_, 0, room_), &done));
  server_->serve_for(seconds(3));
  EXPECT_FALSE(done.has_value());
  server_->errors[Op::OP_PUTFH].clear();
  server_->moved = {"f0"};
  server_->lease_moved = true;
  server_->serve_for(minutes(1));
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_}) << "it is asked for all the same";
  EXPECT_TRUE(done.has_value());
}

TEST_F(MovedLeaseTest0, AnOwnersNumbersGoOn) {
  ASSERT_EQ(begin(), 0);
  ASSERT_EQ(lock(1, {0, 9}), 0);
  server_->errors[Op::OP_LOCK] = {Stat::NFS4ERR_LEASE_MOVED};
  EXPECT_EQ(lock(1, {20, 29}), 0);
  server_->errors[Op::OP_LOCKU] = {Stat::NFS4ERR_LEASE_MOVED};
  EXPECT_EQ(unlock(1), 0);
  server_->errors[Op::OP_CLOSE] = {Stat::NFS4ERR_LEASE_MOVED};
  close();
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_TRUE(server_->locks["f0"].held().empty());
}

/// The mount's other threads read; what is held is the main thread's.
TEST_F(MovedLeaseTest0, AGuestTellsItsHost) {
  ASSERT_EQ(begin(), 0);
  ASSERT_EQ(lock(1, {0, 9}), 0);
  struct Given final : nfs4::SessionSource {
    Task<Result<nfs4::MadeSession>> make_session(const OpContext& op, xdr::sessionid4 before,
                                                 std::string* detail) override {
      return host->make_session(op, before, detail);
    }
    void lease_moved() override { host->lease_moved(); }
    nfs4::Session* host = nullptr;
  } given;
  given.host = &session();
  nfs4::SessionOptions options;
  options.owner = "guest";
  options.slots = 4;
  options.source = &given;
  Nfs4Operations guest(*rpc_, options);
  Outcome begun;
  group_.spawn(keep(guest.begin(op_, &detail_), &begun));
  server_->serve_for(seconds(1));
  ASSERT_EQ(number(begun), 0);
  server_->moved = {"f0"};
  server_->lease_moved = true;
  std::optional<Result<ReadResult>> done;
  const FileHandle other = handle_of("f1");
  group_.spawn(keep(guest.read_once(op_, other, 0, room_), &done));
  server_->serve_for(seconds(3));
  EXPECT_EQ(follower_.told, std::vector<FileHandle>{file_});
  EXPECT_FALSE(server_->lease_moved);
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->ok()) << done->error().message();
  guest.abort();
}

TEST_F(MovedLeaseTest0, ReadsWaitForIt) {
  ASSERT_EQ(begin(), 0);
  server_->errors[Op::OP_READ] = {xdr::nfsstat4::NFS4ERR_LEASE_MOVED};
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(nfs4::remedy_of_minor_0(xdr::nfsstat4::NFS4ERR_LEASE_MOVED), nfs4::Remedy::kFindMoved);
}

}  // namespace
}  // namespace nfsrdma
