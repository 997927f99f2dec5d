// SPDX-License-Identifier: Apache-2.0
// Delegations in minor version 0: where the server may call, when one is asked for and how, what
// goes by it, and how it ends.
#include "tests/unit/client/nfs4/minor0_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Given = xdr::open_delegation_type4;
using Ops = std::vector<xdr::nfs_opnum4>;
using enum xdr::nfs_opnum4;

struct Holder final : DelegationHolder {
  void give_up(const FileHandle& file) override { told.push_back(file); }
  std::optional<HeldAttributes> held_attributes(const FileHandle&) override {
    return HeldAttributes{4711, 12};
  }
  std::vector<FileHandle> told;
};

class Minor0Delegations : public Minor0Test {
 protected:
  explicit Minor0Delegations(bool soft = false) : Minor0Test(soft) {
    called_at_.emplace();
    remake();
  }
  ~Minor0Delegations() override { nfs_->set_delegation_holder(nullptr); }

  void remake() {
    make_callable(called_at_);
    nfs_->set_delegation_holder(&holder_);
  }
  int begin() {
    connect();
    return Minor0Test::begin();
  }
  /// And called by the server.
  void begin_called() {
    ASSERT_EQ(begin(), 0) << detail_;
    ASSERT_TRUE(server_->can_call());
    ASSERT_TRUE(server_->probe());
    server_->seen.clear();
  }
  void turn_to_another_file() {
    server_->names["g"] = "f7";
    file_ = handle_of("f7");
    place_.name = "g";
  }
  using Got = std::optional<Result<AccessResult>>;
  void start_open(Got* out, const OpContext& op, std::uint32_t access = access_bits::kRead) {
    group_.spawn(keep(nfs_->open(op, file_, 0x3f, {access, true}), out));
    environment_->settle();
  }
  int open(std::uint32_t access = access_bits::kRead) {
    OpContext op = op_;
    op.place = has_place_ ? &place_ : nullptr;
    Got got;
    start_open(&got, op, access);
    server_->serve_for(seconds(2));
    if (!got) return -1;
    return got->ok() ? 0 : got->error().sys;
  }
  std::uint64_t have(Given kind = Given::OPEN_DELEGATE_READ) {
    using namespace access_bits;
    server_->grants = kind;
    EXPECT_EQ(open(kind == Given::OPEN_DELEGATE_READ ? kRead : kRead | kModify), 0);
    EXPECT_EQ(nfs_->delegations_held(), 1u);
    server_->seen.clear();
    return server_->granted.empty() ? 0 : server_->granted.back();
  }
  std::uint64_t number_for(std::uint32_t access) {
    Result<DataRight> right = nfs_->right_for(op_, file_, access);
    return right.ok() ? load_be64(right->other.data() + 4) : 0;
  }

  std::optional<CalledAt> called_at_;
  Holder holder_;
};

class SoftMinor0Delegations : public Minor0Delegations {
 protected:
  SoftMinor0Delegations() : Minor0Delegations(true) {}
};

TEST_F(Minor0Delegations, TheServerIsToldWhereTheConnectionBegins) {
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(server_->callback_address, "tcp 192.0.2.77.156.65");  // port 40001
  EXPECT_EQ(nfs_->called_at(), "192.0.2.77:40001");
  EXPECT_GE(server_->callback_program, 0x40000000u);
  EXPECT_LT(server_->callback_program, 0x60000000u);
}

TEST_F(Minor0Delegations, TheServerIsToldAnAddressOfChoice) {
  called_at_ = CalledAt{SocketAddress::parse("2001:db8::7", 0).value(), 4096};
  remake();
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(server_->callback_address, "tcp6 2001:db8::7.16.0");
}

TEST_F(Minor0Delegations, AnAddressInFrontOfThisMachineIsListenedForEverywhere) {
  environment_->no_listening["203.0.113.9"] = EADDRNOTAVAIL;
  called_at_ = CalledAt{SocketAddress::parse("203.0.113.9", 0).value(), 4096};
  remake();
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(server_->callback_address, "tcp 203.0.113.9.16.0");
  EXPECT_EQ(environment_->endpoint()->address.text(), "0.0.0.0:4096");
}

TEST_F(Minor0Delegations, AMountGoesOnWithoutAPlaceToBeCalledAt) {
  environment_->no_listening["192.0.2.77"] = EADDRINUSE;
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(server_->callback_address, "tcp ");
  EXPECT_EQ(nfs_->called_at(), "");
  EXPECT_FALSE(nfs_->may_be_delegated());
}

