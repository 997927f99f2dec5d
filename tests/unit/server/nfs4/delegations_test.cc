// SPDX-License-Identifier: Apache-2.0
// Delegations from both sides: what a client gets and how it is asked to give it back, and that
// everybody else waits until then: other clients, other NFS versions, processes of this machine.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/support/callback_client.h"

namespace nfsrdma::test {
namespace {

using nfsrdma::testing::words;
using xdr::open_delegation_type4;

using Recalled = CallbackSeen<xdr::CB_RECALL4args>;

class DelegationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Sessions made from now on have a back channel.
    other_ = harness_.connect("other");  // gets none itself
    harness_.connection().max_backward = 1000;
    holder_ = harness_.connect("holder");
    harness_.session = other_;
    const Open4 made = harness_.open(harness_.root(), "file");
    ASSERT_EQ(made.status, NFS4_OK);
    ASSERT_EQ(harness_.write(made, 0, "as it was"), NFS4_OK);
    ASSERT_EQ(harness_.close(made), NFS4_OK);
    other_ = harness_.session;
    file_ = made.handle;
    // What is not on the disk keeps the file open for writing.
    ASSERT_EQ(harness_.on<OP_COMMIT>(made.handle).status, NFS4_OK);
    other_ = harness_.session;
  }

  Reply4 open(Session4& session, std::uint32_t access, std::string_view name = "file") {
    xdr::OPEN4args args;
    args.share_access = access;
    args.owner = {session.client, as_bytes(std::string_view("owner"))};
    args.claim.file = name;
    return harness_.run(session,
                        Operations4().putfh(harness_.root()).add<OP_OPEN>(args).add<OP_GETFH>());
  }
  /// The holder opens the file for reading and is promised that it stays.
  void take_delegation() {
    const Reply4 reply = open(holder_, xdr::OPEN4_SHARE_ACCESS_READ);
    ASSERT_EQ(reply.status, NFS4_OK);
    const auto& result = reply.get<OP_OPEN>().resok4;
    ASSERT_EQ(result.delegation.delegation_type, open_delegation_type4::OPEN_DELEGATE_READ);
    EXPECT_EQ(result.delegation.read.permissions.access_mask, 0u);
    delegation_ = result.delegation.read.stateid;
    std::memcpy(&number_, delegation_.other.data() + 4, sizeof number_);
    open_ = result.stateid;
  }
  nfsstat4 give_back() {
    return harness_.run(holder_, Operations4().putfh(file_).add<OP_DELEGRETURN>({delegation_}))
        .status;
  }
  nfsstat4 open_for_writing() { return open(other_, xdr::OPEN4_SHARE_ACCESS_WRITE).status; }

  std::vector<BackwardCall*>& calls() { return client_side_.calls(); }
  bool is_quiet() { return client_side_.is_quiet(); }
  static Recalled read(const BackwardCall& call) {
    return CallbackClient::read<xdr::CB_RECALL4args>(call);
  }
  void answer(nfsstat4 status = NFS4_OK) { client_side_.answer(status); }
  void complete(BackwardCall& call, const std::vector<std::byte>& reply) {
    client_side_.complete(call, reply);
  }
  void fail(Errc code) { client_side_.fail(code); }
  std::uint32_t sequence_flags(Session4& session) {
    return harness_.run(session, Operations4()).get<OP_SEQUENCE>().resok4.sr_status_flags;
  }
  /// As the state's own thread does each second.
  void tick() {
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
  }

  Nfs4Harness harness_;
  CallbackClient client_side_{harness_};
  Session4 holder_, other_;
  FileHandle file_;
  xdr::stateid4 delegation_, open_;
  nfs4::DelegationNumber number_ = 0;
};

