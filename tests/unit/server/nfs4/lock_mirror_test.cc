// SPDX-License-Identifier: Apache-2.0
// Locks of NFSv4 clients and of local processes keep each other out (lock_mirror.h). A descriptor
// of the test's own, or a child's POSIX locks, stand for local processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "server/vfs/lock_waiters.h"
#include "server/vfs/record_locks.h"
#include "tests/support/callback_client.h"
#include "tests/support/nfs4_harness.h"
#include "tests/support/refused_calls.h"

namespace nfsrdma::test {
namespace {

using xdr::nfs_lock_type4;
constexpr auto kRead = nfs_lock_type4::READ_LT;
constexpr auto kWrite = nfs_lock_type4::WRITE_LT;
constexpr std::uint64_t kToTheEnd = UINT64_MAX;  // as a length
using Kind = RecordLock::Kind;

/// A process of this machine that locks by descriptor.
class Local {
 public:
  explicit Local(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}

  /// True: it has the lock, or let go of it.
  bool lock(Kind kind, std::uint64_t first, std::uint64_t last) {
    return set_record_lock(fd_.get(), {kind, first, last}) == 0;
  }
  bool unlock(std::uint64_t first = 0, std::uint64_t last = kLastByte) {
    return lock(Kind::kNone, first, last);
  }
  /// Could it have it?
  bool may(Kind kind, std::uint64_t first, std::uint64_t last) {
    RecordLock found;
    pid_t pid = 0;
    return !find_record_lock(fd_.get(), {kind, first, last}, &found, &pid);
  }
  /// Waits until it could, for what is let go of behind the client's back.
  bool comes_to_write(std::uint64_t first, std::uint64_t last) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_start = static_cast<off_t>(first);
    lock.l_len = last == kLastByte ? 0 : static_cast<off_t>(last - first + 1);
    return ::fcntl(fd_.get(), F_OFD_SETLKW, &lock) == 0 && unlock(first, last);
  }

