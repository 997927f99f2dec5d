// SPDX-License-Identifier: Apache-2.0
// The attribute acl through COMPOUNDs; getfacl(1) and setfacl(1) are the other side of it.
#include <sys/wait.h>

#include <cstdio>

#include "server/nfs4/attributes.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using xdr::bitmap4;
using xdr::nfsace4;
using enum xdr::fattr4_number;

constexpr std::uint32_t kRead = xdr::ACE4_READ_DATA;
constexpr std::uint32_t kWrite = xdr::ACE4_WRITE_DATA | xdr::ACE4_APPEND_DATA;
constexpr std::uint32_t kWriteDirectory = kWrite | xdr::ACE4_DELETE_CHILD;
constexpr std::uint32_t kExecute = xdr::ACE4_EXECUTE;
constexpr std::uint32_t kAllow = xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE;
constexpr std::uint32_t kDeny = xdr::ACE4_ACCESS_DENIED_ACE_TYPE;
constexpr std::uint32_t kGroup = xdr::ACE4_IDENTIFIER_GROUP;
constexpr std::uint32_t kInherit = xdr::ACE4_FILE_INHERIT_ACE | xdr::ACE4_DIRECTORY_INHERIT_ACE;

class Acls : public ::testing::Test {
 protected:
  /// Attributes to be set: an ACL, and a mode when there is one.
  struct Wanted {
    explicit Wanted(const std::vector<nfsace4>& aces, std::optional<std::uint32_t> mode = {})
        : scratch(aces.size() * 64), bytes(aces.size() * 64 + 64) {
      xdr::Encoder encoder(scratch);
      xdr::FileAttributes4 values;
      values.acl.aces = xdr::encode_array<nfsace4>(encoder, aces);
      values.attrmask.set(FATTR4_ACL);
      if (mode) values.attrmask.set(FATTR4_MODE);
      values.mode = mode.value_or(0);
      xdr::Encoder all(bytes);
      xdr::detail::EncodeArchive archive(all);
      xdr::visit_attribute_values(archive, values);
      EXPECT_FALSE(encoder.overflowed() || all.overflowed());
      bytes.resize(all.size());
      fattr = {values.attrmask, bytes};
    }
    std::vector<std::byte> scratch, bytes;
    xdr::fattr4 fattr;
  };

