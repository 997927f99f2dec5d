// SPDX-License-Identifier: Apache-2.0
// Callbacks: their bytes, and what replies are taken for. (tests/property/oracle compares whole
// messages with libtirpc's.)
#include "server/nfs4/callback.h"

#include <gtest/gtest.h>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::nfs4 {
namespace {

using Kind = CallbackReply::Kind;
using testing::words;
using xdr::nfs_cb_opnum4;
using xdr::nfsstat4;

class Callback : public ::testing::Test {
 protected:
  Callback() {
    target_.program = 0x40000000;
    target_.minor_version = 1;
    for (std::size_t i = 0; i < session_.size(); ++i)
      session_[i] = static_cast<std::byte>(i);
    sequence_ = callback_sequence(session_, {2, 7, 3});
  }
  static std::vector<std::byte> join(std::initializer_list<std::vector<std::byte>> parts) {
    std::vector<std::byte> out;
    for (const auto& part : parts)
      out.insert(out.end(), part.begin(), part.end());
    return out;
  }
  std::vector<std::byte> session() const { return {session_.begin(), session_.end()}; }
  /// An accepted reply with results to come.
  static std::vector<std::byte> accepted() { return words({5, 1, 0, 0, 0, 0}); }
  /// CB_SEQUENCE's good result in words.
  std::vector<std::byte> sequence_result(std::uint32_t sequence = 7, std::uint32_t slot = 2) const {
    return join({words({11, 0}), session(), words({sequence, slot, 3, 9})});
  }
  std::vector<std::byte> good_recall_reply(std::uint32_t status = 0) const {
    return join({accepted(), words({status, 0, 2}), sequence_result(), words({4, status})});
  }
  CallbackReply read(ByteSpan reply, nfs_cb_opnum4 operation = nfs_cb_opnum4::OP_CB_RECALL) const {
    return read_callback_reply(reply, &sequence_, operation);
  }