TEST_F(DelegationsTest, AReaderGetsOneAndGivesItBack) {
  take_delegation();
  // It outlives the open, and reads.
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_CLOSE>({0, open_})).status,
            NFS4_OK);
  const Reply4 read =
      harness_.run(holder_, Operations4().putfh(file_).add<OP_READ>({delegation_, 0, 100}));
  ASSERT_EQ(read.status, NFS4_OK);
  EXPECT_EQ(as_text(read.get<OP_READ>().resok4.data.bytes), "as it was");
  EXPECT_EQ(harness_
                .run(holder_, Operations4().putfh(file_).add<OP_WRITE>(
                                  {delegation_, 0, xdr::stable_how4::UNSTABLE4, {}}))
                .status,
            NFS4ERR_OPENMODE);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(give_back(), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(DelegationsTest, NoneForThoseWhoCannotHaveIt) {
  const auto type = [this](Session4& session, std::uint32_t access) {
    const Reply4 reply = open(session, access);
    EXPECT_EQ(reply.status, NFS4_OK);
    return reply.get<OP_OPEN>().resok4.delegation;
  };
  EXPECT_EQ(type(holder_, xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG)
                .od_whynone.ond_why,
            xdr::why_no_delegation4::WND4_NOT_WANTED);
  // A client that cannot be called.
  harness_.connection().max_backward = 0;
  Session4 deaf = harness_.connect("deaf");
  EXPECT_EQ(type(deaf, xdr::OPEN4_SHARE_ACCESS_READ).delegation_type,
            open_delegation_type4::OPEN_DELEGATE_NONE);
  harness_.connection().max_backward = 1000;
  // While somebody has the file open for writing, also by this client.
  EXPECT_EQ(type(other_, xdr::OPEN4_SHARE_ACCESS_BOTH).delegation_type,
            open_delegation_type4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(type(holder_, xdr::OPEN4_SHARE_ACCESS_READ).delegation_type,
            open_delegation_type4::OPEN_DELEGATE_NONE);
}

TEST_F(DelegationsTest, AFileThatWasJustWrittenIsGivenOnceItIsOnTheDisk) {
  harness_.session = other_;
  const Open4 made = harness_.open(harness_.root(), "new");
  ASSERT_EQ(made.status, NFS4_OK);
  ASSERT_EQ(harness_.write(made, 0, "x", xdr::stable_how4::FILE_SYNC4), NFS4_OK);
  ASSERT_EQ(harness_.close(made), NFS4_OK);
  const auto type_of = [](const Reply4& reply) {
    return reply.get<OP_OPEN>().resok4.delegation.delegation_type;
  };
  EXPECT_EQ(type_of(open(holder_, xdr::OPEN4_SHARE_ACCESS_READ, "new")),
            open_delegation_type4::OPEN_DELEGATE_READ);
  const Open4 dirty = harness_.open(harness_.root(), "dirty");
  ASSERT_EQ(harness_.write(dirty, 0, "x"), NFS4_OK);
  ASSERT_EQ(harness_.close(dirty), NFS4_OK);
  EXPECT_EQ(type_of(open(holder_, xdr::OPEN4_SHARE_ACCESS_READ, "dirty")),
            open_delegation_type4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(harness_.on<OP_COMMIT>(dirty.handle).status, NFS4_OK);
  EXPECT_EQ(type_of(open(holder_, xdr::OPEN4_SHARE_ACCESS_READ, "dirty")),
            open_delegation_type4::OPEN_DELEGATE_READ);
  other_ = harness_.session;
}

TEST_F(DelegationsTest, NoneWhileAProcessOfThisMachineWrites) {
  const UniqueFd writer(::open(harness_.path("file").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(writer);
  const Reply4 reply =
      open(holder_, xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_READ_DELEG);
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_OPEN>().resok4.delegation.od_whynone.ond_why,
            xdr::why_no_delegation4::WND4_RESOURCE);
}

TEST_F(DelegationsTest, AnotherClientsWriterWaitsForTheRecall) {
  take_delegation();
  EXPECT_EQ(open(other_, xdr::OPEN4_SHARE_ACCESS_READ).status, NFS4_OK) << "readers do not";
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  const Recalled asked = read(*calls().at(0));
  EXPECT_EQ(asked.sequence.csa_sessionid, holder_.id);
  EXPECT_EQ(asked.args.stateid.other, delegation_.other);
  EXPECT_EQ(to_handle(asked.args.fh.data).bytes().size(), file_.bytes().size());
  EXPECT_TRUE(
      std::equal(asked.args.fh.data.begin(), asked.args.fh.data.end(), file_.bytes().begin()));
  answer();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY) << "understood, and not given back";
  tick();
  EXPECT_TRUE(is_quiet()) << "asked once";
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
}

/// The OPEN's reply may be behind the recall.
TEST_F(DelegationsTest, ARecallNamesTheRequestThatGaveTheDelegation) {
  take_delegation();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  const auto lists = read(*calls().at(0)).sequence.csa_referring_call_lists;
  ASSERT_EQ(lists.count, 1u);
  const xdr::referring_call_list4 list = *lists.begin();
  EXPECT_EQ(list.rcl_sessionid, holder_.id);
  ASSERT_EQ(list.rcl_referring_calls.count, 1u);
  const xdr::referring_call4 request = *list.rcl_referring_calls.begin();
  EXPECT_EQ(request.rc_slotid, 0u);
  EXPECT_EQ(request.rc_sequenceid, holder_.sequence);
  answer(NFS4ERR_DELAY);
  EXPECT_EQ(sequence_flags(holder_), 0u);  // it goes on in the slot, so it has seen the reply
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  EXPECT_EQ(read(*calls().at(0)).sequence.csa_referring_call_lists.count, 0u);
  answer();
}

TEST_F(DelegationsTest, WhatTheClientDidNotUnderstandIsAskedAgain) {
  take_delegation();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  answer(NFS4ERR_BAD_STATEID);  // the OPEN's reply has not come yet
  tick();
  EXPECT_TRUE(is_quiet()) << "not at once";
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  EXPECT_EQ(read(*calls().at(0)).sequence.csa_sequenceid, 2u);
  answer();
  // The next recall of the same client goes on in the slot.
  EXPECT_EQ(give_back(), NFS4_OK);
}

TEST_F(DelegationsTest, NamesAndAttributesWaitAsWell) {
  take_delegation();
  xdr::SETATTR4args mode;
  std::array<std::byte, 4> value{};
  store_be32(value.data(), 0600);
  mode.obj_attributes.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
  mode.obj_attributes.attr_vals = value;
  const auto root = [this] { return Operations4().putfh(harness_.root()); };
  const Operations4 changes[] = {
      Operations4().putfh(file_).add<OP_SETATTR>(mode),
      root().add<OP_REMOVE>({"file"}),
      root().add<OP_SAVEFH>().add<OP_RENAME>({"file", "moved"}),
      Operations4().putfh(file_).add<OP_SAVEFH>().putfh(harness_.root()).add<OP_LINK>({"second"}),
      Operations4().putfh(file_).add<OP_SETXATTR>(
          {xdr::setxattr_option4::SETXATTR4_EITHER, "name", {}}),
  };
  for (const Operations4& change : changes)
    EXPECT_EQ(harness_.run(other_, change).status, NFS4ERR_DELAY);
  EXPECT_EQ(calls().size(), 1u);
  answer();
  // Nothing of it happened. The holder itself may.
  EXPECT_EQ(harness_.run(holder_, changes[0]).status, NFS4_OK);
  EXPECT_EQ(give_back(), NFS4_OK);
  for (const Operations4& change : {changes[0], changes[3], changes[1]})
    EXPECT_EQ(harness_.run(other_, change).status, NFS4_OK);
}

TEST_F(DelegationsTest, AReplacedFileWaitsToo) {
  take_delegation();
  harness_.session = other_;
  const Open4 made = harness_.open(harness_.root(), "newer");
  ASSERT_EQ(made.status, NFS4_OK);
  other_ = harness_.session;
  const Operations4 replace =
      Operations4().putfh(harness_.root()).add<OP_SAVEFH>().add<OP_RENAME>({"newer", "file"});
  EXPECT_EQ(harness_.run(other_, replace).status, NFS4ERR_DELAY);
  answer();
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(harness_.run(other_, replace).status, NFS4_OK);
}

TEST_F(DelegationsTest, AProcessOfThisMachineWaitsToo) {
  take_delegation();
  const std::string path = harness_.path("file");
  EXPECT_EQ(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_EQ(read(*calls().at(0)).args.stateid.other, delegation_.other);
  answer();
  EXPECT_EQ(give_back(), NFS4_OK);
  const UniqueFd writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(writer);
}

TEST_F(DelegationsTest, TheKernelsPatienceIsLess) {
  take_delegation();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  answer();
  // A local process comes as well: the kernel lets it in after lease-break-time.
  EXPECT_EQ(::open(harness_.path("file").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto has_less_time = [this] {
    std::lock_guard lock(harness_.state().mutex);
    const auto& table = harness_.state().delegations.table();
    return table.find(number_)->deadline - harness_.clock.now() < harness_.state().lease() * 2 / 3;
  };
  while (!has_less_time() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_TRUE(has_less_time());
}

/// User space cannot stop them.
TEST_F(DelegationsTest, WhatAProcessOfThisMachineDoesToNamesIsToldAfterwards) {
  const std::string path = harness_.path("file"), other = harness_.path("other");
  const std::function<int()> changes[] = {
      [&] { return ::chmod(path.c_str(), 0640); },
      [&] { return ::link(path.c_str(), other.c_str()); },
      [&] { return ::unlink(other.c_str()); },
      [&] { return ::rename(path.c_str(), other.c_str()); },
  };
  for (const auto& change : changes) {
    take_delegation();
    EXPECT_TRUE(is_quiet());
    ASSERT_EQ(change(), 0);
    ASSERT_EQ(calls().size(), 1u);
    EXPECT_EQ(read(*calls().at(0)).args.stateid.other, delegation_.other);
    answer();
    EXPECT_EQ(give_back(), NFS4_OK);
    // None is given for a while after a recall.
    harness_.clock.move(std::chrono::seconds(50));
    EXPECT_EQ(sequence_flags(holder_), 0u);
    harness_.clock.move(std::chrono::seconds(50));
  }
}

TEST_F(DelegationsTest, TheHoldersOwnWriteWaitsForItToo) {
  take_delegation();
  const Reply4 opened = open(holder_, xdr::OPEN4_SHARE_ACCESS_BOTH);
  ASSERT_EQ(opened.status, NFS4_OK);
  const xdr::stateid4 stateid = opened.get<OP_OPEN>().resok4.stateid;
  const Operations4 write = Operations4().putfh(file_).add<OP_WRITE>(
      {stateid, 0, xdr::stable_how4::UNSTABLE4, {as_bytes(std::string_view("new"))}});
  EXPECT_EQ(harness_.run(holder_, write).status, NFS4ERR_DELAY);
  answer();
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(harness_.run(holder_, write).status, NFS4_OK);
}

TEST_F(DelegationsTest, WhatIsNotGivenBackInTimeIsRevoked) {
  take_delegation();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  answer();
  harness_.clock.move(std::chrono::seconds(50));
  tick();
  EXPECT_EQ(sequence_flags(holder_), 0u) << "there is time yet";
  EXPECT_EQ(sequence_flags(other_), 0u);
  harness_.clock.move(std::chrono::seconds(15));
  tick();
  EXPECT_EQ(sequence_flags(holder_), xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
  EXPECT_EQ(sequence_flags(other_), 0u);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
  EXPECT_EQ(
      harness_.run(holder_, Operations4().putfh(file_).add<OP_READ>({delegation_, 0, 1})).status,
      NFS4ERR_DELEG_REVOKED);
  std::vector<std::byte> room(64);
  xdr::Encoder scratch(room);
  const Reply4 tested = harness_.run(
      holder_, Operations4().add<OP_TEST_STATEID>(
                   {xdr::encode_array(scratch, std::span<const xdr::stateid4>(&delegation_, 1))}));
  ASSERT_EQ(tested.status, NFS4_OK);
  const auto codes = tested.get<OP_TEST_STATEID>().resok4.tsr_status_codes;
  EXPECT_EQ(std::vector<std::byte>(codes.encoded.begin(), codes.encoded.end()),
            words({static_cast<std::uint32_t>(NFS4ERR_DELEG_REVOKED)}));
  EXPECT_EQ(harness_.run(holder_, Operations4().add<OP_FREE_STATEID>({delegation_})).status,
            NFS4_OK);
  EXPECT_EQ(sequence_flags(holder_), 0u);
}

TEST_F(DelegationsTest, AClientThatIsGoneIsNotWaitedFor) {
  take_delegation();
  harness_.clock.move(std::chrono::seconds(80));
  EXPECT_EQ(sequence_flags(other_), 0u);
  harness_.clock.move(std::chrono::seconds(80));
  EXPECT_EQ(open_for_writing(), NFS4_OK);
  EXPECT_TRUE(is_quiet());
}

TEST_F(DelegationsTest, WhatWasOpenedLocallyIsClaimedByTheDelegation) {
  take_delegation();
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_CLOSE>({0, open_})).status,
            NFS4_OK);
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  answer();
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
  args.owner = {holder_.client, as_bytes(std::string_view("local"))};
  args.claim.claim = xdr::open_claim_type4::CLAIM_DELEG_CUR_FH;
  args.claim.oc_delegate_stateid = delegation_;
  const Reply4 by_handle = harness_.run(holder_, Operations4().putfh(file_).add<OP_OPEN>(args));
  EXPECT_EQ(by_handle.status, NFS4_OK);
  EXPECT_EQ(by_handle.get<OP_OPEN>().resok4.delegation.delegation_type,
            open_delegation_type4::OPEN_DELEGATE_NONE);
  args.owner.owner = as_bytes(std::string_view("another"));
  args.claim.claim = xdr::open_claim_type4::CLAIM_DELEGATE_CUR;
  args.claim.delegate_cur_info = {delegation_, "file"};
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status,
            NFS4_OK);
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status,
            NFS4ERR_OPENMODE);
  EXPECT_EQ(give_back(), NFS4_OK);
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status,
            NFS4ERR_BAD_STATEID);
  EXPECT_EQ(open_for_writing(), NFS4_OK);
}

TEST_F(DelegationsTest, ABackChannelThatFailsIsToldAndBoundAnew) {
  take_delegation();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  (void)calls();
  fail(Errc::kTimedOut);
  EXPECT_EQ(sequence_flags(holder_),
            xdr::SEQ4_STATUS_CB_PATH_DOWN | xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION);
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  EXPECT_TRUE(is_quiet()) << "there is no way to the client";
  EXPECT_EQ(
      open(holder_, xdr::OPEN4_SHARE_ACCESS_READ).get<OP_OPEN>().resok4.delegation.delegation_type,
      open_delegation_type4::OPEN_DELEGATE_NONE);
  const auto bound =
      harness_
          .run_bare(Operations4().add<OP_BIND_CONN_TO_SESSION>(
              {holder_.id, xdr::channel_dir_from_client4::CDFC4_BACK_OR_BOTH, false}))
          .get<OP_BIND_CONN_TO_SESSION>();
  ASSERT_EQ(bound.status, NFS4_OK);
  EXPECT_EQ(bound.resok4.bctsr_dir, xdr::channel_dir_from_server4::CDFS4_BOTH);
  EXPECT_EQ(sequence_flags(holder_), 0u);
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  answer();
  EXPECT_EQ(give_back(), NFS4_OK);
}

TEST_F(DelegationsTest, ARefusedSequenceIsMended) {
  take_delegation();
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  (void)calls();
  fail(Errc::kClosed);  // the client may have seen it, or not
  harness_.clock.move(std::chrono::seconds(2));
  tick();
  BackwardCall& call = *calls().at(0);
  EXPECT_EQ(read(call).sequence.csa_sequenceid, 2u);
  std::vector<std::byte> refused = words({5, 1, 0, 0, 0, 0});
  const auto more = words({static_cast<std::uint32_t>(NFS4ERR_SEQ_MISORDERED), 0, 1, 11,
                           static_cast<std::uint32_t>(NFS4ERR_SEQ_MISORDERED)});
  refused.insert(refused.end(), more.begin(), more.end());
  complete(call, refused);
  EXPECT_EQ(read(*calls().at(0)).sequence.csa_sequenceid, 1u) << "it had not seen it";
  answer();
  EXPECT_EQ(give_back(), NFS4_OK);
}

/// A call can outlive its connection: nothing of that is bound any more.
TEST_F(DelegationsTest, WhatIsGoneIsNotBound) {
  take_delegation();
  const std::uint64_t id = harness_.connection().id;
  harness_.state().connection_lost(id);
  const auto bound = harness_.run_bare(Operations4().add<OP_BIND_CONN_TO_SESSION>(
      {holder_.id, xdr::channel_dir_from_client4::CDFC4_BACK_OR_BOTH, false}));
  EXPECT_EQ(bound.status, NFS4ERR_DELAY);
  EXPECT_EQ(sequence_flags(holder_),
            xdr::SEQ4_STATUS_CB_PATH_DOWN | xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION);
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
  EXPECT_TRUE(is_quiet());
  {
    std::lock_guard lock(harness_.state().mutex);
    EXPECT_TRUE(harness_.state().sessions.find(holder_.id)->connections.empty());
  }
  harness_.state().connection_opened(harness_.connection());
  EXPECT_EQ(give_back(), NFS4_OK);
}

/// More recalls than the client has slots for go out as slots become free.
TEST_F(DelegationsTest, RecallsWaitForSlotsAndForNothingElse) {
  harness_.session = other_;
  std::vector<Open4> files;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "file " + std::to_string(i);
    files.push_back(harness_.open(harness_.root(), name));
    ASSERT_EQ(harness_.close(files.back()), NFS4_OK);
    ASSERT_EQ(open(holder_, xdr::OPEN4_SHARE_ACCESS_READ, name)
                  .get<OP_OPEN>()
                  .resok4.delegation.delegation_type,
              open_delegation_type4::OPEN_DELEGATE_READ);
  }
  other_ = harness_.session;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(open(other_, xdr::OPEN4_SHARE_ACCESS_WRITE, "file " + std::to_string(i)).status,
              NFS4ERR_DELAY);
  }
  EXPECT_EQ(calls().size(), 4u) << "as many as the client has slots";
  for (int i = 0; i < 10; ++i)
    answer();
  EXPECT_TRUE(is_quiet());
}

TEST_F(DelegationsTest, ADelegationOfOnesOwnIsRecalledBeforeTheFileIsCut) {
  take_delegation();
  std::array<std::byte, 8> size{};
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_WRITE;
  args.owner = {holder_.client, as_bytes(std::string_view("owner"))};
  args.claim.file = "file";
  args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  args.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
  args.openhow.how.createattrs.attr_vals = size;
  const Operations4 cut = Operations4().putfh(harness_.root()).add<OP_OPEN>(args);
  EXPECT_EQ(harness_.run(holder_, cut).status, NFS4ERR_DELAY);
  answer();
  EXPECT_EQ(give_back(), NFS4_OK);
  const Reply4 reply = harness_.run(holder_, cut);
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_OPEN>().resok4.stateid.seqid, 2u) << "the refused one left nothing";
}

