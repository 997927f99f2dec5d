// SPDX-License-Identifier: Apache-2.0
// Absent file systems and where they are (RFC 7530 8, RFC 8881 11.4, 11.16), the options refer= and
// replicas= of an export.
#include "tests/support/nfs4_exports.h"

namespace nfsrdma::test {
namespace {

using xdr::bitmap4;
using enum xdr::fattr4_number;

constexpr bitmap4 kLocations = bitmap4::of({FATTR4_FS_LOCATIONS});

/// "/a/b" of a pathname4.
std::string text_of(const xdr::pathname4& path) {
  std::string out;
  for (const xdr::component4& name : path.components)
    out.append("/").append(name.name);
  return out.empty() ? "/" : out;
}

/// "/root: /x@one+two /y@three".
std::string text_of(const xdr::fs_locations4& locations) {
  std::string out = text_of(locations.fs_root) + ":";
  for (const xdr::fs_location4& location : locations.locations) {
    out.append(" ").append(text_of(location.rootpath));
    char separator = '@';
    for (const xdr::component4& server : location.server) {
      out.append(1, separator).append(server.name);
      separator = '+';
    }
  }
  return out;
}

class Referrals : public Exports4 {
 protected:
  void SetUp() override {
    make_directory("away");
    make_directory("here");
    load(
        "@ *(rw,no_root_squash)\n@/away "
        "*(rw,refer=/x/y@one.example.org+192.0.2.1:/@[2001:db8::1])\n");
  }
  std::string locations(const std::string& name) {
    const Attributes4 got = attributes(way_to(name), kLocations);
    EXPECT_EQ(got.status, NFS4_OK) << name;
    EXPECT_TRUE(got.has(FATTR4_FS_LOCATIONS));
    return text_of(got.values.fs_locations);
  }
  const std::string there = " /x/y@one.example.org+192.0.2.1 /@2001:db8::1";
};

TEST_F(Referrals, LookupSucceedsAndMostOtherThingsHaveMoved) {
  EXPECT_EQ(nfs.run(way_to("away")).status, NFS4_OK);
  const Operations4 away = way_to("away");
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_GETFH>()).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_ACCESS>({1})).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_SAVEFH>()).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_LOOKUP>({"f"})).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_LOOKUPP>()).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_READDIR>({0, {}, 0, 4096, {}})).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_SECINFO_NO_NAME>()).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_REMOVE>({"f"})).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_VERIFY>()).status, NFS4ERR_MOVED);
  EXPECT_EQ(nfs.run(Operations4(away).add<OP_PUTROOTFH>().add<OP_GETFH>()).status, NFS4_OK);
  EXPECT_EQ(nfs.run(way_to("").add<OP_SECINFO>({"away"})).status, NFS4_OK);
}

TEST_F(Referrals, GetattrTellsWhereItIs) {
  EXPECT_EQ(locations("away"), nfs.path("away") + ":" + there);
}

TEST_F(Referrals, GetattrKnowsOfFourAttributes) {
  const bitmap4 known = bitmap4::of(
      {FATTR4_FSID, FATTR4_FS_LOCATIONS, FATTR4_MOUNTED_ON_FILEID, FATTR4_RDATTR_ERROR});
  const Attributes4 got = attributes(way_to("away"), known);
  ASSERT_EQ(got.status, NFS4_OK);
  EXPECT_EQ(got.values.attrmask, known);
  EXPECT_EQ(got.values.rdattr_error, NFS4_OK);
  EXPECT_EQ(got.values.mounted_on_fileid, inode("away"));
  EXPECT_EQ(attributes(way_to("away"), known.without(kLocations)).status, NFS4_OK);
  // Of more, what there is to whoever asks where it went, else nothing.
  const bitmap4 more = bitmap4::of({FATTR4_FSID, FATTR4_TYPE, FATTR4_FILEID});
  const Attributes4 with = attributes(way_to("away"), more | known);
  ASSERT_EQ(with.status, NFS4_OK);
  EXPECT_EQ(with.values.attrmask, known);
  EXPECT_EQ(with.values.rdattr_error, NFS4_OK);
  EXPECT_EQ(attributes(way_to("away"), more).status, NFS4ERR_MOVED);
  EXPECT_EQ(attributes(way_to("away"), more | bitmap4::of({FATTR4_RDATTR_ERROR})).status,
            NFS4ERR_MOVED);
}

TEST_F(Referrals, ItsFsidIsNobodyElses) {
  const bitmap4 fsid = bitmap4::of({FATTR4_FSID});
  const Attributes4 away = attributes(way_to("away"), fsid);
  EXPECT_NE(away.values.fsid.major, attributes(way_to("here"), fsid).values.fsid.major);
  EXPECT_NE(away.values.fsid.major, 0u);  // the pseudo file system's
}

