// SPDX-License-Identifier: Apache-2.0
// One life of a client of NFSv4.1 and 4.2, from its first call to its last, and something goes
// wrong at each single call of it in turn: the request is lost with the connection, or its answer
// is, or the session with it, or all that the server knew. Every operation does what it would have
// done, and nothing is left over.
#include "rpcrdma/base/log.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using std::chrono::minutes;
using std::chrono::seconds;
using namespace access_bits;

enum class Loss : std::uint8_t { kRequest, kAnswer, kSession, kServer };

class Life : public SessionTest {
 public:
  Life(Loss loss, std::size_t at, std::uint32_t minor) : loss_(loss), at_(at) {
    server_->newest_minor = minor;
    server_->instead_of_answering = [this] { return lose_perhaps(); };
  }
  void TestBody() override {}

  /// False: it was over before.
  bool run() {
    server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_WRITE;
    EXPECT_TRUE(begin().ok()) << detail_;
    const OpenFor both{kRead | kModify, true};
    const FileLock some{1, LockKind::kWrite, {10, 19}};
    const FileLock all{1, LockKind::kWrite, kAllBytes};
    SetAttributes mode;
    mode.mode = 0600;
    expect(nfs_->getattr(op_, file_), "GETATTR");
    expect(nfs_->open(op_, file_, 0x3f, both), "OPEN");
    expect(nfs_->lock(op_, file_, some, LockWait::kNo, kRead | kModify), "LOCK");
    EXPECT_EQ(server_->locks.held().size(), 1u);
    expect(nfs_->read_once(op_, file_, 0, room_), "READ under a lock");
    expect(nfs_->commit(op_, file_, 0, 4), "COMMIT");
    expect(nfs_->unlock(op_, file_, all), "LOCKU");
    EXPECT_TRUE(server_->locks.held().empty());
    group_.spawn(nfs_->give_back(file_));
    server_->serve_for(seconds(60));
    EXPECT_EQ(nfs_->delegations_held(), 0u);
    expect(nfs_->open(op_, file_, 0x3f, {kRead, false}), "OPEN to read");
    nfs_->narrow_open(op_, file_, kRead);
    server_->serve_for(seconds(60));
    expect(nfs_->read_once(op_, file_, 0, room_), "READ");
    const FileHandle directory = file_;
    for (const CreateMode how : {CreateMode::kGuarded, CreateMode::kExclusive}) {
      expect(nfs_->create_open(op_, directory, "new", how, mode, OpenFor{.access = kModify}),
             "OPEN that creates");
      expect(nfs_->setattr(op_, made_, mode, nullptr), "SETATTR");
      nfs_->close(made_);
      server_->serve_for(seconds(60));
      for (const bool full : {false, true}) {
        if (full)
          server_->write_errors = {xdr::nfsstat4::NFS4ERR_NOSPC};  // and CLOSE is not reached
        std::size_t written = 0;
        expect(nfs_->create_with_data(op_, directory, "new", how, mode, as_bytes("data"), &written),
               "OPEN with data");
        server_->serve_for(seconds(60));
        EXPECT_EQ(server_->shares.size(), 1u);  // of the OPEN to read
        EXPECT_EQ(server_->content, "data");
      }
    }
    expect(nfs_->remove(op_, directory, "name", nullptr), "REMOVE");
    nfs_->close(file_);
    server_->serve_for(seconds(60));
    EXPECT_EQ(nfs_->files_open(), 0u);
    EXPECT_EQ(session().slots().taken(), 0u);
    // An OPEN that was run twice may have brought a second delegation, which nobody knows of.
    for (const std::uint64_t number : server_->delegations.given) {
      const bool there = server_->stateids.contains(number);
      EXPECT_FALSE(there && loss_ != Loss::kSession);
      if (there) {
        EXPECT_EQ(server_->recall(file_.bytes(), number), xdr::nfsstat4::NFS4_OK);
      }
      server_->serve_for(seconds(1));
    }
    EXPECT_TRUE(server_->stateids.empty());
    EXPECT_EQ(server_->shares.size(), 0u);
    group_.spawn(nfs_->end(op_));
    server_->serve_for(seconds(60));
    EXPECT_FALSE(server_->clientid_busy);
    EXPECT_FALSE(testing::Test::HasFailure());
    return calls_ > at_;
  }

 private:
  template <typename T>
  void expect(Task<Result<T>> task, const char* what) {
    SCOPED_TRACE(what);
    std::optional<Result<T>> done;
    group_.spawn(keep(std::move(task), &done));
    server_->serve_for(minutes(2));
    ASSERT_TRUE(done.has_value()) << "hangs";
    EXPECT_TRUE(done->ok()) << done->error().message();
  }
  bool lose_perhaps() {
    if (server_->in_grace && environment_->now() >= grace_ends_) server_->in_grace = false;
    if (calls_++ != at_) return false;
    if (loss_ != Loss::kRequest) server_->run_unanswered();
    if (loss_ == Loss::kSession) server_->lose_session();
    if (loss_ == Loss::kServer) {
      server_->restart();
      server_->in_grace = true;
      grace_ends_ = environment_->now() + seconds(10);
    }
    environment_->transport()->lose();
    return true;
  }

  const Loss loss_;
  const std::size_t at_;
  std::size_t calls_ = 0;
  TimePoint grace_ends_{};
  std::array<std::byte, 16> room_{};
  const FileHandle made_{std::array<std::byte, 1>{std::byte{7}}};  // whatever the server makes
};

class CutEverywhere : public testing::TestWithParam<Loss> {};

TEST_P(CutEverywhere, DoesNoHarm) {
  const LogLevel before = log_level();
  set_log_level(LogLevel::kError);
  for (const std::uint32_t minor : {1u, 2u}) {
    std::size_t at = 0;
    for (bool more = true; more && !HasFailure(); ++at) {
      SCOPED_TRACE("minor version " + std::to_string(minor) + ", call " + std::to_string(at));
      more = Life(GetParam(), at, minor).run();
    }
    EXPECT_GT(at, 25u) << "calls of the whole life";
  }
  set_log_level(before);
}

std::string name_of(const testing::TestParamInfo<Loss>& info) {
  constexpr const char* kNames[] = {"TheRequest", "TheAnswer", "TheSession", "TheServer"};
  return kNames[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Losing, CutEverywhere,
                         testing::Values(Loss::kRequest, Loss::kAnswer, Loss::kSession,
                                         Loss::kServer),
                         name_of);

}  // namespace
}  // namespace nfsrdma