  FileHandle make(const std::string& name, mode_t mode) {
    put_file(nfs.path(name), "", mode);
    return nfs.lookup(nfs.root(), name);
  }
  FileHandle make_directory(const std::string& name, mode_t mode = 0755) {
    std::filesystem::create_directory(nfs.path(name));
    ::chmod(nfs.path(name).c_str(), mode);
    return nfs.lookup(nfs.root(), name);
  }
  /// Runs a command of this host; what it says.
  static std::string local(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    for (int c; (c = std::fgetc(pipe)) != EOF;)
      out += static_cast<char>(c);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return out;
  }
  void setfacl(const std::string& arguments, const std::string& name) const {
    local("setfacl " + arguments + " " + nfs.path(name));
  }
  /// The entries, with commas between them.
  std::string getfacl(const std::string& name) const {
    std::string text = local("getfacl -cpnE " + nfs.path(name));
    while (text.ends_with('\n'))
      text.pop_back();
    std::ranges::replace(text, '\n', ',');
    return text;
  }
  /// As nfs4_getfacl(1) shows it, but with the masks in hex.
  static std::string text_of(const xdr::fattr4& from) {
    xdr::FileAttributes4 values;
    EXPECT_EQ(xdr::decode_attributes(from, values).outcome, xdr::AttributeDecoding::kOk);
    if (!values.attrmask.has(FATTR4_ACL)) return "none";
    std::string out;
    for (const nfsace4& ace : values.acl.aces) {
      char mask[16];
      std::snprintf(mask, sizeof mask, "%x", ace.access_mask);
      out += std::string(out.empty() ? "" : ",") + (ace.type == kAllow ? "A:" : "D:") +
             ((ace.flag & xdr::ACE4_FILE_INHERIT_ACE) != 0 ? "f" : "") +
             ((ace.flag & xdr::ACE4_DIRECTORY_INHERIT_ACE) != 0 ? "d" : "") +
             ((ace.flag & xdr::ACE4_INHERIT_ONLY_ACE) != 0 ? "i" : "") +
             ((ace.flag & kGroup) != 0 ? "g" : "") + ":" + std::string(ace.who) + ":" + mask;
    }
    return out;
  }
  std::string get(const FileHandle& object) {
    const Reply4 reply = nfs.on<OP_GETATTR>(object, {bitmap4::of({FATTR4_ACL})});
    EXPECT_EQ(reply.status, NFS4_OK);
    return text_of(reply.get<OP_GETATTR>().resok4.obj_attributes);
  }
  Reply4 set(const FileHandle& object, const Wanted& wanted) {
    xdr::SETATTR4args args;
    args.obj_attributes = wanted.fattr;
    return nfs.on<OP_SETATTR>(object, args);
  }
  nfsstat4 set(const FileHandle& object, const std::vector<nfsace4>& aces) {
    return set(object, Wanted(aces)).status;
  }
  Reply4 create_directory(const FileHandle& in, std::string_view name, const Wanted& wanted,
                          xdr::nfs_ftype4 type = xdr::nfs_ftype4::NF4DIR) {
    xdr::CREATE4args args;
    args.objtype.type = type;
    args.objtype.linkdata.bytes = as_bytes("target");
    args.objname = name;
    args.createattrs = wanted.fattr;
    return nfs.on<OP_CREATE>(in, args);
  }
  Reply4 open(const FileHandle& in, std::string_view name, const Wanted& wanted,
              xdr::createmode4 mode) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.owner = {nfs.session.client, as_bytes("owner")};
    args.claim.file = name;
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.openhow.how.mode = mode;
    args.openhow.how.createattrs = wanted.fattr;
    args.openhow.how.ch_createboth.cva_attrs = wanted.fattr;
    return nfs.on<OP_OPEN>(in, args);
  }

  Nfs4Harness nfs;
};

TEST_F(Acls, AModeIsAnAcl) {
  EXPECT_EQ(get(make("f", 0640)), "A::OWNER@:160187,A::GROUP@:120081,A::EVERYONE@:120080");
  EXPECT_EQ(get(make_directory("d", 0751)),
            "A::OWNER@:1601e7,A::GROUP@:1200a1,A::EVERYONE@:1200a0");
  ASSERT_EQ(::symlink("f", nfs.path("l").c_str()), 0);
  EXPECT_EQ(get(nfs.lookup(nfs.root(), "l")),
            "A::OWNER@:1601a7,A::GROUP@:1200a7,A::EVERYONE@:1200a7");
}

TEST_F(Acls, NamedEntriesAreShownWithWhatTheMaskLeaves) {
  const FileHandle file = make("f", 0640);
  setfacl("-m u:1000:rw,g:50:rwx,m::r", "f");
  EXPECT_EQ(get(file),
            "A::OWNER@:160187,A::1000:120081,A::GROUP@:120081,A:g:50:120081,A::EVERYONE@:120080");
}

TEST_F(Acls, ADefaultAclIsInherited) {
  const FileHandle directory = make_directory("d", 0700);
  setfacl("-d -m u::rwx,g::rx,o::-", "d");
  EXPECT_EQ(get(directory),
            "A::OWNER@:1601e7,A::GROUP@:120080,A::EVERYONE@:120080,"
            "A:fdi:OWNER@:1601e7,A:fdi:GROUP@:1200a1,A:fdi:EVERYONE@:120080");
}

