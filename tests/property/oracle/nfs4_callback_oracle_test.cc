// SPDX-License-Identifier: Apache-2.0
// Callbacks as whole messages: ours against those that libtirpc and rpcgen's code put together,
// and replies that they wrote.
#include "server/nfs4/callback.h"  // before the oracle's headers, as nfs4_prelude.h says

#include "tests/property/oracle/nfs4_pairs.h"

namespace nfsrdma::oracle {
namespace {

using nfs4::CallbackReply;
using xdr::nfs_cb_opnum4;

/// A message that grows by what the oracle writes.
class OracleMessage {
 public:
  OracleMessage() : bytes_(1 << 20) {
    xdrmem_create(&xdrs_, reinterpret_cast<char*>(bytes_.data()),
                  static_cast<unsigned>(bytes_.size()), XDR_ENCODE);
  }
  void call(const nfs4::CallbackTarget& target, std::uint32_t procedure) {
    ::rpc_msg message;
    std::memset(&message, 0, sizeof message);
    message.rm_direction = ::CALL;
    message.rm_call.cb_rpcvers = 2;
    message.rm_call.cb_prog = target.program;
    message.rm_call.cb_vers = 1;
    message.rm_call.cb_proc = procedure;
    message.rm_call.cb_cred.oa_flavor = static_cast<int>(target.flavor);
    message.rm_call.cb_cred.oa_base =
        reinterpret_cast<char*>(const_cast<std::byte*>(target.credential.data()));
    message.rm_call.cb_cred.oa_length = static_cast<unsigned>(target.credential.size());
    ok_ = xdr_callmsg(&xdrs_, &message) != 0 && ok_;
  }
  void accepted() {
    for (unsigned word : {9u, 1u, 0u, 0u, 0u, 0u})
      number(word);
  }
  void number(unsigned value) { ok_ = xdr_u_int(&xdrs_, &value) != 0 && ok_; }
  void operation(nfs_cb_opnum4 operation) { number(static_cast<unsigned>(operation)); }
  template <typename P>
  void put(const typename P::Ours& ours) {
    typename P::Theirs theirs;
    std::memset(static_cast<void*>(&theirs), 0, sizeof theirs);
    convert(arena_, ours, theirs);
    ok_ = P::run(&xdrs_, &theirs) != 0 && ok_;
  }
  std::vector<std::byte> bytes() {
    EXPECT_TRUE(ok_);
    return {bytes_.begin(), bytes_.begin() + xdr_getpos(&xdrs_)};
  }

 private:
  std::vector<std::byte> bytes_;
  XDR xdrs_;
  Arena arena_;
  bool ok_ = true;
};

nfs4::CallbackTarget random_target(xdr::RandomSource& random, std::uint32_t minor) {
  nfs4::CallbackTarget target;
  random("program", target.program);
  target.minor_version = minor;
  if (minor == 0) random("ident", target.ident);
  if (random.below(2) == 0) nfs4::use_sys_credential(&target, "host.example.org");
  return target;
}

template <typename P>
void compare_calls(nfs_cb_opnum4 operation) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    xdr::RandomSource random(seed, 256);
    const auto minor = static_cast<std::uint32_t>(seed % 3);
    const nfs4::CallbackTarget target = random_target(random, minor);
    const auto sequence = random.make<xdr::CB_SEQUENCE4args>();
    const auto args = random.make<typename P::Ours>();
    std::vector<std::byte> room(1 << 20);
    const ByteSpan ours =
        nfs4::encode_callback(room, target, minor > 0 ? &sequence : nullptr, args);

    OracleMessage theirs;
    theirs.call(target, 1);
    xdr::CB_COMPOUND4args head;
    head.minorversion = minor;
    head.callback_ident = target.ident;
    head.argarray_len = minor > 0 ? 2 : 1;
    theirs.put<NFS4_PAIR(CB_COMPOUND4args)>(head);
    if (minor > 0) {
      theirs.operation(nfs_cb_opnum4::OP_CB_SEQUENCE);
      theirs.put<NFS4_PAIR(CB_SEQUENCE4args)>(sequence);
    }
    theirs.operation(operation);
    theirs.put<P>(args);
    ASSERT_EQ(std::vector<std::byte>(ours.begin(), ours.end()), theirs.bytes());
  }
}

class Nfs4CallbackOracle : public Nfs4Oracle {};

