// SPDX-License-Identifier: Apache-2.0
// Write delegations: the holder has the file to itself until it has given it back, and says how the
// file stands when others ask (CB_GETATTR).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "server/nfs3/procedures.h"
#include "tests/support/callback_client.h"
#include "tests/support/holder_answer.h"
#include "xdr/nfs3.h"

namespace nfsrdma::test {
namespace {

using xdr::open_delegation_type4;

class WriteDelegationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    other_ = harness_.connect("other");
    harness_.connection().max_backward = 1000;  // of sessions made from now on
    holder_ = harness_.connect("holder");
    make("file", "as it was");
  }
  /// By a process of this machine, which leaves nothing open.
  void make(const std::string& name, std::string_view content) {
    const UniqueFd fd(::open(harness_.path(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::write(fd.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
  }
  /// Of this process, which is not to wait for a lease.
  int open_here(int flags) {
    const UniqueFd fd(::open(harness_.path("file").c_str(), flags | O_NONBLOCK | O_CLOEXEC));
    return fd ? 0 : errno;
  }

  /// By anybody, the server too: then this machine executes it not (ETXTBSY).
  bool is_open_for_writing() {
    const UniqueFd fd(::open(harness_.path("file").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    return !fd || ::fcntl(fd.get(), F_SETLEASE, F_RDLCK) != 0;
  }

  Reply4 open(Session4& session, std::uint32_t access, bool create = false) {
    xdr::OPEN4args args;
    args.share_access = access;
    args.owner = {session.client, as_bytes(std::string_view("owner"))};
    args.claim.file = "file";
    if (create) args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    return harness_.run(session,
                        Operations4().putfh(harness_.root()).add<OP_OPEN>(args).add<OP_GETFH>());
  }
  void take(bool create = false) {
    const Reply4 reply = open(holder_, xdr::OPEN4_SHARE_ACCESS_BOTH, create);
    ASSERT_EQ(reply.status, NFS4_OK);
    const auto& result = reply.get<OP_OPEN>().resok4;
    ASSERT_EQ(result.delegation.delegation_type, open_delegation_type4::OPEN_DELEGATE_WRITE);
    EXPECT_EQ(result.delegation.write.permissions.access_mask, 0u);
    EXPECT_EQ(result.delegation.write.space_limit.limitby, xdr::limit_by4::NFS_LIMIT_SIZE);
    EXPECT_EQ(result.delegation.write.space_limit.filesize, 0u) << "CLOSE shall have written";
    delegation_ = result.delegation.write.stateid;
    open_ = result.stateid;
    file_ = to_handle(reply.get<OP_GETFH>().resok4.object.data);
  }
  nfsstat4 give_back() {
    return harness_.run(holder_, Operations4().putfh(file_).add<OP_DELEGRETURN>({delegation_}))
        .status;
  }
  nfsstat4 write(Session4& session, const xdr::stateid4& stateid, std::string_view data) {
    return harness_
        .run(session, Operations4().putfh(file_).add<OP_WRITE>(
                          {stateid, 0, xdr::stable_how4::UNSTABLE4, {as_bytes(data)}}))
        .status;
  }
  nfsstat4 read(Session4& session, const xdr::stateid4& stateid, std::string* data = nullptr) {
    const Reply4 reply =
        harness_.run(session, Operations4().putfh(file_).add<OP_READ>({stateid, 0, 100}));
    if (data != nullptr && reply.status == NFS4_OK)
      *data = as_text(reply.get<OP_READ>().resok4.data.bytes);
    return reply.status;
  }

  struct Seen {
    nfsstat4 status;
    std::uint64_t change = 0;
    std::uint64_t size = 0;
    std::pair<std::int64_t, std::uint32_t> modified{};
  };
  /// The file's size as a listing has it.
  std::uint64_t listed_size(Session4& session) {
    using enum xdr::fattr4_number;
    const Reply4 reply = harness_.run(
        session, Operations4()
                     .putfh(harness_.root())
                     .add<OP_READDIR>({0, {}, 4000, 4000, xdr::bitmap4::of({FATTR4_SIZE})}));
    EXPECT_EQ(reply.status, NFS4_OK);
    for (const xdr::entry4& entry : reply.get<OP_READDIR>().resok4.reply.entries) {
      xdr::FileAttributes4 attributes;
      EXPECT_EQ(xdr::decode_attributes(entry.attrs, attributes).outcome,
                xdr::AttributeDecoding::kOk);
      if (entry.name == "file") return attributes.size;
    }
    return UINT64_MAX;
  }
  Seen look(Session4& session) {
    using enum xdr::fattr4_number;
    const Reply4 reply = harness_.run(
        session, Operations4().putfh(file_).add<OP_GETATTR>(
                     {xdr::bitmap4::of({FATTR4_CHANGE, FATTR4_SIZE, FATTR4_TIME_MODIFY})}));
    if (reply.status != NFS4_OK) return {reply.status};
    xdr::FileAttributes4 attributes;
    const auto result = reply.get<OP_GETATTR>();
    EXPECT_EQ(xdr::decode_attributes(result.resok4.obj_attributes, attributes).outcome,
              xdr::AttributeDecoding::kOk);
    const auto& modified = attributes.time_modify;
    return {NFS4_OK, attributes.change, attributes.size, {modified.seconds, modified.nseconds}};
  }
  /// The oldest callback is a CB_GETATTR, and so answered.
  void tell(std::uint64_t change, std::uint64_t size) {
    const auto asked = CallbackClient::read<xdr::CB_GETATTR4args>(*client_side_.calls().at(0));
    EXPECT_EQ(asked.operation, xdr::nfs_cb_opnum4::OP_CB_GETATTR);
    EXPECT_TRUE(std::equal(asked.args.fh.data.begin(), asked.args.fh.data.end(),
                           file_.bytes().begin(), file_.bytes().end()));
    client_side_.answer(NFS4_OK, holder_answer(change, size));
  }
  void expect_recall() {
    const auto asked = CallbackClient::read<xdr::CB_RECALL4args>(*client_side_.calls().at(0));
    EXPECT_EQ(asked.operation, xdr::nfs_cb_opnum4::OP_CB_RECALL);
    EXPECT_EQ(asked.args.stateid.other, delegation_.other);
    client_side_.answer();
  }
  bool is_quiet() { return client_side_.is_quiet(); }

  Nfs4Harness harness_;
  CallbackClient client_side_{harness_};
  Session4 holder_, other_;
  FileHandle file_;
  xdr::stateid4 delegation_, open_;
};

TEST_F(WriteDelegationsTest, AWriterGetsOneAndUsesIt) {
  take();
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_CLOSE>({0, open_})).status,
            NFS4_OK);
  EXPECT_EQ(write(holder_, delegation_, "it"), NFS4_OK);
  std::string data;
  EXPECT_EQ(read(holder_, delegation_, &data), NFS4_OK);
  EXPECT_EQ(data, "it it was");
}

TEST_F(WriteDelegationsTest, SoDoesWhoMakesTheFile) {
  ASSERT_EQ(::unlink(harness_.path("file").c_str()), 0);
  take(true);
  EXPECT_EQ(write(holder_, delegation_, "new"), NFS4_OK);
  EXPECT_EQ(open_here(O_RDONLY), EWOULDBLOCK);
}

TEST_F(WriteDelegationsTest, OthersWaitUntilItIsGivenBack) {
  take();
  EXPECT_EQ(open(other_, xdr::OPEN4_SHARE_ACCESS_READ).status, NFS4ERR_DELAY);
  expect_recall();
  EXPECT_EQ(open(other_, xdr::OPEN4_SHARE_ACCESS_READ).status, NFS4ERR_DELAY);
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(write(holder_, delegation_, "written before it is given back"), NFS4_OK);
  EXPECT_EQ(give_back(), NFS4_OK);
  const Reply4 opened = open(other_, xdr::OPEN4_SHARE_ACCESS_READ);
  ASSERT_EQ(opened.status, NFS4_OK);
  std::string data;
  EXPECT_EQ(read(other_, opened.get<OP_OPEN>().resok4.stateid, &data), NFS4_OK);
  EXPECT_EQ(data, "written before it is given back");
  EXPECT_EQ(open_here(O_RDONLY), 0);
}

/// Without an open, and by way of the descriptor that the lease lets in.
TEST_F(WriteDelegationsTest, WhoReadsOrWritesWithoutAnOpenWaitsToo) {
  take();
  EXPECT_EQ(read(other_, {}), NFS4ERR_DELAY);
  expect_recall();
  EXPECT_EQ(write(other_, {}, "x"), NFS4ERR_DELAY);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(read(other_, {}), NFS4_OK);
}

TEST_F(WriteDelegationsTest, AProcessOfThisMachineWaitsToo) {
  take();
  EXPECT_EQ(open_here(O_RDONLY), EWOULDBLOCK);
  expect_recall();
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(open_here(O_RDWR), 0);
}

TEST_F(WriteDelegationsTest, NoneWhileAnybodyElseHasTheFile) {
  const auto type = [this] {
    const Reply4 reply = open(holder_, xdr::OPEN4_SHARE_ACCESS_BOTH);
    EXPECT_EQ(reply.status, NFS4_OK);
    return reply.get<OP_OPEN>().resok4.delegation.delegation_type;
  };
  {
    const UniqueFd reader(::open(harness_.path("file").c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(type(), open_delegation_type4::OPEN_DELEGATE_NONE);
  }
  const Reply4 opened = open(other_, xdr::OPEN4_SHARE_ACCESS_READ);
  file_ = to_handle(opened.get<OP_GETFH>().resok4.object.data);
  EXPECT_EQ(type(), open_delegation_type4::OPEN_DELEGATE_NONE);
  const xdr::stateid4 stateid = opened.get<OP_OPEN>().resok4.stateid;
  EXPECT_EQ(harness_.run(other_, Operations4().putfh(file_).add<OP_CLOSE>({0, stateid})).status,
            NFS4_OK);
  EXPECT_EQ(type(), open_delegation_type4::OPEN_DELEGATE_WRITE) << "the holder's own opens may be";
}

TEST_F(WriteDelegationsTest, TheHolderIsAskedHowTheFileStands) {
  take();
  const Seen own = look(holder_);
  ASSERT_EQ(own.status, NFS4_OK);
  EXPECT_EQ(own.size, 9u);
  EXPECT_TRUE(is_quiet()) << "the holder itself is not";

  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY) << "no answer yet";
  tell(own.change, 9);
  const Seen same = look(other_);
  ASSERT_EQ(same.status, NFS4_OK);
  EXPECT_EQ(same.change, own.change);
  EXPECT_EQ(same.size, 9u);
  EXPECT_EQ(same.modified, own.modified);
  EXPECT_TRUE(is_quiet());

  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
  tell(own.change + 1, 4711);
  const Seen grown = look(other_);
  ASSERT_EQ(grown.status, NFS4_OK);
  EXPECT_GT(grown.change, own.change);
  EXPECT_EQ(grown.size, 4711u);
  EXPECT_GT(grown.modified, own.modified);

  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
  tell(own.change + 1, 4711);
  EXPECT_GT(look(other_).change, grown.change) << "there may be more of it";

  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
  tell(own.change + 1, 4711);
  harness_.clock.move(std::chrono::seconds(3));
  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY) << "that answer was too old";
  tell(own.change + 1, 4711);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(look(other_).size, 9u) << "nothing was written after all";
}

TEST_F(WriteDelegationsTest, ListingsAskTheHolderToo) {
  take();
  EXPECT_EQ(listed_size(holder_), 9u);
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(listed_size(other_), 9u) << "no answer: the entry is as the server sees it";
  tell(1, 4711);
  EXPECT_EQ(listed_size(other_), 4711u);
}

/// Else this machine could not execute it for a while.
TEST_F(WriteDelegationsTest, WhatIsGivenBackIsNotOpenForWritingAnyMore) {
  take();
  EXPECT_EQ(write(holder_, delegation_, "it"), NFS4_OK);
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_COMMIT>({0, 0})).status,
            NFS4_OK);
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_CLOSE>({0, open_})).status,
            NFS4_OK);
  EXPECT_TRUE(is_open_for_writing());
  expect_recall();  // since somebody looked
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_FALSE(is_open_for_writing());
}

