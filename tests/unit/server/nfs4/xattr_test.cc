// SPDX-License-Identifier: Apache-2.0
#include <sys/xattr.h>

#include <ctime>
#include <set>
#include <tuple>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using xdr::setxattr_option4;
using enum xdr::setxattr_option4;

class Xattrs : public ::testing::Test {
 protected:
  Xattrs() {
    put_file(nfs.path("f"), "", 0666);
    file = nfs.lookup(nfs.root(), "f");
  }
  Reply4 set(std::string_view name, std::string_view value,
             setxattr_option4 option = SETXATTR4_EITHER) {
    return nfs.on<OP_SETXATTR>(file, {option, name, as_bytes(value)});
  }
  /// The value, or "error N".
  std::string get(const FileHandle& object, std::string_view name) {
    const Reply4 reply = nfs.on<OP_GETXATTR>(object, {name});
    if (reply.status != NFS4_OK) {
      return "error " + std::to_string(static_cast<unsigned>(reply.status));
    }
    return std::string(as_text(reply.get<OP_GETXATTR>().resok4.gxr_value));
  }
  nfsstat4 remove(std::string_view name) { return nfs.on<OP_REMOVEXATTR>(file, {name}).status; }
  std::string local(const std::string& name) const {
    char value[256];
    const ssize_t n = ::getxattr(nfs.path("f").c_str(), name.c_str(), value, sizeof value);
    return n < 0 ? "none" : std::string(value, static_cast<std::size_t>(n));
  }
  /// All names, asked for in pieces of `maxcount`; how many pieces it took.
  std::set<std::string> names(std::uint32_t maxcount, int* pieces = nullptr) {
    std::set<std::string> out;
    std::uint64_t cookie = 0;
    for (int i = 1; i < 100; ++i) {
      const Reply4 reply = nfs.on<OP_LISTXATTRS>(file, {cookie, maxcount});
      EXPECT_EQ(reply.status, NFS4_OK);
      if (reply.status != NFS4_OK) break;
      const auto res = reply.get<OP_LISTXATTRS>().resok4;
      EXPECT_LE(8 + 4 + res.lxr_names.encoded.size() + 4, maxcount);
      for (const xdr::xattrkey4& key : res.lxr_names)
        EXPECT_TRUE(out.emplace(key.name).second) << key.name;
      cookie = res.lxr_cookie;
      if (pieces != nullptr) *pieces = i;
      if (res.lxr_eof) return out;
    }
    ADD_FAILURE() << "no end";
    return out;
  }
  Nfs4Harness nfs;
  FileHandle file;
};

TEST_F(Xattrs, NamesAreThoseOfTheUserNamespace) {
  EXPECT_EQ(set("author", "somebody").status, NFS4_OK);
  EXPECT_EQ(local("user.author"), "somebody");
  EXPECT_EQ(get(file, "author"), "somebody");
  EXPECT_EQ(set("user.author", "x").status, NFS4_OK);
  EXPECT_EQ(local("user.user.author"), "x");
  EXPECT_EQ(names(1000), (std::set<std::string>{"author", "user.author"}));
}

TEST_F(Xattrs, OptionsSayWhatMayBeThere) {
  EXPECT_EQ(set("a", "1", SETXATTR4_REPLACE).status, NFS4ERR_NOXATTR);
  EXPECT_EQ(set("a", "1", SETXATTR4_CREATE).status, NFS4_OK);
  EXPECT_EQ(set("a", "2", SETXATTR4_CREATE).status, NFS4ERR_EXIST);
  EXPECT_EQ(get(file, "a"), "1");
  EXPECT_EQ(set("a", "3", SETXATTR4_REPLACE).status, NFS4_OK);
  EXPECT_EQ(set("a", "", SETXATTR4_EITHER).status, NFS4_OK);
  EXPECT_EQ(get(file, "a"), "");
  EXPECT_EQ(set("a", "4", static_cast<setxattr_option4>(3)).status, NFS4ERR_INVAL);
}

TEST_F(Xattrs, WhatIsRemovedIsGone) {
  EXPECT_EQ(remove("a"), NFS4ERR_NOXATTR);
  EXPECT_EQ(get(file, "a"), "error 10095");  // NFS4ERR_NOXATTR
  EXPECT_EQ(set("a", "1").status, NFS4_OK);
  EXPECT_EQ(remove("a"), NFS4_OK);
  EXPECT_EQ(local("user.a"), "none");
  EXPECT_EQ(names(100), std::set<std::string>{});
}

