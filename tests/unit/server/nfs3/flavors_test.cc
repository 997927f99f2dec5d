// SPDX-License-Identifier: Apache-2.0
// sec= and nordirplus: who is served, and by which procedures.
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Flavors : public ::testing::Test {
 protected:
  void export_with(const std::string& options) {
    const ParsedExports parsed = parse_exports("/x *(no_root_squash," + options + ")\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    nfs.export_with(parsed.entries[0].clients[0].options);
  }
  nfsstat3 look() { return nfs.getattr(nfs.root()).status; }
  nfsstat3 make(const char* name) {
    return nfs.call<nfsproc3::NFSPROC3_MKDIR>({{nfs.fh(nfs.root()), name}, {}}).status();
  }
  void be_nobody() { nfs.set_caller(RpcCredentials()); }
  Nfs3Harness nfs;
};

TEST_F(Flavors, BothAreServedWithoutSec) {
  export_with("rw");
  EXPECT_EQ(look(), NFS3_OK);
  be_nobody();
  EXPECT_EQ(look(), NFS3_OK);
  EXPECT_EQ(make("by-nobody"), NFS3_OK);
}

TEST_F(Flavors, SysAloneRefusesAuthNone) {
  export_with("rw,sec=sys");
  EXPECT_EQ(look(), NFS3_OK);
  be_nobody();
  EXPECT_EQ(look(), NFS3ERR_ACCES);
}

TEST_F(Flavors, NoneAloneRefusesAuthSys) {
  export_with("rw,sec=none");
  EXPECT_EQ(look(), NFS3ERR_ACCES);
  be_nobody();
  EXPECT_EQ(look(), NFS3_OK);
}

TEST_F(Flavors, EachHasItsOwnRoAndRw) {
  export_with("sec=sys,rw,sec=none,ro");
  EXPECT_EQ(make("by-sys"), NFS3_OK);
  be_nobody();
  EXPECT_EQ(make("by-nobody"), NFS3ERR_ROFS);
  export_with("sec=sys,ro,sec=none,rw");
  EXPECT_EQ(make("by-nobody"), NFS3_OK);
}

TEST_F(Flavors, NordirplusRefusesReaddirplusAlone) {
  export_with("rw,nordirplus");
  const auto plus =
      nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), 0, {}, 4096, 16384});
  EXPECT_EQ(plus.status(), NFS3ERR_NOTSUPP);
  const auto plain = nfs.call<nfsproc3::NFSPROC3_READDIR>({nfs.fh(nfs.root()), 0, {}, 4096});
  EXPECT_EQ(plain.status(), NFS3_OK);
}

}  // namespace
}  // namespace nfsrdma::test
