// SPDX-License-Identifier: Apache-2.0
// NFSv4: our codec against rpcgen and libtirpc, for the results of every operation and callback.
#include "tests/property/oracle/nfs4_prelude.h"

#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/nfs4_session_convert.h"

namespace nfsrdma::oracle {
namespace {

#define NFS4_PAIR(type) Pair<xdr::type, ::type, xdr_##type, Limits::kForgetsBits>

template <typename... P>
struct PairList {
  template <typename F>
  static void for_each(F f) {
    (f.template operator()<P>(), ...);
  }
};
using Pairs = PairList<
    NFS4_PAIR(COMPOUND4res), NFS4_PAIR(ACCESS4res), NFS4_PAIR(GETFH4res), NFS4_PAIR(LOOKUP4res),
    NFS4_PAIR(LOOKUPP4res), NFS4_PAIR(OPENATTR4res), NFS4_PAIR(PUTFH4res), NFS4_PAIR(PUTPUBFH4res),
    NFS4_PAIR(PUTROOTFH4res), NFS4_PAIR(RESTOREFH4res), NFS4_PAIR(SAVEFH4res),
    NFS4_PAIR(GETATTR4res), NFS4_PAIR(SETATTR4res), NFS4_PAIR(VERIFY4res), NFS4_PAIR(NVERIFY4res),
    NFS4_PAIR(CREATE4res), NFS4_PAIR(LINK4res), NFS4_PAIR(READLINK4res), NFS4_PAIR(REMOVE4res),
    NFS4_PAIR(RENAME4res), NFS4_PAIR(SECINFO4res), NFS4_PAIR(READDIR4res), NFS4_PAIR(READ4res),
    NFS4_PAIR(WRITE4res), NFS4_PAIR(COMMIT4res), NFS4_PAIR(DELEGPURGE4res),
    NFS4_PAIR(DELEGRETURN4res), NFS4_PAIR(WANT_DELEGATION4res), NFS4_PAIR(GET_DIR_DELEGATION4res),
    NFS4_PAIR(OPEN4res), NFS4_PAIR(OPEN_CONFIRM4res), NFS4_PAIR(OPEN_DOWNGRADE4res),
    NFS4_PAIR(CLOSE4res), NFS4_PAIR(LOCK4res), NFS4_PAIR(LOCKT4res), NFS4_PAIR(LOCKU4res),
    NFS4_PAIR(RELEASE_LOCKOWNER4res), NFS4_PAIR(FREE_STATEID4res), NFS4_PAIR(TEST_STATEID4res),
    NFS4_PAIR(SETCLIENTID4res), NFS4_PAIR(SETCLIENTID_CONFIRM4res), NFS4_PAIR(RENEW4res),
    NFS4_PAIR(EXCHANGE_ID4res), NFS4_PAIR(DESTROY_CLIENTID4res), NFS4_PAIR(RECLAIM_COMPLETE4res),
    NFS4_PAIR(BACKCHANNEL_CTL4res), NFS4_PAIR(BIND_CONN_TO_SESSION4res),
    NFS4_PAIR(CREATE_SESSION4res), NFS4_PAIR(DESTROY_SESSION4res), NFS4_PAIR(SEQUENCE4res),
    NFS4_PAIR(SET_SSV4res), NFS4_PAIR(GETDEVICEINFO4res), NFS4_PAIR(GETDEVICELIST4res),
    NFS4_PAIR(LAYOUTCOMMIT4res), NFS4_PAIR(LAYOUTGET4res), NFS4_PAIR(LAYOUTRETURN4res),
    NFS4_PAIR(LAYOUTERROR4res), NFS4_PAIR(LAYOUTSTATS4res), NFS4_PAIR(CLONE4res),
    NFS4_PAIR(COPY4res), NFS4_PAIR(COPY_NOTIFY4res), NFS4_PAIR(OFFLOAD_CANCEL4res),
    NFS4_PAIR(OFFLOAD_STATUS4res), NFS4_PAIR(ALLOCATE4res), NFS4_PAIR(DEALLOCATE4res),
    NFS4_PAIR(IO_ADVISE4res), NFS4_PAIR(READ_PLUS4res), NFS4_PAIR(SEEK4res),
    NFS4_PAIR(WRITE_SAME4res), NFS4_PAIR(GETXATTR4res), NFS4_PAIR(SETXATTR4res),
    NFS4_PAIR(LISTXATTRS4res), NFS4_PAIR(REMOVEXATTR4res), NFS4_PAIR(CB_COMPOUND4res),
    NFS4_PAIR(CB_GETATTR4res), NFS4_PAIR(CB_RECALL4res), NFS4_PAIR(CB_LAYOUTRECALL4res),
    NFS4_PAIR(CB_NOTIFY4res), NFS4_PAIR(CB_PUSH_DELEG4res), NFS4_PAIR(CB_RECALL_ANY4res),
    NFS4_PAIR(CB_RECALLABLE_OBJ_AVAIL4res), NFS4_PAIR(CB_RECALL_SLOT4res),
    NFS4_PAIR(CB_SEQUENCE4res), NFS4_PAIR(CB_WANTS_CANCELLED4res), NFS4_PAIR(CB_NOTIFY_LOCK4res),
    NFS4_PAIR(CB_NOTIFY_DEVICEID4res), NFS4_PAIR(CB_OFFLOAD4res)>;

// The types in one test each: a test per type takes minutes to compile.
class Nfs4ResultsOracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};

TEST_F(Nfs4ResultsOracle, SameBytesBothWays) {
  Pairs::for_each([]<typename P>() {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    compare_random_values<P>(200);
  });
}
TEST_F(Nfs4ResultsOracle, SameJudgementOfDamagedBytes) {
  Pairs::for_each([]<typename P>() {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    compare_damaged_bytes<P>(1000);
  });
}

}  // namespace
}  // namespace nfsrdma::oracle
