// SPDX-License-Identifier: Apache-2.0
// Minor0Test: Nfs4Operations by version 4.0, against a server that does as it is told.
#pragma once

#include "client/nfs4/operations.h"
#include "tests/unit/client/nfs4/fake_nfs40_server.h"

namespace nfsrdma {

class Minor0Test : public testing::Test {
 protected:
  using Op = xdr::nfs_opnum4;
  using Stat = xdr::nfsstat4;
  using Outcome = std::optional<Result<void>>;
  using Made = std::optional<Result<CreateResult>>;

  explicit Minor0Test(bool soft = false) {
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    rpc_ = std::make_unique<RpcClient>(std::move(environment), impatient_options(soft));
    server_ = std::make_unique<FakeNfs40Server>(*environment_);
    nfs4::SessionOptions session;
    session.minor = 0;
    session.any_minor = false;
    make(std::move(session));
  }
  ~Minor0Test() override {
    nfs_->abort();
    rpc_->abort_all();
    EXPECT_EQ(group_.running(), 0u);
  }

  void make(nfs4::SessionOptions options) {
    options.slots = 4;
    options.owner = "test";
    nfs_ = std::make_unique<Nfs4Operations>(*rpc_, std::move(options));
  }
  /// The server may call where the connection begins; for connect() and begin() to come.
  void make_callable(std::optional<CalledAt> at = CalledAt()) {
    nfs4::SessionOptions options;
    options.minor = 0;
    options.any_minor = false;
    options.called_at = std::move(at);
    make(std::move(options));
  }
  /// As a mount is, before it begins.
  void connect() {
    Outcome connected;
    group_.spawn(keep(rpc_->connect(&detail_), &connected));
    environment_->settle();
    server_->connected();
    environment_->settle();
  }
  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }
  static int number(const Outcome& done) {
    if (!done) return -1;
    return done->ok() ? 0 : done->error().sys;
  }
  int begin() {
    Outcome done;
    group_.spawn(keep(nfs_->begin(op_, &detail_), &done));
    server_->serve_for(std::chrono::seconds(10));
    return number(done);
  }
  void start_create(Made* out, std::string_view name, CreateMode mode = CreateMode::kGuarded) {
    group_.spawn(keep(nfs_->create(op_, directory_, name, mode, SetAttributes{}), out));
    environment_->settle();
  }
  static int number(const Made& made) {
    if (!made) return -1;
    return made->ok() ? 0 : made->error().sys;
  }
  int create(std::string_view name, CreateMode mode = CreateMode::kGuarded) {
    Made made;
    start_create(&made, name, mode);
    server_->serve_for(std::chrono::seconds(2));
    return number(made);
  }
  void start_lock(Outcome* out, const FileLock& wanted) {
    locker_.place = has_place_ ? &place_ : nullptr;
    group_.spawn(keep(nfs_->lock(locker_, file_, wanted, LockWait::kNo, access_bits::kRead), out));
    environment_->settle();
  }
  int lock(LockOwnerId owner, ByteRange range, LockKind kind = LockKind::kWrite) {
    Outcome done;
    start_lock(&done, {owner, kind, range});
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  int unlock(LockOwnerId owner, ByteRange range = {0, UINT64_MAX}) {
    Outcome done;
    group_.spawn(keep(nfs_->unlock(op_, file_, {owner, LockKind::kRead, range}), &done));
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  int read(const DataRight* right = nullptr) {
    OpContext op = op_;
    op.right = right;
    std::optional<Result<ReadResult>> done;
    group_.spawn(keep(nfs_->read_once(op, file_, 0, room_), &done));
    server_->serve_for(std::chrono::seconds(3));
    if (!done) return -1;
    if (!done->ok() && is_right_gone(done->error())) return kGone;
    return done->ok() ? 0 : done->error().sys;
  }
  static constexpr int kGone = -2;
  void close() {
    nfs_->close(file_);
    server_->serve_for(std::chrono::seconds(2));
  }
  void restart() { restart_with_grace(*environment_, *server_, std::chrono::seconds(15)); }
  /// Locks on the file, on the server.
  std::size_t held() const { return server_->locks["f0"].held().size(); }
  nfs4::Session& session() { return nfs_->session(); }
  static FileHandle handle_of(std::string_view text) { return FileHandle(as_bytes(text)); }

  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<RpcClient> rpc_;
  std::unique_ptr<FakeNfs40Server> server_;
  std::unique_ptr<Nfs4Operations> nfs_;
  TaskGroup group_;
  OpContext op_;
  OpContext locker_;
  FileHandle directory_ = handle_of("d");
  FileHandle file_ = handle_of("f0");
  FilePlace place_{handle_of("d"), "f"};
  bool has_place_ = true;
  std::string detail_;
  std::array<std::byte, 16> room_{};
};

}  // namespace nfsrdma
