// SPDX-License-Identifier: Apache-2.0
// NFSACL: entries of the protocol and ACLs of files; getfacl(1) and setfacl(1) are the other side.
#include "server/nfs3/acl_program.h"

#include <gmock/gmock.h>

#include <cstdio>

#include "tests/support/acl_entries.h"
#include "tests/support/nfs3_harness.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma::test {
namespace {

using ::testing::ElementsAre;
using xdr::aclent;

std::vector<aclent> decoded(const xdr::EncodedArray<aclent>& entries) {
  std::vector<aclent> out;
  for (const aclent& entry : entries)
    out.push_back(entry);
  return out;
}

class NfsAcl : public ::testing::Test {
 protected:
  NfsAcl() {
    std::ofstream(nfs.path("f")) << "x";
    ::chmod(nfs.path("f").c_str(), 0640);
    file = nfs.lookup(nfs.root(), "f");
    directory = nfs.mkdir(nfs.root(), "d");
    ::stat(nfs.path("f").c_str(), &st);
  }
  Reply<xdr::GETACL3res> get(const FileHandle& object, std::uint32_t mask = xdr::NFS_ACL_MASK) {
    return nfs.call_row<xdr::GETACL3res>(row(xdr::aclproc3::ACLPROC3_GETACL),
                                         xdr::GETACL3args{nfs.fh(object), mask});
  }
  /// The status; counts fit the entries.
  Reply<xdr::SETACL3res> set(const FileHandle& object, std::uint32_t mask,
                             std::vector<aclent> access, std::vector<aclent> initial = {}) {
    const Entries a(std::move(access)), i(std::move(initial));
    xdr::SETACL3args args{nfs.fh(object), {}};
    args.acl = {mask, a.array().count, a.array(), i.array().count, i.array()};
    return set_raw(args);
  }
  Reply<xdr::SETACL3res> set_raw(const xdr::SETACL3args& args) {
    return nfs.call_row<xdr::SETACL3res>(row(xdr::aclproc3::ACLPROC3_SETACL), args);
  }
  static const ProcedureRow& row(xdr::aclproc3 number) {
    return nfs3::acl_program_table().procedures[static_cast<std::size_t>(number)];
  }
  /// What a command of this host says, on one line.
  static std::string run(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return "cannot run " + command;
    std::string out;
    for (char buffer[256]; std::fgets(buffer, sizeof buffer, pipe) != nullptr;)
      out += buffer;
    ::pclose(pipe);
    std::ranges::replace(out, '\n', ' ');
    while (out.ends_with(' '))
      out.pop_back();
    return out;
  }
  std::string local(const std::string& name) { return run("getfacl -cnp " + nfs.path(name)); }
  void local_set(const std::string& acl, const std::string& name) {
    ASSERT_EQ(run("setfacl -n -m " + acl + " " + nfs.path(name) + " 2>&1"), "");
  }
  static std::vector<aclent> access_with_user(std::uint32_t uid) {
    return {{kOwner, 0, 6}, {kUser, uid, 4}, {kOwningGroup, 0, 4}, {kMask, 0, 4}, {kOther, 0, 0}};
  }

