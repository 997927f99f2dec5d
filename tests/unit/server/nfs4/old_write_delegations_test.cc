// SPDX-License-Identifier: Apache-2.0
// Write delegations of minor version 0, whose operations mostly do not say whose they are: by which
// connection they come tells whether the caller is the holder (state/speakers.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/support/callback_service.h"
#include "tests/support/nfs4_harness.h"
#include "xdr/nfs4_callback.h"
#include "xdr/universal_address.h"

namespace nfsrdma::test {
namespace {

using nfs4::CallbackLines;
using xdr::open_delegation_type4;

class OldWriteDelegationsTest : public ::testing::Test {
 protected:
  struct OldClient {
    std::string name;
    CallbackService& service;
    std::uint64_t id = 0;
    std::uint32_t owner_seqid = 0;
  };

  void SetUp() override {
    make("file", "as it was");
    make("second", "");
    file_ = harness_.lookup(harness_.root(), "file");
    for (StubConnection* connection : {&own_, &further_})
      harness_.state().connection_opened(*connection);
    come_by(own_);
    introduce(holder_);
  }
  static HarnessOptions on_loopback() {
    HarnessOptions options;
    options.peer = "127.0.0.1";
    return options;
  }
  static SocketAddress loopback() { return SocketAddress::parse("127.0.0.1", 700).value(); }
  void make(const std::string& name, std::string_view content) {
    const UniqueFd fd(::open(harness_.path(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::write(fd.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
  }
  void come_by(StubConnection& connection) { harness_.over = &connection; }
  Reply4 run(const Operations4& operations) { return harness_.run_bare(operations, 0); }

  /// SETCLIENTID and its confirmation, until it is known that the client can be called.
  void introduce(OldClient& client, std::uint8_t life = 0) {
    const std::string address = xdr::format_universal_address("127.0.0.1", client.service.port());
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(client.name);
    who.client.verifier.fill(std::byte{life});
    who.callback.cb_program = 0x40000001;
    who.callback.cb_location = {"tcp", address};
    who.callback_ident = 77;
    const auto known = run(Operations4().add<OP_SETCLIENTID>(who)).get<OP_SETCLIENTID>().resok4;
    client.id = known.clientid;
    client.owner_seqid = 0;
    ASSERT_EQ(
        run(Operations4().add<OP_SETCLIENTID_CONFIRM>({known.clientid, known.setclientid_confirm}))
            .status,
        NFS4_OK);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!may_be_called(client.id) && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    ASSERT_TRUE(may_be_called(client.id));
  }
  bool may_be_called(std::uint64_t client) {
    std::lock_guard lock(harness_.state().mutex);
    return harness_.state().caller.lines().state(client) == CallbackLines::State::kUp;
  }
  xdr::OPEN4args open_args(OldClient& client, std::uint32_t access) {
    xdr::OPEN4args args;
    args.seqid = ++client.owner_seqid;
    args.share_access = access;
    args.owner = {client.id, as_bytes(std::string_view("owner"))};
    return args;
  }
  Reply4 open(OldClient& client, std::string_view name, std::uint32_t access) {
    xdr::OPEN4args args = open_args(client, access);
    args.claim.file = name;
    return run(Operations4().putfh(harness_.root()).add<OP_OPEN>(args));
  }
  /// An owner that is not known is promised nothing.
  void confirm_owner(OldClient& client) {
    const Reply4 first = open(client, "second", xdr::OPEN4_SHARE_ACCESS_READ);
    ASSERT_EQ(first.status, NFS4_OK);
    ASSERT_EQ(
        run(Operations4()
                .putfh(harness_.lookup(harness_.root(), "second"))
                .add<OP_OPEN_CONFIRM>({first.get<OP_OPEN>().resok4.stateid, ++client.owner_seqid}))
            .status,
        NFS4_OK);
  }
  open_delegation_type4 given_to(OldClient& client) {
    const Reply4 reply = open(client, "file", xdr::OPEN4_SHARE_ACCESS_BOTH);
    EXPECT_EQ(reply.status, NFS4_OK);
    const auto& result = reply.get<OP_OPEN>().resok4;
    open_ = result.stateid;
    delegation_ = result.delegation.write.stateid;
    return result.delegation.delegation_type;
  }
  void take() {
    ASSERT_NO_FATAL_FAILURE(confirm_owner(holder_));
    ASSERT_EQ(given_to(holder_), open_delegation_type4::OPEN_DELEGATE_WRITE);
  }
  static Operations4& with_look(Operations4& operations) {
    using enum xdr::fattr4_number;
    return operations.add<OP_GETATTR>({xdr::bitmap4::of({FATTR4_CHANGE, FATTR4_SIZE})});
  }
  /// A GETATTR in minor version 0.
  nfsstat4 look() {
    Operations4 operations;
    return run(with_look(operations.putfh(file_))).status;
  }
  /// As Linux's client gives back: attributes first.
  nfsstat4 give_back() {
    Operations4 operations;
    return run(with_look(operations.putfh(file_)).add<OP_DELEGRETURN>({delegation_})).status;
  }
  /// Nobody was called, and nobody is to be called.
  bool is_quiet() {
    harness_.connection().loop().turn(std::chrono::milliseconds(20));
    return service_.waiting() == 0;
  }

  CallbackService service_, neighbours_;
  StubConnection own_{loopback()}, further_{loopback()};
  Nfs4Harness harness_{on_loopback()};
  FileHandle file_;
  OldClient holder_{"holder", service_}, neighbour_{"neighbour", neighbours_};
  xdr::stateid4 delegation_, open_;
};

TEST_F(OldWriteDelegationsTest, TheHolderUsesItAndIsAskedNothing) {
  ASSERT_NO_FATAL_FAILURE(take());
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_WRITE>(
                    {delegation_, 0, xdr::stable_how4::UNSTABLE4, {as_bytes("it")}}))
                .status,
            NFS4_OK);
  EXPECT_EQ(look(), NFS4_OK);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OldWriteDelegationsTest, OthersAreToldWhatTheHolderSays) {
  ASSERT_NO_FATAL_FAILURE(take());
  service_.say(UINT64_MAX >> 1, 4711);
  harness_.over = nullptr;
  using enum xdr::fattr4_number;
  Reply4 reply;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    reply = harness_.on<OP_GETATTR>(file_, {xdr::bitmap4::of({FATTR4_SIZE})});
  } while (reply.status == NFS4ERR_DELAY && std::chrono::steady_clock::now() < end);
  ASSERT_EQ(reply.status, NFS4_OK);
  xdr::FileAttributes4 attributes;
  const auto result = reply.get<OP_GETATTR>();
  ASSERT_EQ(xdr::decode_attributes(result.resok4.obj_attributes, attributes).outcome,
            xdr::AttributeDecoding::kOk);
  EXPECT_EQ(attributes.size, 4711u);
  EXPECT_FALSE(service_.next().empty());
}

TEST_F(OldWriteDelegationsTest, OthersGetTheFileWhenItIsGivenBack) {
  ASSERT_NO_FATAL_FAILURE(take());
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
  args.owner = {harness_.session.client, as_bytes(std::string_view("owner"))};
  args.claim.file = "file";
  const auto open_elsewhere = [&] {
    harness_.over = nullptr;
    return harness_.run(Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status;
  };
  EXPECT_EQ(open_elsewhere(), NFS4ERR_DELAY);
  const std::vector<std::byte> arguments = service_.next();
  xdr::Decoder in(arguments);
  xdr::CB_RECALL4args recall;
  ASSERT_TRUE(xdr::decode(in, recall));
  EXPECT_EQ(recall.stateid.other, delegation_.other);
  come_by(own_);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(open_elsewhere(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OldWriteDelegationsTest, WhatTheHolderRemovesIsNotAskedFor) {
  ASSERT_NO_FATAL_FAILURE(take());
  EXPECT_EQ(run(Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status, NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

/// nconnect: nothing has been said over the second one. (A stateid is said here.)
TEST_F(OldWriteDelegationsTest, AConnectionIsItsWhoNamesItselfThere) {
  ASSERT_NO_FATAL_FAILURE(take());
  service_.say(1, 9);
  come_by(further_);
  (void)look();
  EXPECT_FALSE(service_.next().empty()) << "it may be anybody";
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_READ>({open_, 0, 9})).status, NFS4_OK);
  EXPECT_EQ(look(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

/// As on a connection that was just made; the holder would say that it knows of no delegation.
TEST_F(OldWriteDelegationsTest, WhoGivesBackIsNotAskedWhereverItComesFrom) {
  ASSERT_NO_FATAL_FAILURE(take());
  come_by(further_);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OldWriteDelegationsTest, WhoGivesBackSomethingElseIs) {
  ASSERT_NO_FATAL_FAILURE(take());
  service_.say(1, 9);
  delegation_.other[11] ^= std::byte{1};
  come_by(further_);
  (void)give_back();
  EXPECT_FALSE(service_.next().empty());
}

TEST_F(OldWriteDelegationsTest, OverAConnectionThatSeveralUseNobodyIsTheHolder) {
  ASSERT_NO_FATAL_FAILURE(take());
  service_.say(1, 9);
  introduce(neighbour_);
  (void)look();
  EXPECT_FALSE(service_.next().empty());
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

/// Also from the holder's own address, where nothing is known of them: other programs there, or
/// hosts behind an address translator, of which the server has not heard since it started.
TEST_F(OldWriteDelegationsTest, StrangersChangeNothingBehindTheHoldersBack) {
  ASSERT_NO_FATAL_FAILURE(take());
  come_by(further_);
  EXPECT_EQ(run(Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status,
            NFS4ERR_DELAY);
  EXPECT_FALSE(service_.next().empty());
  come_by(own_);
  EXPECT_EQ(give_back(), NFS4_OK);
  come_by(further_);
  EXPECT_EQ(run(Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status, NFS4_OK);
}

TEST_F(OldWriteDelegationsTest, NorDoNeighbours) {
  ASSERT_NO_FATAL_FAILURE(take());
  come_by(further_);
  introduce(neighbour_);
  EXPECT_EQ(run(Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status,
            NFS4ERR_DELAY);
  EXPECT_FALSE(service_.next().empty());
}

/// Its connections were those of its life before.
TEST_F(OldWriteDelegationsTest, AClientThatStartsAnewKeepsItsConnection) {
  const std::uint64_t before = holder_.id;
  introduce(holder_, 1);
  ASSERT_NE(holder_.id, before);
  ASSERT_NO_FATAL_FAILURE(take());
  EXPECT_EQ(look(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OldWriteDelegationsTest, ItIsReclaimedFromAServerThatRestarted) {
  ASSERT_NO_FATAL_FAILURE(take());
  harness_.restart();
  harness_.state().connection_opened(own_);
  introduce(holder_);
  xdr::OPEN4args args = open_args(holder_, xdr::OPEN4_SHARE_ACCESS_BOTH);
  args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
  args.claim.delegate_type = open_delegation_type4::OPEN_DELEGATE_WRITE;
  const Reply4 reply = run(Operations4().putfh(file_).add<OP_OPEN>(args));
  ASSERT_EQ(reply.status, NFS4_OK);
  const auto& given = reply.get<OP_OPEN>().resok4.delegation;
  ASSERT_EQ(given.delegation_type, open_delegation_type4::OPEN_DELEGATE_WRITE);
  delegation_ = given.write.stateid;
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

}  // namespace
}  // namespace nfsrdma::test
