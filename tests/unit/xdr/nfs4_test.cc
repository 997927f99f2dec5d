// SPDX-License-Identifier: Apache-2.0
#include "xdr/nfs4.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/xdr_bytes.h"
#include "xdr/print.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(Nfs4, OperationTableHasEveryNumberInOrder) {
  auto in_order = []<typename... Op>(std::tuple<Op...>*) {
    std::uint32_t next = kNfs4FirstOperation;
    auto follows = [&next](std::uint32_t number) {
      return number == next++ || (next == kNfs4LastOperation + 2 && number == 10044);
    };
    return (follows(static_cast<std::uint32_t>(Op::number)) && ...);
  };
  EXPECT_TRUE(in_order(static_cast<Nfs4Operations*>(nullptr)));
  EXPECT_EQ(std::tuple_size_v<Nfs4Operations>, 74u);
  EXPECT_EQ(std::tuple_size_v<Nfs4CallbackOperations>, 14u);
}

TEST(Nfs4, OperationsHaveTheNumbersOfTheRfcs) {
  EXPECT_EQ(static_cast<int>(nfs_opnum4::OP_READ), 25);
  EXPECT_EQ(static_cast<int>(nfs_opnum4::OP_RELEASE_LOCKOWNER), 39);
  EXPECT_EQ(static_cast<int>(nfs_opnum4::OP_SEQUENCE), 53);
  EXPECT_EQ(static_cast<int>(nfs_opnum4::OP_RECLAIM_COMPLETE), 58);
  EXPECT_EQ(static_cast<int>(nfs_opnum4::OP_CLONE), 71);
  EXPECT_EQ(static_cast<int>(nfs_opnum4::OP_REMOVEXATTR), 75);
  EXPECT_EQ(static_cast<int>(nfs_cb_opnum4::OP_CB_OFFLOAD), 15);
}

TEST(Nfs4, ANumberLeadsToItsTypes) {
  std::size_t arguments = 0;
  EXPECT_TRUE(with_operation(nfs_opnum4::OP_COMMIT, [&](auto row) {
    arguments = encoded_size(typename decltype(row)::Args{});
  }));
  EXPECT_EQ(arguments, 12u);
}

TEST(Nfs4, ANumberThatNobodyKnowsLeadsNowhere) {
  bool called = false;
  EXPECT_FALSE(with_operation(static_cast<nfs_opnum4>(76), [&](auto) { called = true; }));
  EXPECT_FALSE(with_operation(static_cast<nfs_opnum4>(2), [&](auto) { called = true; }));
  EXPECT_FALSE(called);
}

TEST(Nfs4Args, HeadOfACompoundCountsTheOperations) {
  EXPECT_EQ(encode_flat(COMPOUND4args{.tag = "ab", .minorversion = 2, .argarray_len = 3}),
            words({2, 0x61620000, 2, 3}));
}

TEST(Nfs4Args, SequenceHasTheWordsOfTheRfc) {
  SEQUENCE4args args;
  args.sa_sessionid[15] = std::byte{7};
  args.sa_sequenceid = 1;
  args.sa_slotid = 2;
  args.sa_highest_slotid = 3;
  args.sa_cachethis = true;
  EXPECT_EQ(encode_flat(args), words({0, 0, 0, 7, 1, 2, 3, 1}));
}

TEST(Nfs4Args, ReadHasTheWordsOfTheRfc) {
  READ4args args;
  args.stateid.seqid = 9;
  args.stateid.other[11] = std::byte{5};
  args.offset = 0x100000002;
  args.count = 4096;
  EXPECT_EQ(encode_flat(args), words({9, 0, 0, 5, 1, 2, 4096}));
}

