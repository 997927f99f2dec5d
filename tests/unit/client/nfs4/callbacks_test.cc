// SPDX-License-Identifier: Apache-2.0
// The server's calls to a client, bytes in and bytes out: what is done once, what is answered
// again, what is refused and how (RFC 8881, sections 2.10.6 and 20).
#include "client/nfs4/callbacks.h"

#include <gtest/gtest.h>

#include <functional>

#include "xdr/rpc.h"

namespace nfsrdma::nfs4 {
namespace {

using Op = xdr::nfs_cb_opnum4;
using Stat = xdr::nfsstat4;
using Accept = xdr::accept_stat;

struct Recorder final : CallbackHandler {
  void lock_may_be_free(const xdr::nfs_fh4& file) override {
    files.emplace_back(file.data.begin(), file.data.end());
  }
  void give_up_slots(std::uint32_t highest) override { highest_slots.push_back(highest); }
  Stat recall(const xdr::stateid4&, const xdr::nfs_fh4&) override {
    ++recalls;
    return recall_status;
  }
  std::optional<HeldAttributes> held_attributes(const xdr::nfs_fh4&) override { return {}; }
  void keep_delegations(std::uint32_t most) override { kept.push_back(most); }
  unsigned recalls = 0;
  Stat recall_status = Stat::NFS4ERR_BAD_STATEID;
  std::vector<std::uint32_t> kept;
  std::vector<std::vector<std::byte>> files;
  std::vector<std::uint32_t> highest_slots;
};

class CallbacksTest : public testing::Test {
 protected:
  CallbacksTest() {
    session_[0] = std::byte{7};
    callbacks_.begin_session(2, session_, 2);
  }
  using Writer = std::function<void(xdr::Encoder&)>;

  std::vector<std::byte> message(std::uint32_t operations, const Writer& body) {
    std::vector<std::byte> bytes(4096);
    xdr::Encoder out(bytes);
    xdr::rpc_msg header;
    header.xid = xid_;
    header.cbody.rpcvers = rpc_version_;
    header.cbody.prog = program_;
    header.cbody.vers = version_;
    header.cbody.proc = procedure_;
    if (rpc_version_ == xdr::kRpcVersion) {
      xdr::encode(out, header);
    } else {
      for (const std::uint32_t word : {xid_, 0u, rpc_version_})
        out.u32(word);
    }
    if (procedure_ == xdr::CB_COMPOUND) {
      xdr::encode(out, xdr::CB_COMPOUND4args{tag_, minor_, 0, operations});
      body(out);
    }
    bytes.resize(out.size());
    return bytes;
  }
  void sequence(xdr::Encoder& out, std::uint32_t slot, std::uint32_t number) {
    out.u32(static_cast<std::uint32_t>(Op::OP_CB_SEQUENCE));
    xdr::CB_SEQUENCE4args args;
    args.csa_sessionid = session_;
    args.csa_slotid = slot;
    args.csa_sequenceid = number;
    args.csa_highest_slotid = highest_;
    xdr::encode(out, args);
  }
  template <typename Args>
  static void put(xdr::Encoder& out, Op number, const Args& args) {
    out.u32(static_cast<std::uint32_t>(number));
    xdr::encode(out, args);
  }
  void notify(xdr::Encoder& out) {
    put(out, Op::OP_CB_NOTIFY_LOCK, xdr::CB_NOTIFY_LOCK4args{{file_}, {}});
  }

