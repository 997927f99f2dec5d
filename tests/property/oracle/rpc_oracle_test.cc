// SPDX-License-Identifier: Apache-2.0
// RPC headers and AUTH_SYS: our codec against libtirpc's own functions for them.
#include "xdr/rpc.h"

namespace nfsrdma::oracle {
// libtirpc's headers turn this name, and those of the flavours, into macros.
using OurAuthSys = xdr::authsys_parms;
}  // namespace nfsrdma::oracle

#include <gtest/gtest.h>
#include <rpc/rpc.h>

#include "tests/property/oracle/compare.h"

namespace nfsrdma::oracle {

void convert(Arena&, const xdr::opaque_auth& from, ::opaque_auth& to) {
  to.oa_flavor = static_cast<int>(from.flavor);
  to.oa_base = reinterpret_cast<char*>(const_cast<std::byte*>(from.body.data()));
  to.oa_length = static_cast<unsigned>(from.body.size());
}

// Numbers that are none of an enumeration's stay in range of it with this.
template <typename To, typename From>
void convert_number(From from, To& to) {
  static_assert(sizeof from == sizeof to);
  std::memcpy(&to, &from, sizeof to);
}

/// A value of ours as libtirpc's; its header is always run by xdr_callmsg or xdr_replymsg.
void convert(Arena& arena, const xdr::rpc_msg& from, ::rpc_msg& to) {
  to.rm_xid = from.xid;
  convert_number(from.mtype, to.rm_direction);
  if (from.mtype == xdr::msg_type::CALL) {
    to.rm_call.cb_rpcvers = from.cbody.rpcvers;
    to.rm_call.cb_prog = from.cbody.prog;
    to.rm_call.cb_vers = from.cbody.vers;
    to.rm_call.cb_proc = from.cbody.proc;
    convert(arena, from.cbody.cred, to.rm_call.cb_cred);
    convert(arena, from.cbody.verf, to.rm_call.cb_verf);
    return;
  }
  convert_number(from.rbody.stat, to.rm_reply.rp_stat);
  if (from.rbody.stat == xdr::reply_stat::MSG_ACCEPTED) {
    const xdr::accepted_reply& accepted = from.rbody.areply;
    convert(arena, accepted.verf, to.acpted_rply.ar_verf);
    convert_number(accepted.stat, to.acpted_rply.ar_stat);
    to.acpted_rply.ar_vers.low = accepted.mismatch.low;
    to.acpted_rply.ar_vers.high = accepted.mismatch.high;
    return;
  }
  const xdr::rejected_reply& rejected = from.rbody.rreply;
  convert_number(rejected.stat, to.rjcted_rply.rj_stat);
  if (rejected.stat == xdr::reject_stat::AUTH_ERROR) {
    convert_number(rejected.auth, to.rjcted_rply.rj_why);
  } else {
    to.rjcted_rply.rj_vers.low = rejected.mismatch.low;
    to.rjcted_rply.rj_vers.high = rejected.mismatch.high;
  }
}

void convert(Arena& arena, const OurAuthSys& from, ::authunix_parms& to) {
  to.aup_time = from.stamp;
  to.aup_machname = arena.text(from.machinename);
  to.aup_uid = from.uid;
  to.aup_gid = from.gid;
  to.aup_len = from.gids.count;
  to.aup_gids = const_cast<gid_t*>(from.gids.items.data());
}

namespace {

bool_t no_results(XDR*, void*) {
  return 1;
}

bool_t run_reply(XDR* xdrs, ::rpc_msg* value) {
  int accept = 0;  // may be no value of the enumeration: not to be read as one
  std::memcpy(&accept, &value->acpted_rply.ar_stat, sizeof accept);
  // Also before one is read: then all is zero.
  if (value->rm_reply.rp_stat == ::MSG_ACCEPTED && accept == ::SUCCESS) {
    value->acpted_rply.ar_results.where = nullptr;
    value->acpted_rply.ar_results.proc = reinterpret_cast<xdrproc_t>(no_results);
  }
  return xdr_replymsg(xdrs, value);
}

using Call = Pair<xdr::rpc_msg, ::rpc_msg, xdr_callmsg>;
using Reply = Pair<xdr::rpc_msg, ::rpc_msg, run_reply>;
using AuthSys = Pair<OurAuthSys, ::authunix_parms, xdr_authunix_parms>;

TEST(RpcOracle, AuthSysHasTheSameBytesBothWays) {
  compare_random_values<AuthSys>(500);
}

TEST(RpcOracle, AuthSysIsJudgedTheSame) {
  limit_memory();
  compare_damaged_bytes<AuthSys>(2000);
}

/// Random messages of one kind.
template <typename P>
void compare_headers(xdr::msg_type kind) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    xdr::RandomSource random(seed);
    auto ours = random.make<xdr::rpc_msg>();
    // libtirpc refuses to write calls of another RPC version.
    if (ours.mtype != kind || ours.cbody.rpcvers != xdr::kRpcVersion) continue;
    expect_same_bytes<P>(ours);
    if (::testing::Test::HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

TEST(RpcOracle, CallHeadersHaveTheSameBytesBothWays) {
  compare_headers<Call>(xdr::msg_type::CALL);
}
TEST(RpcOracle, ReplyHeadersHaveTheSameBytesBothWays) {
  compare_headers<Reply>(xdr::msg_type::REPLY);
}

}  // namespace
}  // namespace nfsrdma::oracle
