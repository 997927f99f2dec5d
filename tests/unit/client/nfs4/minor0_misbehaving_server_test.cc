// SPDX-License-Identifier: Apache-2.0
// The client of NFSv4.0 with a server that does everything wrong, at random: as
// misbehaving_server_test.cc has it for the newer ones. Errors in all places, lost connections,
// restarts, leases that are over, locks that are revoked, owners that it has lost count of, calls
// that it runs twice or not at all, answers that are cut, too long or nonsense. Operations may fail
// meanwhile; they must end, and once the server behaves nothing is left over.
#include "tests/unit/client/nfs4/minor0_fixture.h"
#include "tests/unit/client/nfs4/storm.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kFiles = 3;

struct Asked : StormCall {
  std::uint32_t what = 0;  // of start_something()
  bool waits = false;      // for a lock, which another owner may have here
};

class Minor0Storm : public Minor0Test, private Storm<Asked> {
 public:
  explicit Minor0Storm(bool soft) : Minor0Test(soft) {
    make_callable();
    session().set_lease(seconds(20));
    for (std::size_t i = 0; i < kFiles; ++i) {
      const std::string name = "n" + std::to_string(i), handle = "h" + std::to_string(i);
      server_->names[name] = handle;
      files_.push_back(handle_of(handle));
      places_.push_back({directory_, name});
    }
  }
  ~Minor0Storm() override {
    nfs_->abort();  // in front of what the operations refer to
    rpc_->abort_all();
  }
  void TestBody() override {}

  void run(std::uint64_t seed) {
    begin(seed);
    storm();
    behave();
    server_->serve_for(seconds(300));
    EXPECT_EQ(unfinished(), 0u);
    // Nobody uses them any more.
    for (const FileHandle& file : files_)
      nfs_->close(file);
    server_->serve_for(minutes(3));
    EXPECT_EQ(session().slots().taken(), 0u);
    EXPECT_EQ(nfs_->files_open(), 0u);
    EXPECT_EQ(nfs_->locks_held(), 0u);
    server_->forget_miscounted();
    expect_nothing_there();
    for (const FileHandle& file : files_)
      expect_locks_work(file);
    EXPECT_EQ(create("last"), 0);
    expect_nothing_there();
    // Of what it refused to take back it says so, sooner or later.
    server_->recall_all();
    server_->serve_for(seconds(20));
    ended_ = false;
    group_.spawn(end(*nfs_, op_, &ended_));
    server_->serve_for(seconds(5));
    EXPECT_TRUE(ended_);
    EXPECT_EQ(server_->standing(), 0u);
  }
  /// The server says nothing from the storm on.
  void silence(std::uint64_t seed) {
    begin(seed);
    storm();
    for (const auto& one : asked_) {
      if (one->waits) one->cancel.cancel();
    }
    for (int i = 0; i < 400; ++i) {
      environment_->advance(seconds(1));
      (void)server_->connected();
    }
    EXPECT_EQ(unfinished(), 0u) << "not over by itself: " << kinds();
  }

