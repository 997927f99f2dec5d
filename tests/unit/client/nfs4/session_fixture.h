// SPDX-License-Identifier: Apache-2.0
// SessionTest: Nfs4Operations over a transport of the test's own, to a server that does as it is
// told.
#pragma once

#include <algorithm>

#include "client/nfs4/operations.h"
#include "tests/unit/client/nfs4/fake_nfs4_server.h"

namespace nfsrdma {

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(bool soft = false) {
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    rpc_ = std::make_unique<RpcClient>(std::move(environment), impatient_options(soft));
    server_ = std::make_unique<FakeNfs4Server>(*environment_);
    make({});
    const std::array<std::byte, 2> bytes{std::byte{1}, std::byte{2}};
    file_ = FileHandle(bytes);
  }
  ~SessionTest() override {
    nfs_->abort();
    rpc_->abort_all();
    EXPECT_EQ(group_.running(), 0u);
  }

  void make(nfs4::SessionOptions options) {
    options.slots = 4;
    options.owner = "test";
    nfs_ = std::make_unique<Nfs4Operations>(*rpc_, std::move(options));
  }
  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }
  /// What comes of it while the server answers for two seconds.
  template <typename T>
  Result<T> finish(Task<Result<T>> task) {
    std::optional<Result<T>> done;
    group_.spawn(keep(std::move(task), &done));
    server_->serve_for(std::chrono::seconds(2));
    EXPECT_TRUE(done.has_value());
    return done ? std::move(*done) : Result<T>(Error{Errc::kTimedOut, 0, "test"});
  }
  Result<void> begin() {
    std::optional<Result<void>> done;
    detail_.clear();
    group_.spawn(keep(nfs_->begin(op_, &detail_), &done));
    server_->serve_for(std::chrono::seconds(10));
    EXPECT_TRUE(done.has_value());
    server_->seen.clear();
    server_->sequences.clear();
    return done.value_or(Error{Errc::kTimedOut, 0, "test"});
  }
  void ask(std::optional<Result<Attributes>>* out, const OpContext& op) {
    group_.spawn(keep(nfs_->getattr(op, file_), out));
    environment_->settle();
  }
  /// A GETATTR that must succeed within a minute.
  void expect_getattr_works() {
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(std::chrono::seconds(60));
    ASSERT_TRUE(got.has_value());
    ASSERT_TRUE(got->ok()) << got->error().message();
    EXPECT_EQ((*got)->size, 4711u);
    EXPECT_EQ((*got)->uid, 1000u);
  }
  void allow_opens() {
    std::optional<Result<void>> done;
    group_.spawn(keep(session().allow_opens(op_), &done));
    server_->serve_for(std::chrono::seconds(5));
    ASSERT_TRUE(done.has_value() && done->ok());
  }
  nfs4::Session& session() { return nfs_->session(); }
  void restart() { restart_with_grace(*environment_, *server_, std::chrono::seconds(20)); }
  /// How often the server has seen it.
  std::size_t times(xdr::nfs_opnum4 operation) const {
    std::size_t count = 0;
    for (const auto& compound : server_->seen)
      count += static_cast<std::size_t>(std::count(compound.begin(), compound.end(), operation));
    return count;
  }

  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<RpcClient> rpc_;
  std::unique_ptr<FakeNfs4Server> server_;
  std::unique_ptr<Nfs4Operations> nfs_;
  /// 0, or the errno; -1: not yet.
  template <typename T>
  static int number(const std::optional<Result<T>>& done) {
    if (!done) return -1;
    return done->ok() ? 0 : done->error().sys;
  }
  int set_attributes(const SetAttributes& values) {
    std::optional<Result<Wcc>> done;
    group_.spawn(keep(nfs_->setattr(op_, file_, values, nullptr), &done));
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  int truncate() {
    SetAttributes values;
    values.size = 0;
    return set_attributes(values);
  }

  TaskGroup group_;
  OpContext op_;
  FileHandle file_;
  std::string detail_;
};

/// Files that are open on the server.
class OpensTest : public SessionTest {
 protected:
  explicit OpensTest(bool soft) : SessionTest(soft) {
    EXPECT_TRUE(begin().ok());
    allow_opens();
    server_->seen.clear();
  }
  void start_open(std::optional<Result<AccessResult>>* out, OpenFor how, const OpContext& op) {
    group_.spawn(keep(nfs_->open(op, file_, 0x3f, how), out));
    environment_->settle();
  }
  int open(OpenFor how) {
    std::optional<Result<AccessResult>> done;
    start_open(&done, how, op_);
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }
  int read(const OpContext& op) {
    std::optional<Result<ReadResult>> done;
    group_.spawn(keep(nfs_->read_once(op, file_, 0, room_), &done));
    server_->serve_for(std::chrono::seconds(2));
    return number(done);
  }

  std::array<std::byte, 16> room_{};
};

}  // namespace nfsrdma
