// SPDX-License-Identifier: Apache-2.0
// What `nfs-rdma locks` is told: by which names files are known.
#include "server/nfs4/holdings_report.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using nfs4::report_holdings;
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

// The server makes such a file without a name, and gives it one when its verifier is on it.
TEST_F(HoldingsReports, KnowAFileByItsNameHoweverItWasMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "names are found by handles, which takes root";
  for (const auto mode :
       {xdr::createmode4::UNCHECKED4, xdr::createmode4::GUARDED4, xdr::createmode4::EXCLUSIVE4_1}) {
    SCOPED_TRACE(static_cast<unsigned>(mode));
    const std::string name = "made" + std::to_string(static_cast<unsigned>(mode));
    ASSERT_EQ(create(mode, name), NFS4_OK);
    EXPECT_THAT(report(), HasSubstr(named(name)));
  }
  EXPECT_THAT(report(), Not(HasSubstr("(deleted)")));
  std::filesystem::rename(nfs_.path("made3"), nfs_.path("renamed"));
  EXPECT_THAT(report(), HasSubstr(named("renamed")));
}

TEST_F(HoldingsReports, SayOfARemovedFileThatItIs) {
  ASSERT_EQ(create(xdr::createmode4::EXCLUSIVE4_1, "made"), NFS4_OK);
  std::filesystem::remove(nfs_.path("made"));
  EXPECT_THAT(report(), HasSubstr("(deleted)"));
}

}  // namespace
}  // namespace nfsrdma::test
