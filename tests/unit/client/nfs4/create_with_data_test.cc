// SPDX-License-Identifier: Apache-2.0
// Files that are made with their data, by an AsyncMount with NFSv4.1 and later: one COMPOUND, what
// may fail in it, lost answers and restarts. And that nothing stays open.
#include "client/async_mount.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Ops = std::vector<Op>;
using Made = std::optional<Result<CreateResult>>;
using xdr::createmode4;
using xdr::stable_how4;

constexpr std::array<std::byte, 1> kDirectoryBytes{std::byte{9}};
const FileHandle kDirectory(kDirectoryBytes);

const Ops kAtOnce{Op::OP_SEQUENCE, Op::OP_PUTFH,   Op::OP_SAVEFH, Op::OP_OPEN,      Op::OP_GETFH,
                  Op::OP_WRITE,    Op::OP_GETATTR, Op::OP_CLOSE,  Op::OP_RESTOREFH, Op::OP_GETATTR};

class CreateWithData : public testing::Test {
 protected:
  explicit CreateWithData(bool soft = false, std::uint32_t most_operations = 1000)
      : loop_(EventLoop::create().value()) {
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    auto rpc = std::make_unique<RpcClient>(std::move(environment), impatient_options(soft));
    server_ = std::make_unique<FakeNfs4Server>(*environment_);
    server_->most_operations = most_operations;
    MountSettings settings;
    settings.version = {4, 1};
    FsInfo info;
    info.rtmax = info.wtmax = 1 << 20;
    mount_ = AsyncMount::over(*loop_, settings, std::move(rpc), {kDirectory, "/", 0}, info);
    // What comes in front of all calls of a mount.
    auto* session = static_cast<nfs4::Session*>(mount_->session_source());
    std::optional<Result<void>> begun;
    std::optional<Result<void>> opens;
    group_.spawn(keep(session->begin(op_, &detail_), &begun));
    server_->serve_for(seconds(1));
    group_.spawn(keep(session->allow_opens(op_), &opens));
    server_->serve_for(seconds(1));
    EXPECT_TRUE(begun && begun->ok() && opens && opens->ok());
    server_->seen.clear();
    for (std::size_t i = 0; i < 1000; ++i)
      data_ += static_cast<char>('a' + i % 26);
  }
  ~CreateWithData() override {
    mount_->abort_all();
    EXPECT_EQ(group_.running(), 0u);
  }

  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }
  void start(CreateMode mode = CreateMode::kGuarded) {
    made_.reset();
    group_.spawn(keep(mount_->create_with_data(op_, kDirectory, "new", mode, set_, as_bytes(data_)),
                      &made_));
    environment_->settle();
  }
  int number() const {
    if (!made_) return -1;
    return made_->ok() ? 0 : made_->error().sys;
  }
  int make(CreateMode mode = CreateMode::kGuarded) {
    start(mode);
    server_->serve_for(seconds(2));
    return number();
  }
  /// The server runs what is out, and nobody hears of it.
  void lose_the_answer() {
    server_->run_unanswered();
    environment_->transport()->lose();
  }
  std::size_t times(Op operation) const {
    std::size_t count = 0;
    for (const Ops& compound : server_->seen)
      count += static_cast<std::size_t>(std::count(compound.begin(), compound.end(), operation));
    return count;
  }
  void expect_all_there() {
    EXPECT_EQ(server_->content, data_);
    EXPECT_TRUE(server_->stateids.empty());
  }

  std::unique_ptr<EventLoop> loop_;
  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<FakeNfs4Server> server_;
  std::unique_ptr<AsyncMount> mount_;
  TaskGroup group_;
  OpContext op_;
  const SetAttributes set_;
  std::string detail_;
  std::string data_;
  Made made_;
};

TEST_F(CreateWithData, IsOneCompound) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{64} << 10}) {
    data_.assign(bytes, 'x');
    server_->content.clear();
    server_->seen.clear();
    ASSERT_EQ(make(), 0);
    EXPECT_EQ(server_->seen, std::vector<Ops>{kAtOnce});
    EXPECT_EQ(server_->writes_seen.back(), (std::pair{std::uint64_t{0}, stable_how4::FILE_SYNC4}));
    EXPECT_NE(server_->data_stateids.back(), 0u);  // that of the OPEN
    EXPECT_EQ((*made_)->attributes->size, 4711u);
    EXPECT_TRUE((*made_)->directory.after.has_value());
    EXPECT_EQ(server_->opens_seen.back().openhow.how.mode, createmode4::GUARDED4);
    EXPECT_EQ(server_->opens_seen.back().share_access,
              xdr::OPEN4_SHARE_ACCESS_WRITE | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG);
    EXPECT_FALSE(server_->settings.back().mask.has(xdr::fattr4_number::FATTR4_SIZE));
    expect_all_there();
    EXPECT_EQ(mount_->files_open(), 0u);
  }
}