  Nfs3Harness nfs;
  FileHandle file, directory;
  struct stat st {};
};

TEST_F(NfsAcl, AFileWithoutOneShowsItsMode) {
  const auto reply = get(file);
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_TRUE(reply.res.resok.attr.attributes_follow);
  EXPECT_EQ(reply.res.resok.acl.mask, xdr::NFS_ACL_MASK);
  EXPECT_EQ(reply.res.resok.acl.aclcnt, 4u);
  EXPECT_THAT(decoded(reply.res.resok.acl.aclents),
              ElementsAre(aclent{kOwner, st.st_uid, 6}, aclent{kOwningGroup, st.st_gid, 4},
                          aclent{kMask, 0, 4}, aclent{kOther, 0, 0}));
  EXPECT_EQ(reply.res.resok.acl.dfaclcnt, 0u);
}

TEST_F(NfsAcl, WhatIsSetHereIsShown) {
  local_set("u:1234:r,m:rw", "f");
  local_set("d:g:99:rx", "d");
  EXPECT_THAT(
      decoded(get(file).res.resok.acl.aclents),
      ElementsAre(aclent{kOwner, st.st_uid, 6}, aclent{kUser, 1234, 4},
                  aclent{kOwningGroup, st.st_gid, 4}, aclent{kMask, 0, 6}, aclent{kOther, 0, 0}));
  const auto reply = get(directory);
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_EQ(reply.res.resok.acl.dfaclcnt, 5u);
  EXPECT_THAT(
      decoded(reply.res.resok.acl.dfaclents),
      ElementsAre(aclent{kOwner | kInitial, st.st_uid, 7},
                  aclent{kOwningGroup | kInitial, st.st_gid, 5}, aclent{kGroup | kInitial, 99, 5},
                  aclent{kMask | kInitial, 0, 5}, aclent{kOther | kInitial, 0, 5}));
}

TEST_F(NfsAcl, OnlyWhatIsAskedForIsSaid) {
  const auto count = get(file, xdr::NFS_ACLCNT);
  EXPECT_EQ(count.res.resok.acl.mask, xdr::NFS_ACLCNT);
  EXPECT_EQ(count.res.resok.acl.aclcnt, 4u);
  EXPECT_TRUE(count.res.resok.acl.aclents.empty());
  const auto initial = get(file, xdr::NFS_DFACL);
  EXPECT_EQ(initial.res.resok.acl.aclcnt, 0u);
  EXPECT_EQ(get(file, 0x10).status(), NFS3ERR_INVAL);
}

TEST_F(NfsAcl, WhatIsSetIsThere) {
  const auto reply = set(file, xdr::NFS_ACL, access_with_user(1234));
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_TRUE(reply.waited_for_disk);
  EXPECT_EQ(reply.res.resok.attr.attributes.mode, 0640u);
  EXPECT_EQ(local("f"), "user::rw- user:1234:r-- group::r-- mask::r-- other::---");
}

TEST_F(NfsAcl, AMinimalAclIsAMode) {
  local_set("u:1234:r", "f");
  ASSERT_EQ(
      set(file, xdr::NFS_ACL, {{kOwner, 0, 7}, {kOwningGroup, 0, 5}, {kMask, 0, 5}, {kOther, 0, 1}})
          .status(),
      NFS3_OK);
  EXPECT_EQ(local("f"), "user::rwx group::r-x other::--x");
}

TEST_F(NfsAcl, ADirectorysDefaultAclIsSetAndRemoved) {
  const std::vector<aclent> access = {
      {kOwner, 0, 7}, {kOwningGroup, 0, 5}, {kMask, 0, 5}, {kOther, 0, 5}};
  ASSERT_EQ(set(directory, xdr::NFS_ACL | xdr::NFS_DFACL, access,
                {{kOwner | kInitial, 0, 7},
                 {kOwningGroup | kInitial, 0, 5},
                 {kMask | kInitial, 0, 5},
                 {kOther | kInitial, 0, 0}})
                .status(),
            NFS3_OK);
  EXPECT_EQ(
      local("d"),
      "user::rwx group::r-x other::r-x default:user::rwx default:group::r-x default:other::---");
  ASSERT_EQ(set(directory, xdr::NFS_ACL | xdr::NFS_DFACL, access).status(), NFS3_OK);
  EXPECT_EQ(local("d"), "user::rwx group::r-x other::r-x");
}

TEST_F(NfsAcl, AnAccessAclThatIsNotNamedStays) {
  local_set("u:1234:r", "d");
  ASSERT_EQ(
      set(directory, xdr::NFS_DFACL, {}, {{kOwner, 0, 7}, {kOwningGroup, 0, 0}, {kOther, 0, 0}})
          .status(),
      NFS3_OK);
  EXPECT_EQ(local("d"),
            "user::rwx user:1234:r-- group::r-x mask::r-x other::r-x default:user::rwx "
            "default:group::--- default:other::---");
}

TEST_F(NfsAcl, FilesHaveNoDefaultAcl) {
  EXPECT_EQ(set(file, xdr::NFS_ACL | xdr::NFS_DFACL, access_with_user(1),
                {{kOwner, 0, 7}, {kOwningGroup, 0, 0}, {kOther, 0, 0}})
                .status(),
            NFS3ERR_ACCES);
  EXPECT_EQ(local("f"), "user::rw- group::r-- other::---");
}

TEST_F(NfsAcl, OfOthersFilesNothingIsSet) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(4711, 4711));
  EXPECT_EQ(set(file, xdr::NFS_ACL, access_with_user(4711)).status(), NFS3ERR_PERM);
  EXPECT_EQ(local("f"), "user::rw- group::r-- other::---");
  EXPECT_EQ(get(file).status(), NFS3_OK);
}

TEST_F(NfsAcl, OwnersSetThatOfTheirFiles) {
  NFSRDMA_NEEDS_ROOT();
  ASSERT_EQ(::chown(nfs.path("f").c_str(), 4711, 4711), 0);
  nfs.set_caller(user(4711, 4711));
  EXPECT_EQ(set(file, xdr::NFS_ACL, access_with_user(12)).status(), NFS3_OK);
  EXPECT_EQ(local("f"), "user::rw- user:12:r-- group::r-- mask::r-- other::---");
}

TEST_F(NfsAcl, ASquashedRootIsNoOwner) {
  NFSRDMA_NEEDS_ROOT();
  ExportOptions squashed = HarnessOptions::writable();
  squashed.root_squash = true;
  nfs.export_with(squashed);
  EXPECT_EQ(set(file, xdr::NFS_ACL, access_with_user(1)).status(), NFS3ERR_PERM);
}