TEST_F(Minor0Delegations, WhoWantsNoneNamesNoPlace) {
  called_at_.reset();
  remake();
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(server_->callback_address, "tcp ");
  EXPECT_EQ(environment_->endpoints_made(), 0u);
}

TEST_F(Minor0Delegations, AnAddressOfOneLinkIsNotTold) {
  environment_->local = SocketAddress::parse("fe80::1%lo", 999).value();
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(server_->callback_address, "tcp ");
}

TEST_F(Minor0Delegations, NoneIsAskedForBeforeTheServerHasCalled) {
  ASSERT_EQ(begin(), 0);
  server_->grants = Given::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->times(OP_OPEN), 0u);
  EXPECT_TRUE(server_->probe());
  EXPECT_TRUE(nfs_->has_back_channel());
  EXPECT_EQ(open(), 0);
  EXPECT_NE(server_->times(OP_OPEN), 0u);
}

/// Whatever was in the way may be gone.
TEST_F(Minor0Delegations, AServerThatHasNotCalledIsToldThePlaceAgainNowAndThen) {
  environment_->no_listening["192.0.2.77"] = EADDRINUSE;
  ASSERT_EQ(begin(), 0);
  environment_->no_listening.clear();
  server_->seen.clear();
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->times(OP_SETCLIENTID), 0u) << "not so soon";
  server_->serve_for(std::chrono::minutes(5));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->times(OP_SETCLIENTID), 1u);
  EXPECT_EQ(server_->callback_address, "tcp 192.0.2.77.156.65");
  EXPECT_TRUE(server_->probe());
  server_->serve_for(std::chrono::minutes(6));
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->times(OP_SETCLIENTID), 1u) << "it has called";
}

TEST_F(Minor0Delegations, NoneIsAskedForWithoutAPlaceWhereTheFileIs) {
  begin_called();
  has_place_ = false;
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->seen, (std::vector<Ops>{{OP_PUTFH, OP_ACCESS, OP_GETATTR}}));
}

/// The first OPEN of an owner has to be confirmed, and no server delegates with that.
TEST_F(Minor0Delegations, IsAskedForByAnOpenThatIsClosed) {
  begin_called();
  server_->grants = Given::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(), 0);
  const Ops ask{OP_PUTFH, OP_OPEN, OP_GETFH, OP_ACCESS, OP_GETATTR};
  EXPECT_EQ(server_->seen,
            (std::vector<Ops>{ask, {OP_PUTFH, OP_OPEN_CONFIRM}, ask, {OP_PUTFH, OP_CLOSE}}));
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(server_->granted.size(), 1u);
  EXPECT_TRUE(server_->returned.empty());
  // The owner is known now.
  turn_to_another_file();
  server_->seen.clear();
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->seen, (std::vector<Ops>{ask, {OP_PUTFH, OP_CLOSE}}));
  EXPECT_EQ(nfs_->delegations_held(), 2u);
  EXPECT_EQ(server_->open_owners(), 1u);
}

TEST_F(Minor0Delegations, AnOpenWithoutOneIsClosedAsWell) {
  begin_called();
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(nfs_->delegations_held(), 0u);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0Delegations, DataGoesByIt) {
  begin_called();
  const std::uint64_t number = have();
  EXPECT_EQ(number_for(access_bits::kRead), number);
  EXPECT_EQ(number_for(access_bits::kModify), 0u);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(load_be64(server_->reads.back().stateid.other.data() + 4), number);
}

/// A READ with another stateid would be somebody else's to the server, who would recall it.
TEST_F(Minor0Delegations, OneToWriteIsGoodForReadingToo) {
  using namespace access_bits;
  begin_called();
  server_->grants = Given::OPEN_DELEGATE_WRITE;
  EXPECT_EQ(open(kModify), 0);
  EXPECT_EQ(server_->opens_seen.back().share_access, xdr::OPEN4_SHARE_ACCESS_BOTH);
  EXPECT_EQ(number_for(kRead), server_->granted.back());
  EXPECT_EQ(number_for(kModify), server_->granted.back());
}

TEST_F(Minor0Delegations, ARecallIsAnsweredAtOnceAndObeyed) {
  begin_called();
  const std::uint64_t number = have();
  EXPECT_EQ(server_->recall("f0", number).status, Stat::NFS4_OK);
  EXPECT_EQ(holder_.told, std::vector{file_});
  group_.spawn(nfs_->give_back(file_));
  server_->serve_all();
  EXPECT_EQ(server_->returned, std::vector{number});
  EXPECT_EQ(nfs_->callbacks_done(), 1u);
}

