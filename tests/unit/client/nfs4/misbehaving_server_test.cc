// SPDX-License-Identifier: Apache-2.0
// The client of NFSv4.1 and 4.2 with a server that does everything wrong, at random: errors in all
// places, lost connections, sessions and state, restarts, slots that it has forgotten, answers that
// are cut, too long or nonsense, calls that make no sense. Operations may fail meanwhile; they must
// end, and once the server behaves there must be nothing left over: no slot, no lock, no stateid.
#include "tests/unit/client/nfs4/session_fixture.h"
#include "tests/unit/client/nfs4/storm.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// Where a COMPOUND's first result has a SEQUENCE's session, sequence and slot.
constexpr std::size_t kIds = 20, kBehindIds = 44;

struct Holder final : DelegationHolder {
  void give_up(const FileHandle& file) override { told.push_back(file); }
  std::optional<HeldAttributes> held_attributes(const FileHandle&) override { return {}; }
  std::vector<FileHandle> told;
};

class MisbehavingServer : public SessionTest, protected Storm<StormCall> {
 protected:
  explicit MisbehavingServer(bool soft) : SessionTest(soft), soft_(soft) {}
  ~MisbehavingServer() override {
    nfs_->set_delegation_holder(nullptr);
    nfs_->abort();  // in front of what the operations refer to
    rpc_->abort_all();
  }