TEST_F(Xattrs, ChangesShowInTheChangeAttribute) {
  const std::uint64_t before = nfs.change(file);
  const Reply4 reply = set("a", "1");
  const auto info = reply.get<OP_SETXATTR>().resok4;
  EXPECT_TRUE(reply.waited_for_disk);
  EXPECT_TRUE(info.atomic);
  EXPECT_EQ(info.before, before);
  EXPECT_GT(info.after, before);
  EXPECT_EQ(nfs.change(file), info.after);
  const auto removed = nfs.on<OP_REMOVEXATTR>(file, {"a"}).get<OP_REMOVEXATTR>().resok4;
  EXPECT_EQ(removed.before, info.after);
  EXPECT_GT(removed.after, removed.before);
}

TEST_F(Xattrs, ChangesShowInTheTimeOfTheMetadata) {
  // The kernel's clock for it has ticks: what is changed in the same one shows in nothing. Of
  // `change`, whether it shows once the clock has gone on.
  const auto shows = [&](auto change) {
    const struct timespec before = stat_of(nfs.path("f")).st_ctim;
    for (struct timespec now = before;
         now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec;)
      ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    change();
    const struct timespec after = stat_of(nfs.path("f")).st_ctim;
    return std::tie(after.tv_sec, after.tv_nsec) > std::tie(before.tv_sec, before.tv_nsec);
  };
  EXPECT_TRUE(shows([&] { EXPECT_EQ(set("a", "1").status, NFS4_OK); }));
  EXPECT_TRUE(shows([&] { EXPECT_EQ(set("a", "2").status, NFS4_OK); }));
  EXPECT_TRUE(shows([&] { EXPECT_EQ(remove("a"), NFS4_OK); }));
}

TEST_F(Xattrs, AListComesInPiecesAsSmallAsAskedFor) {
  std::set<std::string> all;
  for (int i = 0; i < 20; ++i) {
    all.insert("name" + std::to_string(i));
    ASSERT_EQ(set("name" + std::to_string(i), "v").status, NFS4_OK);
  }
  int pieces = 0;
  EXPECT_EQ(names(4000, &pieces), all);
  EXPECT_EQ(pieces, 1);
  EXPECT_EQ(names(16 + 3 * 12, &pieces), all);
  EXPECT_EQ(pieces, 7);
  EXPECT_EQ(names(16 + 12, &pieces), all);
  EXPECT_EQ(pieces, 20);
  EXPECT_EQ(nfs.on<OP_LISTXATTRS>(file, {0, 16 + 11}).status, NFS4ERR_TOOSMALL);
  EXPECT_EQ(nfs.on<OP_LISTXATTRS>(file, {0, 15}).status, NFS4ERR_TOOSMALL);
  EXPECT_TRUE(nfs.on<OP_LISTXATTRS>(file, {20, 100}).get<OP_LISTXATTRS>().resok4.lxr_eof);
  // Some may have been removed since the cookie was given.
  const Reply4 behind = nfs.on<OP_LISTXATTRS>(file, {21, 100});
  EXPECT_EQ(behind.status, NFS4_OK);
  EXPECT_TRUE(behind.get<OP_LISTXATTRS>().resok4.lxr_eof);
}

TEST_F(Xattrs, OtherNamespacesAreOutOfReach) {
  NFSRDMA_NEEDS_ROOT();
  const std::string path = nfs.path("f");
  ASSERT_EQ(::setxattr(path.c_str(), "trusted.secret", "x", 1, 0), 0);
  ASSERT_EQ(set("a", "1").status, NFS4_OK);
  EXPECT_EQ(names(1000), std::set<std::string>{"a"});
  EXPECT_EQ(get(file, "trusted.secret"), "error 10095");
  EXPECT_EQ(get(file, "secret"), "error 10095");
  EXPECT_EQ(remove("trusted.secret"), NFS4ERR_NOXATTR);
  EXPECT_EQ(local("trusted.secret"), "x");
}

