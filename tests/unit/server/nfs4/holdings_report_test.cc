// SPDX-License-Identifier: Apache-2.0
// What `nfs-rdma locks` is told: by which names files are known.
#include "server/nfs4/holdings_report.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "server/credentials.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using nfs4::report_holdings;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HoldingsReports : public ::testing::Test {
 protected:
  nfsstat4 create(xdr::createmode4 mode, std::string_view name) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {nfs_.session.client, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.openhow.how.mode = mode;
    args.openhow.how.ch_createboth.cva_verf.fill(std::byte{9});
    args.claim.file = name;
    return nfs_.on<OP_OPEN>(nfs_.root(), args).status;
  }
  std::string report() { return report_holdings(nfs_.state(), 10); }
  std::string named(const std::string& name) { return "\"path\":\"" + nfs_.path(name) + "\""; }
  Nfs4Harness nfs_;
};

TEST_F(HoldingsReports, KnowAFileByItsNameHoweverItWasMade) {
  ASSERT_EQ(create(xdr::createmode4::UNCHECKED4, "unchecked"), NFS4_OK);
  ASSERT_EQ(create(xdr::createmode4::GUARDED4, "guarded"), NFS4_OK);
  EXPECT_THAT(report(), AllOf(HasSubstr(named("unchecked")), HasSubstr(named("guarded"))));
  EXPECT_THAT(report(), Not(HasSubstr("(deleted)")));
  // The server makes this one without a name, which it finds again by the kernel's handle. A server
  // that may not use those goes by what its descriptor says.
  ASSERT_EQ(create(xdr::createmode4::EXCLUSIVE4_1, "exclusive"), NFS4_OK);
  if (!can_switch_identity()) {
    EXPECT_THAT(report(), HasSubstr("(deleted)"));
    return;
  }
  EXPECT_THAT(report(), HasSubstr(named("exclusive")));
  std::filesystem::rename(nfs_.path("exclusive"), nfs_.path("renamed"));
  EXPECT_THAT(report(), AllOf(HasSubstr(named("renamed")), Not(HasSubstr("(deleted)"))));
}

TEST_F(HoldingsReports, SayOfARemovedFileThatItIs) {
  ASSERT_EQ(create(xdr::createmode4::EXCLUSIVE4_1, "made"), NFS4_OK);
  std::filesystem::remove(nfs_.path("made"));
  EXPECT_THAT(report(), HasSubstr("(deleted)"));
}

}  // namespace
}  // namespace nfsrdma::test
