// SPDX-License-Identifier: Apache-2.0
// RQUOTA: who may ask what, and how numbers of the kernel become those of the protocol. Quotas
// themselves need a file system that has them: tests/interop/lab_kernel_client.sh.
#include "server/quota/rquota_program.h"

#include <gtest/gtest.h>

#include "tests/support/nfs3_harness.h"
#include "xdr/rquota.h"

namespace nfsrdma::test {
namespace {

using xdr::gqr_status;
using xdr::rquota;

constexpr std::uint64_t kMost32 = 0xffffffff;

TEST(RquotaNumbers, SmallOnesAreBlocksOf1024Bytes) {
  const DiskQuota quota{.hard_blocks = 200,
                        .soft_blocks = 100,
                        .used_bytes = 3 * 1024 + 1,
                        .hard_files = 20,
                        .soft_files = 10,
                        .used_files = 3,
                        .block_time = 0,
                        .file_time = 0};
  EXPECT_EQ(rquota_of(quota, 1000), (rquota{1024, true, 200, 100, 4, 20, 10, 3, 0, 0}));
}

TEST(RquotaNumbers, LargeOnesAreLargerBlocks) {
  DiskQuota quota{.hard_blocks = kMost32};
  EXPECT_EQ(rquota_of(quota, 0).rq_bsize, 1024);
  EXPECT_EQ(rquota_of(quota, 0).rq_bhardlimit, kMost32);
  quota.hard_blocks = kMost32 + 1;
  EXPECT_EQ(rquota_of(quota, 0).rq_bsize, 2048);
  EXPECT_EQ(rquota_of(quota, 0).rq_bhardlimit, 0x80000000u);
  quota.hard_blocks = 2 * kMost32 + 1;  // would be 2^32 when rounded up to blocks of 2 KiB
  EXPECT_EQ(rquota_of(quota, 0).rq_bsize, 4096);
  EXPECT_EQ(rquota_of(quota, 0).rq_bhardlimit, 0x80000000u);
}

TEST(RquotaNumbers, NoLimitBecomesNoneByRounding) {
  const rquota out = rquota_of({.hard_blocks = 1ull << 40, .soft_blocks = 1, .used_bytes = 1}, 0);
  EXPECT_EQ(out.rq_bsoftlimit, 1u);
  EXPECT_EQ(out.rq_curblocks, 1u);
  EXPECT_EQ(std::uint64_t{out.rq_bhardlimit} * static_cast<std::uint64_t>(out.rq_bsize),
            1ull << 50);
}

TEST(RquotaNumbers, TheLargestFitToo) {
  const rquota out = rquota_of({.hard_blocks = ~0ull,
                                .soft_blocks = ~0ull,
                                .used_bytes = ~0ull,
                                .hard_files = ~0ull,
                                .soft_files = ~0ull,
                                .used_files = ~0ull},
                               0);
  EXPECT_EQ(out,
            (rquota{1 << 30, true, kMost32, kMost32, kMost32, kMost32, kMost32, kMost32, 0, 0}));
}

TEST(RquotaNumbers, TimesAreWhatIsLeft) {
  auto left = [](std::time_t end) { return rquota_of({.block_time = end}, 1000).rq_btimeleft; };
  EXPECT_EQ(left(0), 0u);
  EXPECT_EQ(left(1600), 600u);
  EXPECT_EQ(static_cast<std::int32_t>(left(400)), -600);
  EXPECT_EQ(static_cast<std::int32_t>(left(1000)), -1);  // 0 would be "none"
  EXPECT_EQ(left(std::time_t{1} << 40), 0x7fffffffu);
  EXPECT_EQ(rquota_of({.file_time = 1007}, 1000).rq_ftimeleft, 7u);
}

TEST(RquotaRights, EverybodyMayAskForHimself) {
  const RpcCredentials caller = user(1000, 100, {200, 300});
  EXPECT_TRUE(may_ask_quota(caller, QuotaKind::kUser, 1000));
  EXPECT_FALSE(may_ask_quota(caller, QuotaKind::kUser, 1001));
  EXPECT_FALSE(may_ask_quota(caller, QuotaKind::kUser, 0));
}

TEST(RquotaRights, AndForTheGroupsHeComesWith) {
  const RpcCredentials caller = user(1000, 100, {200, 300});
  EXPECT_TRUE(may_ask_quota(caller, QuotaKind::kGroup, 100));
  EXPECT_TRUE(may_ask_quota(caller, QuotaKind::kGroup, 300));
  EXPECT_FALSE(may_ask_quota(caller, QuotaKind::kGroup, 1000));
  EXPECT_FALSE(may_ask_quota(caller, QuotaKind::kGroup, 0));
  EXPECT_FALSE(may_ask_quota(caller, QuotaKind::kProject, 1000));
}

TEST(RquotaRights, RootMayAskForAll) {
  EXPECT_TRUE(may_ask_quota(user(0, 0), QuotaKind::kUser, 1000));
  EXPECT_TRUE(may_ask_quota(user(0, 0), QuotaKind::kGroup, 1000));
  EXPECT_TRUE(may_ask_quota(user(0, 0), QuotaKind::kProject, 1000));
}

TEST(RquotaRights, WhoSaysNothingOfHimselfMayNot) {
  RpcCredentials nobody;
  nobody.uid = 0;
  EXPECT_FALSE(may_ask_quota(nobody, QuotaKind::kUser, 0));
  EXPECT_FALSE(may_ask_quota(nobody, QuotaKind::kUser, nobody.uid));
}

class Rquota : public ::testing::Test {
 protected:
  gqr_status ask1(std::string_view path, std::int32_t uid) {
    return ask(rquota1_program(), xdr::getquota_args{path, uid});
  }
  gqr_status ask2(std::string_view path, std::int32_t type, std::int32_t id) {
    return ask(rquota2_program(), xdr::ext_getquota_args{path, type, id});
  }
  template <typename Args>
  gqr_status ask(const ProgramTable& table, const Args& args,
                 xdr::rquotaproc number = xdr::rquotaproc::RQUOTAPROC_GETQUOTA) {
    const auto reply =
        nfs.call_row<xdr::getquota_rslt>(table.procedures[static_cast<std::size_t>(number)], args);
    EXPECT_EQ(reply.outcome, Outcome::kReply);
    return reply.res.status;
  }
  /// Whoever the server may ask for: an ordinary user's asks for himself alone.
  std::int32_t me() const {
    return nfs.acts_as_callers() ? 1000 : static_cast<std::int32_t>(::geteuid());
  }
  std::int32_t my_group() const {
    return nfs.acts_as_callers() ? 100 : static_cast<std::int32_t>(::getegid());
  }
  /// /tmp has no quotas, or it is known what they are.
  void expect_answered(gqr_status status) {
    EXPECT_TRUE(status == gqr_status::Q_NOQUOTA || status == gqr_status::Q_OK)
        << static_cast<unsigned>(status);
  }
  Nfs3Harness nfs;
};

TEST_F(Rquota, WhatIsExportedIsAnswered) {
  std::filesystem::create_directory(nfs.path("d"));
  expect_answered(ask1(nfs.directory(), me()));
  expect_answered(ask1(nfs.directory() + "//d/", me()));
  expect_answered(ask2(nfs.directory(), xdr::kRquotaUser, me()));
  expect_answered(ask2(nfs.directory(), xdr::kRquotaGroup, my_group()));
  // As quota -m has it of an NFSv4 mount.
  expect_answered(ask2(nfs.directory().substr(1), xdr::kRquotaUser, me()));
}

TEST_F(Rquota, NothingIsSaidOfWhatIsNot) {
  EXPECT_EQ(ask1("/", 1000), gqr_status::Q_EPERM);
  EXPECT_EQ(ask1("/tmp", 1000), gqr_status::Q_EPERM);
  EXPECT_EQ(ask1("/no/such/place", 1000), gqr_status::Q_EPERM);
  EXPECT_EQ(ask1("", 1000), gqr_status::Q_EPERM);
  EXPECT_EQ(ask1(nfs.directory() + "/../..", 1000), gqr_status::Q_EPERM);
  std::filesystem::create_symlink("/", nfs.path("out"));
  // Within the export, but nothing there: the same, whatever exists outside.
  for (const char* name : {"/gone", "/out", "/out/tmp", "/out/no-such-place"})
    EXPECT_EQ(ask1(nfs.directory() + name, 1000), gqr_status::Q_NOQUOTA) << name;
}

TEST_F(Rquota, ClientsThatMayNotUseTheExportLearnNothing) {
  ExportEntry entry;
  entry.path = nfs.directory();
  ExportClient other;
  other.kind = ExportClient::Kind::kHost;
  other.text = "somebody.else.example";
  entry.clients.push_back(other);
  ConfigProblems problems;
  nfs.server().exports.reload({entry}, &problems);
  ASSERT_TRUE(problems.empty());
  EXPECT_EQ(ask1(nfs.directory(), 1000), gqr_status::Q_EPERM);
}

TEST_F(Rquota, OrdinaryPortsDoForQuestions) {
  ExportOptions secure = HarnessOptions::writable();
  secure.secure = true;
  nfs.export_with(secure);
  nfs.connection().set_transport(TransportKind::kTcp);
  nfs.connection().set_peer(SocketAddress::parse("192.0.2.7", 40000).value());
  expect_answered(ask1(nfs.directory(), me()));
}

TEST_F(Rquota, OthersQuotasAreNotForEverybody) {
  nfs.set_caller(user(static_cast<std::uint32_t>(me()), static_cast<std::uint32_t>(my_group())));
  expect_answered(ask1(nfs.directory(), me()));
  EXPECT_EQ(ask1(nfs.directory(), me() + 1), gqr_status::Q_EPERM);
  EXPECT_EQ(ask2(nfs.directory(), xdr::kRquotaUser, me() + 1), gqr_status::Q_EPERM);
  EXPECT_EQ(ask2(nfs.directory(), xdr::kRquotaGroup, my_group() + 1), gqr_status::Q_EPERM);
  expect_answered(ask2(nfs.directory(), xdr::kRquotaGroup, my_group()));
  EXPECT_EQ(ask2(nfs.directory(), 3, me()), gqr_status::Q_EPERM);
}

TEST_F(Rquota, NothingIsSet) {
  using enum xdr::rquotaproc;
  for (const xdr::rquotaproc number : {RQUOTAPROC_SETQUOTA, RQUOTAPROC_SETACTIVEQUOTA}) {
    EXPECT_EQ(ask(rquota1_program(), xdr::setquota_args{0, nfs.directory(), 0, {}}, number),
              gqr_status::Q_EPERM);
    EXPECT_EQ(ask(rquota2_program(), xdr::ext_setquota_args{0, nfs.directory(), 0, 0, {}}, number),
              gqr_status::Q_EPERM);
  }
}

TEST_F(Rquota, PathsOfVersion4BeginAtItsRoot) {
  const ExportSnapshot& exports = nfs.server().exports.current();
  EXPECT_EQ(quota_path("/srv//data/", exports), "/srv/data");
  EXPECT_EQ(quota_path("srv/data", exports), "/srv/data");
  ExportOptions root = HarnessOptions::writable();
  root.fsid = "0";
  nfs.export_with(root);
  const ExportSnapshot& now = nfs.server().exports.current();
  EXPECT_EQ(quota_path("data", now), nfs.directory() + "/data");
  EXPECT_EQ(quota_path("", now), nfs.directory());
  EXPECT_EQ(quota_path("/data", now), "/data");
  EXPECT_EQ(quota_path("../data", now), "");
}

TEST_F(Rquota, TheServersIdentityIsAsItWas) {
  nfs.on_serving_thread([] {
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    DiskQuota quota;
    for (const QuotaKind kind : {QuotaKind::kUser, QuotaKind::kGroup}) {
      (void)read_disk_quota(-1, 0, kind, 4711, &quota);
      EXPECT_EQ(::geteuid(), uid);
      EXPECT_EQ(::getegid(), gid);
    }
  });
}

TEST_F(Rquota, NoDescriptorIsAnError) {
  DiskQuota quota;
  EXPECT_NE(read_disk_quota(-1, 0, QuotaKind::kUser, 4711, &quota), 0);
  EXPECT_NE(read_disk_quota(-1, 0, QuotaKind::kUser, ~0u, &quota), 0);
}

TEST(RquotaPrograms, HaveFiveProceduresEach) {
  for (const ProgramTable& table : {rquota1_program(), rquota2_program()}) {
    EXPECT_EQ(table.program, 100011u);
    EXPECT_EQ(table.procedures.size(), 5u);
  }
}

}  // namespace
}  // namespace nfsrdma::test