 private:
  UniqueFd fd_;
};

/// A child that has, or waits for, a POSIX lock until the object goes.
class PosixHolder {
 public:
  PosixHolder(const std::string& path, off_t start, off_t length, int command = F_SETLK) {
    int held[2], done[2];
    if (::pipe(held) != 0 || ::pipe(done) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(done[1]);
      const int fd = ::open(path.c_str(), O_RDWR);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_start = start;
      lock.l_len = length;
      char byte = ::fcntl(fd, command, &lock) == 0 ? 'y' : 'n';
      if (::write(held[1], &byte, 1) != 1) ::_exit(1);
      while (::read(done[0], &byte, 1) > 0) {
      }
      ::_exit(0);
    }
    ::close(done[0]);
    ::close(held[1]);
    held_.reset(held[0]);
    done_.reset(done[1]);
  }
  ~PosixHolder() {
    done_.reset();
    if (pid_ <= 0) return;
    if (!told_) ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  /// Once its fcntl() is over, for which a while is waited.
  bool holds() {
    pollfd answer{held_.get(), POLLIN, 0};
    char byte = 'n';
    told_ = ::poll(&answer, 1, 30000) == 1 && ::read(held_.get(), &byte, 1) == 1;
    return byte == 'y';
  }

 private:
  pid_t pid_ = -1;
  UniqueFd held_, done_;
  bool told_ = false;
};

class LockMirrorTest : public ::testing::Test {
 protected:
  /// A client with its own session that has "file" open, and one lock-owner.
  struct Client {
    Session4 session;
    Open4 file;
    std::optional<xdr::stateid4> locks;
  };
  Client connect(std::string_view name, std::uint32_t access = xdr::OPEN4_SHARE_ACCESS_BOTH) {
    Client out;
    out.session = nfs_.connect(name);
    open(out, access);
    return out;
  }
  void open(Client& client, std::uint32_t access) {
    xdr::OPEN4args args;
    args.share_access = access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.owner = {client.session.client, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = "file";
    const Reply4 reply = nfs_.run(
        client.session, Operations4().putfh(nfs_.root()).add<OP_OPEN>(args).add<OP_GETFH>());
    ASSERT_EQ(reply.status, NFS4_OK);
    client.file.stateid = reply.get<OP_OPEN>().resok4.stateid;
    client.file.handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
    ::chmod(nfs_.path("file").c_str(), 0666);
  }
  Reply4 send_lock(Client& client, nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length,
                   bool reclaim = false) {
    xdr::LOCK4args args;
    args.locktype = type;
    args.reclaim = reclaim;
    args.offset = offset;
    args.length = length;
    args.locker.new_lock_owner = !client.locks;
    if (client.locks) {
      args.locker.lock_owner = {*client.locks, 0};
    } else {
      args.locker.open_owner = {
          0, client.file.stateid, 0, {client.session.client, as_bytes(std::string_view("locker"))}};
    }
    Reply4 reply =
        nfs_.run(client.session, Operations4().putfh(client.file.handle).add<OP_LOCK>(args));
    if (reply.status == NFS4_OK) client.locks = reply.get<OP_LOCK>().resok4.lock_stateid;
    return reply;
  }
  nfsstat4 lock(Client& client, nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length,
                bool reclaim = false) {
    return send_lock(client, type, offset, length, reclaim).status;
  }
  Reply4 send_test(Client& client, nfs_lock_type4 type, std::uint64_t offset,
                   std::uint64_t length) {
    const xdr::LOCKT4args args{
        type, offset, length, {client.session.client, as_bytes(std::string_view("locker"))}};
    return nfs_.run(client.session, Operations4().putfh(client.file.handle).add<OP_LOCKT>(args));
  }
  nfsstat4 unlock(Client& client, std::uint64_t offset, std::uint64_t length) {
    const xdr::LOCKU4args args{kWrite, 0, *client.locks, offset, length};
    const Reply4 reply =
        nfs_.run(client.session, Operations4().putfh(client.file.handle).add<OP_LOCKU>(args));
    if (reply.status == NFS4_OK) client.locks = reply.get<OP_LOCKU>().resok4;
    return reply.status;
  }
  nfsstat4 close(Client& client) {
    client.locks.reset();
    return nfs_
        .run(client.session,
             Operations4().putfh(client.file.handle).add<OP_CLOSE>({0, client.file.stateid}))
        .status;
  }
  Local local() { return Local(nfs_.path("file")); }
  /// Waits until nothing is mirrored any more.
  bool is_over() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < until) {
      {
        std::lock_guard guard(nfs_.state().mutex);
        if (nfs_.state().lock_mirror.files() == 0) return true;
      }
      std::this_thread::yield();
    }
    return false;
  }

  explicit LockMirrorTest(HarnessOptions options = {}) : nfs_(std::move(options)) {}

