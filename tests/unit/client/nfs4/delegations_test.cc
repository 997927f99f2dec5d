// SPDX-License-Identifier: Apache-2.0
// Delegations of the client: asked for, used, recalled, revoked, lost with the server.
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using Given = xdr::open_delegation_type4;
using std::chrono::seconds;

struct Holder final : DelegationHolder {
  void give_up(const FileHandle& file) override { told.push_back(file); }
  std::optional<HeldAttributes> held_attributes(const FileHandle&) override { return attributes; }
  std::vector<FileHandle> told;
  std::optional<HeldAttributes> attributes;
};

class DelegationsTest : public SessionTest {
 protected:
  void SetUp() override { ASSERT_TRUE(begin().ok()); }
  ~DelegationsTest() override { nfs_->set_delegation_holder(nullptr); }

  static FileHandle file(int number) {
    const std::array<std::byte, 2> bytes{std::byte{9}, static_cast<std::byte>(number)};
    return FileHandle(bytes);
  }
  void ask_for(std::optional<Result<AccessResult>>* out, const FileHandle& file,
               std::uint32_t open_for) {
    group_.spawn(keep(nfs_->open(op_, file, 0x3f, {open_for, true}), out));
    environment_->settle();
  }
  Result<AccessResult> ask_for(const FileHandle& file, std::uint32_t open_for) {
    std::optional<Result<AccessResult>> got;
    ask_for(&got, file, open_for);
    server_->serve_for(seconds(2));
    EXPECT_TRUE(got.has_value());
    if (!got) return Error{Errc::kTimedOut, 0, "test"};
    return std::move(*got);
  }
  /// One of `file`; its number.
  std::uint64_t have(const FileHandle& file, Given kind) {
    using namespace access_bits;
    server_->delegations.give = kind;
    EXPECT_TRUE(ask_for(file, kind == Given::OPEN_DELEGATE_WRITE ? kRead | kModify : kRead).ok());
    EXPECT_NE(nfs_->delegation(file), DelegationKind::kNone);
    nfs_->close(file);
    server_->serve_for(std::chrono::milliseconds(10));
    server_->seen.clear();
    return server_->delegations.given.back();
  }
  void give_back(const FileHandle& file) {
    group_.spawn(nfs_->give_back(file));
    server_->serve_all();
  }
  bool read() { return read(file_); }
  bool read(const FileHandle& file) {
    std::optional<Result<ReadResult>> got;
    std::array<std::byte, 8> room;
    group_.spawn(keep(nfs_->read_once(op_, file, 0, room), &got));
    server_->serve_for(seconds(2));
    return got.has_value() && got->ok();
  }
  /// Hears what the server has to say, `behind` so long.
  void listen(Duration behind) {
    server_->serve_for(behind);
    std::optional<Result<Attributes>> got;
    ask(&got, op_);
    server_->serve_for(seconds(1));
    EXPECT_TRUE(got.has_value() && got->ok());
  }

  Holder holder_;
};

TEST_F(DelegationsTest, IsAskedForByAnOpenThatItOutlives) {
  nfs_->set_delegation_holder(&holder_);
  server_->delegations.give = Given::OPEN_DELEGATE_READ;
  Result<AccessResult> got = ask_for(file_, access_bits::kRead);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->allowed, 0x3fu);
  EXPECT_TRUE(got->attributes.has_value());
  const std::vector<Op> ops{Op::OP_SEQUENCE, Op::OP_PUTFH, Op::OP_OPEN, Op::OP_ACCESS,
                            Op::OP_GETATTR};
  ASSERT_FALSE(server_->seen.empty());
  EXPECT_EQ(server_->seen.back(), ops);
  EXPECT_EQ(server_->opens_seen.back().share_access,
            xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_READ_DELEG);
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
  EXPECT_EQ(server_->stateids.size(), 2u);
  nfs_->close(file_);
  server_->serve_for(std::chrono::milliseconds(10));
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
  EXPECT_EQ(server_->stateids, std::set{server_->delegations.given.back()});
}

