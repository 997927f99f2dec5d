// SPDX-License-Identifier: Apache-2.0
// RQUOTA: our codec against rpcgen and libtirpc; version 1 from the system's own rquota.x.
#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/rquota_convert.h"

namespace nfsrdma::oracle {
namespace {

#define RQUOTA_PAIR(type) Pair<xdr::type, ::type, xdr_##type>

template <typename P>
class RquotaOracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};
using Pairs = ::testing::Types<RQUOTA_PAIR(getquota_args), RQUOTA_PAIR(getquota_rslt),
                               RQUOTA_PAIR(ext_getquota_args), RQUOTA_PAIR(setquota_args),
                               RQUOTA_PAIR(ext_setquota_args)>;
TYPED_TEST_SUITE(RquotaOracle, Pairs);

TYPED_TEST(RquotaOracle, SameBytesBothWays) {
  compare_random_values<TypeParam>(300);
}
TYPED_TEST(RquotaOracle, SameJudgementOfDamagedBytes) {
  compare_damaged_bytes<TypeParam>(2000);
}

}  // namespace
}  // namespace nfsrdma::oracle