  Nfs4Harness nfs_;
};

TEST_F(LockMirrorTest, ALocalLockKeepsClientsOut) {
  Client client = connect("client");
  Local local = this->local();
  ASSERT_TRUE(local.lock(Kind::kWrite, 100, 149));
  const Reply4 refused = send_lock(client, kRead, 120, 100);
  ASSERT_EQ(refused.status, NFS4ERR_DENIED);
  const xdr::LOCK4denied denied = refused.get<OP_LOCK>().denied;
  EXPECT_EQ(denied.offset, 100u);
  EXPECT_EQ(denied.length, 50u);
  EXPECT_EQ(denied.locktype, kWrite);
  EXPECT_EQ(denied.owner.clientid, 0u);
  EXPECT_EQ(as_text(denied.owner.owner), "local process");
  const Reply4 tested = send_test(client, kRead, 0, kToTheEnd);
  ASSERT_EQ(tested.status, NFS4ERR_DENIED);
  EXPECT_EQ(tested.get<OP_LOCKT>().denied.offset, 100u);
  EXPECT_TRUE(is_over()) << "what was refused leaves nothing";

  EXPECT_EQ(lock(client, kWrite, 0, 100), NFS4_OK);
  EXPECT_EQ(lock(client, kWrite, 150, kToTheEnd), NFS4_OK);
  EXPECT_EQ(send_test(client, kWrite, 0, 100).status, NFS4_OK) << "its own";
  EXPECT_EQ(send_test(client, kWrite, 149, 1).status, NFS4ERR_DENIED);
  ASSERT_TRUE(local.unlock());
  EXPECT_EQ(lock(client, kWrite, 100, 50), NFS4_OK);
}

TEST_F(LockMirrorTest, APosixLockIsNamedByItsProcess) {
  Client client = connect("client");
  {
    PosixHolder holder(nfs_.path("file"), 10, 0);
    ASSERT_TRUE(holder.holds());
    const Reply4 refused = send_lock(client, kWrite, 0, 11);
    ASSERT_EQ(refused.status, NFS4ERR_DENIED);
    const xdr::LOCK4denied denied = refused.get<OP_LOCK>().denied;
    EXPECT_EQ(denied.offset, 10u);
    EXPECT_EQ(denied.length, kToTheEnd);
    EXPECT_EQ(as_text(denied.owner.owner), "local process " + std::to_string(holder.pid()));
    EXPECT_EQ(lock(client, kWrite, 0, 10), NFS4_OK);
  }
  EXPECT_EQ(lock(client, kWrite, 10, 1), NFS4_OK);
}

TEST_F(LockMirrorTest, ClientsLocksKeepLocalProcessesOut) {
  Client client = connect("client");
  Local local = this->local();
  ASSERT_EQ(lock(client, kWrite, 100, 100), NFS4_OK);
  EXPECT_FALSE(local.lock(Kind::kRead, 0, 100));
  EXPECT_FALSE(local.lock(Kind::kWrite, 199, kLastByte));
  {
    PosixHolder posix(nfs_.path("file"), 150, 1);
    EXPECT_FALSE(posix.holds());
  }
  EXPECT_TRUE(local.lock(Kind::kWrite, 0, 99));
  EXPECT_TRUE(local.lock(Kind::kWrite, 200, kLastByte));
  // What is unlocked is free when LOCKU has been answered, and nothing else.
  ASSERT_EQ(unlock(client, 120, 10), NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kWrite, 120, 129));
  EXPECT_FALSE(local.may(Kind::kRead, 119, 119));
  EXPECT_FALSE(local.may(Kind::kRead, 130, 130));
  EXPECT_EQ(lock(client, kRead, 115, 10), NFS4ERR_DENIED);
  EXPECT_FALSE(local.may(Kind::kRead, 119, 119)) << "a refused LOCK changes nothing";
  ASSERT_EQ(unlock(client, 0, kToTheEnd), NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kWrite, 0, kLastByte));
  EXPECT_TRUE(is_over());
}

/// Also when the thread that looks for waiting processes begins to watch the file just then.
TEST_F(LockMirrorTest, WhatIsUnlockedIsFreeWhenThatIsAnswered) {
  Client client = connect("client");
  Local local = this->local();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(lock(client, kWrite, 0, 10), NFS4_OK) << i;
    ASSERT_EQ(unlock(client, 0, 10), NFS4_OK) << i;
    ASSERT_TRUE(local.lock(Kind::kWrite, 0, 9)) << i;
    ASSERT_TRUE(local.unlock());
  }
}

TEST_F(LockMirrorTest, TheEndOfAnOpenOrOfAClientFreesItsLocks) {
  Client first = connect("first one"), second = connect("second one");
  Local local = this->local();
  ASSERT_EQ(lock(first, kWrite, 0, 10), NFS4_OK);
  ASSERT_EQ(lock(second, kWrite, 10, 10), NFS4_OK);
  ASSERT_EQ(close(first), NFS4_OK);
  EXPECT_TRUE(local.comes_to_write(0, 9));
  EXPECT_FALSE(local.may(Kind::kRead, 10, 10));
  nfs_.clock.move(std::chrono::seconds(200));
  {
    std::lock_guard guard(nfs_.state().mutex);
    EXPECT_TRUE(nfs_.state().end_expired({second.session.client}));
  }
  EXPECT_TRUE(local.comes_to_write(0, kLastByte));
  EXPECT_TRUE(is_over());
}

