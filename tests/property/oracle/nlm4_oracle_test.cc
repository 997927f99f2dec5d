// SPDX-License-Identifier: Apache-2.0
// NLM: our codec against rpcgen and libtirpc.
#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/nlm4_convert.h"

namespace nfsrdma::oracle {
namespace {

template <typename P>
class Nlm4Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};
using Pairs = ::testing::Types<Pair<xdr::nlm4_testargs, ::nlm4_testargs, xdr_nlm4_testargs>,
                               Pair<xdr::nlm4_testres, ::nlm4_testres, xdr_nlm4_testres>,
                               Pair<xdr::nlm4_lockargs, ::nlm4_lockargs, xdr_nlm4_lockargs>,
                               Pair<xdr::nlm4_cancargs, ::nlm4_cancargs, xdr_nlm4_cancargs>,
                               Pair<xdr::nlm4_unlockargs, ::nlm4_unlockargs, xdr_nlm4_unlockargs>,
                               Pair<xdr::nlm4_res, ::nlm4_res, xdr_nlm4_res>,
                               Pair<xdr::nlm4_shareargs, ::nlm4_shareargs, xdr_nlm4_shareargs>,
                               Pair<xdr::nlm4_shareres, ::nlm4_shareres, xdr_nlm4_shareres>,
                               Pair<xdr::nlm4_notify, ::nlm4_notify, xdr_nlm4_notify>>;
TYPED_TEST_SUITE(Nlm4Oracle, Pairs);

TYPED_TEST(Nlm4Oracle, SameBytesBothWays) {
  compare_random_values<TypeParam>(300);
}
TYPED_TEST(Nlm4Oracle, SameJudgementOfDamagedBytes) {
  compare_damaged_bytes<TypeParam>(2000);
}

}  // namespace
}  // namespace nfsrdma::oracle