 private:
  void begin(std::uint64_t seed) {
    dice_.seed(seed);
    connect();
    ASSERT_EQ(Minor0Test::begin(), 0);
    ASSERT_TRUE(server_->probe());
  }
  static Task<void> end(Nfs4Operations& nfs, OpContext op, bool* ended) {
    co_await nfs.end(op);
    *ended = true;
  }
  void start_something() {
    Asked& asked = new_call();
    const std::uint32_t which = below(kFiles);
    const FileHandle& file = files_[which];
    asked.op.place = &places_[which];
    if (one_in(10)) asked.op.identity.uid = 7;
    asked.what = below(11);
    asked.name = "new" + std::to_string(below(4));
    asked.lock = some_lock();
    switch (asked.what) {
      case 0:
        return group_.spawn(note(nfs_->getattr(asked.op, file), &asked));
      case 1:
        return group_.spawn(note(nfs_->read_once(asked.op, file, 0, asked.room), &asked));
      case 2:
        return group_.spawn(
            note(nfs_->write_once(asked.op, file, 0, asked.room, Stability::kFileSync), &asked));
      case 3:
        if (one_in(2)) nfs_->close(file);
        return group_.spawn(note(nfs_->test_lock(asked.op, file, asked.lock), &asked));
      case 4:
        return group_.spawn(
            note(nfs_->create(asked.op, directory_, asked.name,
                              one_in(2) ? CreateMode::kGuarded : CreateMode::kExclusive, asked.set),
                 &asked));
      case 5:
        return group_.spawn(note(nfs_->remove(asked.op, directory_, asked.name, nullptr), &asked));
      case 9:
        return group_.spawn(
            note(nfs_->open(asked.op, file, 0x3f,
                            {one_in(2) ? access_bits::kRead : access_bits::kModify, true}),
                 &asked));
      case 6:
      case 7:
      case 8:
        asked.waits = one_in(4);
        return group_.spawn(
            note(nfs_->lock(asked.op, file, asked.lock,
                            asked.waits ? LockWait::kYes : LockWait::kNo, access_bits::kRead),
                 &asked));
      default:
        if (one_in(2)) asked.lock.range = {0, UINT64_MAX};
        return group_.spawn(note(nfs_->unlock(asked.op, file, asked.lock), &asked));
    }
  }
  /// Before anything was done: so that what the client believes is so.
  void plan_errors() {
    static constexpr Op kOps[] = {Op::OP_SETCLIENTID,  Op::OP_SETCLIENTID_CONFIRM,
                                  Op::OP_RENEW,        Op::OP_PUTFH,
                                  Op::OP_GETATTR,      Op::OP_OPEN,
                                  Op::OP_OPEN_CONFIRM, Op::OP_CLOSE,
                                  Op::OP_LOCK,         Op::OP_LOCKU,
                                  Op::OP_LOCKT,        Op::OP_RELEASE_LOCKOWNER,
                                  Op::OP_READ,         Op::OP_WRITE,
                                  Op::OP_SETATTR,      Op::OP_REMOVE,
                                  Op::OP_ACCESS,       Op::OP_DELEGRETURN};
    static constexpr Stat kErrors[] = {
        Stat::NFS4ERR_DELAY,       Stat::NFS4ERR_GRACE,        Stat::NFS4ERR_RESOURCE,
        Stat::NFS4ERR_SERVERFAULT, Stat::NFS4ERR_MOVED,        Stat::NFS4ERR_ACCESS,
        Stat::NFS4ERR_BADXDR,      Stat::NFS4ERR_NOFILEHANDLE, Stat::NFS4ERR_INVAL,
        Stat::NFS4ERR_LOCKED,      Stat::NFS4ERR_IO,           Stat::NFS4ERR_LEASE_MOVED,
        static_cast<Stat>(99999)};
    std::deque<Stat>& queue = server_->errors[kOps[below(std::size(kOps))]];
    for (std::uint32_t i = below(3) + 1; i > 0; --i)
      queue.push_back(kErrors[below(std::size(kErrors))]);
  }
  /// Its answer would tell of nothing that has changed.
  static bool harmless(const std::vector<Op>& operations) {
    return std::all_of(operations.begin(), operations.end(), [](Op op) {
      return op == Op::OP_PUTFH || op == Op::OP_GETATTR || op == Op::OP_READ ||
             op == Op::OP_LOCKT || op == Op::OP_RENEW || op == Op::OP_WRITE;
    });
  }
  void answer_badly() {
    FakeTransport* transport = server_->connected();
    if (transport == nullptr || transport->out().empty()) return;
    std::vector<std::byte> reply = server_->reply_to(*transport->out().front());
    if (!harmless(server_->seen.back())) {
      // As it should be.
    } else {
      spoil(reply);
    }
    transport->answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
  }
  void misbehave() {
    FakeTransport* transport = environment_->transport();
    const bool asked = transport != nullptr && transport->accepted() && !transport->out().empty();
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
        return plan_errors();
      case 3:
        if (transport != nullptr) transport->lose();
        return;
      case 4:
      case 5:
        // Once more, over another connection or this one. What the first run has done shows.
        server_->errors[Op::OP_PUTFH].clear();
        if (asked) server_->run_unanswered();
        if (asked && one_in(2)) transport->lose();
        return;
      case 6:
        if (one_in(3)) server_->restart();
        return;
      case 7:
        if (one_in(3)) server_->expire();
        return;
      case 8:
        return one_in(2) ? server_->revoke_locks() : server_->forget_idle_owners();
      case 9:
        server_->loses_count = one_in(3);
        return;
      case 10:
        server_->in_grace = one_in(3);
        return;
      case 11:
        if (asked && transport->out().size() > 1) {
          std::rotate(transport->out().begin(), transport->out().begin() + 1,
                      transport->out().end());
        }
        return;
      case 13:
        if (one_in(2)) return server_->recall_all();
        // It says so from now on, until it is told another place, or the same.
        server_->renew_errors.push_back(Stat::NFS4ERR_CB_PATH_DOWN);
        return;
      case 14:
        server_->grants = one_in(2) ? xdr::open_delegation_type4::OPEN_DELEGATE_READ
                                    : xdr::open_delegation_type4::OPEN_DELEGATE_WRITE;
        if (one_in(3)) server_->grants.reset();
        if (server_->can_call()) (void)server_->probe();
        return;
      case 12:
        cancel_one();
        server_->delegates = one_in(4);
        return;
      default:
        return answer_badly();
    }
  }
  void storm() {
    for (int step = 0; step < 500; ++step) {
      const std::uint32_t what = below(10);
      if (what < 3 && unfinished() < 12) {
        start_something();
      } else if (what < 7) {
        (void)server_->serve_one();
      } else if (what < 9) {
        misbehave();
      } else {
        environment_->advance(milliseconds(below(2000)));
      }
      environment_->settle();
    }
  }
  void behave() {
    server_->errors.clear();
    server_->renew_errors.clear();
    server_->grants.reset();
    server_->in_grace = server_->loses_count = server_->delegates = false;
    server_->names["f"] = "f0";
    // Who waits for a lock waits for those who will not unlock it.
    for (const auto& one : asked_)
      one->cancel.cancel();
  }
  std::string kinds() const {
    std::string text;
    for (const auto& one : asked_)
      text += one->done ? "" : std::to_string(one->what) + (one->waits ? "w " : " ");
    return text;
  }
  void expect_nothing_there() {
    EXPECT_EQ(server_->opens(), 0u);
    EXPECT_EQ(server_->lock_stateids(), 0u);
    for (const FileHandle& file : files_)
      EXPECT_TRUE(server_->locks[std::string(as_text(file.bytes()))].held().empty());
  }
  void expect_locks_work(const FileHandle& file) {
    file_ = file;
    const auto found = std::find(files_.begin(), files_.end(), file);
    place_ = places_[static_cast<std::size_t>(found - files_.begin())];
    for (LockOwnerId owner = 1; owner <= kOwners; ++owner) {
      EXPECT_EQ(lock(owner, {10 * owner, 10 * owner + 5}), 0);
    }
    EXPECT_EQ(server_->locks[std::string(as_text(file.bytes()))].held().size(), kOwners);
    EXPECT_EQ(read(), 0);
    EXPECT_EQ(unlock(1), 0);
    close();
  }

  bool ended_ = false;
  std::vector<FileHandle> files_;
  std::deque<FilePlace> places_;
};

TEST(Minor0MisbehavingServer, LeavesNothingBehindOnAHardMount) {
  for_each_seed([](std::uint64_t seed) { Minor0Storm(false).run(seed); });
}
TEST(Minor0MisbehavingServer, LeavesNothingBehindOnASoftMount) {
  for_each_seed([](std::uint64_t seed) { Minor0Storm(true).run(seed); });
}
TEST(Minor0MisbehavingServer, SilenceEndsOnASoftMount) {
  for_each_seed([](std::uint64_t seed) { Minor0Storm(true).silence(seed); });
}

}  // namespace
}  // namespace nfsrdma
