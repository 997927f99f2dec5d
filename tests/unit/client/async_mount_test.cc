// SPDX-License-Identifier: Apache-2.0
#include "client/async_mount.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/unique_fd.h"
#include "tests/unit/client/mounted_fixture.h"
#include "xdr/mount3.h"

namespace nfsrdma {
namespace {

using xdr::nfsproc3;
using xdr::nfsstat3;

class AsyncMountTest : public MountedFixture {
 protected:
  void start_read(std::size_t bytes) {
    buffer_.assign(bytes, std::byte{0});
    group_.spawn(keep(mount_->read(op_, file_, 0, buffer_), &read_));
  }
  void start_write(std::size_t bytes) {
    buffer_.assign(bytes, std::byte{1});
    group_.spawn(keep(mount_->write(op_, file_, 0, buffer_, Stability::kUnstable), &write_));
  }
  xdr::READ3res data(std::size_t bytes, bool eof) {
    xdr::READ3res res;
    data_.assign(bytes, std::byte{9});
    res.resok.count = static_cast<std::uint32_t>(bytes);
    res.resok.eof = eof;
    res.resok.data = {data_};
    return res;
  }
  static xdr::WRITE3res written(std::uint32_t count, std::uint64_t verifier,
                                xdr::stable_how how = xdr::stable_how::UNSTABLE) {
    xdr::WRITE3res res;
    res.resok.count = count;
    res.resok.committed = how;
    store_be64(res.resok.verf.data(), verifier);
    return res;
  }
  template <typename Res>
  static Res failure(nfsstat3 status) {
    Res res;
    res.status = status;
    return res;
  }
  static xdr::LOOKUP3res lookup_result(xdr::ftype3 type, const FileHandle& handle) {
    xdr::LOOKUP3res res;
    res.resok.object = {handle.bytes()};
    res.resok.obj_attributes.attributes_follow = true;
    res.resok.obj_attributes.attributes.type = type;
    res.resok.obj_attributes.attributes.nlink = 2;
    return res;
  }

  const FileHandle file_ = test_handle(1);
  std::vector<std::byte> buffer_, data_;
  std::optional<Result<ReadResult>> read_;
  std::optional<Result<WriteResult>> write_;
};

TEST_F(AsyncMountTest, NoPieceOfAWriteOrReadBeginsAnewBehindTheLastByte) {
  buffer_.assign(2 * kTestTransfer, std::byte{1});
  group_.spawn(keep(mount_->write(op_, file_, UINT64_MAX, buffer_, Stability::kUnstable), &write_));
  ASSERT_TRUE(write_ && !write_->ok());
  EXPECT_EQ(write_->error().sys, EINVAL);
  group_.spawn(keep(mount_->read(op_, file_, UINT64_MAX - kTestTransfer, buffer_), &read_));
  ASSERT_TRUE(read_ && !read_->ok());
  EXPECT_EQ(read_->error().sys, EINVAL);
  EXPECT_EQ(environment_->transport(), nullptr);
}

TEST_F(AsyncMountTest, LargeReadsGoOutInPiecesTogether) {
  start_read(3 * kTestTransfer + 100);
  ASSERT_EQ(transport().out().size(), 4u);
  const auto last = next_call<xdr::READ3args>(nfsproc3::NFSPROC3_READ, 3);
  EXPECT_EQ(last.offset, 3u * kTestTransfer);
  EXPECT_EQ(last.count, 100u);
  for (int i = 0; i < 3; ++i)
    answer(data(kTestTransfer, false));
  answer(data(100, false));
  ASSERT_TRUE(read_ && read_->ok());
  EXPECT_EQ((*read_)->count, buffer_.size());
  EXPECT_FALSE((*read_)->eof);
  EXPECT_EQ(buffer_.back(), std::byte{9});
}

TEST_F(AsyncMountTest, AFileWithDataIsTwoCallsInVersion3) {
  EXPECT_EQ(mount_->most_with_create(), 0u);
  std::optional<Result<CreateResult>> made;
  buffer_.assign(100, std::byte{1});
  for (const bool fails : {false, true}) {
    made.reset();
    group_.spawn(keep(mount_->create_with_data(op_, file_, "new", CreateMode::kUnchecked,
                                               SetAttributes{}, buffer_),
                      &made));
    const auto create = next_call<xdr::CREATE3args>(nfsproc3::NFSPROC3_CREATE);
    EXPECT_EQ(create.how.mode, xdr::createmode3::UNCHECKED);
    EXPECT_TRUE(create.how.obj_attributes.size.set_it);
    EXPECT_EQ(create.how.obj_attributes.size.size, 0u);
    xdr::CREATE3res created;
    created.resok.obj.handle_follows = true;
    created.resok.obj.handle = {test_handle(2).bytes()};
    answer(created);
    const auto write = next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE);
    EXPECT_EQ(write.count, 100u);
    EXPECT_EQ(write.stable, xdr::stable_how::FILE_SYNC);
    if (fails) {
      answer(failure<xdr::WRITE3res>(nfsstat3::NFS3ERR_NOSPC));
    } else {
      answer(written(100, 1, xdr::stable_how::FILE_SYNC));
    }
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->ok() ? 0 : made->error().sys, fails ? ENOSPC : 0);
  }
}