TEST_F(WriteDelegationsTest, NorWhatIsClosed) {
  const Reply4 opened = open(other_, xdr::OPEN4_SHARE_ACCESS_BOTH);
  file_ = to_handle(opened.get<OP_GETFH>().resok4.object.data);
  const xdr::stateid4 stateid = opened.get<OP_OPEN>().resok4.stateid;
  ASSERT_EQ(write(other_, stateid, "it"), NFS4_OK);
  EXPECT_TRUE(is_open_for_writing());
  const auto close = [&] {
    const Reply4 reply =
        harness_.run(other_, Operations4().putfh(file_).add<OP_CLOSE>({0, stateid}));
    EXPECT_EQ(reply.status, NFS4_OK);
  };
  EXPECT_EQ(harness_.run(other_, Operations4().putfh(file_).add<OP_COMMIT>({0, 0})).status,
            NFS4_OK);
  close();
  EXPECT_FALSE(is_open_for_writing());
}

/// It may say the same each time (RFC 8881 10.4.3), here what others were told in between.
TEST_F(WriteDelegationsTest, TheSameAnswerAgainIsAnotherChange) {
  take();
  const Seen own = look(holder_);
  std::uint64_t last = own.change;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
    tell(own.change + 1, own.size);
    const Seen seen = look(other_);
    ASSERT_EQ(seen.status, NFS4_OK);
    EXPECT_GT(seen.change, last);
    last = seen.change;
  }
}