TEST_F(Referrals, ReaddirShowsTheEntry) {
  const bitmap4 wanted = bitmap4::of(
      {FATTR4_TYPE, FATTR4_FSID, FATTR4_FILEHANDLE, FATTR4_MOUNTED_ON_FILEID, FATTR4_RDATTR_ERROR});
  const auto listed = list(way_to(""), wanted);
  ASSERT_EQ(listed.size(), 2u);
  const Attributes4& away = listed.at("away");
  EXPECT_EQ(away.values.rdattr_error, NFS4ERR_MOVED);
  EXPECT_EQ(away.values.mounted_on_fileid, inode("away"));
  EXPECT_FALSE(away.has(FATTR4_TYPE));
  EXPECT_FALSE(away.has(FATTR4_FILEHANDLE));
  EXPECT_TRUE(away.has(FATTR4_FSID));
  EXPECT_EQ(listed.at("here").values.rdattr_error, NFS4_OK);
  EXPECT_TRUE(listed.at("here").has(FATTR4_TYPE));
  // Who asks where it is gets no error beside that (RFC 8881 11.4.3).
  const auto with = list(way_to(""), wanted | kLocations);
  EXPECT_EQ(with.at("away").values.rdattr_error, NFS4_OK);
  EXPECT_TRUE(with.at("away").has(FATTR4_FS_LOCATIONS));
}

TEST_F(Referrals, ReaddirWithoutRdattrErrorFails) {
  nfsstat4 status = NFS4_OK;
  list(way_to(""), bitmap4::of({FATTR4_TYPE}), &status);
  EXPECT_EQ(status, NFS4ERR_MOVED);
  const auto listed = list(way_to(""), bitmap4::of({FATTR4_FS_LOCATIONS}));
  EXPECT_EQ(text_of(listed.at("away").values.fs_locations), nfs.path("away") + ":" + there);
  EXPECT_EQ(text_of(listed.at("here").values.fs_locations), nfs.directory() + ":");
}

TEST_F(Referrals, BelowThePseudoFileSystemItIsTheSame) {
  load("@/away *(refer=/x@h)\n@/here *(rw)\n");
  EXPECT_EQ(nfs.run(way_to("away").add<OP_GETFH>()).status, NFS4ERR_MOVED);
  EXPECT_EQ(locations("away"), nfs.path("away") + ": /x@h");
  const auto listed =
      list(way_to(""), bitmap4::of({FATTR4_TYPE, FATTR4_RDATTR_ERROR, FATTR4_MOUNTED_ON_FILEID}));
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed.at("away").values.rdattr_error, NFS4ERR_MOVED);
  EXPECT_EQ(listed.at("here").values.rdattr_error, NFS4_OK);
  const auto mounted_on = bitmap4::of({FATTR4_MOUNTED_ON_FILEID});
  EXPECT_EQ(listed.at("away").values.mounted_on_fileid,
            attributes(way_to("away"), mounted_on).values.mounted_on_fileid);
}

TEST_F(Referrals, HandlesFromBeforeHaveMovedToo) {
  load("@ *(rw,no_root_squash)\n@/away *(rw,no_root_squash)\n");
  put_file(nfs.path("away/f"), "");
  make_directory("away/d");
  const FileHandle file = walk("away/f");
  const FileHandle directory = walk("away/d");
  std::filesystem::remove(nfs.path("away/f"));
  SetUp();
  for (const FileHandle& handle : {file, directory}) {
    EXPECT_EQ(nfs.run(Operations4().putfh(handle)).status, NFS4_OK);
    EXPECT_EQ(nfs.on<OP_GETFH>(handle).status, NFS4ERR_MOVED);
    const Attributes4 got = attributes(Operations4().putfh(handle), kLocations);
    ASSERT_EQ(got.status, NFS4_OK);
    EXPECT_EQ(text_of(got.values.fs_locations), nfs.path("away") + ":" + there);
  }
}

TEST_F(Referrals, OneClientsReferralIsNotAnothers) {
  load("@/away 198.51.100.1(refer=/x@h) *(rw,no_root_squash)\n");
  EXPECT_EQ(nfs.run(way_to("away").add<OP_GETFH>()).status, NFS4_OK);
  EXPECT_EQ(locations("away"), nfs.path("away") + ":");
}

TEST_F(Referrals, WhatIsHereTellsItsRootAndReplicas) {
  EXPECT_EQ(locations(""), nfs.directory() + ":");
  EXPECT_EQ(locations("here"), nfs.directory() + ":");
  load("@ *(rw,no_root_squash,replicas=/r@one:/s@two)\n");
  EXPECT_EQ(locations("here"), nfs.directory() + ": /r@one /s@two");
  EXPECT_EQ(nfs.run(way_to("here").add<OP_GETFH>()).status, NFS4_OK);
  load("@ *(rw,no_root_squash,fsid=0)\n@/here *(rw)\n");
  const Attributes4 root = attributes(Operations4().add<OP_PUTROOTFH>(), kLocations);
  EXPECT_EQ(text_of(root.values.fs_locations), "/:");
  const Attributes4 here =
      attributes(Operations4().add<OP_PUTROOTFH>().add<OP_LOOKUP>({"here"}), kLocations);
  EXPECT_EQ(text_of(here.values.fs_locations), "/here:");
}

