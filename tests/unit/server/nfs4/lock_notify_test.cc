// SPDX-License-Identifier: Apache-2.0
// Clients that wait for locks are told when they may ask again (CB_NOTIFY_LOCK, RFC 8881 20.11).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/callback_client.h"

namespace nfsrdma::test {
namespace {

using xdr::nfs_lock_type4;

class LockNotifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    harness_.connection().max_backward = 2000;
    holder_ = connect("holder");
    waiter_ = connect("waiter");
  }

  struct Client {
    Session4 session;
    Open4 file;
    std::uint32_t rflags = 0;
  };
  Client connect(std::string_view name) {
    Client out;
    out.session = harness_.connect(name);
    const Reply4 reply = open(out.session, "owner");
    const auto& result = reply.get<OP_OPEN>().resok4;
    out.file.stateid = result.stateid;
    out.rflags = result.rflags;
    out.file.handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
    return out;
  }
  Reply4 open(Session4& session, std::string_view owner) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.owner = {session.client, as_bytes(owner)};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = "file";
    Reply4 reply = harness_.run(
        session, Operations4().putfh(harness_.root()).add<OP_OPEN>(args).add<OP_GETFH>());
    EXPECT_EQ(reply.status, NFS4_OK);
    return reply;
  }
  nfsstat4 close(Client& client) {
    return harness_
        .run(client.session,
             Operations4().putfh(client.file.handle).add<OP_CLOSE>({0, client.file.stateid}))
        .status;
  }
  nfs4::FileKey key_of(const std::string& name) const {
    struct stat file {};
    EXPECT_EQ(::stat(harness_.path(name).c_str(), &file), 0);
    return nfs4::file_key(file.st_dev, file.st_ino);
  }
  Reply4 lock(Client& client, nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length,
              std::string_view owner = "locker") {
    xdr::LOCK4args args;
    args.locktype = type;
    args.offset = offset;
    args.length = length;
    args.locker.new_lock_owner = true;
    args.locker.open_owner = {0, client.file.stateid, 0, {client.session.client, as_bytes(owner)}};
    return harness_.run(client.session, Operations4().putfh(client.file.handle).add<OP_LOCK>(args));
  }
  nfsstat4 unlock(Client& client, const Reply4& locked, std::uint64_t offset,
                  std::uint64_t length) {
    xdr::stateid4 stateid = locked.get<OP_LOCK>().resok4.lock_stateid;
    stateid.seqid = 0;  // whatever it is now
    const xdr::LOCKU4args args{nfs_lock_type4::WRITE_LT, 0, stateid, offset, length};
    return harness_.run(client.session, Operations4().putfh(client.file.handle).add<OP_LOCKU>(args))
        .status;
  }
  void expect_notified(std::string_view owner = "locker") {
    ASSERT_EQ(client_side_.calls().size(), 1u);
    const auto seen = CallbackClient::read<xdr::CB_NOTIFY_LOCK4args>(*client_side_.calls().front());
    EXPECT_EQ(seen.operation, xdr::nfs_cb_opnum4::OP_CB_NOTIFY_LOCK);
    EXPECT_EQ(to_handle(seen.args.cnla_fh.data), waiter_.file.handle);
    EXPECT_EQ(seen.args.cnla_lock_owner.clientid, waiter_.session.client);
    EXPECT_EQ(as_text(seen.args.cnla_lock_owner.owner), owner);
    client_side_.answer();
  }
  std::size_t waiting() {
    std::lock_guard guard(harness_.state().mutex);
    return harness_.state().lock_notifier.waits().size();
  }

  Nfs4Harness harness_;
  CallbackClient client_side_{harness_};
  Client holder_, waiter_;
};

TEST_F(LockNotifyTest, WhoWaitsIsToldOnce) {
  EXPECT_NE(waiter_.rflags & xdr::OPEN4_RESULT_MAY_NOTIFY_LOCK, 0u);
  const Reply4 held = lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100);
  ASSERT_EQ(held.status, NFS4_OK);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4ERR_DENIED);
  ASSERT_EQ(unlock(holder_, held, 0, 10), NFS4_OK);
  EXPECT_TRUE(client_side_.is_quiet()) << "not of the bytes that it wants";
  const Reply4 rest = lock(holder_, nfs_lock_type4::WRITE_LT, 200, 1, "another");
  ASSERT_EQ(unlock(holder_, held, 40, 30), NFS4_OK);
  expect_notified();
  EXPECT_EQ(waiting(), 0u);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4_OK);
  ASSERT_EQ(unlock(holder_, held, 0, 100), NFS4_OK);
  EXPECT_TRUE(client_side_.is_quiet());
}