TEST_F(WriteDelegationsTest, AnAnswerInTimeIsNotWaitedForTwice) {
  take();
  const Seen own = look(holder_);
  Seen seen{};
  std::thread asks([&] { seen = look(other_); });
  tell(own.change + 1, 12);
  asks.join();
  // On a slow machine the answer may have come too late: then it is there now.
  if (seen.status == NFS4ERR_DELAY) seen = look(other_);
  ASSERT_EQ(seen.status, NFS4_OK);
  EXPECT_EQ(seen.size, 12u);
}

TEST_F(WriteDelegationsTest, AHolderThatCannotTellIsAskedForTheDelegation) {
  take();
  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
  (void)client_side_.calls();
  client_side_.answer(NFS4ERR_BADHANDLE);
  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
  expect_recall();
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(look(other_).status, NFS4_OK);
}

/// By another name, and so by another handle in other exports; here by what the cache forgot.
TEST_F(WriteDelegationsTest, TheHolderIsAskedWhateverEntryTheFileHas) {
  take();
  const Seen own = look(holder_);
  harness_.server().files.forget(file_);
  EXPECT_EQ(look(other_).status, NFS4ERR_DELAY);
  tell(own.change + 1, 100);
  EXPECT_EQ(look(other_).size, 100u);
}

/// Both get the same entry, and the lease belongs to that.
TEST_F(WriteDelegationsTest, ASecondOpenLeavesTheLeaseAlone) {
  take();
  for (const std::uint32_t access : {xdr::OPEN4_SHARE_ACCESS_BOTH, xdr::OPEN4_SHARE_ACCESS_READ}) {
    const Reply4 again = open(holder_, access);
    ASSERT_EQ(again.status, NFS4_OK);
    EXPECT_EQ(again.get<OP_OPEN>().resok4.delegation.delegation_type,
              open_delegation_type4::OPEN_DELEGATE_NONE);
  }
  EXPECT_EQ(write(holder_, delegation_, "it"), NFS4_OK);
  EXPECT_EQ(open_here(O_RDONLY), EWOULDBLOCK);
}