  CallbackTarget target_;
  xdr::sessionid4 session_{};
  xdr::CB_SEQUENCE4args sequence_;
};

// The call of wire.md 7.4 that a Linux client answers, without its transport header.
TEST_F(Callback, NullIsAHeaderAlone) {
  std::byte room[64];
  const ByteSpan message = encode_cb_null(room, target_);
  EXPECT_EQ(std::vector<std::byte>(message.begin(), message.end()),
            words({0, 0, 2, 0x40000000, 1, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(encode_cb_null(MutableByteSpan(room).first(39), target_).empty());
}

TEST_F(Callback, ARecallIsBehindItsSequence) {
  std::byte room[512];
  xdr::CB_RECALL4args recall;
  recall.stateid.seqid = 3;
  recall.stateid.other.fill(std::byte{0xab});
  const auto handle = words({0x01020304, 0x05060708});
  recall.fh.data = handle;
  const ByteSpan message = encode_callback(room, target_, &sequence_, recall);
  EXPECT_EQ(std::vector<std::byte>(message.begin(), message.end()),
            join({words({0, 0, 2, 0x40000000, 1, 1, 0, 0, 0, 0}), words({0, 1, 0, 2}), words({11}),
                  session(), words({7, 2, 3, 0, 0}), words({4, 3}),
                  words({0xabababab, 0xabababab, 0xabababab}), words({0, 8}), handle}));
  for (std::size_t size = 0; size < message.size(); ++size) {
    EXPECT_TRUE(
        encode_callback(MutableByteSpan(room).first(size), target_, &sequence_, recall).empty());
  }
}

TEST_F(Callback, MinorVersion0HasAnIdentAndNoSequence) {
  target_.minor_version = 0;
  target_.ident = 77;
  std::byte room[512];
  const ByteSpan message = encode_callback(room, target_, nullptr, xdr::CB_RECALL4args{});
  EXPECT_EQ(std::vector<std::byte>(message.begin(), message.end()),
            join({words({0, 0, 2, 0x40000000, 1, 1, 0, 0, 0, 0}), words({0, 0, 77, 1}),
                  words({4, 0, 0, 0, 0, 0, 0})}));
}

TEST_F(Callback, TheSystemsCredential) {
  use_sys_credential(&target_, "srv");
  EXPECT_EQ(static_cast<std::uint32_t>(target_.flavor), 1u);
  EXPECT_EQ(target_.credential, words({0, 3, 0x73727600, 0, 0, 0}));
}

TEST_F(Callback, TheClientsOfferOfCredentialsIsFollowed) {
  const auto choose = [this](std::initializer_list<xdr::callback_sec_parms4> offers) {
    std::vector<std::byte> room(4096);
    xdr::Encoder scratch(room);
    const auto offered = xdr::encode_array(
        scratch, std::span<const xdr::callback_sec_parms4>(offers.begin(), offers.size()));
    return choose_callback_security(offered, &target_);
  };
  xdr::callback_sec_parms4 none, sys, gss;
  none.cb_secflavor = xdr::cb_secflavor4::AUTH_NONE;
  sys.cb_secflavor = xdr::cb_secflavor4::AUTH_SYS;
  sys.cbsp_sys_cred.machinename = "cl";
  sys.cbsp_sys_cred.uid = 42;
  gss.cb_secflavor = xdr::cb_secflavor4::RPCSEC_GSS;
  EXPECT_FALSE(choose({}));
  EXPECT_FALSE(choose({gss}));
  EXPECT_TRUE(choose({none, gss, sys}));
  EXPECT_EQ(target_.flavor, xdr::auth_flavor::AUTH_SYS);
  EXPECT_EQ(target_.credential, words({0, 2, 0x636c0000, 42, 0, 0}));
  EXPECT_FALSE(choose({gss}));
  EXPECT_EQ(target_.flavor, xdr::auth_flavor::AUTH_SYS);  // unchanged
  EXPECT_TRUE(choose({gss, none}));
  EXPECT_EQ(target_.flavor, xdr::auth_flavor::AUTH_NONE);
  EXPECT_TRUE(target_.credential.empty());
}

TEST_F(Callback, ARecallThatIsTaken) {
  const CallbackReply reply = read(good_recall_reply());
  EXPECT_EQ(reply.kind, Kind::kDone);
  EXPECT_EQ(reply.status, nfsstat4::NFS4_OK);
  EXPECT_TRUE(reply.sequence_done);
  EXPECT_EQ(reply.target_highest_slot, 9u);
}

TEST_F(Callback, ARecallThatIsRefused) {
  const CallbackReply reply = read(good_recall_reply(10001));  // NFS4ERR_BADHANDLE
  EXPECT_EQ(reply.kind, Kind::kDone);
  EXPECT_EQ(reply.status, nfsstat4::NFS4ERR_BADHANDLE);
  EXPECT_TRUE(reply.sequence_done);
}

TEST_F(Callback, ARefusedSequence) {
  const CallbackReply reply = read(join({accepted(), words({10052, 0, 1}), words({11, 10052})}));
  EXPECT_EQ(reply.kind, Kind::kSequence);
  EXPECT_EQ(reply.status, nfsstat4::NFS4ERR_BADSESSION);
  EXPECT_FALSE(reply.sequence_done);
  EXPECT_EQ(sequence_refusal(reply.status), CallbackSlots::Refusal::kOther);
  EXPECT_EQ(sequence_refusal(nfsstat4::NFS4ERR_DELAY), CallbackSlots::Refusal::kDelay);
  EXPECT_EQ(sequence_refusal(nfsstat4::NFS4ERR_SEQ_MISORDERED),
            CallbackSlots::Refusal::kMisordered);
  EXPECT_EQ(sequence_refusal(nfsstat4::NFS4ERR_BADSLOT), CallbackSlots::Refusal::kBadSlot);
}

TEST_F(Callback, ARefusedCompound) {
  const CallbackReply reply = read(join({accepted(), words({10021, 0, 0})}));
  EXPECT_EQ(reply.kind, Kind::kCompound);
  EXPECT_EQ(reply.status, nfsstat4::NFS4ERR_MINOR_VERS_MISMATCH);
}

TEST_F(Callback, AnOperationThatTheClientDoesNotKnow) {
  const CallbackReply reply =
      read(join({accepted(), words({10044, 0, 2}), sequence_result(), words({10044, 10044})}),
           nfs_cb_opnum4::OP_CB_NOTIFY_LOCK);
  EXPECT_EQ(reply.kind, Kind::kDone);
  EXPECT_EQ(reply.status, nfsstat4::NFS4ERR_OP_ILLEGAL);
}

TEST_F(Callback, AttributesOfGetattr) {
  const auto message = join(
      {accepted(), words({0, 0, 2}), sequence_result(), words({3, 0, 1, 0x18, 16, 0, 5, 0, 4096})});
  const CallbackReply reply = read(message, nfs_cb_opnum4::OP_CB_GETATTR);
  ASSERT_EQ(reply.kind, Kind::kDone);
  EXPECT_EQ(testing::encode_flat(reply.attributes), words({1, 0x18, 16, 0, 5, 0, 4096}));
}

TEST_F(Callback, WhatRpcRefuses) {
  EXPECT_EQ(read(words({5, 1, 1, 1, 1})).kind, Kind::kDenied);  // AUTH_ERROR, AUTH_BADCRED
  EXPECT_EQ(read(words({5, 1, 0, 0, 0, 1})).kind, Kind::kNoCallback);
  EXPECT_EQ(read(words({5, 1, 0, 0, 0, 2, 1, 1})).kind, Kind::kNoCallback);
  EXPECT_EQ(read(words({5, 1, 0, 0, 0, 3})).kind, Kind::kNoCallback);
  EXPECT_EQ(read(words({5, 1, 0, 0, 0, 4})).kind, Kind::kFailed);
  EXPECT_EQ(read(words({5, 1, 0, 0, 0, 5})).kind, Kind::kFailed);
  EXPECT_EQ(read_cb_null_reply(words({5, 1, 0, 0, 0, 1})).kind, Kind::kNoCallback);
}

TEST_F(Callback, NullReplies) {
  EXPECT_EQ(read_cb_null_reply(accepted()).kind, Kind::kDone);
  EXPECT_EQ(read_cb_null_reply(words({5, 1, 0, 0, 0, 0, 0})).kind, Kind::kUnreadable);
  EXPECT_EQ(read_cb_null_reply(words({5, 0, 0, 0, 0, 0})).kind, Kind::kUnreadable);
  EXPECT_EQ(read_cb_null_reply({}).kind, Kind::kUnreadable);
}

TEST_F(Callback, CutAndExtendedRepliesAreUnreadable) {
  auto good = good_recall_reply();
  for (std::size_t size = 0; size < good.size(); ++size) {
    const CallbackReply reply = read(ByteSpan(good).first(size));
    EXPECT_EQ(reply.kind, Kind::kUnreadable) << size;
    EXPECT_EQ(reply.sequence_done, size >= good.size() - 8) << size;
  }
  good.resize(good.size() + 4);
  EXPECT_EQ(read(good).kind, Kind::kUnreadable);
}

TEST_F(Callback, AnswersToOtherCallbacksAreUnreadable) {
  const auto with = [this](std::vector<std::byte> sequence) {
    return read(join({accepted(), words({0, 0, 2}), std::move(sequence), words({4, 0})}));
  };
  EXPECT_EQ(with(sequence_result()).kind, Kind::kDone);
  for (const CallbackReply& reply :
       {with(sequence_result(8)), with(sequence_result(7, 1)),
        with(words({11, 0, 1, 2, 3, 4, 7, 2, 3, 9})), with(words({12, 0}))}) {
    EXPECT_EQ(reply.kind, Kind::kUnreadable);
    EXPECT_FALSE(reply.sequence_done);
  }
  // Another operation, too many of them, and statuses that contradict each other.
  EXPECT_EQ(read(join({accepted(), words({0, 0, 2}), sequence_result(), words({13, 0})})).kind,
            Kind::kUnreadable);
  EXPECT_EQ(read(join({accepted(), words({0, 0, 3}), sequence_result(), words({4, 0, 4, 0})})).kind,
            Kind::kUnreadable);
  EXPECT_EQ(read(join({accepted(), words({10001, 0, 2}), sequence_result(), words({4, 0})})).kind,
            Kind::kUnreadable);
  EXPECT_EQ(read(join({accepted(), words({0, 0, 0})})).kind, Kind::kUnreadable);
  EXPECT_EQ(read(join({accepted(), words({0, 0, 1}), sequence_result()})).kind, Kind::kUnreadable);
}

TEST_F(Callback, RepliesOfMinorVersion0) {
  const auto reply = read_callback_reply(join({accepted(), words({0, 0, 1, 4, 0})}), nullptr,
                                         nfs_cb_opnum4::OP_CB_RECALL);
  EXPECT_EQ(reply.kind, Kind::kDone);
  EXPECT_FALSE(reply.sequence_done);
}

}  // namespace
}  // namespace nfsrdma::nfs4