TEST_F(DelegationsTest, NoneIsAskedForWhereTheServerCannotCall) {
  server_->makes_callbacks = false;
  make({});
  ASSERT_TRUE(begin().ok());
  server_->delegations.give = Given::OPEN_DELEGATE_READ;
  EXPECT_TRUE(ask_for(file_, access_bits::kRead).ok());
  EXPECT_EQ(server_->opens_seen.back().share_access,
            xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG);
}

TEST_F(DelegationsTest, DataTravelsWithTheStateidThatIsGoodForIt) {
  using namespace access_bits;
  const std::uint64_t number = have(file_, Given::OPEN_DELEGATE_READ);
  const auto number_in = [](Result<DataRight> right) { return load_be64(right->other.data()); };
  EXPECT_EQ(number_in(nfs_->right_for(op_, file_, kRead)), number);
  EXPECT_EQ(number_in(nfs_->right_for(op_, file_, kModify)), 0u);
  EXPECT_TRUE(read());
  EXPECT_EQ(server_->data_stateids.back(), number);
  const FileHandle other = file(1);
  const std::uint64_t write = have(other, Given::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(number_in(nfs_->right_for(op_, other, kRead)), write);
  EXPECT_EQ(number_in(nfs_->right_for(op_, other, kModify)), write);
}

TEST_F(DelegationsTest, ARecallTellsTheHolderOnceWhoGivesItBack) {
  nfs_->set_delegation_holder(&holder_);
  const std::uint64_t number = have(file_, Given::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(server_->recall(file_.bytes(), number), Stat::NFS4_OK);
  EXPECT_EQ(server_->recall(file_.bytes(), number), Stat::NFS4_OK);
  EXPECT_EQ(holder_.told, std::vector{file_});
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kNone);
  // What was kept back is written with it.
  Result<DataRight> right = nfs_->right_for(op_, file_, access_bits::kModify);
  EXPECT_EQ(load_be64(right->other.data()), number);
  server_->serve_for(seconds(5));
  EXPECT_TRUE(server_->delegations.returned.empty()) << "before the holder was done";
  give_back(file_);
  EXPECT_EQ(server_->delegations.returned, std::vector{number});
  EXPECT_EQ(nfs_->delegations_held(), 0u);
}

TEST_F(DelegationsTest, OneThatItDoesNotKnowGoesBackWhenItIsRecalled) {
  EXPECT_EQ(server_->recall(file_.bytes(), 4711), Stat::NFS4_OK);
  server_->serve_all();
  EXPECT_EQ(server_->delegations.returned, std::vector<std::uint64_t>{4711});
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(server_->recall(file_.bytes(), 4712), Stat::NFS4_OK);
  EXPECT_EQ(server_->recall(file_.bytes(), 4712), Stat::NFS4ERR_BAD_STATEID) << "not without end";
  server_->serve_all();
}

TEST_F(DelegationsTest, AnInterruptedOpenLosesNone) {
  server_->delegations.give = Given::OPEN_DELEGATE_READ;
  CancelToken cancel;
  OpContext op;
  op.cancel = &cancel;
  std::optional<Result<AccessResult>> got;
  group_.spawn(keep(nfs_->open(op, file_, 0x3f, {access_bits::kRead, true}), &got));
  environment_->settle();
  cancel.cancel();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, EINTR);
  server_->serve_for(seconds(2));
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
}

TEST_F(DelegationsTest, WithoutAHolderItIsGivenBackAtOnce) {
  const std::uint64_t number = have(file_, Given::OPEN_DELEGATE_READ);
  EXPECT_EQ(server_->recall(file_.bytes(), number), Stat::NFS4_OK);
  server_->serve_all();
  EXPECT_EQ(server_->delegations.returned, std::vector{number});
}

TEST_F(DelegationsTest, OneThatIsRecalledInTheAnswerGoesBack) {
  nfs_->set_delegation_holder(&holder_);
  server_->delegations.give = Given::OPEN_DELEGATE_READ;
  server_->delegations.recall_again = true;
  EXPECT_TRUE(ask_for(file_, access_bits::kRead).ok());
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kNone);
  EXPECT_EQ(holder_.told, std::vector{file_});
}