/// Out of courtesy a client keeps its locks when its lease is over; but not if somebody waits.
TEST_F(LockMirrorTest, AnExpiredClientDoesNotKeepLocalProcessesWaiting) {
  Client gone = connect("gone"), there = connect("there");
  ASSERT_EQ(lock(gone, kWrite, 0, 10), NFS4_OK);
  ASSERT_EQ(lock(there, kWrite, 20, 10), NFS4_OK);
  PosixHolder waiter(nfs_.path("file"), 0, 10, F_SETLKW);
  while (awaited_files().empty())
    std::this_thread::yield();
  nfs_.clock.move(std::chrono::seconds(60));
  ASSERT_EQ(nfs_.run(there.session, Operations4()).status, NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(60));
  EXPECT_TRUE(waiter.holds());
  EXPECT_FALSE(local().may(Kind::kRead, 20, 20));
  std::lock_guard guard(nfs_.state().mutex);
  EXPECT_EQ(nfs_.state().opens.held(gone.session.client).locks, 0u);
  EXPECT_EQ(nfs_.state().opens.held(there.session.client).locks, 1u);
}

/// After a crash it could reclaim what a local process has had meanwhile.
TEST_F(LockMirrorTest, WhatAnExpiredClientHadIsFreeOnceThatIsWrittenDown) {
  Client gone = connect("gone"), there = connect("there");
  ASSERT_EQ(lock(gone, kWrite, 0, 10), NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(60));
  ASSERT_EQ(nfs_.run(there.session, Operations4()).status, NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(60));
  // As on a full disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_EQ(send_test(there, kWrite, 0, 10).status, NFS4_OK);
  const bool free = local().may(Kind::kRead, 0, 0);
  const bool left = nfs_.state().any_ended();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(free);
  EXPECT_TRUE(left);
  EXPECT_TRUE(is_over());
  EXPECT_TRUE(local().may(Kind::kWrite, 0, kLastByte));
  EXPECT_FALSE(nfs_.state().any_ended());
}

TEST_F(LockMirrorTest, LocksAreMadeStrongerAndWeaker) {
  Client client = connect("client");
  Local local = this->local();
  ASSERT_EQ(lock(client, kRead, 0, 100), NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kRead, 50, 59));
  EXPECT_FALSE(local.may(Kind::kWrite, 0, 0));
  EXPECT_EQ(lock(client, kWrite, 0, 100), NFS4ERR_DENIED);
  EXPECT_FALSE(local.may(Kind::kWrite, 0, 49)) << "it has what it had";
  EXPECT_TRUE(local.may(Kind::kRead, 0, 49)) << "and no more";
  ASSERT_TRUE(local.unlock());
  ASSERT_EQ(lock(client, kWrite, 0, 100), NFS4_OK);
  EXPECT_FALSE(local.may(Kind::kRead, 0, 0));
  ASSERT_EQ(lock(client, kRead, 20, 20), NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kRead, 20, 39));
  EXPECT_FALSE(local.may(Kind::kWrite, 20, 20));
  EXPECT_FALSE(local.may(Kind::kRead, 19, 19));
  EXPECT_FALSE(local.may(Kind::kRead, 40, 40));
}

TEST_F(LockMirrorTest, WhoReadsTogetherLeavesAlone) {
  Client first = connect("first one", xdr::OPEN4_SHARE_ACCESS_READ);
  Client second = connect("second one", xdr::OPEN4_SHARE_ACCESS_READ);
  Local local = this->local();
  ASSERT_EQ(lock(first, kRead, 0, 60), NFS4_OK);
  ASSERT_EQ(lock(second, kRead, 40, 60), NFS4_OK);
  ASSERT_EQ(unlock(first, 0, 60), NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kWrite, 0, 39));
  EXPECT_FALSE(local.may(Kind::kWrite, 40, 40));
  ASSERT_EQ(unlock(second, 50, 10), NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kWrite, 50, 59));
  EXPECT_FALSE(local.may(Kind::kWrite, 49, 49));
  EXPECT_FALSE(local.may(Kind::kWrite, 60, 60));
  // From a descriptor that can only read to one that can write.
  open(second, xdr::OPEN4_SHARE_ACCESS_BOTH);
  Client writer = second;
  writer.locks.reset();
  ASSERT_EQ(lock(writer, kWrite, 200, 1), NFS4_OK);
  EXPECT_FALSE(local.may(Kind::kRead, 200, 200));
  EXPECT_FALSE(local.may(Kind::kWrite, 60, 60)) << "read locks came along";
  EXPECT_TRUE(local.may(Kind::kRead, 60, 60));
}