TEST_F(LockNotifyTest, CloseAndDowngradeFreeAsWell) {
  ASSERT_EQ(lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100).status, NFS4_OK);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::READW_LT, 50, 10).status, NFS4ERR_DENIED);
  ASSERT_EQ(lock(holder_, nfs_lock_type4::READ_LT, 0, 100).status, NFS4_OK);
  expect_notified();
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4ERR_DENIED);
  ASSERT_EQ(close(holder_), NFS4_OK);
  expect_notified();
}

TEST_F(LockNotifyTest, ClientsThatEndFreeTheirs) {
  ASSERT_EQ(lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100).status, NFS4_OK);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4ERR_DENIED);
  harness_.clock.move(std::chrono::seconds(60));
  ASSERT_EQ(harness_.run(waiter_.session, Operations4()).status, NFS4_OK);
  harness_.clock.move(std::chrono::seconds(60));
  {
    std::lock_guard guard(harness_.state().mutex);
    EXPECT_TRUE(harness_.state().end_expired({holder_.session.client}));
  }
  expect_notified();
}

/// To find out whether somebody may ask again, all locks of the file are looked at for each who
/// waits. So that is not done where no lock has ended: this one could have its lock, and would be
/// told so.
TEST_F(LockNotifyTest, OpensWithoutLocksAreNobodysConcern) {
  const nfs4::FileKey key = key_of("file");
  {
    std::lock_guard guard(harness_.state().mutex);
    nfs4::LockWait wait;
    wait.client = waiter_.session.client;
    wait.owner = "locker";
    wait.range = {0, 9};
    wait.handle.assign(waiter_.file.handle.bytes().begin(), waiter_.file.handle.bytes().end());
    harness_.state().lock_notifier.waits().add(key, wait);
  }
  ASSERT_EQ(close(holder_), NFS4_OK);
  EXPECT_EQ(waiting(), 1u);
  const Client other = connect("other");
  {
    std::lock_guard guard(harness_.state().mutex);
    EXPECT_TRUE(harness_.state().evict(other.session.client));
  }
  EXPECT_EQ(waiting(), 1u);
  EXPECT_TRUE(client_side_.is_quiet());
}

TEST_F(LockNotifyTest, OfAFileThatManyOwnersHadOpenOnceIsEnough) {
  struct Counter final : nfs4::LockWatcher {
    void on_unlocked(const nfs4::FileKey&) override { ++told; }
    void on_client_ended(nfs4::ClientId) override {}
    int told = 0;
  } counter;
  for (const char* owner : {"a", "b", "c", "d"})
    open(holder_.session, owner);
  ASSERT_EQ(lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100).status, NFS4_OK);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4ERR_DENIED);
  {
    std::lock_guard guard(harness_.state().mutex);
    harness_.state().lock_notifier.watch(&counter);
    EXPECT_TRUE(harness_.state().evict(holder_.session.client));
    harness_.state().lock_notifier.watch(nullptr);
  }
  EXPECT_EQ(counter.told, 1);
  expect_notified();
}

TEST_F(LockNotifyTest, WhoDoesNotWaitIsNotTold) {
  const Reply4 held = lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITE_LT, 50, 10).status, NFS4ERR_DENIED);
  EXPECT_EQ(waiting(), 0u);
  // It gave up: it asks for something else now, and does not wait for that.
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4ERR_DENIED);
  EXPECT_EQ(waiting(), 1u);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITE_LT, 200, 10).status, NFS4_OK);
  EXPECT_EQ(waiting(), 0u);
  ASSERT_EQ(unlock(holder_, held, 0, 100), NFS4_OK);
  EXPECT_TRUE(client_side_.is_quiet());
  // A client that is gone waits for nothing.
  ASSERT_EQ(lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100).status, NFS4_OK);
  ASSERT_EQ(lock(waiter_, nfs_lock_type4::WRITEW_LT, 50, 10).status, NFS4ERR_DENIED);
  harness_.clock.move(std::chrono::seconds(200));
  {
    std::lock_guard guard(harness_.state().mutex);
    EXPECT_TRUE(harness_.state().end_expired({waiter_.session.client}));
  }
  EXPECT_EQ(waiting(), 0u);
}

TEST_F(LockNotifyTest, NothingIsPromisedWithoutAWayToTheClient) {
  harness_.connection().max_backward = 0;
  Client unreachable = connect("unreachable");
  EXPECT_EQ(unreachable.rflags & xdr::OPEN4_RESULT_MAY_NOTIFY_LOCK, 0u);
  ASSERT_EQ(lock(holder_, nfs_lock_type4::WRITE_LT, 0, 100).status, NFS4_OK);
  ASSERT_EQ(lock(unreachable, nfs_lock_type4::WRITEW_LT, 0, 10).status, NFS4ERR_DENIED);
  EXPECT_EQ(waiting(), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
