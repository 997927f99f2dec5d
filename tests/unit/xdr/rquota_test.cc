// SPDX-License-Identifier: Apache-2.0
#include "xdr/rquota.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(Rquota, AQuotaHasItsWordsInOrder) {
  getquota_rslt result;
  result.status = gqr_status::Q_OK;
  result.gqr_rquota = {1024, true, 11, 12, 13, 14, 15, 16, 17, 18};
  EXPECT_EQ(encode_flat(result), words({1, 1024, 1, 11, 12, 13, 14, 15, 16, 17, 18}));
}

TEST(Rquota, ARefusalIsItsStatusAlone) {
  EXPECT_EQ(encode_flat(getquota_rslt{gqr_status::Q_NOQUOTA, {}}), words({2}));
  EXPECT_EQ(encode_flat(getquota_rslt{gqr_status::Q_EPERM, {}}), words({3}));
}

TEST(Rquota, AStatusThatIsNoneIsRefused) {
  getquota_rslt result;
  EXPECT_FALSE(decode_exactly(words({0}), result));
  EXPECT_FALSE(decode_exactly(words({4}), result));
}

TEST(Rquota, PathsHave1024BytesAtMost) {
  const std::string longest(kRquotaMaxPath, 'p'), longer(kRquotaMaxPath + 1, 'p');
  ext_getquota_args args;
  EXPECT_TRUE(decode_exactly(encode_flat(ext_getquota_args{longest, 0, 1}), args));
  EXPECT_FALSE(decode_exactly(encode_flat(ext_getquota_args{longer, 0, 1}), args));
}

}  // namespace
}  // namespace nfsrdma::xdr