TEST_F(NfsAcl, ReadOnlyExportsShowAndDoNotSet) {
  ExportOptions read_only = HarnessOptions::writable();
  read_only.read_only = true;
  nfs.export_with(read_only);
  EXPECT_EQ(get(file).status(), NFS3_OK);
  EXPECT_EQ(set(file, xdr::NFS_ACL, access_with_user(1)).status(), NFS3ERR_ROFS);
  EXPECT_EQ(local("f"), "user::rw- group::r-- other::---");
}

TEST_F(NfsAcl, WithNoAclThereIsTheModeAlone) {
  local_set("u:1234:r", "f");
  ExportOptions hidden = HarnessOptions::writable();
  hidden.no_acl = true;
  nfs.export_with(hidden);
  EXPECT_THAT(decoded(get(file).res.resok.acl.aclents),
              ElementsAre(aclent{kOwner, st.st_uid, 6}, aclent{kOwningGroup, st.st_gid, 4},
                          aclent{kMask, 0, 4}, aclent{kOther, 0, 0}));
  EXPECT_EQ(set(file, xdr::NFS_ACL, access_with_user(1)).status(), NFS3ERR_NOTSUPP);
}

TEST_F(NfsAcl, SymbolicLinksHaveNone) {
  std::filesystem::create_symlink("f", nfs.path("l"));
  const FileHandle link = nfs.lookup(nfs.root(), "l");
  EXPECT_EQ(get(link).res.resok.acl.aclcnt, 4u);
  EXPECT_EQ(set(link, xdr::NFS_ACL, access_with_user(1)).status(), NFS3ERR_NOTSUPP);
}

TEST_F(NfsAcl, WhatCannotBeReadIsGarbage) {
  const Entries good(access_with_user(1)), bad({{0x80, 0, 7}});
  xdr::SETACL3args args{nfs.fh(file), {}};
  args.acl = {xdr::NFS_ACL, 4, good.array(), 0, {}};  // five
  EXPECT_EQ(set_raw(args).outcome, Outcome::kGarbageArgs);
  args.acl = {xdr::NFS_ACL, 1, bad.array(), 0, {}};
  EXPECT_EQ(set_raw(args).outcome, Outcome::kGarbageArgs);
  args.acl = {0x20, 0, {}, 0, {}};
  EXPECT_EQ(set_raw(args).outcome, Outcome::kGarbageArgs);
  EXPECT_EQ(set(file, xdr::NFS_ACL, {}).status(), NFS3ERR_INVAL);
}

TEST_F(NfsAcl, HandlesAreChecked) {
  FileHandle forged = file;
  forged.data[forged.size - 1u] ^= std::byte{1};
  EXPECT_EQ(get(forged).status(), NFS3ERR_BADHANDLE);
  EXPECT_EQ(set(forged, xdr::NFS_ACL, access_with_user(1)).status(), NFS3ERR_BADHANDLE);
  ::unlink(nfs.path("f").c_str());
  nfs.restart();
  EXPECT_EQ(get(file).status(), NFS3ERR_STALE);
}

TEST_F(NfsAcl, AnAclMayBeAsLongAsTheFileSystemTakes) {
  std::vector<aclent> entries = access_with_user(1000);
  for (std::uint32_t i = 1; i < 200; ++i)
    entries.push_back({kUser, 1000 + i, 4});
  ASSERT_EQ(set(file, xdr::NFS_ACL, entries).status(), NFS3_OK);
  const auto reply = get(file);
  EXPECT_EQ(reply.res.resok.acl.aclcnt, 204u);
  EXPECT_EQ(decoded(reply.res.resok.acl.aclents).at(200), (aclent{kUser, 1199, 4}));
}

TEST_F(NfsAcl, FileSystemsWithoutAclsShowTheMode) {
  struct stat proc {};
  ASSERT_EQ(::stat("/proc/version", &proc), 0);
  Nfs3Harness other({.directory = "/proc/sys"});
  const FileHandle object = other.lookup(other.root(), "kernel");
  const auto reply = other.call_row<xdr::GETACL3res>(
      row(xdr::aclproc3::ACLPROC3_GETACL), xdr::GETACL3args{other.fh(object), xdr::NFS_ACL_MASK});
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_THAT(decoded(reply.res.resok.acl.aclents),
              ElementsAre(aclent{kOwner, 0, 5}, aclent{kOwningGroup, 0, 5}, aclent{kMask, 0, 5},
                          aclent{kOther, 0, 5}));
  const Entries entries(access_with_user(1));
  xdr::SETACL3args args{other.fh(object), {}};
  args.acl = {xdr::NFS_ACL, entries.array().count, entries.array(), 0, {}};
  const auto refused = other.call_row<xdr::SETACL3res>(row(xdr::aclproc3::ACLPROC3_SETACL), args);
  EXPECT_EQ(refused.status(), NFS3ERR_NOTSUPP);
}

TEST(NfsAclProgram, HasItsNumbers) {
  const ProgramTable& table = nfs3::acl_program_table();
  EXPECT_EQ(table.program, 100227u);
  EXPECT_EQ(table.version, 3u);
  EXPECT_EQ(table.procedures.size(), 3u);
}

}  // namespace
}  // namespace nfsrdma::test