TEST_F(AsyncMountTest, ReadsEndAtTheEndOfFile) {
  start_read(3 * kTestTransfer);
  answer(data(kTestTransfer, false));
  answer(data(10, true));
  answer(data(0, true));
  ASSERT_TRUE(read_ && read_->ok());
  EXPECT_EQ((*read_)->count, kTestTransfer + 10u);
  EXPECT_TRUE((*read_)->eof);
}

TEST_F(AsyncMountTest, ShortReadsBeforeTheEndGoOn) {
  start_read(100);
  answer(data(60, false));
  const auto rest = next_call<xdr::READ3args>(nfsproc3::NFSPROC3_READ);
  EXPECT_EQ(rest.offset, 60u);
  EXPECT_EQ(rest.count, 40u);
  answer(data(40, true));
  ASSERT_TRUE(read_ && read_->ok());
  EXPECT_EQ((*read_)->count, 100u);
}

/// For the end of the file it would pass for one that is shorter, or has zeros.
TEST_F(AsyncMountTest, NoDataBeforeTheEndIsAnError) {
  start_read(100);
  answer(data(60, false));
  answer(data(0, false));
  ASSERT_TRUE(read_);
  EXPECT_EQ(read_->error().sys, EIO);
}

/// What is put off may have run before the connection was lost.
TEST_F(AsyncMountTest, LaterDoesNotMakeACallForgetThatItWentOutTwice) {
  // The call is under way when the test ends.
  static const std::string kName = "new";
  static const SetAttributes kSet;
  static std::optional<Result<CreateResult>> made;
  group_.spawn(keep(mount_->mkdir(op_, test_handle(0), kName, kSet), &made));
  static_cast<void>(next_call<xdr::MKDIR3args>(nfsproc3::NFSPROC3_MKDIR));
  break_connection();
  answer(failure<xdr::MKDIR3res>(nfsstat3::NFS3ERR_JUKEBOX));
  environment_->advance(std::chrono::seconds(5));
  static_cast<void>(next_call<xdr::MKDIR3args>(nfsproc3::NFSPROC3_MKDIR));
  answer(failure<xdr::MKDIR3res>(nfsstat3::NFS3ERR_EXIST));
  // It looks at what is there, in place of believing that others made it.
  EXPECT_FALSE(made);
  static_cast<void>(next_call<xdr::LOOKUP3args>(nfsproc3::NFSPROC3_LOOKUP));
}

TEST_F(AsyncMountTest, MoreDataThanAskedForIsAnError) {
  start_read(8);
  answer(data(12, false));
  ASSERT_TRUE(read_);
  EXPECT_EQ(read_->error().code, Errc::kProtocol);
}

TEST_F(AsyncMountTest, OneFailingPieceFailsTheRead) {
  start_read(2 * kTestTransfer);
  answer(failure<xdr::READ3res>(nfsstat3::NFS3ERR_IO));
  answer(data(kTestTransfer, false));
  ASSERT_TRUE(read_);
  EXPECT_EQ(read_->error().sys, EIO);
}

TEST_F(AsyncMountTest, ShortWritesGoOn) {
  start_write(100);
  answer(written(30, 5));
  const auto rest = next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE);
  EXPECT_EQ(rest.offset, 30u);
  EXPECT_EQ(rest.count, 70u);
  answer(written(70, 5));
  ASSERT_TRUE(write_ && write_->ok());
  EXPECT_EQ((*write_)->count, 100u);
  EXPECT_FALSE((*write_)->verifier_changed);
}

TEST_F(AsyncMountTest, PiecesOfAWriteWithDifferentVerifiersAreNoticed) {
  start_write(2 * kTestTransfer);
  answer(written(kTestTransfer, 5));
  answer(written(kTestTransfer, 6));
  ASSERT_TRUE(write_ && write_->ok());
  EXPECT_TRUE((*write_)->verifier_changed);
}

