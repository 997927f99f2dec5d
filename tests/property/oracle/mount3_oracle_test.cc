// SPDX-License-Identifier: Apache-2.0
// MOUNT: our codec against rpcgen and libtirpc.
#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/mount3_convert.h"

namespace nfsrdma::oracle {
namespace {

template <typename P>
class Mount3Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};
using Pairs = ::testing::Types<
    Pair<xdr::dirpath, ::dirpath, xdr_dirpath>, Pair<xdr::mountres3, ::mountres3, xdr_mountres3>,
    Pair<xdr::mountlist, ::mountlist, xdr_mountlist>, Pair<xdr::exports, ::exports, xdr_exports>>;
TYPED_TEST_SUITE(Mount3Oracle, Pairs);

TYPED_TEST(Mount3Oracle, SameBytesBothWays) {
  compare_random_values<TypeParam>(300);
}
TYPED_TEST(Mount3Oracle, SameJudgementOfDamagedBytes) {
  compare_damaged_bytes<TypeParam>(2000);
}

}  // namespace
}  // namespace nfsrdma::oracle