TEST_F(Nfs4CallbackOracle, NullHasTheSameBytes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    xdr::RandomSource random(seed);
    const nfs4::CallbackTarget target = random_target(random, 1);
    std::byte room[512];
    const ByteSpan ours = nfs4::encode_cb_null(room, target);
    OracleMessage theirs;
    theirs.call(target, 0);
    ASSERT_EQ(std::vector<std::byte>(ours.begin(), ours.end()), theirs.bytes());
  }
}

TEST_F(Nfs4CallbackOracle, CallsHaveTheSameBytes) {
  compare_calls<NFS4_PAIR(CB_RECALL4args)>(nfs_cb_opnum4::OP_CB_RECALL);
  compare_calls<NFS4_PAIR(CB_GETATTR4args)>(nfs_cb_opnum4::OP_CB_GETATTR);
  compare_calls<NFS4_PAIR(CB_NOTIFY_LOCK4args)>(nfs_cb_opnum4::OP_CB_NOTIFY_LOCK);
  compare_calls<NFS4_PAIR(CB_RECALL_ANY4args)>(nfs_cb_opnum4::OP_CB_RECALL_ANY);
  compare_calls<NFS4_PAIR(CB_RECALL_SLOT4args)>(nfs_cb_opnum4::OP_CB_RECALL_SLOT);
  compare_calls<NFS4_PAIR(CB_OFFLOAD4args)>(nfs_cb_opnum4::OP_CB_OFFLOAD);
}

/// A reply as the client of `sequence` writes it, and ours of it.
template <typename P>
CallbackReply read_oracles_reply(const xdr::CB_SEQUENCE4args& sequence, nfs_cb_opnum4 operation,
                                 const typename P::Ours& result, std::uint32_t target_highest,
                                 std::vector<std::byte>* bytes) {
  OracleMessage message;
  message.accepted();
  xdr::CB_COMPOUND4res head;
  head.status = result.status;
  head.tag = "a tag of the client's";
  head.resarray_len = 2;
  message.put<NFS4_PAIR(CB_COMPOUND4res)>(head);
  xdr::CB_SEQUENCE4res first;
  first.resok4.csr_sessionid = sequence.csa_sessionid;
  first.resok4.csr_sequenceid = sequence.csa_sequenceid;
  first.resok4.csr_slotid = sequence.csa_slotid;
  first.resok4.csr_target_highest_slotid = target_highest;
  message.operation(nfs_cb_opnum4::OP_CB_SEQUENCE);
  message.put<NFS4_PAIR(CB_SEQUENCE4res)>(first);
  message.operation(operation);
  message.put<P>(result);
  *bytes = message.bytes();
  return nfs4::read_callback_reply(*bytes, &sequence, operation);
}

TEST_F(Nfs4CallbackOracle, RepliesAreReadAsTheyWereMeant) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    xdr::RandomSource random(seed, 256);
    const auto sequence = random.make<xdr::CB_SEQUENCE4args>();
    const auto highest = static_cast<std::uint32_t>(random.below(64));
    std::vector<std::byte> bytes;

    const auto recall = random.make<xdr::CB_RECALL4res>();
    CallbackReply reply = read_oracles_reply<NFS4_PAIR(CB_RECALL4res)>(
        sequence, nfs_cb_opnum4::OP_CB_RECALL, recall, highest, &bytes);
    ASSERT_EQ(reply.kind, CallbackReply::Kind::kDone);
    ASSERT_EQ(reply.status, recall.status);
    ASSERT_TRUE(reply.sequence_done);
    ASSERT_EQ(reply.target_highest_slot, highest);

    const auto attributes = random.make<xdr::CB_GETATTR4res>();
    reply = read_oracles_reply<NFS4_PAIR(CB_GETATTR4res)>(sequence, nfs_cb_opnum4::OP_CB_GETATTR,
                                                          attributes, highest, &bytes);
    ASSERT_EQ(reply.kind, CallbackReply::Kind::kDone);
    ASSERT_EQ(reply.status, attributes.status);
    if (attributes.status == xdr::nfsstat4::NFS4_OK) {
      ASSERT_EQ(testing::encode_flat(reply.attributes),
                testing::encode_flat(attributes.resok4.obj_attributes));
    }
  }
}

}  // namespace
}  // namespace nfsrdma::oracle