  void start_something() {
    StormCall& asked = new_call();
    asked.lock = some_lock();
    using namespace access_bits;
    switch (below(9)) {
      case 0:
      case 1:
        return group_.spawn(note(nfs_->getattr(asked.op, file_), &asked));
      case 2:
        return group_.spawn(note(nfs_->read_once(asked.op, file_, 0, asked.room), &asked));
      case 3:
        if (one_in(4)) nfs_->close(file_);
        if (one_in(8)) (void)nfs_->open_already(asked.op, file_, kRead);
        if (one_in(4)) nfs_->narrow_open(asked.op, file_, one_in(4) ? 0 : kRead);
        return group_.spawn(note(nfs_->open(asked.op, file_, kRead | kModify,
                                            {one_in(2) ? kRead : kRead | kModify, !one_in(3)}),
                                 &asked));
      case 4:
        asked.done = true;  // nobody waits for it
        return group_.spawn(nfs_->give_back(file_));
      case 5:
      case 6:
        return group_.spawn(
            note(nfs_->lock(asked.op, file_, asked.lock, LockWait::kNo, kRead | kModify), &asked));
      case 7:
        return group_.spawn(
            note(nfs_->create_with_data(asked.op, file_, "new",
                                        one_in(2) ? CreateMode::kGuarded : CreateMode::kExclusive,
                                        asked.set, asked.room, &asked.written),
                 &asked));
      default:
        if (one_in(2)) asked.lock.range = kAllBytes;
        return group_.spawn(note(nfs_->unlock(asked.op, file_, asked.lock), &asked));
    }
  }
  Stat some_error() {
    static constexpr Stat kErrors[] = {
        Stat::NFS4ERR_DELAY,          Stat::NFS4ERR_GRACE,
        Stat::NFS4ERR_BADSESSION,     Stat::NFS4ERR_DEADSESSION,
        Stat::NFS4ERR_SEQ_MISORDERED, Stat::NFS4ERR_SEQ_FALSE_RETRY,
        Stat::NFS4ERR_BADSLOT,        Stat::NFS4ERR_CONN_NOT_BOUND_TO_SESSION,
        Stat::NFS4ERR_STALE_CLIENTID, Stat::NFS4ERR_RETRY_UNCACHED_REP,
        Stat::NFS4ERR_SERVERFAULT,    Stat::NFS4ERR_RESOURCE,
        Stat::NFS4ERR_STALE,          Stat::NFS4ERR_MOVED,
        static_cast<Stat>(99999)};
    return kErrors[below(std::size(kErrors))];
  }
  /// Before anything was done: so that what the client believes is so.
  void plan_errors() {
    std::deque<Stat>* const queues[] = {
        &server_->sequence_errors, &server_->getattr_errors,   &server_->open_errors,
        &server_->lock_errors,     &server_->unlock_errors,    &server_->exchange_errors,
        &server_->create_errors,   &server_->downgrade_errors, &server_->write_errors};
    std::deque<Stat>& queue = *queues[below(std::size(queues))];
    for (std::uint32_t i = below(3) + 1; i > 0; --i) {
      const Stat error = some_error();
      // A file that is no more has no locks either.
      if (&queue == &server_->unlock_errors && error == Stat::NFS4ERR_STALE) continue;
      queue.push_back(error);
    }
  }
  /// Its answer would tell of nothing that has changed.
  bool harmless(const std::vector<Op>& operations) {
    for (const Op op : operations) {
      if (op != Op::OP_SEQUENCE && op != Op::OP_PUTFH && op != Op::OP_GETATTR &&
          op != Op::OP_READ) {
        return false;
      }
    }
    return true;
  }
  void answer_badly() {
    FakeTransport* transport = server_->connected();
    if (transport == nullptr || transport->out().empty()) return;
    std::vector<std::byte> reply = server_->reply_to(*transport->out().front());
    if (!harmless(server_->seen.back())) {
      // As it should be.
    } else if (one_in(4) && reply.size() > kBehindIds) {
      // As if it were another request's: session, sequence and slot of SEQUENCE's result.
      reply[kIds + below(kBehindIds - kIds)] ^= std::byte{1};
    } else {
      spoil(reply);
    }
    transport->answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
  }
  void call_badly() {
    FakeTransport* transport = server_->connected();
    if (transport == nullptr) return;
    std::vector<std::byte> call = server_->callback(
        xdr::nfs_cb_opnum4::OP_CB_RECALL, xdr::CB_RECALL4args{{1, {}}, false, {file_.bytes()}});
    for (std::uint32_t i = below(4); i > 0; --i)
      call[below(static_cast<std::uint32_t>(call.size()))] = static_cast<std::byte>(dice_());
    call.resize(below(static_cast<std::uint32_t>(call.size())) + 1);
    (void)transport->call_back(call);
  }
  void misbehave() {
    FakeTransport* transport = environment_->transport();
    switch (below(16)) {
      case 0:
        return plan_errors();
      case 1:
        if (transport != nullptr) transport->lose();
        return;
      case 2:
        if (transport == nullptr || transport->out().empty() || !transport->accepted()) return;
        server_->run_unanswered();
        return transport->lose();
      case 3:
        return server_->lose_session();
      case 4:
        if (one_in(3)) server_->restart();
        return;
      case 5:
        if (one_in(3)) server_->revoke_everything();
        return;
      case 6:
        return server_->forget_slots();
      case 7:
        server_->slots = 1 + below(8);
        server_->target_highest = below(8);
        return;
      case 8:
        server_->in_grace = one_in(3);
        return;
      case 9:
        if (!server_->delegations.given.empty()) {
          (void)server_->connected();
          if (environment_->transport() == nullptr) return;
          (void)server_->recall(file_.bytes(), server_->delegations.given.back());
        }
        return;
      case 10:
        return call_badly();
      case 11:
        if (transport != nullptr && transport->out().size() > 1) {
          std::rotate(transport->out().begin(), transport->out().begin() + 1,
                      transport->out().end());
        }
        return;
      case 12:
        // It would have lost what it has.
        server_->status_flags =
            one_in(2) ? dice_() & 0xfff & ~xdr::SEQ4_STATUS_RESTART_RECLAIM_NEEDED : 0;
        return;
      case 13:
        cancel_one();
        return;
      default:
        return answer_badly();
    }
  }
  void holder_does_its_work() {
    const std::vector<FileHandle> told = std::exchange(holder_.told, {});
    for (const FileHandle& file : told)
      group_.spawn(nfs_->give_back(file));
  }
  void storm() {
    for (int step = 0; step < 400; ++step) {
      const std::uint32_t what = below(10);
      if (what < 3 && unfinished() < 12) {
        start_something();
      } else if (what < 6) {
        (void)server_->serve_one();
      } else if (what < 9) {
        misbehave();
      } else {
        environment_->advance(milliseconds(below(2000)));
      }
      environment_->settle();
      holder_does_its_work();
    }
  }
  void behave() {
    for (auto* queue :
         {&server_->sequence_errors, &server_->getattr_errors, &server_->open_errors,
          &server_->lock_errors, &server_->unlock_errors, &server_->exchange_errors,
          &server_->create_errors, &server_->downgrade_errors, &server_->write_errors}) {
      queue->clear();
    }
    server_->in_grace = false;
    server_->status_flags = 0;
    server_->target_highest = 1000;
    server_->delegations.give.reset();
  }
  void begin_storm(std::uint64_t seed) {
    dice_.seed(seed);
    ASSERT_TRUE(begin().ok());
    nfs_->set_delegation_holder(&holder_);
    server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_WRITE;
    storm();
  }
  void run(std::uint64_t seed) {
    begin_storm(seed);
    behave();
    // What was revoked is found by the flag, which the storm may have hidden.
    if (!server_->revoked.empty()) server_->status_flags = xdr::SEQ4_STATUS_ADMIN_STATE_REVOKED;
    for (int i = 0; i < 20; ++i) {
      server_->serve_for(seconds(soft_ ? 20 : 10));
      holder_does_its_work();
    }
    EXPECT_EQ(unfinished(), 0u);
    expect_getattr_works();
    // Nobody uses it any more.
    nfs_->close(file_);
    group_.spawn(nfs_->give_back(file_));
    server_->serve_for(minutes(1));
    EXPECT_EQ(session().slots().taken(), 0u);
    EXPECT_EQ(nfs_->locks_held(), 0u);
    EXPECT_EQ(nfs_->delegations_held(), 0u);
    // Of an OPEN that was run twice, in a session and behind its loss, the client knows one answer.
    server_->lose_session();  // who has called badly has lost count of its calls
    expect_getattr_works();
    for (const std::uint64_t number : server_->delegations.given) {
      if (!server_->stateids.contains(number)) continue;
      EXPECT_EQ(server_->recall(file_.bytes(), number), Stat::NFS4_OK);
      server_->serve_all();
      EXPECT_FALSE(server_->stateids.contains(number));
    }
    EXPECT_TRUE(server_->locks.held().empty());
    if (soft_) return;  // an OPEN that it gave up may be on the server still
    group_.spawn(nfs_->end(op_));
    server_->serve_for(seconds(5));
    EXPECT_FALSE(server_->clientid_busy)
        << server_->stateids.size() << " stateids, " << server_->delegations.given.size()
        << " delegations given, " << server_->delegations.returned.size() << " returned";
  }