/// Of a connection that is in no session, and of one that is (RFC 8881 18.34.3).
TEST_F(DelegationsTest, WhichWayAConnectionIsBound) {
  using Asked = xdr::channel_dir_from_client4;
  using Got = xdr::channel_dir_from_server4;
  constexpr Got kRefused{};
  const auto bind = [this](Asked way) {
    const auto result =
        harness_.run_bare(Operations4().add<OP_BIND_CONN_TO_SESSION>({holder_.id, way, false}))
            .get<OP_BIND_CONN_TO_SESSION>();
    EXPECT_TRUE(result.status == NFS4_OK || result.status == NFS4ERR_INVAL);
    return result.status == NFS4_OK ? result.resok4.bctsr_dir : kRefused;
  };
  /// What comes of `second` on a connection that nothing but `first` has bound.
  const auto after = [&](Asked first, Asked second) {
    harness_.state().connection_lost(harness_.connection().id);
    harness_.state().connection_opened(harness_.connection());
    bind(first);
    return bind(second);
  };
  using enum xdr::channel_dir_from_client4;
  using enum xdr::channel_dir_from_server4;
  struct Row {
    Asked first;
    Got alone;
    Got fore, back, fore_or_both, back_or_both;  // asked for after that
  };
  const Row rows[] = {
      {CDFC4_FORE, CDFS4_FORE, CDFS4_FORE, kRefused, CDFS4_BOTH, kRefused},
      {CDFC4_BACK, CDFS4_BACK, kRefused, CDFS4_BACK, kRefused, CDFS4_BACK},
      {CDFC4_FORE_OR_BOTH, CDFS4_BOTH, kRefused, kRefused, CDFS4_BOTH, CDFS4_BOTH},
      {CDFC4_BACK_OR_BOTH, CDFS4_BOTH, kRefused, kRefused, CDFS4_BOTH, CDFS4_BOTH},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.first));
    EXPECT_EQ(after(static_cast<Asked>(5), row.first), row.alone);
    EXPECT_EQ(after(row.first, CDFC4_FORE), row.fore);
    EXPECT_EQ(after(row.first, CDFC4_BACK), row.back);
    EXPECT_EQ(after(row.first, CDFC4_FORE_OR_BOTH), row.fore_or_both);
    EXPECT_EQ(after(row.first, CDFC4_BACK_OR_BOTH), row.back_or_both);
  }
  // A refusal leaves it as it was, and SEQUENCE binds as CDFC4_FORE does.
  EXPECT_EQ(after(CDFC4_BACK_OR_BOTH, CDFC4_FORE), kRefused);
  EXPECT_EQ(bind(CDFC4_FORE_OR_BOTH), CDFS4_BOTH);
  harness_.state().connection_lost(harness_.connection().id);
  harness_.state().connection_opened(harness_.connection());
  sequence_flags(holder_);
  EXPECT_EQ(bind(CDFC4_BACK_OR_BOTH), kRefused);
  EXPECT_EQ(bind(CDFC4_FORE_OR_BOTH), CDFS4_BOTH);
  // Where the client cannot be called.
  harness_.connection().max_backward = 0;
  EXPECT_EQ(after(static_cast<Asked>(5), CDFC4_FORE_OR_BOTH), CDFS4_FORE);
  EXPECT_EQ(after(static_cast<Asked>(5), CDFC4_BACK_OR_BOTH), kRefused);
  EXPECT_EQ(after(static_cast<Asked>(5), CDFC4_BACK), kRefused);
  EXPECT_EQ(bind(static_cast<Asked>(5)), kRefused);
}

}  // namespace
}  // namespace nfsrdma::test
