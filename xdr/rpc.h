// SPDX-License-Identifier: Apache-2.0
// ONC RPC version 2 (RFC 5531): the message headers. Arguments and results follow behind them in
// the same Decoder or Encoder.
//
// A call of another RPC version stops after rpcvers, since nothing is known about the rest; the
// server answers it with RPC_MISMATCH.
#pragma once

#include <cstdint>
#include <span>

#include "xdr/archive.h"
#include "xdr/rpc_auth.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kRpcVersion = 2;

#define MSG_TYPE_VALUES(X) X(CALL, 0) X(REPLY, 1)
NFSRDMA_XDR_ENUM(msg_type, MSG_TYPE_VALUES)
#undef MSG_TYPE_VALUES

#define REPLY_STAT_VALUES(X) X(MSG_ACCEPTED, 0) X(MSG_DENIED, 1)
NFSRDMA_XDR_ENUM(reply_stat, REPLY_STAT_VALUES)
#undef REPLY_STAT_VALUES

// clang-format off
#define ACCEPT_STAT_VALUES(X) \
  X(SUCCESS, 0) X(PROG_UNAVAIL, 1) X(PROG_MISMATCH, 2) X(PROC_UNAVAIL, 3) X(GARBAGE_ARGS, 4) \
  X(SYSTEM_ERR, 5)
// clang-format on
NFSRDMA_XDR_ENUM(accept_stat, ACCEPT_STAT_VALUES)
#undef ACCEPT_STAT_VALUES

#define REJECT_STAT_VALUES(X) X(RPC_MISMATCH, 0) X(AUTH_ERROR, 1)
NFSRDMA_XDR_ENUM(reject_stat, REJECT_STAT_VALUES)
#undef REJECT_STAT_VALUES

struct mismatch_info {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};
template <typename A, Is<mismatch_info> V>
void visit(A& ar, V& v) {
  ar("low", v.low);
  ar("high", v.high);
}

struct call_body {
  std::uint32_t rpcvers = kRpcVersion;
  std::uint32_t prog = 0;  // this and the rest: only with rpcvers == kRpcVersion
  std::uint32_t vers = 0;
  std::uint32_t proc = 0;
  opaque_auth cred{};
  opaque_auth verf{};
};
template <typename A, Is<call_body> V>
void visit(A& ar, V& v) {
  ar.usual("rpcvers", v.rpcvers, kRpcVersion);
  if (v.rpcvers != kRpcVersion) return;
  ar("prog", v.prog);
  ar("vers", v.vers);
  ar("proc", v.proc);
  ar("cred", v.cred);
  ar("verf", v.verf);
}

struct accepted_reply {
  opaque_auth verf{};
  accept_stat stat = accept_stat::SUCCESS;
  mismatch_info mismatch{};  // PROG_MISMATCH: the versions there are
};
template <typename A, Is<accepted_reply> V>
void visit(A& ar, V& v) {
  ar("verf", v.verf);
  ar("stat", v.stat);
  if (v.stat == accept_stat::PROG_MISMATCH) ar("mismatch_info", v.mismatch);
}

struct rejected_reply {
  reject_stat stat = reject_stat::RPC_MISMATCH;
  mismatch_info mismatch{};             // RPC_MISMATCH: the RPC versions there are
  auth_stat auth = auth_stat::AUTH_OK;  // AUTH_ERROR: why
};
template <typename A, Is<rejected_reply> V>
void visit(A& ar, V& v) {
  ar.closed_enum("stat", v.stat);
  if (v.stat == reject_stat::RPC_MISMATCH) {
    ar("mismatch_info", v.mismatch);
  } else {
    ar("auth_stat", v.auth);
  }
}

struct reply_body {
  reply_stat stat = reply_stat::MSG_ACCEPTED;
  accepted_reply areply{};  // MSG_ACCEPTED
  rejected_reply rreply{};  // MSG_DENIED
};
template <typename A, Is<reply_body> V>
void visit(A& ar, V& v) {
  ar.closed_enum("stat", v.stat);
  if (v.stat == reply_stat::MSG_ACCEPTED) {
    ar("areply", v.areply);
  } else {
    ar("rreply", v.rreply);
  }
}

struct rpc_msg {
  std::uint32_t xid = 0;
  msg_type mtype = msg_type::CALL;
  call_body cbody{};   // CALL
  reply_body rbody{};  // REPLY
};
template <typename A, Is<rpc_msg> V>
void visit(A& ar, V& v) {
  ar("xid", v.xid);
  ar.closed_enum("mtype", v.mtype);
  if (v.mtype == msg_type::CALL) {
    ar("cbody", v.cbody);
  } else {
    ar("rbody", v.rbody);
  }
}

/// The header of a reply that was accepted; the results follow when `stat` is SUCCESS. `supported`
/// is for PROG_MISMATCH.
constexpr rpc_msg accepted(std::uint32_t xid, accept_stat stat, mismatch_info supported = {}) {
  rpc_msg message;
  message.xid = xid;
  message.mtype = msg_type::REPLY;
  message.rbody.areply.stat = stat;
  message.rbody.areply.mismatch = supported;
  return message;
}

/// The reply to a call of an RPC version that is not ours.
constexpr rpc_msg denied_version(std::uint32_t xid) {
  rpc_msg message;
  message.xid = xid;
  message.mtype = msg_type::REPLY;
  message.rbody.stat = reply_stat::MSG_DENIED;
  message.rbody.rreply.stat = reject_stat::RPC_MISMATCH;
  message.rbody.rreply.mismatch = {kRpcVersion, kRpcVersion};
  return message;
}

/// The reply to a call whose credentials are refused.
constexpr rpc_msg denied_auth(std::uint32_t xid, auth_stat why) {
  rpc_msg message;
  message.xid = xid;
  message.mtype = msg_type::REPLY;
  message.rbody.stat = reply_stat::MSG_DENIED;
  message.rbody.rreply.stat = reject_stat::AUTH_ERROR;
  message.rbody.rreply.auth = why;
  return message;
}

}  // namespace nfsrdma::xdr
