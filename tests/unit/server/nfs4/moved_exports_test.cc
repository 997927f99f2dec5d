// SPDX-License-Identifier: Apache-2.0
// What clients that hold something in an export hear when it is sent to another server, though they
// do not use it (SEQ4_STATUS_LEASE_MOVED, RFC 8881 11.5, 18.46.3).
#include "server/nfs4/moved_exports.h"

#include "tests/support/callback_client.h"
#include "tests/support/nfs4_exports.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kMoved = xdr::SEQ4_STATUS_LEASE_MOVED;
constexpr const char* kBoth = "@/moves *(rw,no_root_squash)\n@/stays *(rw,no_root_squash)\n";
constexpr const char* kAway =
    "@/moves *(rw,no_root_squash,refer=/x@192.0.2.1)\n@/stays *(rw,no_root_squash)\n";

class MovedExports : public Exports4 {
 protected:
  void SetUp() override {
    make_directory("moves");
    make_directory("stays");
    load(kBoth);
    other_ = nfs.connect("other");
    EXPECT_EQ(flags(nfs.session), 0u);  // the server looks at the exports
  }
  std::uint32_t flags(Session4& session) {
    return nfs.run(session, Operations4()).get<OP_SEQUENCE>().resok4.sr_status_flags;
  }
  std::uint32_t flags() { return flags(nfs.session); }
  Open4 open_in(const std::string& name) {
    Open4 file = nfs.open(walk(name), "file");
    EXPECT_EQ(file.status, NFS4_OK);
    return file;
  }
  nfsstat4 ask(Session4& session, const FileHandle& file,
               std::initializer_list<xdr::fattr4_number> what) {
    xdr::GETATTR4args args;
    args.attr_request = xdr::bitmap4::of(what);
    return nfs.run(session, Operations4().putfh(file).add<OP_GETATTR>(args)).status;
  }
  nfsstat4 ask_where(Session4& session, const FileHandle& file) {
    return ask(session, file, {xdr::fattr4_number::FATTR4_FS_LOCATIONS});
  }
  Session4 other_;
};

TEST_F(MovedExports, HoldersAreToldUntilTheyHaveAskedWhereTo) {
  const Open4 file = open_in("moves");
  load(kAway);
  EXPECT_EQ(flags(), kMoved);
  EXPECT_EQ(flags(other_), 0u) << "who holds nothing there";
  EXPECT_EQ(ask(nfs.session, file.handle, {xdr::fattr4_number::FATTR4_TYPE}), NFS4ERR_MOVED);
  EXPECT_EQ(flags(), kMoved) << "who only hears that it is not here may not know where it is";
  EXPECT_EQ(ask_where(other_, file.handle), NFS4_OK);
  EXPECT_EQ(flags(), kMoved) << "another has asked";
  EXPECT_EQ(ask_where(nfs.session, file.handle), NFS4_OK);
  EXPECT_EQ(flags(), 0u);
  EXPECT_EQ(nfs.on<OP_CLOSE>(file.handle, {0, file.stateid}).status, NFS4ERR_MOVED);
  EXPECT_EQ(flags(), 0u);
}

/// Who compares has not been told.
TEST_F(MovedExports, OnlyAnAnswerTells) {
  const Open4 file = open_in("moves");
  load(kAway);
  xdr::GETATTR4args where;
  where.attr_request = xdr::bitmap4::of({xdr::fattr4_number::FATTR4_FS_LOCATIONS});
  const Reply4 other = nfs.run(other_, Operations4().putfh(file.handle).add<OP_GETATTR>(where));
  ASSERT_EQ(other.status, NFS4_OK);
  const xdr::fattr4 ours = other.get<OP_GETATTR>().resok4.obj_attributes;
  EXPECT_EQ(nfs.run(Operations4().putfh(file.handle).add<OP_VERIFY>({ours})).status, NFS4_OK);
  EXPECT_EQ(flags(), kMoved);
  const Reply4 cut =
      nfs.run(Operations4().putfh(file.handle).add<OP_GETATTR>(where).add<OP_READLINK>());
  EXPECT_EQ(cut.status, NFS4ERR_MOVED);
  EXPECT_EQ(cut.get<OP_SEQUENCE>().resok4.sr_status_flags, 0u) << "what came behind it has failed";
  EXPECT_EQ(flags(), 0u);
}

