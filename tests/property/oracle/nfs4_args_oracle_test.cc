// SPDX-License-Identifier: Apache-2.0
// NFSv4: our codec against rpcgen and libtirpc, for the arguments of every operation and callback,
// and attributes.
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
    NFS4_PAIR(COMPOUND4args), NFS4_PAIR(ACCESS4args), NFS4_PAIR(LOOKUP4args),
    NFS4_PAIR(OPENATTR4args), NFS4_PAIR(PUTFH4args), NFS4_PAIR(GETATTR4args),
    NFS4_PAIR(SETATTR4args), NFS4_PAIR(VERIFY4args), NFS4_PAIR(NVERIFY4args),
    NFS4_PAIR(CREATE4args), NFS4_PAIR(LINK4args), NFS4_PAIR(REMOVE4args), NFS4_PAIR(RENAME4args),
    NFS4_PAIR(SECINFO4args), NFS4_PAIR(SECINFO_NO_NAME4args), NFS4_PAIR(READDIR4args),
    NFS4_PAIR(READ4args), NFS4_PAIR(WRITE4args), NFS4_PAIR(COMMIT4args), NFS4_PAIR(DELEGPURGE4args),
    NFS4_PAIR(DELEGRETURN4args), NFS4_PAIR(WANT_DELEGATION4args),
    NFS4_PAIR(GET_DIR_DELEGATION4args), NFS4_PAIR(OPEN4args), NFS4_PAIR(OPEN_CONFIRM4args),
    NFS4_PAIR(OPEN_DOWNGRADE4args), NFS4_PAIR(CLOSE4args), NFS4_PAIR(LOCK4args),
    NFS4_PAIR(LOCKT4args), NFS4_PAIR(LOCKU4args), NFS4_PAIR(RELEASE_LOCKOWNER4args),
    NFS4_PAIR(FREE_STATEID4args), NFS4_PAIR(TEST_STATEID4args), NFS4_PAIR(SETCLIENTID4args),
    NFS4_PAIR(SETCLIENTID_CONFIRM4args), NFS4_PAIR(RENEW4args), NFS4_PAIR(EXCHANGE_ID4args),
    NFS4_PAIR(DESTROY_CLIENTID4args), NFS4_PAIR(RECLAIM_COMPLETE4args),
    NFS4_PAIR(BACKCHANNEL_CTL4args), NFS4_PAIR(BIND_CONN_TO_SESSION4args),
    NFS4_PAIR(CREATE_SESSION4args), NFS4_PAIR(DESTROY_SESSION4args), NFS4_PAIR(SEQUENCE4args),
    NFS4_PAIR(SET_SSV4args), NFS4_PAIR(GETDEVICEINFO4args), NFS4_PAIR(GETDEVICELIST4args),
    NFS4_PAIR(LAYOUTCOMMIT4args), NFS4_PAIR(LAYOUTGET4args), NFS4_PAIR(LAYOUTRETURN4args),
    NFS4_PAIR(LAYOUTERROR4args), NFS4_PAIR(LAYOUTSTATS4args), NFS4_PAIR(CLONE4args),
    NFS4_PAIR(COPY4args), NFS4_PAIR(COPY_NOTIFY4args), NFS4_PAIR(OFFLOAD_CANCEL4args),
    NFS4_PAIR(OFFLOAD_STATUS4args), NFS4_PAIR(ALLOCATE4args), NFS4_PAIR(DEALLOCATE4args),
    NFS4_PAIR(IO_ADVISE4args), NFS4_PAIR(READ_PLUS4args), NFS4_PAIR(SEEK4args),
    NFS4_PAIR(WRITE_SAME4args), NFS4_PAIR(GETXATTR4args), NFS4_PAIR(SETXATTR4args),
    NFS4_PAIR(LISTXATTRS4args), NFS4_PAIR(REMOVEXATTR4args), NFS4_PAIR(CB_COMPOUND4args),
    NFS4_PAIR(CB_GETATTR4args), NFS4_PAIR(CB_RECALL4args), NFS4_PAIR(CB_LAYOUTRECALL4args),
    NFS4_PAIR(CB_NOTIFY4args), NFS4_PAIR(CB_PUSH_DELEG4args), NFS4_PAIR(CB_RECALL_ANY4args),
    NFS4_PAIR(CB_RECALL_SLOT4args), NFS4_PAIR(CB_SEQUENCE4args), NFS4_PAIR(CB_WANTS_CANCELLED4args),
    NFS4_PAIR(CB_NOTIFY_LOCK4args), NFS4_PAIR(CB_NOTIFY_DEVICEID4args), NFS4_PAIR(CB_OFFLOAD4args),
    NFS4_PAIR(nfsace4), NFS4_PAIR(nfsacl41), NFS4_PAIR(settime4), NFS4_PAIR(pathname4),
    NFS4_PAIR(fs_location4), NFS4_PAIR(fs_locations4), NFS4_PAIR(change_policy4),
    NFS4_PAIR(mode_masked4), NFS4_PAIR(mode_umask4), NFS4_PAIR(fs4_status),
    NFS4_PAIR(labelformat_spec4), NFS4_PAIR(sec_label4), NFS4_PAIR(fattr4)>;

// The types in one test each: a test per type takes minutes to compile.
class Nfs4ArgsOracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};

TEST_F(Nfs4ArgsOracle, SameBytesBothWays) {
  Pairs::for_each([]<typename P>() {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    compare_random_values<P>(200);
  });
}
TEST_F(Nfs4ArgsOracle, SameJudgementOfDamagedBytes) {
  Pairs::for_each([]<typename P>() {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    compare_damaged_bytes<P>(1000);
  });
}

}  // namespace
}  // namespace nfsrdma::oracle