  const bool soft_;
  Holder holder_;
};

struct HardMount : MisbehavingServer {
  HardMount() : MisbehavingServer(false) {}
  void TestBody() override {}
  void with(std::uint64_t seed) { run(seed); }
};
struct SoftMount : MisbehavingServer {
  SoftMount() : MisbehavingServer(true) {}
  void TestBody() override {}
  void with(std::uint64_t seed) { run(seed); }
  /// The server says nothing from the storm on.
  void silence(std::uint64_t seed) {
    begin_storm(seed);
    for (int i = 0; i < 400; ++i) {
      environment_->advance(seconds(1));
      if (FakeTransport* transport = environment_->transport()) {
        if (!transport->accepted()) transport->accept();
      }
    }
    EXPECT_EQ(unfinished(), 0u) << "not over by itself";
  }
};

TEST(MisbehavingServerTest, LeavesNothingBehindOnAHardMount) {
  for_each_seed([](std::uint64_t seed) { HardMount().with(seed); });
}
TEST(MisbehavingServerTest, LeavesNothingBehindOnASoftMount) {
  for_each_seed([](std::uint64_t seed) { SoftMount().with(seed); });
}
TEST(MisbehavingServerTest, SilenceEndsOnASoftMount) {
  for_each_seed([](std::uint64_t seed) { SoftMount().silence(seed); });
}

}  // namespace
}  // namespace nfsrdma