TEST_F(Minor0Delegations, WhoDoesNotKnowItsNumbersIsNotHeard) {
  begin_called();
  const std::uint64_t number = have();
  ++server_->callback_ident;
  const xdr::rpc_msg denied = server_->recall("f0", number).header;
  EXPECT_EQ(denied.rbody.stat, xdr::reply_stat::MSG_DENIED);
  --server_->callback_ident;
  ++server_->callback_program;
  EXPECT_FALSE(server_->probe());
  EXPECT_TRUE(holder_.told.empty());
  EXPECT_EQ(nfs_->delegations_held(), 1u);
}

TEST_F(Minor0Delegations, OneThatIsUnderWayIsRecalledLater) {
  begin_called();
  (void)have();
  turn_to_another_file();
  OpContext op;
  op.place = &place_;
  Got got;
  start_open(&got, op);
  server_->run_unanswered();
  EXPECT_EQ(server_->recall("f7", server_->granted.back()).status, Stat::NFS4ERR_DELAY);
  server_->serve_for(seconds(2));
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
}

TEST_F(Minor0Delegations, AReadOneGivesWayToAChange) {
  begin_called();
  const std::uint64_t number = have();
  group_.spawn(nfs_->give_way(file_));
  server_->serve_all();
  EXPECT_EQ(server_->returned, std::vector{number});
  EXPECT_TRUE(holder_.told.empty());
  (void)have(Given::OPEN_DELEGATE_WRITE);
  group_.spawn(nfs_->give_way(file_));
  server_->serve_all();
  EXPECT_EQ(server_->returned.size(), 1u) << "what is written goes by that";
}

TEST_F(Minor0Delegations, AnotherFileOfThatNameIsClosedAndItsDelegationGivenBack) {
  begin_called();
  server_->names["f"] = "f9";
  server_->grants = Given::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(nfs_->delegations_held(), 0u);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(server_->returned, server_->granted);
}

TEST_F(Minor0Delegations, ANameThatIsGoneCostsOneRoundTrip) {
  begin_called();
  server_->names.clear();
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->times(OP_OPEN), 1u);
  EXPECT_EQ(server_->times(OP_ACCESS), 1u);
}

TEST_F(Minor0Delegations, AnInterruptedOpenIsClosedAllTheSame) {
  begin_called();
  server_->grants = Given::OPEN_DELEGATE_READ;
  CancelToken cancel;
  OpContext op;
  op.place = &place_;
  op.cancel = &cancel;
  Got got;
  start_open(&got, op);
  cancel.cancel();
  server_->serve_for(seconds(2));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->error().sys, EINTR);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(nfs_->delegations_held(), server_->granted.size());
}

TEST_F(SoftMinor0Delegations, WhatWasNotAnsweredIsClosedWhenTheServerIsBack) {
  begin_called();
  server_->grants = Given::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(), 0);
  turn_to_another_file();
  OpContext op;
  op.place = &place_;
  Got got;
  start_open(&got, op);
  server_->run_unanswered();
  server_->silent_until = environment_->now() + seconds(20);
  server_->serve_for(seconds(12));
  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE(got->ok());
  EXPECT_EQ(server_->opens(), 1u);
  server_->serve_for(seconds(60));
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0Delegations, WhatItsFirstRunLeftIsClosedWhenTheSecondWasRefused) {
  begin_called();
  OpContext op;
  op.place = &place_;
  Got got;
  start_open(&got, op);
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->errors[OP_PUTFH] = {Stat::NFS4ERR_ACCESS};
  server_->serve_for(seconds(60));
  EXPECT_TRUE(got.has_value());
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0Delegations, AnOpenIsNotRepeatedForWhatComesBehindIt) {
  begin_called();
  EXPECT_EQ(open(), 0);  // confirms the owner
  server_->seen.clear();
  server_->errors[OP_ACCESS] = {Stat::NFS4ERR_DELAY};
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(server_->times(OP_OPEN), 1u);
  EXPECT_EQ(server_->opens(), 0u);
}

/// RFC 7530, 10.2.1: what the server cannot recall is no good.
TEST_F(Minor0Delegations, AServerThatCannotCallAnyMoreIsToldThePlaceAgain) {
  begin_called();
  const std::uint64_t number = have();
  server_->renew_errors = {Stat::NFS4ERR_CB_PATH_DOWN};
  server_->serve_for(seconds(60));
  EXPECT_EQ(holder_.told, std::vector{file_});
  EXPECT_EQ(server_->times(OP_SETCLIENTID), 1u);
  EXPECT_EQ(server_->times(OP_SETCLIENTID_CONFIRM), 1u);
  group_.spawn(nfs_->give_back(file_));
  server_->serve_all();
  EXPECT_EQ(server_->returned, std::vector{number});
  EXPECT_TRUE(nfs_->may_be_delegated()) << "it is for the server to say whether it can call again";
  (void)have();
}