TEST_F(Acls, WhatIsSetIsThePosixAcl) {
  const FileHandle file = make("f", 0604);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead | kWrite, "OWNER@"},
                       {kDeny, 0, kWrite, "daemon@example.org"},  // whoever that is: uid 1
                       {kAllow, 0, kRead | kWrite, "1000"},
                       {kAllow, kGroup, kRead, "50"},
                       {kAllow, kGroup, kRead | kExecute, "GROUP@"},
                       {kAllow, 0, kRead, "EVERYONE@"}}),
            NFS4_OK);
  EXPECT_EQ(getfacl("f"),
            "user::rw-,user:1:r--,user:1000:rw-,group::r-x,group:50:r--,mask::rwx,other::r--");
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 0674u);
  // And back to a mode alone.
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, "EVERYONE@"}}), NFS4_OK);
  EXPECT_EQ(getfacl("f"), "user::r--,group::r--,other::r--");
  EXPECT_EQ(set(file, std::vector<nfsace4>{}), NFS4_OK);
  EXPECT_EQ(getfacl("f"), "user::---,group::---,other::---");
}

TEST_F(Acls, InheritableOnesAreTheDirectorysDefaultAcl) {
  const FileHandle directory = make_directory("d");
  EXPECT_EQ(set(directory, {{kAllow, 0, kRead | kWriteDirectory | kExecute, "OWNER@"},
                            {kAllow, kInherit, kRead | kExecute, "1000"},
                            {kAllow, 0, kExecute, "EVERYONE@"}}),
            NFS4_OK);
  EXPECT_EQ(getfacl("d"),
            "user::rwx,user:1000:r-x,group::--x,mask::r-x,other::--x,"
            "default:user::rwx,default:user:1000:r-x,default:group::--x,default:mask::r-x,"
            "default:other::--x");
  // Without any, there is no default ACL any more.
  EXPECT_EQ(set(directory, {{kAllow, 0, kRead | kExecute, "EVERYONE@"}}), NFS4_OK);
  EXPECT_EQ(getfacl("d"), "user::r-x,group::r-x,other::r-x");
}

TEST_F(Acls, WhatWasReadCanBeSetAgain) {
  const FileHandle directory = make_directory("d", 0750);
  setfacl("-m u:1000:rwx,g:50:r,o::x -d -m u:7:rx,g:8:-,o::r", "d");
  const std::string before = getfacl("d");
  const Reply4 reply = nfs.on<OP_GETATTR>(directory, {bitmap4::of({FATTR4_ACL})});
  ASSERT_EQ(reply.status, NFS4_OK);
  xdr::SETATTR4args args;
  args.obj_attributes = reply.get<OP_GETATTR>().resok4.obj_attributes;
  setfacl("-b", "d");
  ASSERT_EQ(nfs.on<OP_SETATTR>(directory, args).status, NFS4_OK);
  EXPECT_EQ(getfacl("d"), before);
}

TEST_F(Acls, WhatCannotBeSaysWhy) {
  const FileHandle file = make("f", 0604);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, "nobody-of-that-name@example.org"}}), NFS4ERR_BADOWNER);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, "INTERACTIVE@"}}), NFS4ERR_BADOWNER);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, ""}}), NFS4ERR_INVAL);
  EXPECT_EQ(set(file, {{xdr::ACE4_SYSTEM_AUDIT_ACE_TYPE, 0, kRead, "EVERYONE@"}}),
            NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(set(file, {{kAllow, kInherit, kRead, "EVERYONE@"}}), NFS4ERR_ATTRNOTSUPP);
  ASSERT_EQ(::symlink("f", nfs.path("l").c_str()), 0);
  EXPECT_EQ(set(nfs.lookup(nfs.root(), "l"), {{kAllow, 0, kRead, "EVERYONE@"}}),
            NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(getfacl("f"), "user::rw-,group::---,other::r--");
}

TEST_F(Acls, OnlyTheOwnerSetsIt) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle file = make("f", 0666);
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, "EVERYONE@"}}), NFS4ERR_PERM);
  EXPECT_EQ(getfacl("f"), "user::rw-,group::rw-,other::rw-");
  ASSERT_EQ(::chown(nfs.path("f").c_str(), 1000, 1000), 0);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, "EVERYONE@"}}), NFS4_OK);
  EXPECT_EQ(getfacl("f"), "user::r--,group::r--,other::r--");
}