  /// The status of the CB_COMPOUND; its results are in results_.
  Stat ask(const std::vector<std::byte>& call) {
    room_.assign(kMaxReply, std::byte{0xee});
    reply_ = ByteSpan(room_).first(callbacks_.answer(call, room_));
    xdr::Decoder in(reply_);
    xdr::rpc_msg header;
    xdr::CB_COMPOUND4res head;
    EXPECT_TRUE(xdr::decode(in, header) && xdr::decode(in, head));
    EXPECT_EQ(header.xid, xid_);
    EXPECT_EQ(header.rbody.areply.stat, Accept::SUCCESS);
    tag_seen_ = head.tag;
    results_.clear();
    for (std::uint32_t i = 0; i < head.resarray_len; ++i) {
      const auto number = static_cast<Op>(in.u32());
      xdr::CB_SEQUENCE4res sequence;
      xdr::Nfs4Result<xdr::Void> plain;
      const bool first = number == Op::OP_CB_SEQUENCE;
      EXPECT_TRUE(first ? xdr::decode(in, sequence) : xdr::decode(in, plain));
      results_.emplace_back(number, first ? sequence.status : plain.status);
      if (first && sequence.status == Stat::NFS4_OK) {
        EXPECT_EQ(sequence.resok4.csr_sessionid, session_);
        EXPECT_EQ(sequence.resok4.csr_highest_slotid, 1u);
        EXPECT_EQ(sequence.resok4.csr_target_highest_slotid, 1u);
      }
    }
    EXPECT_EQ(in.remaining(), 0u);
    return head.status;
  }
  /// One operation behind a good CB_SEQUENCE.
  Stat ask_one(const Writer& operation) {
    const auto call = message(2, [&](xdr::Encoder& out) {
      sequence(out, 0, ++sequence_);
      operation(out);
    });
    const Stat status = ask(call);
    EXPECT_EQ(results_.size(), 2u);
    EXPECT_EQ(results_.front().second, Stat::NFS4_OK);
    EXPECT_EQ(results_.back().second, status);
    return status;
  }
  Accept accept_stat_of(const std::vector<std::byte>& call) {
    std::vector<std::byte> room(kMaxReply);
    room.resize(callbacks_.answer(call, room));
    xdr::Decoder in(room);
    xdr::rpc_msg header;
    EXPECT_TRUE(xdr::decode(in, header));
    EXPECT_EQ(header.rbody.stat, xdr::reply_stat::MSG_ACCEPTED);
    return header.rbody.areply.stat;
  }