TEST_F(AsyncMountTest, AWriteIsAsStableAsItsLeastStablePiece) {
  start_write(2 * kTestTransfer);
  answer(written(kTestTransfer, 5, xdr::stable_how::FILE_SYNC));
  answer(written(kTestTransfer, 5, xdr::stable_how::UNSTABLE));
  ASSERT_TRUE(write_ && write_->ok());
  EXPECT_EQ((*write_)->stability, Stability::kUnstable);
}

TEST_F(AsyncMountTest, AWriteOfNothingTakenIsAnErrorNotALoop) {
  start_write(10);
  answer(written(0, 5));
  ASSERT_TRUE(write_);
  EXPECT_EQ(write_->error().code, Errc::kProtocol);
}

TEST_F(AsyncMountTest, JukeboxIsAskedAgainLater) {
  std::optional<Result<Attributes>> result;
  group_.spawn(keep(mount_->getattr(op_, file_), &result));
  answer(failure<xdr::GETATTR3res>(nfsstat3::NFS3ERR_JUKEBOX));
  EXPECT_TRUE(transport().out().empty());
  environment_->advance(std::chrono::milliseconds(100));
  ASSERT_EQ(transport().out().size(), 1u);
  answer(xdr::GETATTR3res{});
  EXPECT_TRUE(result && result->ok());
}

std::vector<std::string> warnings;

TEST_F(AsyncMountTest, PeopleAreToldOfJukeboxForLong) {
  warnings.clear();
  set_log_sink(
      [](int, std::string_view line, std::span<const LogField>) { warnings.emplace_back(line); });
  std::optional<Result<Attributes>> result;
  group_.spawn(keep(mount_->getattr(op_, file_), &result));
  const TimePoint began = environment_->now();
  const auto refuse_for = [&](std::chrono::seconds long_) {
    while (environment_->now() - began < long_) {
      answer(failure<xdr::GETATTR3res>(nfsstat3::NFS3ERR_JUKEBOX));
      while (transport().out().empty())
        environment_->advance(std::chrono::milliseconds(100));
    }
  };
  refuse_for(std::chrono::seconds(60));
  EXPECT_EQ(warnings.size(), 0u);
  refuse_for(std::chrono::seconds(70));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              testing::HasSubstr("NFSv3: server fake has been putting off GETATTR for"));
  EXPECT_THAT(warnings[0], testing::HasSubstr("(NFS3ERR_JUKEBOX)"));
  set_log_sink(nullptr);
  answer(xdr::GETATTR3res{});
  EXPECT_TRUE(result && result->ok());
}

TEST_F(AsyncMountTest, AllThreadsOfAMountTellOfItAsOne) {
  MountSettings settings = mount_->settings();
  ASSERT_NE(settings.put_off, nullptr);
  settings.addresses = {SocketAddress::parse("192.0.2.1", 2049).value()};
  settings.proto = ProtoChoice::kTcp;
  const auto loop = EventLoop::create().value();
  EXPECT_EQ(make_rpc_client(*loop, {}, settings)->options().put_off, settings.put_off);
}

TEST_F(AsyncMountTest, MkdirThatWasSentTwiceAndExistsIsDone) {
  std::optional<Result<CreateResult>> result;
  group_.spawn(keep(mount_->mkdir(op_, test_handle(0), "d", {}), &result));
  static_cast<void>(transport());
  break_connection();
  answer(failure<xdr::MKDIR3res>(nfsstat3::NFS3ERR_EXIST));
  answer(lookup_result(xdr::ftype3::NF3DIR, test_handle(2)));
  ASSERT_TRUE(result && result->ok());
  EXPECT_EQ((*result)->handle, test_handle(2));
}

TEST_F(AsyncMountTest, MkdirThatWasSentOnceAndExistsFails) {
  std::optional<Result<CreateResult>> result;
  group_.spawn(keep(mount_->mkdir(op_, test_handle(0), "d", {}), &result));
  answer(failure<xdr::MKDIR3res>(nfsstat3::NFS3ERR_EXIST));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().sys, EEXIST);
}

TEST_F(AsyncMountTest, RemoveThatWasSentTwiceAndIsGoneIsDone) {
  std::optional<Result<RemoveResult>> result;
  group_.spawn(keep(mount_->remove(op_, test_handle(0), "f"), &result));
  static_cast<void>(transport());
  break_connection();
  answer(failure<xdr::REMOVE3res>(nfsstat3::NFS3ERR_NOENT));
  answer(failure<xdr::LOOKUP3res>(nfsstat3::NFS3ERR_NOENT));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok());
}

