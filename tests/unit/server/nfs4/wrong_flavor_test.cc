// SPDX-License-Identifier: Apache-2.0
// Callers whose flavour an export does not serve (sec=): which operation tells them, and how they
// find out what it serves (RFC 8881 2.6.3.1.1, RFC 7530 16.20.4).
#include "tests/support/nfs4_exports.h"

namespace nfsrdma::test {
namespace {

using xdr::bitmap4;
using xdr::open_claim_type4;
using enum xdr::fattr4_number;

constexpr auto kSys = static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_SYS);
constexpr auto kNone = static_cast<std::uint32_t>(xdr::auth_flavor::AUTH_NONE);

Operations4 open_by(open_claim_type4 claim, bool create = false, std::string_view name = "file") {
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.owner.owner = as_bytes("owner");
  args.claim.claim = claim;
  args.claim.file = name;
  args.claim.delegate_cur_info.file = name;
  args.claim.file_delegate_prev = name;
  if (create) args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  return Operations4().add<OP_OPEN>(args);
}

std::vector<std::uint32_t> flavors_of(const xdr::SECINFO4resok& resok) {
  xdr::Decoder decoder(resok.flavors.encoded);
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < resok.flavors.count; ++i)
    out.push_back(decoder.u32());
  EXPECT_TRUE(decoder.at_end());
  return out;
}

/// "@" serves AUTH_NONE alone and is the root (fsid=0); "@/sys" in it AUTH_SYS alone, "@/both"
/// both. Calls come by AUTH_SYS.
class WrongFlavor : public Exports4 {
 protected:
  void SetUp() override {
    for (const char* name : {"sys", "both", "plain", "sys/none"})
      make_directory(name);
    for (const char* name : {"file", "sys/file", "both/file", "sys/none/file"})
      put_file(nfs.path(name), name);
    load("@ *(rw,fsid=0)\n@/sys *(rw)\n@/sys/none *(rw)\n@/both *(rw)\n");
    none = handle_of(Operations4());
    file = handle_of(Operations4().add<OP_LOOKUP>({"file"}));
    sys = handle_of(Operations4().add<OP_LOOKUP>({"sys"}));
    sys_file = handle_of(Operations4().add<OP_LOOKUP>({"sys"}).add<OP_LOOKUP>({"file"}));
    inner = handle_of(Operations4().add<OP_LOOKUP>({"sys"}).add<OP_LOOKUP>({"none"}));
    load(
        "@ *(rw,fsid=0,sec=none)\n@/sys *(rw,sec=sys)\n@/sys/none *(rw,sec=none)\n"
        "@/both *(rw,sec=sys:none)\n");
  }
  FileHandle handle_of(const Operations4& way) {
    const Reply4 reply = nfs.run(Operations4().add<OP_PUTROOTFH>().add(way).add<OP_GETFH>());
    EXPECT_EQ(reply.status, NFS4_OK);
    return to_handle(reply.get<OP_GETFH>().resok4.object.data);
  }
  /// Every way to put `none`, whose flavour is the wrong one. The last of them tells, or not.
  std::vector<std::pair<std::string, Operations4>> puts() {
    return {
        {"PUTFH", Operations4().putfh(none)},
        {"PUTROOTFH", Operations4().add<OP_PUTROOTFH>()},
        {"PUTPUBFH", Operations4().add<OP_PUTPUBFH>()},
        {"RESTOREFH", Operations4().putfh(none).add<OP_SAVEFH>().putfh(sys).add<OP_RESTOREFH>()}};
  }
  /// Which operation of `put` and `then` fails, by number from 1 on of those behind `put`; 0: its
  /// last one. -1: none.
  static int failed_at(const Reply4& reply, const Operations4& put) {
    if (reply.status == NFS4_OK) return -1;
    return static_cast<int>(reply.results.size()) - 1 - static_cast<int>(put.count());
  }

  FileHandle none, file, sys, sys_file, inner;
};