TEST_F(DelegationsTest, ARecallThatOvertakesTheAnswerIsToComeAgain) {
  nfs_->set_delegation_holder(&holder_);
  allow_opens();
  server_->delegations.give = Given::OPEN_DELEGATE_READ;
  std::optional<Result<AccessResult>> got;
  ask_for(&got, file_, access_bits::kRead);
  server_->run_unanswered();
  const std::uint64_t number = server_->delegations.given.back();
  EXPECT_EQ(server_->recall(file_.bytes(), number), Stat::NFS4ERR_DELAY);
  server_->serve_for(seconds(2));  // a retry: answered from the slot
  ASSERT_TRUE(got.has_value() && got->ok());
  EXPECT_EQ(server_->delegations.given.size(), 1u);
  EXPECT_EQ(server_->recall(file_.bytes(), number), Stat::NFS4_OK);
}

TEST_F(DelegationsTest, ARestartOfTheServerEndsAll) {
  nfs_->set_delegation_holder(&holder_);
  have(file_, Given::OPEN_DELEGATE_READ);
  have(file(1), Given::OPEN_DELEGATE_WRITE);
  server_->restart();
  expect_getattr_works();
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kNone);
  EXPECT_EQ(nfs_->delegations_held(), 0u);
  EXPECT_EQ(holder_.told.size(), 2u);
  give_back(file_);
  EXPECT_TRUE(server_->delegations.returned.empty()) << "the server never gave it";
}

TEST_F(DelegationsTest, WhatIsRevokedIsFoundAndFreed) {
  nfs_->set_delegation_holder(&holder_);
  have(file_, Given::OPEN_DELEGATE_READ);
  server_->revoke_everything();
  server_->status_flags = xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED;
  expect_getattr_works();
  EXPECT_TRUE(server_->revoked.empty());
  EXPECT_EQ(server_->status_flags, 0u);
  EXPECT_EQ(holder_.told, std::vector{file_});
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kNone);
}

/// RFC 8881, 10.2.1: also what data meets before it is looked for.
TEST_F(DelegationsTest, WhatDataFindsRevokedIsFreed) {
  nfs_->set_delegation_holder(&holder_);
  have(file_, Given::OPEN_DELEGATE_READ);
  const std::uint64_t number = have(file(1), Given::OPEN_DELEGATE_READ);
  for (const std::uint32_t flags : {0u, xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED}) {
    server_->revoke(flags == 0 ? number : have(file(1), Given::OPEN_DELEGATE_READ), flags);
    EXPECT_TRUE(read(file(1)));
    EXPECT_TRUE(server_->revoked.empty());
    EXPECT_EQ(server_->status_flags, 0u);
  }
  EXPECT_EQ(holder_.told, (std::vector{file(1), file(1)}));
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
}