TEST_F(AsyncMountTest, RenameThatWasSentTwiceLooksAtBothNames) {
  std::optional<Result<RenameResult>> result;
  group_.spawn(keep(mount_->rename(op_, test_handle(0), "a", test_handle(0), "b"), &result));
  static_cast<void>(transport());
  break_connection();
  answer(failure<xdr::RENAME3res>(nfsstat3::NFS3ERR_NOENT));
  answer(failure<xdr::LOOKUP3res>(nfsstat3::NFS3ERR_NOENT));
  answer(lookup_result(xdr::ftype3::NF3REG, test_handle(1)));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok());
}

TEST_F(AsyncMountTest, AMissingHandleInTheAnswerIsLookedUp) {
  std::optional<Result<CreateResult>> result;
  group_.spawn(keep(mount_->mkdir(op_, test_handle(0), "d", {}), &result));
  answer(xdr::MKDIR3res{});
  answer(lookup_result(xdr::ftype3::NF3DIR, test_handle(2)));
  ASSERT_TRUE(result && result->ok());
  EXPECT_EQ((*result)->handle, test_handle(2));
}

TEST_F(AsyncMountTest, ExclusiveCreateSetsTheAttributesAfterwards) {
  std::optional<Result<CreateResult>> result;
  SetAttributes set;
  set.mode = 0640;
  group_.spawn(
      keep(mount_->create(op_, test_handle(0), "f", CreateMode::kExclusive, set), &result));
  xdr::CREATE3res made;
  made.resok.obj.handle_follows = true;
  const FileHandle handle = test_handle(3);
  made.resok.obj.handle = {handle.bytes()};
  answer(made);
  const auto args = next_call<xdr::SETATTR3args>(nfsproc3::NFSPROC3_SETATTR);
  EXPECT_EQ(args.new_attributes.mode.mode, 0640u);
  EXPECT_EQ(args.new_attributes.mtime.set_it, xdr::time_how::SET_TO_SERVER_TIME);
  answer(xdr::SETATTR3res{});
  EXPECT_TRUE(result && result->ok());
}

TEST_F(AsyncMountTest, UnmountOfASilentServerEndsSoon) {
  group_.spawn(mount_->unmount());
  transport();  // it accepts, and says nothing
  environment_->advance(AsyncMount::kGoodbye - std::chrono::milliseconds(1));
  EXPECT_EQ(group_.running(), 1u);
  environment_->advance(std::chrono::milliseconds(1));
  EXPECT_EQ(group_.running(), 0u);
}

TEST_F(AsyncMountTest, UnmountOfAServerThatIsGoneEndsSoon) {
  group_.spawn(mount_->unmount());
  environment_->transport()->refuse(ECONNREFUSED);
  environment_->advance(AsyncMount::kGoodbye);
  EXPECT_EQ(group_.running(), 0u);
}

TEST_F(AsyncMountTest, UnmountSaysGoodbyeWhereMountWasAsked) {
  group_.spawn(mount_->unmount());
  ASSERT_EQ(transport().out().size(), 1u);
  ClientCall* call = transport().out().front();
  xdr::Decoder decoder(call->head);
  xdr::rpc_msg header;
  ASSERT_TRUE(xdr::decode(decoder, header));
  EXPECT_EQ(header.cbody.prog, xdr::kMountProgram);
  EXPECT_EQ(header.cbody.proc, static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_UMNT));
  transport().answer([](xdr::Encoder&) {});
  environment_->settle();
  EXPECT_EQ(group_.running(), 0u);
}

TEST_F(AsyncMountTest, NamesTooLongForACallAreRefusedHere) {
  std::optional<Result<LookupResult>> result;
  const std::string name(5000, 'x');
  group_.spawn(keep(mount_->lookup(op_, test_handle(0), name), &result));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().sys, ENAMETOOLONG);
}

// Linux's server cannot decode a name over 255 bytes (seen in the interop matrix: EIO).
TEST_F(AsyncMountTest, NamesThatTheServerCannotDecodeAreTooLong) {
  const std::string name(256, 'x');
  std::optional<Result<LookupResult>> found;
  group_.spawn(keep(mount_->lookup(op_, test_handle(0), name), &found));
  transport().answer({}, xdr::accept_stat::GARBAGE_ARGS);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error().sys, ENAMETOOLONG);
  std::optional<Result<RenameResult>> renamed;
  group_.spawn(
      keep(mount_->rename(op_, test_handle(0), "short", test_handle(0), name, nullptr), &renamed));
  transport().answer({}, xdr::accept_stat::GARBAGE_ARGS);
  ASSERT_TRUE(renamed);
  EXPECT_EQ(renamed->error().sys, ENAMETOOLONG);
}