/// RFC 7530 has no other way to ask, and a server that was stopped has no answer: who wants to
/// change the file is not kept waiting for it without end.
TEST_F(SoftMinor0Delegations, GivingWayIsGivenUpOnceAndGoesOnByItself) {
  begin_called();
  const std::uint64_t number = have();
  server_->silent_until = environment_->now() + seconds(20);
  bool over = false;
  struct Way {
    static Task<void> give(Nfs4Operations& nfs, FileHandle file, bool* done) {
      co_await nfs.give_way(file);
      *done = true;
    }
  };
  group_.spawn(Way::give(*nfs_, file_, &over));
  server_->serve_for(seconds(6));
  EXPECT_TRUE(over);
  EXPECT_TRUE(server_->returned.empty());
  server_->serve_for(seconds(60));
  EXPECT_EQ(server_->returned.back(), number);
  EXPECT_EQ(nfs_->delegations_held(), 0u);
}

TEST_F(Minor0Delegations, ACallWhileTheClientIdIsMadeCounts) {
  begin_called();
  server_->restart();
  environment_->transport()->lose();
  server_->instead_of_answering = [this] {
    (void)server_->probe();
    return false;
  };
  (void)open();
  server_->serve_for(seconds(60));
  EXPECT_TRUE(nfs_->may_be_delegated());
}

TEST_F(Minor0Delegations, ARestartOfTheServerEndsThem) {
  begin_called();
  (void)have();
  server_->restart();
  environment_->transport()->lose();
  server_->serve_for(seconds(60));
  EXPECT_EQ(holder_.told, std::vector{file_});
  EXPECT_EQ(nfs_->delegations_held(), 0u);
  EXPECT_EQ(environment_->endpoints_made(), 1u) << "it is called where it was";
  (void)have();
}

TEST_F(Minor0Delegations, AnotherAddressOfOursIsToldWithTheNextClientId) {
  begin_called();
  environment_->local = SocketAddress::parse("192.0.2.78", 999).value();
  server_->restart();
  environment_->transport()->lose();
  (void)open();
  server_->serve_for(seconds(60));
  EXPECT_EQ(server_->callback_address, "tcp 192.0.2.78.156.66");
  EXPECT_FALSE(nfs_->may_be_delegated()) << "not called there";
}

TEST_F(Minor0Delegations, TheirAttributesAreSaid) {
  begin_called();
  (void)have(Given::OPEN_DELEGATE_WRITE);
  const auto ask = [&](std::string_view handle) {
    return server_->call_back(xdr::CB_COMPOUND, 1, [&](xdr::Encoder& out) {
      out.u32(static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_GETATTR));
      const auto wanted = xdr::bitmap4::of({xdr::fattr4_number::FATTR4_SIZE});
      xdr::encode(out, xdr::CB_GETATTR4args{{as_bytes(handle)}, wanted});
    });
  };
  EXPECT_EQ(ask("f0").status, Stat::NFS4_OK);
  EXPECT_EQ(ask("f1").status, Stat::NFS4ERR_BADHANDLE);
}

TEST_F(Minor0Delegations, OperationsOfLaterVersionsAreIllegal) {
  begin_called();
  const auto ask = [&](xdr::nfs_cb_opnum4 number) {
    return server_->call_back(xdr::CB_COMPOUND, 1, [&](xdr::Encoder& out) {
      out.u32(static_cast<std::uint32_t>(number));
    });
  };
  for (const auto number :
       {xdr::nfs_cb_opnum4::OP_CB_SEQUENCE, xdr::nfs_cb_opnum4::OP_CB_RECALL_ANY,
        xdr::nfs_cb_opnum4::OP_CB_NOTIFY_LOCK, xdr::nfs_cb_opnum4{4711}}) {
    EXPECT_EQ(ask(number).status, Stat::NFS4ERR_OP_ILLEGAL);
  }
}

TEST_F(Minor0Delegations, AtTheEndAllGoBackAndNobodyListens) {
  begin_called();
  const std::uint64_t number = have();
  struct End {
    static Task<void> run(Nfs4Operations& nfs, OpContext& op) { co_await nfs.end(op); }
  };
  group_.spawn(End::run(*nfs_, op_));
  server_->serve_all();
  EXPECT_EQ(server_->returned, std::vector{number});
  nfs_->abort();
  EXPECT_FALSE(server_->can_call());
}

}  // namespace
}  // namespace nfsrdma