TEST(Nfs4Args, OpenWithoutCreateByNameHasTheWordsOfTheRfc) {
  OPEN4args args;
  args.seqid = 1;
  args.share_access = OPEN4_SHARE_ACCESS_READ;
  args.share_deny = OPEN4_SHARE_DENY_NONE;
  auto owner = words({0xaabbccdd});
  args.owner = {.clientid = 0x200000003, .owner = owner};
  args.claim.file = "f";
  EXPECT_EQ(encode_flat(args), words({1, 1, 0, 2, 3, 4, 0xaabbccdd, 0, 0, 1, 0x66000000}));
}

TEST(Nfs4Args, OpenWithCreateAndClaimByHandleHasTheWordsOfTheRfc) {
  OPEN4args args;
  args.openhow.opentype = opentype4::OPEN4_CREATE;
  args.openhow.how.mode = createmode4::EXCLUSIVE4_1;
  args.openhow.how.ch_createboth.cva_verf[7] = std::byte{8};
  args.claim.claim = open_claim_type4::CLAIM_FH;
  EXPECT_EQ(encode_flat(args), words({0, 0, 0, 0, 0, 0, 1, 3, 0, 8, 0, 0, 4}));
}

TEST(Nfs4Args, ExchangeIdHasTheWordsOfTheRfc) {
  EXCHANGE_ID4args args;
  args.eia_clientowner.co_verifier[7] = std::byte{1};
  args.eia_flags = EXCHGID4_FLAG_USE_NON_PNFS;
  nfs_impl_id4 implementation{.nii_domain = "d", .nii_name = "n", .nii_date = {-1, 5}};
  ASSERT_TRUE(args.eia_client_impl_id.push_back(implementation));
  EXPECT_EQ(encode_flat(args), words({0, 1, 0, 0x10000, 0, 1, 1, 0x64000000, 1, 0x6e000000,
                                      0xffffffff, 0xffffffff, 5}));
}