TEST_F(LockMirrorTest, BytesThatTheKernelDoesNotKnowAreClientsAlone) {
  Client first = connect("first one"), second = connect("second one");
  Local local = this->local();
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
  ASSERT_EQ(lock(first, kWrite, kBeyond, 10), NFS4_OK);
  EXPECT_EQ(lock(second, kRead, kBeyond + 9, 1), NFS4ERR_DENIED);
  EXPECT_TRUE(local.may(Kind::kWrite, 0, kLastByte));
  ASSERT_EQ(unlock(first, kBeyond, 10), NFS4_OK);
  // Over the border.
  ASSERT_EQ(lock(first, kWrite, kBeyond - 2, 10), NFS4_OK);
  EXPECT_FALSE(local.may(Kind::kRead, kLastByte, kLastByte));
  EXPECT_FALSE(local.may(Kind::kRead, kLastByte - 1, kLastByte - 1));
  EXPECT_TRUE(local.may(Kind::kRead, 0, kLastByte - 2));
  ASSERT_EQ(unlock(first, kBeyond - 1, kToTheEnd), NFS4_OK);
  EXPECT_TRUE(local.may(Kind::kRead, kLastByte, kLastByte));
  EXPECT_FALSE(local.may(Kind::kRead, kLastByte - 1, kLastByte - 1));
}

TEST_F(LockMirrorTest, AReclaimedLockMayHaveBeenTaken) {
  Client client;
  client.session = nfs_.session;
  open(client, xdr::OPEN4_SHARE_ACCESS_BOTH);
  ASSERT_EQ(lock(client, kWrite, 0, 10), NFS4_OK);
  ASSERT_EQ(lock(client, kWrite, 20, 10), NFS4_OK);
  Local local = this->local();
  EXPECT_FALSE(local.may(Kind::kRead, 0, 0));
  nfs_.restart();
  ASSERT_TRUE(local.lock(Kind::kWrite, 0, 9)) << "nobody keeps it while there is no server";

  xdr::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = as_bytes(std::string_view("first"));
  const auto id =
      nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).get<OP_EXCHANGE_ID>().resok4;
  xdr::CREATE_SESSION4args wanted;
  wanted.csa_clientid = client.session.client = id.eir_clientid;
  wanted.csa_sequence = id.eir_sequenceid;
  for (xdr::channel_attrs4* channel : {&wanted.csa_fore_chan_attrs, &wanted.csa_back_chan_attrs})
    *channel = {0, 65536, 65536, 4096, 16, 4, {}};
  client.session.id = nfs_.run_bare(Operations4().add<OP_CREATE_SESSION>(wanted))
                          .get<OP_CREATE_SESSION>()
                          .resok4.csr_sessionid;
  client.session.sequence = 0;
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
  args.owner = {client.session.client, as_bytes(std::string_view("owner"))};
  args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
  const Reply4 opened =
      nfs_.run(client.session, Operations4().putfh(client.file.handle).add<OP_OPEN>(args));
  ASSERT_EQ(opened.status, NFS4_OK);
  client.file.stateid = opened.get<OP_OPEN>().resok4.stateid;
  client.locks.reset();
  EXPECT_EQ(lock(client, kWrite, 0, 10, true), NFS4ERR_RECLAIM_CONFLICT);
  EXPECT_EQ(lock(client, kWrite, 20, 10, true), NFS4_OK);
  EXPECT_FALSE(local.may(Kind::kRead, 20, 20));
}

