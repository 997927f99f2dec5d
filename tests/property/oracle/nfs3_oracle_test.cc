// SPDX-License-Identifier: Apache-2.0
// NFSv3: our codec against rpcgen and libtirpc, for the arguments and results of every procedure,
// and NFSACL.
#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/nfs3_convert.h"

namespace nfsrdma::oracle {
namespace {

#define NFS3_PAIR(type) Pair<xdr::type, ::type, xdr_##type>
#define NFS3_PROCEDURE(name) NFS3_PAIR(name##3args), NFS3_PAIR(name##3res)

template <typename P>
class Nfs3Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};
using Pairs =
    ::testing::Types<NFS3_PROCEDURE(GETATTR), NFS3_PROCEDURE(SETATTR), NFS3_PROCEDURE(LOOKUP),
                     NFS3_PROCEDURE(ACCESS), NFS3_PROCEDURE(READLINK), NFS3_PROCEDURE(READ),
                     NFS3_PROCEDURE(WRITE), NFS3_PROCEDURE(CREATE), NFS3_PROCEDURE(MKDIR),
                     NFS3_PROCEDURE(SYMLINK), NFS3_PROCEDURE(MKNOD), NFS3_PROCEDURE(REMOVE),
                     NFS3_PROCEDURE(RMDIR), NFS3_PROCEDURE(RENAME), NFS3_PROCEDURE(LINK),
                     NFS3_PROCEDURE(READDIR), NFS3_PROCEDURE(READDIRPLUS), NFS3_PROCEDURE(FSSTAT),
                     NFS3_PROCEDURE(FSINFO), NFS3_PROCEDURE(PATHCONF), NFS3_PROCEDURE(COMMIT),
                     NFS3_PROCEDURE(GETACL), NFS3_PROCEDURE(SETACL)>;
TYPED_TEST_SUITE(Nfs3Oracle, Pairs);

TYPED_TEST(Nfs3Oracle, SameBytesBothWays) {
  compare_random_values<TypeParam>(300);
}
TYPED_TEST(Nfs3Oracle, SameJudgementOfDamagedBytes) {
  compare_damaged_bytes<TypeParam>(2000);
}

}  // namespace
}  // namespace nfsrdma::oracle
