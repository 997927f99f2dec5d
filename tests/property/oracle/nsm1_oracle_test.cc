// SPDX-License-Identifier: Apache-2.0
// NSM: our codec against rpcgen and libtirpc.
#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/nsm1_convert.h"

namespace nfsrdma::oracle {
namespace {

template <typename P>
class Nsm1Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};
using Pairs = ::testing::Types<
    Pair<xdr::sm_name, ::sm_name, xdr_sm_name>, Pair<xdr::my_id, ::my_id, xdr_my_id>,
    Pair<xdr::mon_id, ::mon_id, xdr_mon_id>, Pair<xdr::sm_mon, ::sm_mon, xdr_sm_mon>,
    Pair<xdr::stat_chge, ::stat_chge, xdr_stat_chge>, Pair<xdr::sm_stat, ::sm_stat, xdr_sm_stat>,
    Pair<xdr::sm_stat_res, ::sm_stat_res, xdr_sm_stat_res>,
    Pair<xdr::sm_status, ::sm_status, xdr_sm_status>>;
TYPED_TEST_SUITE(Nsm1Oracle, Pairs);

TYPED_TEST(Nsm1Oracle, SameBytesBothWays) {
  compare_random_values<TypeParam>(300);
}
TYPED_TEST(Nsm1Oracle, SameJudgementOfDamagedBytes) {
  compare_damaged_bytes<TypeParam>(2000);
}

}  // namespace
}  // namespace nfsrdma::oracle