TEST_F(DelegationsTest, ARevocationIsNewsOnceTheServerWasContent) {
  nfs_->set_delegation_holder(&holder_);
  const std::uint64_t number = have(file_, Given::OPEN_DELEGATE_READ);
  server_->status_flags = xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED;  // of what nobody knows
  for (const int behind : {0, 6, 11, 21})                             // believed less and less
    listen(seconds(behind));
  EXPECT_EQ(times(Op::OP_TEST_STATEID), 4u);
  server_->status_flags = 0;
  listen(seconds(5));
  server_->revoke(number, xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
  listen(seconds(0));
  EXPECT_EQ(holder_.told, std::vector{file_});
  EXPECT_TRUE(server_->revoked.empty());
}

TEST_F(DelegationsTest, DataGoesOnWithoutAStateidThatTheServerHasForgotten) {
  nfs_->set_delegation_holder(&holder_);
  const std::uint64_t number = have(file_, Given::OPEN_DELEGATE_READ);
  server_->stateids.clear();
  EXPECT_TRUE(read());
  ASSERT_EQ(server_->data_stateids.size(), 2u);
  EXPECT_EQ(server_->data_stateids[0], number);
  EXPECT_EQ(server_->data_stateids[1], 0u);
  EXPECT_EQ(holder_.told, std::vector{file_});
}

TEST_F(DelegationsTest, AskedForRoomItLetsGoOfWhatWasNotUsedForTheLongestTime) {
  nfs_->set_delegation_holder(&holder_);
  for (int i = 0; i < 4; ++i)
    have(file(i), Given::OPEN_DELEGATE_READ);
  EXPECT_EQ(nfs_->delegation(file(0)), DelegationKind::kRead);  // used
  xdr::CB_RECALL_ANY4args args;
  args.craa_objects_to_keep = 2;
  args.craa_type_mask.set(xdr::RCA4_TYPE_MASK_RDATA_DLG);
  EXPECT_EQ(server_->call_back(xdr::nfs_cb_opnum4::OP_CB_RECALL_ANY, args), Stat::NFS4_OK);
  EXPECT_EQ(holder_.told, (std::vector{file(1), file(2)}));
}

TEST_F(DelegationsTest, WhatIsNotUsedForLongGoesBack) {
  const std::uint64_t number = have(file_, Given::OPEN_DELEGATE_READ);
  server_->serve_for(session().lease());
  EXPECT_TRUE(server_->delegations.returned.empty());
  server_->serve_for(3 * session().lease());
  EXPECT_EQ(server_->delegations.returned, std::vector{number});
}

TEST_F(DelegationsTest, AllGoBackAtTheEnd) {
  nfs_->set_delegation_holder(&holder_);
  for (int i = 0; i < 3; ++i)
    have(file(i), Given::OPEN_DELEGATE_READ);
  group_.spawn(nfs_->end(op_));
  server_->serve_all();
  EXPECT_EQ(server_->delegations.returned.size(), 3u);
  EXPECT_FALSE(server_->clientid_busy);
  EXPECT_TRUE(holder_.told.empty());
}

TEST_F(DelegationsTest, TheHolderSaysHowAFileStands) {
  nfs_->set_delegation_holder(&holder_);
  have(file_, Given::OPEN_DELEGATE_WRITE);
  xdr::CB_GETATTR4args args;
  args.fh.data = file_.bytes();
  args.attr_request =
      xdr::bitmap4::of({xdr::fattr4_number::FATTR4_SIZE, xdr::fattr4_number::FATTR4_CHANGE,
                        xdr::fattr4_number::FATTR4_MODE});
  const auto ask = [&] { return server_->call_back(xdr::nfs_cb_opnum4::OP_CB_GETATTR, args); };
  EXPECT_EQ(ask(), Stat::NFS4ERR_BADHANDLE) << "the holder has forgotten the file";
  holder_.attributes = HeldAttributes{1234, 77};
  const auto reply =
      server_->connected()->call_back(server_->callback(xdr::nfs_cb_opnum4::OP_CB_GETATTR, args));
  xdr::Decoder in(reply);
  xdr::rpc_msg header;
  xdr::CB_COMPOUND4res head;
  xdr::CB_SEQUENCE4res sequence;
  xdr::CB_GETATTR4res got;
  xdr::FileAttributes4 values;
  ASSERT_TRUE(xdr::decode(in, header) && xdr::decode(in, head));
  (void)in.u32();
  ASSERT_TRUE(xdr::decode(in, sequence));
  EXPECT_EQ(in.u32(), static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_GETATTR));
  ASSERT_TRUE(xdr::decode(in, got));
  ASSERT_EQ(xdr::decode_attributes(got.resok4.obj_attributes, values).outcome,
            xdr::AttributeDecoding::kOk);
  EXPECT_EQ(values.size, 1234u);
  EXPECT_EQ(values.change, 77u);
  EXPECT_EQ(values.attrmask,
            xdr::bitmap4::of({xdr::fattr4_number::FATTR4_SIZE, xdr::fattr4_number::FATTR4_CHANGE}));
  have(file(1), Given::OPEN_DELEGATE_READ);
  args.fh.data = {};
  EXPECT_EQ(ask(), Stat::NFS4ERR_BADHANDLE);
}

TEST_F(DelegationsTest, HowFarAFileMayGrowUnwritten) {
  server_->delegations.space = 1u << 20;
  have(file_, Given::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(nfs_->kept_back_limit(file_), 1u << 20);
  EXPECT_EQ(nfs_->kept_back_limit(file(1)), 0u);
}

}  // namespace
}  // namespace nfsrdma