TEST_F(CreateWithData, UncheckedReplacesWhatIsThere) {
  ASSERT_EQ(make(CreateMode::kUnchecked), 0);
  EXPECT_EQ(server_->seen, std::vector<Ops>{kAtOnce});
  EXPECT_EQ(server_->opens_seen.back().openhow.how.mode, createmode4::UNCHECKED4);
  EXPECT_TRUE(server_->settings.back().mask.has(xdr::fattr4_number::FATTR4_SIZE));
  expect_all_there();
}

TEST_F(CreateWithData, ExclusiveWantsItsAttributesBehindIt) {
  ASSERT_EQ(make(CreateMode::kExclusive), 0);
  ASSERT_EQ(server_->seen.size(), 2u);
  EXPECT_EQ(server_->seen.front(), kAtOnce);
  EXPECT_EQ(server_->opens_seen.back().openhow.how.mode, createmode4::EXCLUSIVE4_1);
  EXPECT_EQ(times(Op::OP_SETATTR), 1u);
  EXPECT_FALSE(server_->settings.back().mask.has(xdr::fattr4_number::FATTR4_SIZE));
  expect_all_there();
}

TEST_F(CreateWithData, WhatIsTooLargeOrEmptyIsMadeAndWritten) {
  data_.assign((64u << 10) + 1, 'x');
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen.size(), 2u);
  expect_all_there();
  server_->seen.clear();
  data_.clear();
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen.size(), 1u);
  EXPECT_EQ(times(Op::OP_WRITE), 0u);
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(CreateWithData, AFullServerLeavesNothingOpen) {
  server_->write_errors.assign(2, Stat::NFS4ERR_NOSPC);
  EXPECT_EQ(make(), ENOSPC);
  EXPECT_STREQ(made_->error().where, "WRITE");
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(CreateWithData, WhatFailsBehindTheOpenIsDoneOnItsOwn) {
  for (const Stat status : {Stat::NFS4ERR_DELAY, Stat::NFS4ERR_IO}) {
    server_->content.clear();
    server_->seen.clear();
    server_->write_errors = {status};
    ASSERT_EQ(make(), 0) << xdr::enum_name(status);
    EXPECT_EQ(times(Op::OP_OPEN), 1u);
    EXPECT_EQ(times(Op::OP_WRITE), 2u);
    expect_all_there();
    // And when it is the CLOSE.
    server_->seen.clear();
    server_->close_errors = {status};
    ASSERT_EQ(make(), 0) << xdr::enum_name(status);
    EXPECT_EQ(times(Op::OP_OPEN), 1u);
    EXPECT_EQ(times(Op::OP_WRITE), 1u);
    expect_all_there();
    server_->seen.clear();
    server_->getattr_errors = {status};
    ASSERT_EQ(make(), 0) << xdr::enum_name(status);
    EXPECT_EQ(times(Op::OP_OPEN), 1u);
    EXPECT_EQ(times(Op::OP_WRITE), 1u);
    expect_all_there();
  }
}

TEST_F(CreateWithData, AShortWriteIsFinished) {
  server_->most_written = 300;
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen.front(), kAtOnce);
  ASSERT_EQ(server_->writes_seen.size(), 4u);
  EXPECT_EQ(server_->writes_seen[1], (std::pair{std::uint64_t{300}, stable_how4::FILE_SYNC4}));
  expect_all_there();
}

TEST_F(CreateWithData, WhatIsNotStableIsWrittenAndCommitted) {
  server_->committed = stable_how4::UNSTABLE4;
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(times(Op::OP_WRITE), 2u);
  EXPECT_EQ(times(Op::OP_COMMIT), 1u);
  expect_all_there();
}

TEST_F(CreateWithData, ErrorsOfTheOpenAreTheCallers) {
  for (const auto& [status, error] :
       {std::pair{Stat::NFS4ERR_EXIST, EEXIST}, std::pair{Stat::NFS4ERR_ACCESS, EACCES},
        std::pair{Stat::NFS4ERR_DQUOT, EDQUOT}, std::pair{Stat::NFS4ERR_SYMLINK, ELOOP}}) {
    server_->open_errors = {status};
    EXPECT_EQ(make(), error) << xdr::enum_name(status);
    EXPECT_STREQ(made_->error().where, "OPEN");
  }
  EXPECT_EQ(server_->seen.size(), 4u);
  // The end of grace, or of somebody's delegation, is waited for.
  server_->open_errors = {Stat::NFS4ERR_GRACE, Stat::NFS4ERR_DELAY};
  EXPECT_EQ(make(), 0);
  expect_all_there();
}