TEST_F(LockMirrorTest, WithoutDescriptorsClientsComeBackLater) {
  Client reader = connect("reader"), writer = connect("writer");
  // The descriptor that made the file would do.
  nfs_.server().files.forget(reader.file.handle);
  ASSERT_EQ(lock(reader, kRead, 0, 10), NFS4_OK);
  Local local = this->local();
  nfs_.on_its_thread([] { refuse_calls(SYS_openat, EMFILE); });
  EXPECT_EQ(lock(writer, kWrite, 20, 10), NFS4ERR_DELAY);
  EXPECT_FALSE(local.may(Kind::kWrite, 0, 9)) << "what there was stays";
  EXPECT_TRUE(local.may(Kind::kRead, 20, 29));
  EXPECT_EQ(send_test(reader, kWrite, 20, 10).status, NFS4_OK) << "nobody was given it";
  EXPECT_EQ(lock(reader, kRead, 20, 10), NFS4_OK) << "there is a descriptor for that";
  EXPECT_FALSE(local.may(Kind::kWrite, 20, 29));
}

/// It may have locks that it has told nobody of, and tells of them before it gives the file back.
TEST_F(LockMirrorTest, TheHolderOfAWriteDelegationLocksBeforeItGivesItBack) {
  Session4 other = nfs_.connect("other");
  nfs_.connection().max_backward = 2000;
  CallbackClient client_side(nfs_);
  Client holder;
  holder.session = nfs_.connect("holder");
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
  args.owner = {holder.session.client, as_bytes(std::string_view("owner"))};
  args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  args.claim.file = "file";
  const Reply4 opened =
      nfs_.run(holder.session, Operations4().putfh(nfs_.root()).add<OP_OPEN>(args).add<OP_GETFH>());
  ASSERT_EQ(opened.status, NFS4_OK);
  const auto& result = opened.get<OP_OPEN>().resok4;
  ASSERT_EQ(result.delegation.delegation_type, xdr::open_delegation_type4::OPEN_DELEGATE_WRITE);
  const xdr::stateid4 delegation = result.delegation.write.stateid;
  holder.file.stateid = result.stateid;
  holder.file.handle = to_handle(opened.get<OP_GETFH>().resok4.object.data);

  const xdr::LOCKT4args test{kWrite, 0, 1, {other.client, as_bytes(std::string_view("locker"))}};
  EXPECT_EQ(nfs_.run(other, Operations4().putfh(holder.file.handle).add<OP_LOCKT>(test)).status,
            NFS4ERR_DELAY);
  ASSERT_EQ(lock(holder, kWrite, 0, 10), NFS4_OK);
  ASSERT_EQ(lock(holder, kRead, 20, 10), NFS4_OK);
  ASSERT_EQ(nfs_.run(holder.session,
                     Operations4().putfh(holder.file.handle).add<OP_DELEGRETURN>({delegation}))
                .status,
            NFS4_OK);
  EXPECT_EQ(nfs_.run(other, Operations4().putfh(holder.file.handle).add<OP_LOCKT>(test)).status,
            NFS4ERR_DENIED);
  Local local = this->local();
  EXPECT_FALSE(local.may(Kind::kRead, 0, 9));
  EXPECT_FALSE(local.may(Kind::kWrite, 20, 29));
  EXPECT_TRUE(local.may(Kind::kRead, 10, kLastByte));
  ASSERT_EQ(unlock(holder, 0, kToTheEnd), NFS4_OK);
  EXPECT_TRUE(local.may(Kind::kWrite, 0, kLastByte));
}

/// Nobody tells the server of the end of such a lock.
TEST_F(LockMirrorTest, WhoWaitsForALocalProcessIsToldToAskAgain) {
  nfs_.connection().max_backward = 2000;
  CallbackClient client_side(nfs_);
  Client waiter = connect("waiter"), other = connect("other");
  Local local = this->local();
  ASSERT_TRUE(local.lock(Kind::kWrite, 0, 9));
  ASSERT_EQ(lock(other, kWrite, 100, 1), NFS4_OK);
  ASSERT_EQ(lock(waiter, nfs_lock_type4::WRITEW_LT, 0, 10), NFS4ERR_DENIED);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(client_side.calls().size(), 1u);
    EXPECT_EQ(CallbackClient::operation_of(*client_side.calls().front()),
              xdr::nfs_cb_opnum4::OP_CB_NOTIFY_LOCK);
    client_side.answer();
    if (i == 0) {
      ASSERT_EQ(lock(waiter, nfs_lock_type4::WRITEW_LT, 0, 10), NFS4ERR_DENIED);
      ASSERT_TRUE(local.unlock());
    }
  }
  ASSERT_EQ(lock(waiter, nfs_lock_type4::WRITEW_LT, 0, 10), NFS4_OK);
  // Another client is told when that lets go, and not before.
  ASSERT_EQ(lock(other, nfs_lock_type4::WRITEW_LT, 5, 1), NFS4ERR_DENIED);
  {
    std::lock_guard guard(nfs_.state().mutex);
    nfs_.state().lock_notifier.ask_again();
    EXPECT_EQ(nfs_.state().lock_notifier.waits().size(), 1u);
  }
}