// RFC 8881 6.4.1.3: mode first, then ACL.
TEST_F(Acls, BesideAModeItHasTheRights) {
  const FileHandle file = make("f", 0600);
  const Reply4 reply = set(file, Wanted({{kAllow, 0, kRead, "OWNER@"}}, 04777));
  EXPECT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_SETATTR>().attrsset, bitmap4::of({FATTR4_ACL, FATTR4_MODE}));
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 04400u);
}

TEST_F(Acls, ItLeavesSetIdBits) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle file = make("f", 0640);
  ASSERT_EQ(::chown(nfs.path("f").c_str(), 1000, 5555), 0);
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 06750), 0);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead | kExecute, "OWNER@"}, {kAllow, 0, kRead, "7"}}), NFS4_OK);
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 06540u);
}

TEST_F(Acls, AChangeShows) {
  const FileHandle file = make("f", 0640);
  const std::uint64_t before = nfs.change(file);
  EXPECT_EQ(set(file, {{kAllow, 0, kRead, "7"}}), NFS4_OK);
  EXPECT_NE(nfs.change(file), before);
}

TEST_F(Acls, OpenMakesFilesWithIt) {
  const FileHandle directory = make_directory("d");
  setfacl("-d -m u:8:rwx", "d");  // of no account where an ACL is given (RFC 8881 6.4.3)
  const Wanted wanted({{kAllow, 0, kRead | kWrite, "OWNER@"}, {kAllow, 0, kRead, "7"}}, 0777);
  constexpr const char* kExpected = "user::rw-,user:7:r--,group::---,mask::r--,other::---";
  for (const auto& [name, mode] : {std::pair("guarded", xdr::createmode4::GUARDED4),
                                   std::pair("unchecked", xdr::createmode4::UNCHECKED4),
                                   std::pair("exclusive", xdr::createmode4::EXCLUSIVE4_1)}) {
    const Reply4 reply = open(directory, name, wanted, mode);
    EXPECT_EQ(reply.status, NFS4_OK) << name;
    EXPECT_TRUE(reply.get<OP_OPEN>().resok4.attrset.has(FATTR4_ACL)) << name;
    EXPECT_EQ(getfacl(std::string("d/") + name), kExpected) << name;
  }
  // What is there keeps its own.
  const Reply4 again = open(directory, "guarded", Wanted({{kAllow, 0, kRead, "EVERYONE@"}}),
                            xdr::createmode4::UNCHECKED4);
  EXPECT_EQ(again.status, NFS4_OK);
  EXPECT_FALSE(again.get<OP_OPEN>().resok4.attrset.has(FATTR4_ACL));
  EXPECT_EQ(getfacl("d/guarded"), kExpected);
  // A file has nobody to inherit from it.
  EXPECT_EQ(open(directory, "bad", Wanted({{kAllow, kInherit, kRead, "EVERYONE@"}}),
                 xdr::createmode4::GUARDED4)
                .status,
            NFS4ERR_ATTRNOTSUPP);
  EXPECT_FALSE(std::filesystem::exists(nfs.path("d/bad")));
}

TEST_F(Acls, CreateMakesDirectoriesWithIt) {
  const FileHandle parent = make_directory("d");
  setfacl("-d -m u:8:rwx", "d");
  const Reply4 reply = create_directory(
      parent, "inheriting", Wanted({{kAllow, kInherit, kRead | kExecute, "EVERYONE@"}}));
  EXPECT_EQ(reply.status, NFS4_OK);
  EXPECT_TRUE(reply.get<OP_CREATE>().resok4.attrset.has(FATTR4_ACL));
  EXPECT_EQ(getfacl("d/inheriting"),
            "user::r-x,group::r-x,other::r-x,default:user::r-x,default:group::r-x,"
            "default:other::r-x");
  EXPECT_EQ(create_directory(parent, "plain", Wanted({{kAllow, 0, kRead | kExecute, "EVERYONE@"}}))
                .status,
            NFS4_OK);
  EXPECT_EQ(getfacl("d/plain"), "user::r-x,group::r-x,other::r-x");
  EXPECT_EQ(create_directory(parent, "link", Wanted({{kAllow, 0, kRead, "EVERYONE@"}}),
                             xdr::nfs_ftype4::NF4LNK)
                .status,
            NFS4ERR_ATTRNOTSUPP);
  EXPECT_FALSE(std::filesystem::is_symlink(nfs.path("d/link")));
}