TEST_F(Referrals, ThePseudoFileSystemHasTheServersRoot) {
  load("@/here *(rw)\n");
  const Attributes4 root = attributes(Operations4().add<OP_PUTROOTFH>(), kLocations);
  ASSERT_EQ(root.status, NFS4_OK);
  EXPECT_EQ(text_of(root.values.fs_locations), "/:");
}

TEST_F(Referrals, LocationsCanBeVerifiedAndNotSet) {
  load("@ *(rw,no_root_squash,replicas=/r@one)\n");
  xdr::GETATTR4args args;
  args.attr_request = kLocations;
  const Reply4 reply = nfs.run(way_to("here").add<OP_GETATTR>(args));
  const auto res = reply.get<OP_GETATTR>();
  const xdr::fattr4 ours = res.resok4.obj_attributes;
  EXPECT_EQ(nfs.run(way_to("here").add<OP_VERIFY>({ours})).status, NFS4_OK);
  EXPECT_EQ(nfs.run(way_to("here").add<OP_NVERIFY>({ours})).status, NFS4ERR_SAME);
  load("@ *(rw,no_root_squash,replicas=/r@two)\n");
  EXPECT_EQ(nfs.run(way_to("here").add<OP_VERIFY>({ours})).status, NFS4ERR_NOT_SAME);
  xdr::SETATTR4args set;
  set.obj_attributes = ours;
  EXPECT_EQ(nfs.run(way_to("here").add<OP_SETATTR>(set)).status, NFS4ERR_INVAL);
}

/// RFC 8881 11.4.2: VERIFY and NVERIFY are for fs_locations, with what else an absent file system
/// has.
TEST_F(Referrals, LocationsOfWhatIsElsewhereCanBeVerified) {
  const auto ours = [&](const bitmap4& asked) { return attributes(way_to("away"), asked); };
  const auto as_fattr = [](const Attributes4& from) {
    return xdr::fattr4{from.values.attrmask, *from.bytes};
  };
  const auto run = [&](const xdr::fattr4& given, bool negated) {
    return negated ? nfs.run(way_to("away").add<OP_NVERIFY>({given})).status
                   : nfs.run(way_to("away").add<OP_VERIFY>({given})).status;
  };
  for (const bitmap4& asked :
       {kLocations, bitmap4::of({FATTR4_FS_LOCATIONS, FATTR4_FSID, FATTR4_MOUNTED_ON_FILEID})}) {
    const Attributes4 got = ours(asked);
    ASSERT_EQ(got.status, NFS4_OK);
    EXPECT_EQ(run(as_fattr(got), false), NFS4_OK);
    EXPECT_EQ(run(as_fattr(got), true), NFS4ERR_SAME);
    const Attributes4 others = attributes(way_to("here"), asked);
    EXPECT_EQ(run(as_fattr(others), false), NFS4ERR_NOT_SAME);
    EXPECT_EQ(run(as_fattr(others), true), NFS4_OK);
  }
  // Without fs_locations, or with what is not there, it has moved.
  const Attributes4 fsid = ours(bitmap4::of({FATTR4_FSID}));
  EXPECT_EQ(run(as_fattr(fsid), false), NFS4ERR_MOVED);
  EXPECT_EQ(run(as_fattr(fsid), true), NFS4ERR_MOVED);
  const Attributes4 more =
      attributes(way_to("here"), bitmap4::of({FATTR4_FS_LOCATIONS, FATTR4_TYPE}));
  EXPECT_EQ(run(as_fattr(more), false), NFS4ERR_MOVED);
  EXPECT_EQ(run(as_fattr(more), true), NFS4ERR_MOVED);
}

TEST_F(Referrals, LongLocationsFindRoom) {
  std::string refer = "/" + std::string(200, 'a');
  for (int i = 0; i < 4; ++i)
    refer += "/" + std::string(200, 'b');
  refer += "@h";
  std::string all = refer;
  for (int i = 1; i < 64; ++i)
    all += ":" + refer;
  load("@ *(rw)\n@/away *(refer=" + all + ")\n");
  const Attributes4 got = attributes(way_to("away"), kLocations);
  ASSERT_EQ(got.status, NFS4_OK);
  EXPECT_EQ(got.values.fs_locations.locations.count, 64u);
}

TEST_F(Referrals, ExchangeIdSaysThatThereMayBeSome) {
  xdr::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = as_bytes("another");
  const Reply4 reply = nfs.run_bare(Operations4().add<OP_EXCHANGE_ID>(who));
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_NE(reply.get<OP_EXCHANGE_ID>().resok4.eir_flags & xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER, 0u);
}

TEST_F(Referrals, LocationsInfoIsNotSupported) {
  const Attributes4 got =
      attributes(way_to("here"), bitmap4::of({FATTR4_FS_LOCATIONS_INFO, FATTR4_SUPPORTED_ATTRS}));
  ASSERT_EQ(got.status, NFS4_OK);
  EXPECT_FALSE(got.has(FATTR4_FS_LOCATIONS_INFO));
  EXPECT_FALSE(got.values.supported_attrs.has(FATTR4_FS_LOCATIONS_INFO));
  EXPECT_TRUE(got.values.supported_attrs.has(FATTR4_FS_LOCATIONS));
}

}  // namespace
}  // namespace nfsrdma::test
