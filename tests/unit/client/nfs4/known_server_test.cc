// SPDX-License-Identifier: Apache-2.0
// Whether a further connection leads to the server of a session (Session::leads_here()).
#include "client/nfs4/known_server.h"

#include <gtest/gtest.h>

#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

class KnownServerTest : public SessionTest {
 protected:
  KnownServerTest() { server_->knows_client = true; }
  /// Asks over a further connection, which the server of the fixture answers on.
  Result<bool> leads_here() {
    RpcConnection& way = rpc_->add_connection(
        {{TransportKind::kTcp, SocketAddress::parse("192.0.2.2", 2049).value(), nullptr}});
    way.wake();
    environment_->transport()->accept();
    return finish(nfs_->leads_here(op_, way));
  }
};

TEST_F(KnownServerTest, TheServerOfTheSessionIsKnownAgain) {
  ASSERT_TRUE(begin().ok());
  Result<bool> here = leads_here();
  ASSERT_TRUE(here.ok()) << here.error().message();
  EXPECT_TRUE(*here);
  const std::vector<std::vector<xdr::nfs_opnum4>> asked = {{xdr::nfs_opnum4::OP_EXCHANGE_ID}};
  EXPECT_EQ(server_->seen, asked);
  // And the session stands.
  expect_getattr_works();
  EXPECT_EQ(times(xdr::nfs_opnum4::OP_CREATE_SESSION), 0u);
}

TEST_F(KnownServerTest, AnotherOwnerIsAnotherServer) {
  ASSERT_TRUE(begin().ok());
  server_->major_id = "that one";
  Result<bool> here = leads_here();
  ASSERT_TRUE(here.ok());
  EXPECT_FALSE(*here);
}

/// One that calls itself the same and does not know the client: the same software with a copied
/// configuration, or restarted meanwhile.
TEST_F(KnownServerTest, AnotherClientIdIsAnotherServer) {
  ASSERT_TRUE(begin().ok());
  server_->knows_client = false;
  Result<bool> here = leads_here();
  ASSERT_TRUE(here.ok());
  EXPECT_FALSE(*here);
}

TEST_F(KnownServerTest, AnErrorOfTheServerSaysNothing) {
  ASSERT_TRUE(begin().ok());
  server_->exchange_errors = {xdr::nfsstat4::NFS4ERR_DELAY};
  EXPECT_FALSE(leads_here().ok());
}

TEST_F(KnownServerTest, WithoutASessionThereIsNothingToCompareWith) {
  Result<bool> here = leads_here();
  ASSERT_FALSE(here.ok());
  EXPECT_TRUE(server_->seen.empty());
}

}  // namespace
}  // namespace nfsrdma