TEST_F(WrongFlavor, TheHandleIsPutForWhatLeadsElsewhereOrAsks) {
  struct Row {
    const char* what;
    Operations4 then;
    int failed;  // as failed_at()
    nfsstat4 status;
  };
  const xdr::SECINFO_NO_NAME4args parent{xdr::secinfo_style4::SECINFO_STYLE4_PARENT};
  const Row rows[] = {
      {"nothing", {}, -1, NFS4_OK},
      {"SAVEFH", Operations4().add<OP_SAVEFH>(), -1, NFS4_OK},
      {"another put", Operations4().putfh(sys).add<OP_GETFH>(), -1, NFS4_OK},
      {"LOOKUP to where it is served", Operations4().add<OP_LOOKUP>({"sys"}).add<OP_GETFH>(), -1,
       NFS4_OK},
      {"SAVEFH, LOOKUP", Operations4().add<OP_SAVEFH>().add<OP_LOOKUP>({"both"}), -1, NFS4_OK},
      {"LOOKUP of what is in it", Operations4().add<OP_LOOKUP>({"file"}), 1, NFS4ERR_WRONGSEC},
      {"LOOKUP of what is not in it", Operations4().add<OP_LOOKUP>({"no"}), 1, NFS4ERR_WRONGSEC},
      {"OPEN by name", open_by(open_claim_type4::CLAIM_NULL), 1, NFS4ERR_WRONGSEC},
      {"OPEN that creates", open_by(open_claim_type4::CLAIM_NULL, true, "new"), 1,
       NFS4ERR_WRONGSEC},
      {"LOOKUPP", Operations4().add<OP_LOOKUPP>(), 1, NFS4ERR_WRONGSEC},
      {"SECINFO", Operations4().add<OP_SECINFO>({"file"}), -1, NFS4_OK},
      {"SECINFO of nothing", Operations4().add<OP_SECINFO>({"no"}), 1, NFS4ERR_NOENT},
      {"SECINFO_NO_NAME", Operations4().add<OP_SECINFO_NO_NAME>(), -1, NFS4_OK},
      {"SECINFO_NO_NAME of the parent", Operations4().add<OP_SECINFO_NO_NAME>(parent), 1,
       NFS4ERR_NOENT},
      {"SECINFO_NO_NAME and more", Operations4().add<OP_SECINFO_NO_NAME>().add<OP_GETFH>(), 2,
       NFS4ERR_NOFILEHANDLE},
      {"GETFH", Operations4().add<OP_GETFH>(), 0, NFS4ERR_WRONGSEC},
      {"GETATTR", Operations4().add<OP_GETATTR>(), 0, NFS4ERR_WRONGSEC},
      {"SAVEFH, GETATTR", Operations4().add<OP_SAVEFH>().add<OP_GETATTR>(), 0, NFS4ERR_WRONGSEC},
      {"READDIR", Operations4().add<OP_READDIR>({0, {}, 0, 4096, {}}), 0, NFS4ERR_WRONGSEC},
      {"CREATE", Operations4().add<OP_CREATE>({{}, "new", {}}), 0, NFS4ERR_WRONGSEC},
      {"OPEN by handle", open_by(open_claim_type4::CLAIM_FH), 0, NFS4ERR_WRONGSEC},
      {"OPEN that reclaims", open_by(open_claim_type4::CLAIM_PREVIOUS), 0, NFS4ERR_WRONGSEC},
      {"an unknown operation", Operations4().add_encoded(std::vector<std::byte>(4, std::byte{9})),
       0, NFS4ERR_WRONGSEC},
  };
  for (const auto& [name, put] : puts()) {
    for (const Row& row : rows) {
      SCOPED_TRACE(name + " + " + row.what);
      // RESTOREFH puts it twice: SAVEFH, then another one, follow the first.
      const Reply4 reply = nfs.run(Operations4(put).add(row.then));
      EXPECT_EQ(reply.status, row.status);
      EXPECT_EQ(failed_at(reply, put), row.failed);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(nfs.path("new")));
}

TEST_F(WrongFlavor, OfSeveralPutsTheLastTells) {
  const Operations4 puts = Operations4().putfh(none).add<OP_PUTROOTFH>().putfh(file);
  const Reply4 reply = nfs.run(Operations4(puts).add<OP_GETATTR>());
  EXPECT_EQ(reply.status, NFS4ERR_WRONGSEC);
  EXPECT_EQ(failed_at(reply, puts), 0);
}

TEST_F(WrongFlavor, VersionZeroIsToldByThePutAlways) {
  for (const auto& [name, put] : puts()) {
    SCOPED_TRACE(name);
    for (const Operations4& then :
         {Operations4(), Operations4().add<OP_LOOKUP>({"sys"}),
          Operations4().add<OP_SECINFO>({"sys"}), Operations4().add<OP_GETFH>()}) {
      const Reply4 reply = nfs.run_bare(Operations4(put).add(then), 0);
      EXPECT_EQ(reply.status, NFS4ERR_WRONGSEC);
      // Of RESTOREFH the first of its three.
      EXPECT_EQ(reply.results.size(), 1u);
    }
  }
}

TEST_F(WrongFlavor, SecinfoSaysWhatIsServed) {
  const auto no_name = [&](const FileHandle& of, xdr::secinfo_style4 style) {
    const Reply4 reply = nfs.run(Operations4().putfh(of).add<OP_SECINFO_NO_NAME>({style}));
    return flavors_of(reply.get<OP_SECINFO_NO_NAME>().resok4);
  };
  const auto by_name = [&](const FileHandle& directory, std::string_view name) {
    const Reply4 reply = nfs.run(Operations4().putfh(directory).add<OP_SECINFO>({name}));
    return flavors_of(reply.get<OP_SECINFO>().resok4);
  };
  using std::vector;
  for (bool sys_calls : {true, false}) {
    nfs.set_caller(sys_calls ? user(0, 0) : RpcCredentials());
    using enum xdr::secinfo_style4;
    EXPECT_EQ(no_name(none, SECINFO_STYLE4_CURRENT_FH), vector({kNone}));
    EXPECT_EQ(no_name(file, SECINFO_STYLE4_CURRENT_FH), vector({kNone}));
    EXPECT_EQ(no_name(sys, SECINFO_STYLE4_CURRENT_FH), vector({kSys}));
    EXPECT_EQ(no_name(sys, SECINFO_STYLE4_PARENT), vector({kNone}));
    EXPECT_EQ(no_name(inner, SECINFO_STYLE4_PARENT), vector({kSys}));
    EXPECT_EQ(by_name(none, "file"), vector({kNone}));
    EXPECT_EQ(by_name(none, "sys"), vector({kSys}));
    EXPECT_EQ(by_name(none, "both"), vector({kSys, kNone}));
    EXPECT_EQ(by_name(sys, "none"), vector({kNone}));
    EXPECT_EQ(by_name(sys, "file"), vector({kSys}));
  }
}

TEST_F(WrongFlavor, LookuppLeadsToWhereItIsServed) {
  // From an export of AUTH_NONE into one of AUTH_SYS, and the other way round.
  EXPECT_EQ(nfs.run(Operations4().putfh(inner).add<OP_LOOKUPP>().add<OP_GETFH>()).status, NFS4_OK);
  const Reply4 up = nfs.run(Operations4().putfh(sys).add<OP_LOOKUPP>());
  EXPECT_EQ(up.status, NFS4ERR_WRONGSEC);
  EXPECT_EQ(up.results.back().number, OP_LOOKUPP);
}

/// In a directory that does not serve it, a caller is nobody, whatever user it names.
TEST_F(WrongFlavor, WhoPassesIsNobody) {
  ::chmod(nfs.directory().c_str(), 0700);
  EXPECT_EQ(nfs.run(Operations4().putfh(none).add<OP_LOOKUP>({"sys"})).status, NFS4ERR_WRONGSEC);
  EXPECT_EQ(nfs.run(Operations4().putfh(none).add<OP_SECINFO>({"sys"})).status, NFS4ERR_ACCESS);
  EXPECT_EQ(nfs.run(Operations4().putfh(none).add<OP_SECINFO_NO_NAME>()).status, NFS4_OK);
  ::chmod(nfs.directory().c_str(), 0777);
}

/// Of two handles only the current one was put last.
TEST_F(WrongFlavor, TheSavedHandleIsForLinkAndRenameToTell) {
  const Operations4 both = Operations4().putfh(none).add<OP_SAVEFH>().putfh(sys);
  const Reply4 renamed = nfs.run(Operations4(both).add<OP_RENAME>({"file", "moved"}));
  EXPECT_EQ(renamed.status, NFS4ERR_WRONGSEC);
  EXPECT_EQ(renamed.results.back().number, OP_RENAME);
  const Operations4 a_file = Operations4().putfh(file).add<OP_SAVEFH>().putfh(sys);
  const Reply4 linked = nfs.run(Operations4(a_file).add<OP_LINK>({"linked"}));
  EXPECT_EQ(linked.status, NFS4ERR_WRONGSEC);
  EXPECT_EQ(linked.results.back().number, OP_LINK);
  const Operations4 to_file = Operations4().putfh(file).add<OP_SAVEFH>().putfh(sys_file);
  EXPECT_EQ(nfs.run(Operations4(to_file).add<OP_COPY>()).status, NFS4ERR_ACCESS);
  EXPECT_EQ(nfs.run(Operations4(to_file).add<OP_CLONE>()).status, NFS4ERR_ACCESS);
}

TEST_F(WrongFlavor, ReaddirTellsOfEntries) {
  nfs.set_caller(RpcCredentials());
  const auto listed =
      list(Operations4().putfh(none), bitmap4::of({FATTR4_RDATTR_ERROR, FATTR4_TYPE}));
  ASSERT_TRUE(listed.contains("sys") && listed.contains("both"));
  EXPECT_EQ(listed.at("sys").values.rdattr_error, NFS4ERR_WRONGSEC);
  EXPECT_EQ(listed.at("both").values.rdattr_error, NFS4_OK);
  EXPECT_EQ(listed.at("file").values.rdattr_error, NFS4_OK);
}

}  // namespace
}  // namespace nfsrdma::test