TEST_F(CreateWithData, ALostAnswerIsAnsweredAgain) {
  start();
  lose_the_answer();
  server_->serve_for(seconds(5));
  EXPECT_EQ(number(), 0);
  EXPECT_EQ(server_->opens_seen.size(), 1u);
  EXPECT_EQ(server_->writes_seen.size(), 1u);
  expect_all_there();
  // With what has failed, too: nothing is done twice.
  server_->write_errors.assign(2, Stat::NFS4ERR_NOSPC);
  start();
  lose_the_answer();
  server_->serve_for(seconds(5));
  EXPECT_EQ(number(), ENOSPC);
  EXPECT_EQ(server_->opens_seen.size(), 2u);
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(CreateWithData, AfterARestartTheContentTellsWhoseItIs) {
  struct Case {
    std::string found;
    CreateMode mode;
    int error;
  };
  const std::string all = data_;
  const std::string zeros = data_.substr(0, 512) + std::string(100, '\0');
  for (const Case& one :
       {Case{all, CreateMode::kGuarded, 0}, Case{all.substr(0, 512), CreateMode::kGuarded, 0},
        Case{zeros, CreateMode::kGuarded, 0}, Case{"", CreateMode::kGuarded, 0},
        Case{all, CreateMode::kExclusive, 0}, Case{"xyz", CreateMode::kGuarded, EEXIST},
        Case{all + "1", CreateMode::kGuarded, EEXIST},
        Case{"xyz", CreateMode::kExclusive, EEXIST}}) {
    server_->opens_seen.clear();
    start(one.mode);
    server_->run_unanswered();
    server_->restart();
    environment_->transport()->lose();
    server_->content = one.found;
    server_->file_size = one.found.size();
    server_->open_errors = {Stat::NFS4ERR_EXIST};
    server_->serve_for(seconds(20));
    EXPECT_EQ(number(), one.error) << one.found.size();
    EXPECT_EQ(server_->opens_seen.size(), 3u);  // the last to close what may be open
    EXPECT_EQ(server_->content, one.error == 0 ? data_ : one.found);
    EXPECT_TRUE(server_->stateids.empty());
  }
  // Nobody asks about a file that cannot be ours.
  server_->content = all;
  server_->seen.clear();
  server_->open_errors = {Stat::NFS4ERR_EXIST};
  EXPECT_EQ(make(), EEXIST);
  EXPECT_EQ(times(Op::OP_LOOKUP), 0u);
}

TEST_F(CreateWithData, WhatALostSessionLeftOpenIsClosed) {
  server_->write_errors = {Stat::NFS4ERR_NOSPC};
  start();
  server_->run_unanswered();
  server_->lose_session();
  environment_->transport()->lose();
  server_->open_errors = {Stat::NFS4ERR_EXIST};
  server_->file_size = 0;
  EXPECT_EQ(server_->stateids.size(), 1u);
  server_->serve_for(seconds(20));
  EXPECT_EQ(number(), 0);  // there is room by now
  EXPECT_EQ(server_->opens_seen.back().openhow.opentype, xdr::opentype4::OPEN4_NOCREATE);
  expect_all_there();
}

TEST_F(CreateWithData, WhatIsReplacedMayBeReplacedTwice) {
  start(CreateMode::kUnchecked);
  server_->run_unanswered();
  server_->restart();
  environment_->transport()->lose();
  server_->serve_for(seconds(20));
  EXPECT_EQ(number(), 0);
  EXPECT_EQ(times(Op::OP_LOOKUP), 0u);
  expect_all_there();
}

TEST_F(CreateWithData, WhoIsInterruptedLeavesNothingOpen) {
  for (const bool fails : {false, true}) {
    if (fails) server_->write_errors = {Stat::NFS4ERR_NOSPC};
    CancelToken cancel;
    op_.cancel = &cancel;
    std::string gone = std::exchange(data_, {});
    const std::string kept = gone;
    made_.reset();
    group_.spawn(keep(mount_->create_with_data(op_, kDirectory, "new", CreateMode::kGuarded, set_,
                                               as_bytes(gone)),
                      &made_));
    environment_->settle();
    cancel.cancel();
    EXPECT_EQ(number(), EINTR);
    gone.assign(gone.size(), '?');  // it is the caller's again
    op_.cancel = nullptr;
    server_->serve_for(seconds(2));
    EXPECT_EQ(times(Op::OP_OPEN), fails ? 2u : 1u);
    EXPECT_TRUE(server_->stateids.empty());
    EXPECT_EQ(server_->content, kept);
    data_ = kept;
  }
}

class SoftCreateWithData : public CreateWithData {
 protected:
  SoftCreateWithData() : CreateWithData(true) {}
};

TEST_F(SoftCreateWithData, WhatTimedOutIsClosedWhenTheServerIsBack) {
  server_->write_errors = {Stat::NFS4ERR_NOSPC};
  start();
  server_->run_unanswered();
  EXPECT_EQ(server_->stateids.size(), 1u);
  for (int i = 0; i < 100 && !made_; ++i)
    environment_->advance(milliseconds(100));
  EXPECT_EQ(number(), ETIMEDOUT);
  server_->serve_for(seconds(60));
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(server_->opens_seen.back().openhow.opentype, xdr::opentype4::OPEN4_NOCREATE);
  EXPECT_EQ(server_->writes_seen.size(), 1u);
}

class CreateInFewOperations : public CreateWithData {
 protected:
  CreateInFewOperations() : CreateWithData(false, kAtOnce.size() - 1) {}
};

TEST_F(CreateInFewOperations, MakesAndWrites) {
  EXPECT_EQ(mount_->most_with_create(), 0u);
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(server_->seen.size(), 2u);
  expect_all_there();
}

}  // namespace
}  // namespace nfsrdma