TEST_F(AsyncMountTest, OtherNamesThatTheServerCannotDecodeAreAnError) {
  std::optional<Result<LookupResult>> found;
  const std::string name(255, 'x');
  group_.spawn(keep(mount_->lookup(op_, test_handle(0), name), &found));
  transport().answer({}, xdr::accept_stat::GARBAGE_ARGS);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error().sys, EIO);
}

struct Names final : DirectoryVisitor {
  std::vector<std::string> seen;
  std::size_t limit = 100;
  bool on_entry(const DirectoryEntry& entry) override {
    if (seen.size() == limit) return false;
    seen.emplace_back(entry.name);
    return true;
  }
};

class ReaddirTest : public AsyncMountTest {
 protected:
  void list(std::initializer_list<xdr::entry3> entries, Names* names) {
    group_.spawn(keep(mount_->readdir(op_, test_handle(0), 0, 0, 4096, *names), &page_));
    transport().answer([&](xdr::Encoder& encoder) {
      xdr::DirectoryWriter<xdr::entry3> writer(encoder, {.result_bytes = 4096});
      ASSERT_TRUE(writer.start({}));
      for (const xdr::entry3& entry : entries)
        ASSERT_TRUE(writer.try_add(entry));
      writer.finish(true);
    });
  }
  std::optional<Result<DirectoryPage>> page_;
};

TEST_F(ReaddirTest, AVisitorMayStopAndGoOnLater) {
  Names names;
  names.limit = 1;
  list({{1, "a", 11}, {2, "b", 12}}, &names);
  ASSERT_TRUE(page_ && page_->ok());
  EXPECT_EQ((*page_)->cookie, 11u);
  EXPECT_FALSE((*page_)->eof);
}

/// Some servers lack it, and kernels ask for nothing else.
TEST_F(ReaddirTest, WithoutReaddirplusItIsAReaddir) {
  Names names;
  const auto list_plus = [&] {
    page_.reset();
    group_.spawn(keep(mount_->readdirplus(op_, test_handle(0), 0, 0, 4096, names), &page_));
  };
  const auto answer_readdir = [&] {
    static_cast<void>(next_call<xdr::READDIR3args>(nfsproc3::NFSPROC3_READDIR));
    transport().answer([&](xdr::Encoder& encoder) {
      xdr::DirectoryWriter<xdr::entry3> writer(encoder, {.result_bytes = 4096});
      ASSERT_TRUE(writer.start({}));
      ASSERT_TRUE(writer.try_add({1, "a", 11}));
      writer.finish(true);
    });
    EXPECT_TRUE(page_ && page_->ok());
  };
  list_plus();
  static_cast<void>(next_call<xdr::READDIRPLUS3args>(nfsproc3::NFSPROC3_READDIRPLUS));
  answer(failure<xdr::READDIRPLUS3res>(nfsstat3::NFS3ERR_NOTSUPP));
  answer_readdir();
  list_plus();  // not asked for again
  answer_readdir();
  EXPECT_EQ(names.seen, (std::vector<std::string>{"a", "a"}));
}

TEST_F(ReaddirTest, NamesThatLeadElsewhereAreLeftOut) {
  Names names;
  list({{1, "../etc/passwd", 11}, {2, "", 12}, {3, "good", 13}}, &names);
  EXPECT_EQ(names.seen, (std::vector<std::string>{"good"}));
  EXPECT_EQ((*page_)->cookie, 13u);
}

// The kernel takes the connection for this one; nobody reads.
TEST(AsyncMountConnect, AServerThatAnswersNothingIsGivenUpOnAlsoWhenHard) {
  const SocketAddress address = SocketAddress::parse("127.0.0.1", 0).value();
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), address.data(), address.length()), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);

  for (const bool port_given : {true, false}) {  // MOUNT on a port of its own, or on the NFS one
    MountSettings settings;
    settings.host = "127.0.0.1";
    settings.addresses = {address};
    settings.proto = ProtoChoice::kTcp;
    settings.tcp_port = ntohs(bound.sin_port);
    if (port_given) settings.mount_port = settings.tcp_port;
    settings.soft = false;
    settings.first_answers = std::chrono::milliseconds(100);
    std::unique_ptr<EventLoop> loop = std::move(EventLoop::create()).value();
    std::string detail;
    auto made = run_to_completion(*loop, AsyncMount::connect(*loop, {}, settings, &detail));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().sys, ETIMEDOUT);
    EXPECT_EQ(detail, "the server takes connections, but answered nothing for 0.1 s");
  }
}

}  // namespace
}  // namespace nfsrdma