TEST_F(Xattrs, NamesHaveALength) {
  EXPECT_EQ(set("", "x").status, NFS4ERR_INVAL);
  EXPECT_EQ(set(std::string_view("a\0b", 3), "x").status, NFS4ERR_INVAL);
  EXPECT_EQ(set(std::string(250, 'n'), "x").status, NFS4_OK);
  EXPECT_EQ(get(file, std::string(250, 'n')), "x");
  EXPECT_EQ(set(std::string(251, 'n'), "x").status, NFS4ERR_NAMETOOLONG);
  EXPECT_EQ(get(file, std::string(251, 'n')), "error 63");
  EXPECT_EQ(remove(std::string(251, 'n')), NFS4ERR_NAMETOOLONG);
}

TEST_F(Xattrs, ValuesThatNoFileSystemTakes) {
  EXPECT_EQ(set("a", std::string(65537, 'v')).status, NFS4ERR_XATTR2BIG);
}

TEST_F(Xattrs, ResultsGetTheRoomThatTheyNeed) {
  // More than the room that a reply has at first.
  const std::string value(3000, 'v');
  ASSERT_EQ(set("a", value).status, NFS4_OK);
  Operations4 operations;
  operations.putfh(file);
  for (int i = 0; i < 3; ++i)
    operations.add<OP_GETXATTR>({"a"});
  const Reply4 reply = nfs.run(operations);
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_TRUE(reply.grew);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(as_text(reply.get<OP_GETXATTR>(i).resok4.gxr_value), value);
}

TEST_F(Xattrs, DirectoriesHaveThemToo) {
  EXPECT_EQ(nfs.on<OP_SETXATTR>(nfs.root(), {SETXATTR4_EITHER, "a", as_bytes("1")}).status,
            NFS4_OK);
  EXPECT_EQ(get(nfs.root(), "a"), "1");
}

TEST_F(Xattrs, ASymbolicLinkIsNotFollowed) {
  ASSERT_EQ(set("a", "1").status, NFS4_OK);
  ASSERT_EQ(::symlink("f", nfs.path("link").c_str()), 0);
  const FileHandle link = nfs.lookup(nfs.root(), "link");
  EXPECT_EQ(get(link, "a"), "error 10095");
  EXPECT_EQ(nfs.on<OP_SETXATTR>(link, {SETXATTR4_EITHER, "a", as_bytes("2")}).status, NFS4ERR_PERM);
  EXPECT_EQ(local("user.a"), "1");
}

/// RFC 8276 8.4: where xattr_support is false, none of the operations is there.
TEST_F(Xattrs, PseudoDirectoriesHaveNone) {
  auto at_root = [&](const Operations4& one) {
    return nfs.run(Operations4().add<OP_PUTROOTFH>().add(one)).status;
  };
  EXPECT_EQ(at_root(Operations4().add<OP_GETXATTR>({"a"})), NFS4ERR_NOTSUPP);
  EXPECT_EQ(at_root(Operations4().add<OP_SETXATTR>({SETXATTR4_EITHER, "a", {}})), NFS4ERR_NOTSUPP);
  EXPECT_EQ(at_root(Operations4().add<OP_REMOVEXATTR>({"a"})), NFS4ERR_NOTSUPP);
  EXPECT_EQ(at_root(Operations4().add<OP_LISTXATTRS>({0, 100})), NFS4ERR_NOTSUPP);
}

TEST_F(Xattrs, AReadOnlyExportRefusesChanges) {
  ASSERT_EQ(set("a", "1").status, NFS4_OK);
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  EXPECT_EQ(set("a", "2").status, NFS4ERR_ROFS);
  EXPECT_EQ(remove("a"), NFS4ERR_ROFS);
  EXPECT_EQ(get(file, "a"), "1");
}

TEST_F(Xattrs, TheCallersRightsCount) {
  NFSRDMA_NEEDS_ROOT();
  ASSERT_EQ(set("a", "1").status, NFS4_OK);
  nfs.set_caller(user(2000, 2000));
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 0644), 0);
  EXPECT_EQ(get(file, "a"), "1");
  EXPECT_EQ(names(100), std::set<std::string>{"a"});
  EXPECT_EQ(set("a", "2").status, NFS4ERR_ACCESS);
  EXPECT_EQ(remove("a"), NFS4ERR_ACCESS);
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 0600), 0);
  EXPECT_EQ(get(file, "a"), "error 13");
  EXPECT_EQ(nfs.on<OP_LISTXATTRS>(file, {0, 100}).status, NFS4ERR_ACCESS);
  EXPECT_EQ(local("user.a"), "1");
}

}  // namespace
}  // namespace nfsrdma::test
