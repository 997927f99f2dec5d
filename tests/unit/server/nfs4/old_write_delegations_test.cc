// SPDX-License-Identifier: Apache-2.0
// Write delegations of minor version 0, whose operations mostly do not say whose they are: by which
// connection they come tells whether the caller is the holder (state/speakers.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/old_client.h"

namespace nfsrdma::test {
namespace {

using xdr::open_delegation_type4;

class OldWriteDelegationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    make("file", "as it was");
    make("second", "");
    file_ = harness_.lookup(harness_.root(), "file");
    for (StubConnection* connection : {&own_, &further_})
      harness_.state().connection_opened(*connection);
    come_by(own_);
    introduce(holder_, service_);
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

  void introduce(OldClient& client, CallbackService& service, std::uint8_t life = 0) {
    client.introduce("127.0.0.1", service.port(), life);
    ASSERT_EQ(client.line(), OldClient::Line::kUp);
  }
  void take() {
    ASSERT_NO_FATAL_FAILURE(holder_.confirm_owner("second"));
    const Reply4 reply = holder_.open("file", xdr::OPEN4_SHARE_ACCESS_BOTH);
    ASSERT_EQ(reply.status, NFS4_OK);
    const auto& result = reply.get<OP_OPEN>().resok4;
    ASSERT_EQ(result.delegation.delegation_type, open_delegation_type4::OPEN_DELEGATE_WRITE);
    open_ = result.stateid;
    delegation_ = result.delegation.write.stateid;
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
  OldClient holder_{harness_, "holder"}, neighbour_{harness_, "neighbour"};
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
  introduce(neighbour_, neighbours_);
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
  introduce(neighbour_, neighbours_);
  EXPECT_EQ(run(Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status,
            NFS4ERR_DELAY);
  EXPECT_FALSE(service_.next().empty());
}

/// Its connections were those of its life before.
TEST_F(OldWriteDelegationsTest, AClientThatStartsAnewKeepsItsConnection) {
  const std::uint64_t before = holder_.id();
  introduce(holder_, service_, 1);
  ASSERT_NE(holder_.id(), before);
  ASSERT_NO_FATAL_FAILURE(take());
  EXPECT_EQ(look(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OldWriteDelegationsTest, ItIsReclaimedFromAServerThatRestarted) {
  ASSERT_NO_FATAL_FAILURE(take());
  harness_.restart();
  harness_.state().connection_opened(own_);
  introduce(holder_, service_);
  const Reply4 reply = holder_.reclaim(file_, xdr::OPEN4_SHARE_ACCESS_BOTH,
                                       open_delegation_type4::OPEN_DELEGATE_WRITE);
  ASSERT_EQ(reply.status, NFS4_OK);
  const auto& given = reply.get<OP_OPEN>().resok4.delegation;
  ASSERT_EQ(given.delegation_type, open_delegation_type4::OPEN_DELEGATE_WRITE);
  delegation_ = given.write.stateid;
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

}  // namespace
}  // namespace nfsrdma::test
