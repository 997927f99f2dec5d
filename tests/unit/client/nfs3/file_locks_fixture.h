// SPDX-License-Identifier: Apache-2.0
// Nfs3LocksTest: Nfs3Operations with locks, over transports of the test's own: the NFS connection,
// and one to a lock manager's own port that a rpcbind of the test's has.
#pragma once

#include <memory>
#include <optional>

#include "client/nfs3/operations.h"
#include "tests/unit/client/nfs3/fake_lock_manager.h"

namespace nfsrdma {

/// What the test's rpcbind knows. Each RpcClient has an environment of its own.
struct FakeWays final : nfs3::LockManagerWays {
  struct State {
    std::optional<SocketAddress> registered;
    bool answers = true;
    unsigned asked = 0;
    FakeEnvironment* environment = nullptr;  // of the connection there
    bool soft = true;
  };
  explicit FakeWays(std::shared_ptr<State> its_state) : state(std::move(its_state)) {}

  Task<Result<std::optional<SocketAddress>>> find(CancelToken*, std::string* detail) override {
    ++state->asked;
    if (!state->answers) {
      *detail = "nobody listens";
      co_return Error{Errc::kRefused, ECONNREFUSED, "connect"};
    }
    co_return state->registered;
  }
  std::unique_ptr<RpcClient> connect_to(const SocketAddress& address) override {
    auto environment = std::make_unique<FakeEnvironment>();
    state->environment = environment.get();
    RpcClientOptions options = impatient_options(state->soft);
    options.candidates = {{TransportKind::kTcp, address, nullptr}};
    return std::make_unique<RpcClient>(std::move(environment), options);
  }

  std::shared_ptr<State> state;
};

class Nfs3LocksTest : public testing::Test {
 protected:
  using Outcome = std::optional<Result<void>>;
  using Proc = xdr::nlmproc4;
  using Stat = xdr::nlm4_stats;

  explicit Nfs3LocksTest(bool soft = false) {
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    RpcClientOptions options = impatient_options(soft);
    options.timeo = std::chrono::seconds(5);
    rpc_ = std::make_unique<RpcClient>(std::move(environment), options);
    caller_.name = "host.test";
    caller_.id = 0x0123456789abcdef;
    const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{0xfe}};
    file_ = FileHandle(bytes);
    op_.identity.uid = 4711;
    make();
  }
  ~Nfs3LocksTest() override { end(); }

  void make(std::string records = {}) {
    std::unique_ptr<nfs3::LockRecords> kept;
    if (!records.empty()) {
      kept =
          std::make_unique<nfs3::LockRecords>(*environment_, std::move(records), server_, caller_);
    }
    auto locks = std::make_unique<nfs3::FileLocks>(*rpc_, std::make_unique<FakeWays>(ways_),
                                                   caller_, std::move(kept));
    locks_ = locks.get();
    nfs_ = std::make_unique<Nfs3Operations>(*rpc_, std::move(locks));
  }
  /// As when the program dies: nothing is said to anybody.
  void end() {
    if (nfs_ == nullptr) return;
    nfs_->abort();
    EXPECT_EQ(group_.running(), 0u);
    nfs_.reset();
    ways_->environment = nullptr;
  }

  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }
  static Task<void> note_end(Task<void> task, bool* over) {
    co_await std::move(task);
    *over = true;
  }

  void serve_all() {
    for (int i = 0; i < 1000; ++i) {
      environment_->settle();
      if (ways_->environment != nullptr) ways_->environment->settle();
      bool served = served_nfs_ && manager_.serve_one(*environment_, nlm_on_nfs_);
      if (ways_->environment != nullptr && served_own_) {
        served |= manager_.serve_one(*ways_->environment, true);
      }
      if (!served) return;
    }
    FAIL() << "the client asks without end";
  }
  void serve_for(Duration time) {
    constexpr auto kStep = std::chrono::milliseconds(50);
    for (const TimePoint until = environment_->now() + time; environment_->now() < until;) {
      serve_all();
      environment_->advance(kStep);
      if (ways_->environment != nullptr) ways_->environment->advance(kStep);
    }
    serve_all();
  }

  void start_lock(Outcome* out, const FileLock& wanted, LockWait wait = LockWait::kNo,
                  CancelToken* cancel = nullptr) {
    ops_.push_back(std::make_unique<OpContext>(op_));
    ops_.back()->cancel = cancel;
    group_.spawn(keep(nfs_->lock(*ops_.back(), file_, wanted, wait, access_bits::kRead), out));
    environment_->settle();
  }
  int lock(const FileLock& wanted, LockWait wait = LockWait::kNo) {
    Outcome done;
    start_lock(&done, wanted, wait);
    serve_for(std::chrono::seconds(1));
    return number(done);
  }
  int unlock(LockOwnerId owner, ByteRange range) {
    Outcome done;
    const FileLock what{owner, LockKind::kWrite, range};
    group_.spawn(keep(nfs_->unlock(op_, file_, what), &done));
    serve_for(std::chrono::seconds(1));
    return number(done);
  }
  std::optional<LockHolder> test_lock(const FileLock& wanted, int* error) {
    std::optional<Result<std::optional<LockHolder>>> done;
    group_.spawn(keep(nfs_->test_lock(op_, file_, wanted), &done));
    serve_for(std::chrono::seconds(1));
    if (done && done->ok()) {
      *error = 0;
      return **done;
    }
    *error = done ? done->error().sys : -1;
    return std::nullopt;
  }
  int read() {
    std::optional<Result<ReadResult>> done;
    std::array<std::byte, 64> room;
    group_.spawn(keep(nfs_->read_once(op_, file_, 0, room), &done));
    serve_for(std::chrono::seconds(1));
    return !done ? -1 : done->ok() ? 0 : done->error().sys;
  }
  int write() {
    std::optional<Result<WriteResult>> done;
    group_.spawn(keep(nfs_->write_once(op_, file_, 0, as_bytes("x"), Stability::kUnstable), &done));
    serve_for(std::chrono::seconds(1));
    return !done ? -1 : done->ok() ? 0 : done->error().sys;
  }
  /// -1: not yet.
  static int number(const Outcome& done) {
    if (!done) return -1;
    return done->ok() ? 0 : done->error().sys;
  }
  /// The server's lock manager, which forgets all.
  void restart() {
    manager_.locks = {};
    environment_->transport()->lose();
    environment_->settle();
  }
  /// The connection to a lock manager's own port; whoever cares connects again.
  void lose_own() {
    ways_->environment->transport()->lose();
    environment_->advance(Duration::zero());
    ways_->environment->settle();
  }
  std::uint32_t svid(LockOwnerId owner) const { return caller_.svid(owner); }

  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<RpcClient> rpc_;
  std::shared_ptr<FakeWays::State> ways_ = std::make_shared<FakeWays::State>();
  FakeLockManager manager_;
  bool nlm_on_nfs_ = true;
  bool served_nfs_ = true;
  bool served_own_ = true;
  nfs3::LockCaller caller_;
  nfs3::RecordedServer server_{{"192.0.2.1"}, 20049, 2049};
  std::unique_ptr<Nfs3Operations> nfs_;
  nfs3::FileLocks* locks_ = nullptr;
  std::vector<std::unique_ptr<OpContext>> ops_;
  OpContext op_;
  FileHandle file_;
  TaskGroup group_;
};

}  // namespace nfsrdma