TEST_F(WriteDelegationsTest, NoTwoAreGivenAtOnce) {
  auto& state = harness_.state();
  struct stat st;
  ASSERT_EQ(::stat(harness_.path("file").c_str(), &st), 0);
  const nfs4::FileKey file = nfs4::file_key(st.st_dev, st.st_ino);
  {
    std::lock_guard lock(state.mutex);
    ASSERT_TRUE(state.delegations.begin_giving(holder_.client, file));
    EXPECT_FALSE(state.delegations.begin_giving(holder_.client, file));
  }
  for (const std::uint32_t access : {xdr::OPEN4_SHARE_ACCESS_BOTH, xdr::OPEN4_SHARE_ACCESS_READ}) {
    EXPECT_EQ(open(holder_, access).get<OP_OPEN>().resok4.delegation.delegation_type,
              open_delegation_type4::OPEN_DELEGATE_NONE);
  }
  std::lock_guard lock(state.mutex);
  state.delegations.end_giving(file);
}

/// The kernel tells of it as of anybody's change.
TEST_F(WriteDelegationsTest, WhatTheHolderChangesItselfIsNoReasonForARecall) {
  take();
  std::array<std::byte, 4> mode{};
  store_be32(mode.data(), 0600);
  xdr::SETATTR4args args;
  args.obj_attributes.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
  args.obj_attributes.attr_vals = mode;
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_SETATTR>(args)).status,
            NFS4_OK);
  harness_.connection().loop().turn(std::chrono::milliseconds(20));
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(harness_.run(other_, Operations4().putfh(file_).add<OP_SETATTR>(args)).status,
            NFS4ERR_DELAY);
  expect_recall();
}