  static constexpr std::size_t kMaxReply = 1024;
  Recorder recorder_;
  Callbacks callbacks_{recorder_};
  xdr::sessionid4 session_{};
  std::uint32_t xid_ = 99, rpc_version_ = 2, program_ = Callbacks::kProgram, version_ = 1;
  std::uint32_t procedure_ = xdr::CB_COMPOUND, minor_ = 2, highest_ = 0, sequence_ = 0;
  std::string tag_;
  std::string_view tag_seen_;
  std::vector<std::byte> file_ = std::vector<std::byte>(28, std::byte{3});
  std::vector<std::byte> room_;
  ByteSpan reply_;
  std::vector<std::pair<Op, Stat>> results_;
};

TEST_F(CallbacksTest, WhatIsAskedIsDoneOnce) {
  EXPECT_EQ(ask_one([&](xdr::Encoder& out) { notify(out); }), Stat::NFS4_OK);
  EXPECT_EQ(recorder_.files, (std::vector<std::vector<std::byte>>{file_}));
  EXPECT_EQ(ask_one([&](xdr::Encoder& out) {
              put(out, Op::OP_CB_RECALL_SLOT, xdr::CB_RECALL_SLOT4args{5});
            }),
            Stat::NFS4_OK);
  EXPECT_EQ(recorder_.highest_slots, (std::vector<std::uint32_t>{5}));
  EXPECT_EQ(ask_one([&](xdr::Encoder& out) {
              put(out, Op::OP_CB_RECALL_ANY, xdr::CB_RECALL_ANY4args{});
            }),
            Stat::NFS4_OK);
  EXPECT_TRUE(recorder_.kept.empty()) << "that was about nothing";
  xdr::CB_RECALL_ANY4args some;
  some.craa_objects_to_keep = 9;
  some.craa_type_mask.set(xdr::RCA4_TYPE_MASK_WDATA_DLG);
  EXPECT_EQ(ask_one([&](xdr::Encoder& out) { put(out, Op::OP_CB_RECALL_ANY, some); }),
            Stat::NFS4_OK);
  EXPECT_EQ(recorder_.kept, (std::vector<std::uint32_t>{9}));
  EXPECT_EQ(callbacks_.done(), 4u);
  recorder_.recall_status = Stat::NFS4_OK;
  EXPECT_EQ(ask_one([&](xdr::Encoder& out) { put(out, Op::OP_CB_RECALL, xdr::CB_RECALL4args{}); }),
            Stat::NFS4_OK);
  EXPECT_EQ(recorder_.recalls, 1u);
  EXPECT_EQ(callbacks_.done(), 5u);
}

TEST_F(CallbacksTest, ARetryGetsTheReplyOfTheFirstTime) {
  auto call = [&](std::uint32_t slot, std::uint32_t number) {
    return message(2, [&](xdr::Encoder& out) {
      sequence(out, slot, number);
      notify(out);
    });
  };
  tag_ = "abc";
  highest_ = 1;
  EXPECT_EQ(ask(call(1, 1)), Stat::NFS4_OK);
  const std::vector<std::byte> first(reply_.begin() + 4, reply_.end());
  ++xid_;  // on another connection, say
  EXPECT_EQ(ask(call(1, 1)), Stat::NFS4_OK);
  EXPECT_EQ(std::vector<std::byte>(reply_.begin() + 4, reply_.end()), first);
  EXPECT_EQ(tag_seen_, "abc");
  EXPECT_EQ(recorder_.files.size(), 1u);
  EXPECT_EQ(ask(call(1, 3)), Stat::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(ask(call(1, 0)), Stat::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(ask(call(0, 0)), Stat::NFS4ERR_SEQ_MISORDERED);  // nothing has been asked there
  EXPECT_EQ(ask(call(1, 2)), Stat::NFS4_OK);
  EXPECT_EQ(ask(call(0, 1)), Stat::NFS4_OK);
  EXPECT_EQ(recorder_.files.size(), 3u);
}

TEST_F(CallbacksTest, WhatTheSessionDoesNotHaveIsRefused) {
  auto refused = [&](std::uint32_t slot, std::uint32_t number) {
    const Stat status = ask(message(2, [&](xdr::Encoder& out) {
      sequence(out, slot, number);
      notify(out);
    }));
    EXPECT_EQ(results_.size(), 1u);
    EXPECT_EQ(results_.front(), std::pair(Op::OP_CB_SEQUENCE, status));
    return status;
  };
  EXPECT_EQ(refused(2, 1), Stat::NFS4ERR_BADSLOT);
  EXPECT_EQ(refused(UINT32_MAX, 1), Stat::NFS4ERR_BADSLOT);
  highest_ = 2;
  EXPECT_EQ(refused(0, 1), Stat::NFS4ERR_BAD_HIGH_SLOT);
  highest_ = 0;
  session_[0] = std::byte{8};
  EXPECT_EQ(refused(0, 1), Stat::NFS4ERR_BADSESSION);
  EXPECT_TRUE(recorder_.files.empty());

  Callbacks fresh(recorder_);  // before there is a session
  std::vector<std::byte> room(kMaxReply);
  const auto call = message(1, [&](xdr::Encoder& out) { sequence(out, 0, 1); });
  room.resize(fresh.answer(call, room));
  ASSERT_GE(room.size(), 28u);
  EXPECT_EQ(load_be32(room.data() + 24),
            static_cast<std::uint32_t>(Stat::NFS4ERR_MINOR_VERS_MISMATCH));
}

TEST_F(CallbacksTest, EachOperationHasAnAnswer) {
  const std::pair<Op, Stat> expected[] = {
      {Op::OP_CB_GETATTR, Stat::NFS4ERR_BADHANDLE},
      {Op::OP_CB_RECALL, Stat::NFS4ERR_BAD_STATEID},
      {Op::OP_CB_LAYOUTRECALL, Stat::NFS4ERR_NOMATCHING_LAYOUT},
      {Op::OP_CB_NOTIFY, Stat::NFS4ERR_BADHANDLE},
      {Op::OP_CB_PUSH_DELEG, Stat::NFS4ERR_REJECT_DELEG},
      {Op::OP_CB_RECALLABLE_OBJ_AVAIL, Stat::NFS4ERR_NOTSUPP},
      {Op::OP_CB_WANTS_CANCELLED, Stat::NFS4ERR_NOTSUPP},
      {Op::OP_CB_NOTIFY_DEVICEID, Stat::NFS4ERR_NOTSUPP},
      {Op::OP_CB_OFFLOAD, Stat::NFS4ERR_BAD_STATEID},
      {Op::OP_CB_ILLEGAL, Stat::NFS4ERR_OP_ILLEGAL},
  };
  for (const auto& [number, status] : expected) {
    const Op op = number;
    EXPECT_EQ(ask_one([op](xdr::Encoder& out) {
                xdr::with_operation(
                    op, [&](auto row) { put(out, op, typename decltype(row)::Args{}); });
              }),
              status)
        << xdr::enum_name(number);
    EXPECT_EQ(results_.back().first, number);
  }
  EXPECT_EQ(ask_one([](xdr::Encoder& out) { out.u32(4711); }), Stat::NFS4ERR_OP_ILLEGAL);
  EXPECT_EQ(results_.back().first, Op::OP_CB_ILLEGAL);
  EXPECT_EQ(callbacks_.done(), 0u);
}

TEST_F(CallbacksTest, NothingIsDoneBehindAnError) {
  EXPECT_EQ(ask(message(3,
                        [&](xdr::Encoder& out) {
                          sequence(out, 0, 1);
                          put(out, Op::OP_CB_RECALL, xdr::CB_RECALL4args{});
                          notify(out);
                        })),
            Stat::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(results_.size(), 2u);
  EXPECT_TRUE(recorder_.files.empty());
}

TEST_F(CallbacksTest, CbSequenceStandsInFrontAndOnce) {
  EXPECT_EQ(ask(message(1, [&](xdr::Encoder& out) { notify(out); })),
            Stat::NFS4ERR_OP_NOT_IN_SESSION);
  EXPECT_EQ(ask(message(2,
                        [&](xdr::Encoder& out) {
                          sequence(out, 0, 1);
                          sequence(out, 1, 1);
                        })),
            Stat::NFS4ERR_SEQUENCE_POS);
  EXPECT_EQ(ask(message(0, [](xdr::Encoder&) {})), Stat::NFS4_OK);
  EXPECT_TRUE(recorder_.files.empty());
}

TEST_F(CallbacksTest, ShortAndLongCallsAreRefused) {
  EXPECT_EQ(
      ask(message(Callbacks::kOperations + 1, [&](xdr::Encoder& out) { sequence(out, 0, 1); })),
      Stat::NFS4ERR_TOO_MANY_OPS);
  EXPECT_EQ(ask(message(2, [&](xdr::Encoder& out) { sequence(out, 0, 1); })),
            Stat::NFS4ERR_OP_ILLEGAL);
  minor_ = 1;
  EXPECT_EQ(ask(message(1, [&](xdr::Encoder& out) { sequence(out, 0, 2); })),
            Stat::NFS4ERR_MINOR_VERS_MISMATCH);
  minor_ = 2;
  tag_.assign(1000, 't');
  EXPECT_EQ(ask(message(1, [&](xdr::Encoder& out) { sequence(out, 0, 2); })), Stat::NFS4_OK);
  EXPECT_EQ(tag_seen_, "");
}

// Whatever end a call has, the reply is whole and nothing is done by halves.
TEST_F(CallbacksTest, ACallCutAnywhere) {
  const auto whole = message(2, [&](xdr::Encoder& out) {
    sequence(out, 0, 1);
    notify(out);
  });
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Callbacks callbacks(recorder_);
    callbacks.begin_session(2, session_, 2);
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(length));
    std::vector<std::byte> room(kMaxReply);
    room.resize(callbacks.answer(cut, room));
    if (length < 8) {
      EXPECT_TRUE(room.empty());
      continue;
    }
    xdr::Decoder in(room);
    xdr::rpc_msg header;
    ASSERT_TRUE(xdr::decode(in, header)) << length;
    if (header.rbody.areply.stat != Accept::SUCCESS) {
      EXPECT_EQ(header.rbody.areply.stat, Accept::GARBAGE_ARGS);
      continue;
    }
    xdr::CB_COMPOUND4res head;
    ASSERT_TRUE(xdr::decode(in, head)) << length;
    EXPECT_NE(head.status, Stat::NFS4_OK) << length;
  }
  EXPECT_TRUE(recorder_.files.empty());
}

TEST_F(CallbacksTest, RpcIsAnsweredAsRpcWantsIt) {
  procedure_ = xdr::CB_NULL;
  EXPECT_EQ(accept_stat_of(message(0, {})), Accept::SUCCESS);
  procedure_ = 2;
  EXPECT_EQ(accept_stat_of(message(0, {})), Accept::PROC_UNAVAIL);
  procedure_ = xdr::CB_NULL;
  version_ = 4;
  EXPECT_EQ(accept_stat_of(message(0, {})), Accept::PROG_MISMATCH);
  version_ = 1;
  program_ = 100003;
  EXPECT_EQ(accept_stat_of(message(0, {})), Accept::PROG_UNAVAIL);
  rpc_version_ = 3;
  std::vector<std::byte> room(kMaxReply);
  room.resize(callbacks_.answer(message(0, {}), room));
  xdr::Decoder in(room);
  xdr::rpc_msg header;
  ASSERT_TRUE(xdr::decode(in, header));
  EXPECT_EQ(header.rbody.stat, xdr::reply_stat::MSG_DENIED);

  const std::array<std::byte, 24> reply{std::byte{0}, std::byte{0}, std::byte{0}, std::byte{9},
                                        std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}};
  EXPECT_EQ(callbacks_.answer(reply, room_), 0u);
}

}  // namespace
}  // namespace nfsrdma::nfs4