TEST_F(MovedExports, OfOtherExportsNothingIsSaid) {
  const Open4 stays = open_in("stays");
  load(kAway);
  EXPECT_EQ(flags(), 0u);
  EXPECT_EQ(nfs.on<OP_CLOSE>(stays.handle, {0, stays.stateid}).status, NFS4_OK);
}

TEST_F(MovedExports, EachIsAskedForOnItsOwn) {
  const Open4 moves = open_in("moves"), stays = open_in("stays");
  load("@/moves *(rw,refer=/x@192.0.2.1)\n@/stays *(rw,refer=/y@192.0.2.1)\n");
  EXPECT_EQ(flags(), kMoved);
  xdr::GETATTR4args where;
  where.attr_request = xdr::bitmap4::of({xdr::fattr4_number::FATTR4_FS_LOCATIONS});
  const Reply4 reply =
      nfs.run(nfs.session, Operations4().putfh(moves.handle).add<OP_GETATTR>(where));
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_SEQUENCE>().resok4.sr_status_flags, 0u)
      << "Linux's client would take that for a failure";
  EXPECT_EQ(flags(), kMoved) << "of the other";
  EXPECT_EQ(ask_where(nfs.session, stays.handle), NFS4_OK);
  EXPECT_EQ(flags(), 0u);
}

TEST_F(MovedExports, WhatComesBackIsNoNewsAnyMore) {
  open_in("moves");
  load(kAway);
  EXPECT_EQ(flags(), kMoved);
  load(kBoth);
  EXPECT_EQ(flags(), 0u);
  load(kAway);
  EXPECT_EQ(flags(), kMoved) << "the next time is another time";
}

/// A reload for other reasons is no move.
TEST_F(MovedExports, IsSaidOnce) {
  const Open4 file = open_in("moves");
  load(kAway);
  EXPECT_EQ(flags(), kMoved);
  EXPECT_EQ(ask_where(nfs.session, file.handle), NFS4_OK);
  load(kAway);
  EXPECT_EQ(flags(), 0u);
}

/// Who cannot follow is not told for ever.
TEST_F(MovedExports, IsSaidForSomeTime) {
  open_in("moves");
  load(kAway);
  EXPECT_EQ(flags(), kMoved);
  const Duration step = nfs.state().lease() / 2;
  for (Duration left = nfs4::kToldOfMoves - std::chrono::seconds(1); left > step; left -= step) {
    nfs.clock.move(step);
    EXPECT_EQ(flags(), kMoved);
  }
  nfs.clock.move(step);
  (void)flags();
  nfs.clock.move(std::chrono::seconds(2));
  EXPECT_EQ(flags(), 0u);
}

TEST_F(MovedExports, WhatIsElsewhereForSomeAloneIsNotToldToAnybody) {
  open_in("moves");
  load(
      "@/moves 198.51.100.1(rw,refer=/x@192.0.2.1) *(rw,no_root_squash)\n"
      "@/stays *(rw,no_root_squash)\n");
  EXPECT_EQ(flags(), 0u);
}

TEST_F(MovedExports, DelegationsCountAsWell) {
  CallbackClient client_side(nfs);
  nfs.connection().max_backward = 1000;
  Session4 holder = nfs.connect("holder");
  put_file(nfs.path("moves/file"), "content");
  const FileHandle directory = walk("moves");
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
  args.owner = {holder.client, as_bytes(std::string_view("owner"))};
  args.claim.file = "file";
  const Reply4 reply =
      nfs.run(holder, Operations4().putfh(directory).add<OP_OPEN>(args).add<OP_GETFH>());
  ASSERT_EQ(reply.status, NFS4_OK);
  const auto& opened = reply.get<OP_OPEN>().resok4;
  ASSERT_EQ(opened.delegation.delegation_type, xdr::open_delegation_type4::OPEN_DELEGATE_READ);
  const FileHandle file = to_handle(reply.get<OP_GETFH>().resok4.object.data);
  ASSERT_EQ(nfs.run(holder, Operations4().putfh(file).add<OP_CLOSE>({0, opened.stateid})).status,
            NFS4_OK);
  load(kAway);
  EXPECT_EQ(flags(holder), kMoved);
  EXPECT_EQ(ask_where(holder, file), NFS4_OK);
  EXPECT_EQ(flags(holder), 0u);
}

/// Nobody could hold anything there.
TEST_F(MovedExports, WhatIsElsewhereWhenTheServerBeginsHasNotMoved) {
  open_in("moves");
  nfs.restart();
  load(kAway);
  nfs.session = nfs.connect("first");
  EXPECT_EQ(flags(), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