class WithoutLockMirror : public LockMirrorTest {
 protected:
  WithoutLockMirror() : LockMirrorTest(options()) {}
  static HarnessOptions options() {
    HarnessOptions out;
    out.local_locks = false;
    return out;
  }
};

TEST_F(WithoutLockMirror, ClientsAreAmongThemselves) {
  Client first = connect("first one"), second = connect("second one");
  Local local = this->local();
  ASSERT_TRUE(local.lock(Kind::kWrite, 0, 9));
  EXPECT_EQ(lock(first, kWrite, 0, 20), NFS4_OK);
  EXPECT_EQ(lock(second, kRead, 0, 1), NFS4ERR_DENIED);
  EXPECT_EQ(send_test(second, kRead, 20, 1).status, NFS4_OK);
  EXPECT_TRUE(local.lock(Kind::kWrite, 10, 19));
  EXPECT_EQ(unlock(first, 0, 20), NFS4_OK);
  EXPECT_EQ(lock(second, kRead, 0, 1), NFS4_OK);
}

/// Two clients and a local process, on twelve bytes, against bytes that know who has them.
TEST_F(LockMirrorTest, AgreesWithAPlainModel) {
  constexpr std::uint64_t kBytes = 12;
  constexpr int kLocal = 2;
  Client clients[2] = {connect("first one"), connect("second one")};
  Local local = this->local();
  std::array<std::array<Kind, kBytes>, 3> model{};
  const auto refused = [&](int who, Kind kind, std::uint64_t first, std::uint64_t last) {
    for (int other = 0; other < 3; ++other) {
      for (std::uint64_t i = first; i <= last && other != who; ++i) {
        const Kind theirs = model[other][i];
        if (theirs == Kind::kWrite || (theirs == Kind::kRead && kind == Kind::kWrite)) return true;
      }
    }
    return false;
  };
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  const auto below = [&](unsigned end) {
    return std::uniform_int_distribution(0u, end - 1)(random);
  };
  for (int step = 0; step < 3000; ++step) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
    const int who = static_cast<int>(below(3));
    const Kind kind = static_cast<Kind>(below(3));
    const std::uint64_t first = below(kBytes);
    const std::uint64_t last = first + below(static_cast<unsigned>(kBytes - first));
    const bool free = kind == Kind::kNone || !refused(who, kind, first, last);
    if (who == kLocal) {
      ASSERT_EQ(local.lock(kind, first, last), free);
    } else if (kind == Kind::kNone) {
      if (!clients[who].locks) continue;
      ASSERT_EQ(unlock(clients[who], first, last - first + 1), NFS4_OK);
    } else {
      const auto type = kind == Kind::kRead ? kRead : kWrite;
      ASSERT_EQ(send_test(clients[who], type, first, last - first + 1).status,
                free ? NFS4_OK : NFS4ERR_DENIED);
      ASSERT_EQ(lock(clients[who], type, first, last - first + 1), free ? NFS4_OK : NFS4ERR_DENIED);
    }
    if (!free) continue;
    for (std::uint64_t i = first; i <= last; ++i)
      model[who][i] = kind;
  }
  ASSERT_TRUE(local.unlock());
  for (Client& client : clients)
    ASSERT_EQ(close(client), NFS4_OK);
  EXPECT_TRUE(local.comes_to_write(0, kLastByte));
  EXPECT_TRUE(is_over());
}

}  // namespace
}  // namespace nfsrdma::test