/// No name leads to the file any more, and its handle must not lead past the lease.
TEST_F(WriteDelegationsTest, TheHolderGoesOnWithAFileThatItRemoved) {
  take();
  EXPECT_EQ(
      harness_.run(holder_, Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status,
      NFS4_OK);
  EXPECT_EQ(write(holder_, delegation_, "it"), NFS4_OK);
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(file_).add<OP_COMMIT>({0, 0})).status,
            NFS4_OK);
  std::string data;
  EXPECT_EQ(read(holder_, delegation_, &data), NFS4_OK);
  EXPECT_EQ(data, "it it was");
  EXPECT_TRUE(is_quiet());
}

TEST_F(WriteDelegationsTest, TheHolderCutsItsOwnFile) {
  take();
  std::array<std::byte, 8> size{};
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_WRITE;
  args.owner = {holder_.client, as_bytes(std::string_view("owner"))};
  args.claim.file = "file";
  args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  args.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
  args.openhow.how.createattrs.attr_vals = size;
  EXPECT_EQ(harness_.run(holder_, Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status,
            NFS4_OK);
  EXPECT_EQ(look(holder_).size, 0u);
  EXPECT_TRUE(is_quiet());
}

TEST_F(WriteDelegationsTest, ClientsOfVersion3WaitToo) {
  take();
  const auto call = [this](auto procedure, const auto& args) {
    nfsrdma::xdr::nfsstat3 status{};
    harness_.on_its_thread([&] {
      std::vector<std::byte> arguments(512), room(1024);
      xdr::Encoder encoder(arguments);
      xdr::encode(encoder, args);
      arguments.resize(encoder.size());
      StubCall stub(harness_.connection(), arguments);
      Request request;
      request.call = &stub;
      request.may_block = true;
      xdr::Decoder decoder(arguments);
      xdr::Encoder result(room);
      EXPECT_EQ(procedure(harness_.server(), request, decoder, result), Outcome::kReply);
      status = static_cast<xdr::nfsstat3>(load_be32(room.data()));
    });
    return status;
  };
  xdr::GETATTR3args look;
  look.object.data = file_.bytes();
  xdr::READ3args read;
  read.file.data = file_.bytes();
  // By another entry, as by another export.
  harness_.server().files.forget(file_);
  EXPECT_EQ(call(nfs3::getattr, look), xdr::nfsstat3::NFS3ERR_JUKEBOX);
  expect_recall();
  EXPECT_EQ(call(nfs3::read, read), xdr::nfsstat3::NFS3ERR_JUKEBOX);
  EXPECT_EQ(give_back(), NFS4_OK);
  EXPECT_EQ(call(nfs3::getattr, look), xdr::nfsstat3::NFS3_OK);
  EXPECT_EQ(call(nfs3::read, read), xdr::nfsstat3::NFS3_OK);
}

}  // namespace
}  // namespace nfsrdma::test