TEST_F(Acls, VerifyComparesWhatItMeans) {
  const FileHandle file = make("f", 0640);
  setfacl("-m u:1:r", "f");
  const auto verdict = [&](std::string_view who) {
    const Wanted wanted({{kAllow, 0, 0x160187, "OWNER@"},
                         {kAllow, 0, 0x120081, who},
                         {kAllow, 0, 0x120081, "GROUP@"},
                         {kAllow, 0, 0x120080, "EVERYONE@"}});
    const nfsstat4 verify = nfs.on<OP_VERIFY>(file, {wanted.fattr}).status;
    const nfsstat4 nverify = nfs.on<OP_NVERIFY>(file, {wanted.fattr}).status;
    EXPECT_EQ(verify == NFS4_OK, nverify == NFS4ERR_SAME);
    return verify;
  };
  EXPECT_EQ(verdict("1"), NFS4_OK);
  EXPECT_EQ(verdict("daemon@example.org"), NFS4_OK);
  EXPECT_EQ(verdict("2"), NFS4ERR_NOT_SAME);
  EXPECT_EQ(verdict("nobody-of-that-name@example.org"), NFS4ERR_NOT_SAME);
}

TEST_F(Acls, ReaddirHasThem) {
  make("f", 0604);
  setfacl("-m u:7:r", "f");
  xdr::READDIR4args args;
  args.dircount = args.maxcount = 8192;
  args.attr_request = bitmap4::of({FATTR4_ACL, FATTR4_ACLSUPPORT});
  const Reply4 reply = nfs.on<OP_READDIR>(nfs.root(), args);
  ASSERT_EQ(reply.status, NFS4_OK);
  int entries = 0;
  for (const xdr::entry4& entry : reply.get<OP_READDIR>().resok4.reply.entries) {
    ++entries;
    EXPECT_EQ(entry.name, "f");
    xdr::FileAttributes4 values;
    ASSERT_EQ(xdr::decode_attributes(entry.attrs, values).outcome, xdr::AttributeDecoding::kOk);
    EXPECT_EQ(values.attrmask, args.attr_request);
    EXPECT_EQ(values.aclsupport, 3u);
    EXPECT_EQ(values.acl.aces.count, 5u);
  }
  EXPECT_EQ(entries, 1);
}

TEST_F(Acls, LongOnesFitIn) {
  const FileHandle file = make("f", 0640);
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i)
    names.push_back(std::to_string(100000 + i));
  std::vector<nfsace4> aces;
  for (const std::string& name : names)
    aces.push_back({kAllow, 0, kRead, name});
  ASSERT_EQ(set(file, aces), NFS4_OK);
  const std::string text = get(file);
  EXPECT_NE(text.find("A::100299:120081"), std::string::npos);
}

TEST_F(Acls, OnlyWhoAsksForItPaysForIt) {
  const FileHandle file = make("f", 0640);
  bitmap4 all = nfs4::supported_attributes(2).without(nfs4::set_only_attributes(2));
  EXPECT_TRUE(nfs.on<OP_GETATTR>(file, {all}).ran_on_worker);
  all.clear(FATTR4_ACL);
  EXPECT_FALSE(nfs.on<OP_GETATTR>(file, {all}).ran_on_worker);
}

}  // namespace
}  // namespace nfsrdma::test
