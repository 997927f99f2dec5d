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

/// One that calls itself the same and does not know the client: restarted meanwhile, or the same
/// software with a copied configuration.
TEST_F(KnownServerTest, OneThatDoesNotKnowTheClientIsNotUsedNow) {
  ASSERT_TRUE(begin().ok());
  server_->knows_client = false;
  Result<bool> here = leads_here();
  ASSERT_FALSE(here.ok());
  EXPECT_NE(here.error().message().find("does not know this client"), std::string::npos);
}

/// Another server may have taken an address over: EXCHANGE_ID must not go to one and CREATE_SESSION
/// to the other.
TEST_F(KnownServerTest, ANewClientIdIsMadeByTheFirstAddressAlone) {
  ASSERT_TRUE(begin().ok());
  RpcConnection& way = rpc_->add_connection(
      {{TransportKind::kTcp, SocketAddress::parse("192.0.2.2", 2049).value(), nullptr}});
  way.wake();
  environment_->transport()->accept();
  way.admit();
  EXPECT_EQ(rpc_->connections().size(), 2u);
  server_->restart();
  session().renew({0, session().epoch()}, nfs4::Remedy::kNewClientId);
  environment_->settle();
  EXPECT_FALSE(way.takes_calls());
  // The fixture's server answers on the newest connection, which has nothing to answer.
  EXPECT_TRUE(environment_->transport()->out().empty());
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