TEST(Nfs4Args, TwoImplementationsAreRefused) {
  EXCHANGE_ID4args args;
  auto bytes = words({0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  Decoder decoder(bytes);
  EXPECT_FALSE(decode(decoder, args));
}

TEST(Nfs4Args, LockOfANewOwnerHasTheWordsOfTheRfc) {
  LOCK4args args;
  args.locktype = nfs_lock_type4::WRITEW_LT;
  args.offset = 1;
  args.length = ~std::uint64_t{0};
  args.locker.new_lock_owner = true;
  args.locker.open_owner.open_seqid = 2;
  args.locker.open_owner.lock_seqid = 3;
  EXPECT_EQ(encode_flat(args),
            words({4, 0, 0, 1, 0xffffffff, 0xffffffff, 1, 2, 0, 0, 0, 0, 3, 0, 0, 0}));
}

TEST(Nfs4Args, AHandleOf128BytesIsTaken) {
  std::vector<std::byte> handle(128);
  PUTFH4args back;
  EXPECT_TRUE(decode_exactly(encode_flat(PUTFH4args{{handle}}), back));
}

TEST(Nfs4Args, AHandleOf129BytesIsRefused) {
  std::vector<std::byte> handle(129);
  PUTFH4args back;
  EXPECT_FALSE(decode_exactly(encode_flat(PUTFH4args{{handle}}), back));
}

TEST(Nfs4Args, ANameTooLongForFileSystemsStillDecodes) {
  std::string name(256, 'n');
  LOOKUP4args back;
  auto bytes = encode_flat(LOOKUP4args{name});
  ASSERT_TRUE(decode_exactly(bytes, back));
  EXPECT_EQ(back.objname, name);
}

TEST(Nfs4Args, ANameLongerThanTheLimitIsRefused) {
  std::string name(kNfs4MaxName + 1, 'n');
  LOOKUP4args back;
  EXPECT_FALSE(decode_exactly(encode_flat(LOOKUP4args{name}), back));
}

TEST(Nfs4Args, AnOwnerOf1025BytesIsRefused) {
  std::vector<std::byte> owner(kNfs4OpaqueLimit + 1);
  RELEASE_LOCKOWNER4args back;
  EXPECT_FALSE(
      decode_exactly(encode_flat(RELEASE_LOCKOWNER4args{{.clientid = 1, .owner = owner}}), back));
}

TEST(Nfs4Args, WriteDataGoesByReference) {
  std::vector<std::byte> data(100);
  WRITE4args args{.stateid = {}, .offset = 0, .stable = stable_how4::UNSTABLE4, .data = {data}};
  std::array<std::byte, 64> room;
  Encoder encoder(room);
  encode(encoder, args);
  ASSERT_EQ(encoder.payloads().size(), 1u);
  EXPECT_EQ(encoder.payloads()[0].bytes.data(), data.data());
}

TEST(Nfs4Args, SymbolicLinkTextGoesByReference) {
  std::vector<std::byte> text(5);
  CREATE4args args;
  args.objtype.type = nfs_ftype4::NF4LNK;
  args.objtype.linkdata = {text};
  std::array<std::byte, 128> room;
  Encoder encoder(room);
  encode(encoder, args);
  EXPECT_EQ(encoder.payloads().size(), 1u);
}

TEST(Nfs4Results, DataOfReadPlusDoesNotGoByReference) {
  std::vector<std::byte> data(8);
  read_plus_content content;
  content.rpc_data = {.d_offset = 1, .d_data = data};
  std::array<std::byte, 64> room;
  Encoder encoder(room);
  encode(encoder, content);
  EXPECT_TRUE(encoder.payloads().empty());
  EXPECT_EQ(encoder.size(), 24u);
}

TEST(Nfs4Args, AnUnknownClaimIsRefused) {
  auto bytes = words({7, 0, 0, 0, 0});
  Decoder decoder(bytes);
  open_claim4 claim;
  EXPECT_FALSE(decode(decoder, claim));
}

TEST(Nfs4Args, WantDelegationTakesThreeClaimsOnly) {
  deleg_claim4 claim;
  EXPECT_FALSE(decode_exactly(words({0}), claim));
  EXPECT_FALSE(decode_exactly(words({5, 0, 0, 0, 0}), claim));
  EXPECT_TRUE(decode_exactly(words({4}), claim));
  EXPECT_TRUE(decode_exactly(words({1, 2}), claim));
  EXPECT_EQ(claim.dc_delegate_type, open_delegation_type4::OPEN_DELEGATE_WRITE);
}

TEST(Nfs4Args, CallbackSecurityTakesThreeFlavoursOnly) {
  callback_sec_parms4 parms;
  EXPECT_TRUE(decode_exactly(words({0}), parms));
  EXPECT_TRUE(decode_exactly(words({1, 0, 0, 0, 0, 0}), parms));
  EXPECT_FALSE(decode_exactly(words({2}), parms));
}

TEST(Nfs4Args, AnUnknownFileTypeHasNoArm) {
  createtype4 type;
  EXPECT_TRUE(decode_exactly(words({77}), type));
}

TEST(Nfs4Args, AnArrayLongerThanItsLimitIsRefusedWhateverFollows) {
  std::vector<std::byte> bytes(4 + (kNfs4MaxStateids + 1) * 16);
  Encoder(bytes).u32(kNfs4MaxStateids + 1);
  Decoder decoder(bytes);
  TEST_STATEID4args args;
  EXPECT_FALSE(decode(decoder, args));
  EXPECT_TRUE(args.ts_stateids.empty());
  Encoder(bytes).u32(kNfs4MaxStateids);
  Decoder enough(bytes);
  EXPECT_TRUE(decode(enough, args));
  EXPECT_EQ(args.ts_stateids.count, kNfs4MaxStateids);
}

TEST(Nfs4Args, AnArrayThatClaimsMoreThanThereIsIsRefused) {
  auto bytes = words({2, 1, 0, 0, 0});
  Decoder decoder(bytes);
  TEST_STATEID4args args;
  EXPECT_FALSE(decode(decoder, args));
}

TEST(Nfs4Results, AnErrorHasNothingBehindIt) {
  GETATTR4res result;
  result.status = nfsstat4::NFS4ERR_DELAY;
  EXPECT_EQ(encode_flat(result), words({10008}));
}

TEST(Nfs4Results, SetattrSaysWhatWasSetWithAnErrorToo) {
  SETATTR4res result;
  result.status = nfsstat4::NFS4ERR_NOSPC;
  result.attrsset = bitmap4::of({fattr4_number::FATTR4_MODE});
  EXPECT_EQ(encode_flat(result), words({28, 2, 0, 2}));
}

TEST(Nfs4Results, ADeniedLockNamesItsHolder) {
  LOCK4res result;
  result.status = nfsstat4::NFS4ERR_DENIED;
  result.denied = {.offset = 1, .length = 2, .locktype = nfs_lock_type4::READ_LT, .owner = {3, {}}};
  EXPECT_EQ(encode_flat(result), words({10010, 0, 1, 0, 2, 1, 0, 3, 0}));
}

TEST(Nfs4Results, SequenceHasTheWordsOfTheRfc) {
  SEQUENCE4res result;
  result.resok4.sr_sequenceid = 1;
  result.resok4.sr_slotid = 2;
  result.resok4.sr_highest_slotid = 3;
  result.resok4.sr_target_highest_slotid = 4;
  result.resok4.sr_status_flags = SEQ4_STATUS_LEASE_MOVED;
  EXPECT_EQ(encode_flat(result), words({0, 0, 0, 0, 0, 1, 2, 3, 4, 0x80}));
}

TEST(Nfs4Results, ReadDirIsAListBehindItsVerifier) {
  READDIR4res result;
  auto entries = words({1, 0, 7, 1, 0x61000000, 0, 0});
  result.resok4.reply.entries = {entries, 1};
  result.resok4.reply.eof = true;
  auto bytes = encode_flat(result);
  EXPECT_EQ(bytes, words({0, 0, 0, 1, 0, 7, 1, 0x61000000, 0, 0, 0, 1}));
  READDIR4res back;
  ASSERT_TRUE(decode_exactly(bytes, back));
  for (const entry4& entry : back.resok4.reply.entries) {
    EXPECT_EQ(entry.cookie, 7u);
    EXPECT_EQ(entry.name, "a");
  }
  EXPECT_EQ(back.resok4.reply.entries.count, 1u);
}

TEST(Nfs4Results, StatusHasTheNameOfTheRfc) {
  EXPECT_EQ(enum_name(nfsstat4::NFS4ERR_REP_TOO_BIG_TO_CACHE), "NFS4ERR_REP_TOO_BIG_TO_CACHE");
  EXPECT_EQ(static_cast<int>(nfsstat4::NFS4ERR_REP_TOO_BIG_TO_CACHE), 10067);
  EXPECT_EQ(static_cast<int>(nfsstat4::NFS4ERR_XATTR2BIG), 10096);
}

TEST(Nfs4Callback, RecallHasTheWordsOfTheRfc) {
  auto handle = words({0xaabbccdd});
  CB_RECALL4args args;
  args.stateid.seqid = 1;
  args.truncate = true;
  args.fh.data = handle;
  EXPECT_EQ(encode_flat(args), words({1, 0, 0, 0, 1, 4, 0xaabbccdd}));
}

TEST(Nfs4Callback, ALayoutRecallOfAnUnknownKindIsRefused) {
  layoutrecall4 recall;
  EXPECT_TRUE(decode_exactly(words({3}), recall));
  EXPECT_FALSE(decode_exactly(words({4}), recall));
}

TEST(Nfs4Callback, AFailedOffloadSaysHowFarItCame) {
  offload_info4 info;
  info.coa_status = nfsstat4::NFS4ERR_NOSPC;
  info.coa_bytes_copied = 512;
  EXPECT_EQ(encode_flat(info), words({28, 0, 512}));
}

}  // namespace
}  // namespace nfsrdma::xdr
