// SPDX-License-Identifier: Apache-2.0
// RPC-over-RDMA version 1 (RFC 8166): constants and the structs of fixed size. The chunk lists are
// read and written by rpcrdma/, where their limits belong.
#pragma once

#include <cstdint>

#include "xdr/archive.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kRpcRdmaVersion = 1;
inline constexpr std::size_t kRpcRdmaFixedBytes = 16;     // rdma_xid to rdma_proc
inline constexpr std::size_t kRpcRdmaShortestBytes = 28;  // and three empty lists
inline constexpr std::size_t kRpcRdmaSegmentBytes = 16;
inline constexpr std::size_t kRpcRdmaReadSegmentBytes = 24;  // the TRUE before it included

// clang-format off
#define RDMA_PROC_VALUES(X) \
  X(RDMA_MSG, 0) X(RDMA_NOMSG, 1) X(RDMA_MSGP, 2) X(RDMA_DONE, 3) X(RDMA_ERROR, 4)
// clang-format on
NFSRDMA_XDR_ENUM(rdma_proc, RDMA_PROC_VALUES)
#undef RDMA_PROC_VALUES

#define RPCRDMA_ERRCODE_VALUES(X) X(ERR_VERS, 1) X(ERR_CHUNK, 2)
NFSRDMA_XDR_ENUM(rpcrdma_errcode, RPCRDMA_ERRCODE_VALUES)
#undef RPCRDMA_ERRCODE_VALUES

/// A piece of registered memory at the requester.
struct rdma_segment {
  std::uint32_t rdma_handle = 0;
  std::uint32_t rdma_length = 0;
  std::uint64_t rdma_offset = 0;
};
template <typename A, Is<rdma_segment> V>
void visit(A& ar, V& v) {
  ar("rdma_handle", v.rdma_handle);
  ar("rdma_length", v.rdma_length);
  ar("rdma_offset", v.rdma_offset);
}

/// One entry of the Read list, without the TRUE before it.
struct rdma_read_segment {
  std::uint32_t rdma_position = 0;
  rdma_segment rdma_target{};
};
template <typename A, Is<rdma_read_segment> V>
void visit(A& ar, V& v) {
  ar("rdma_position", v.rdma_position);
  ar("rdma_target", v.rdma_target);
}

/// The first four words, the same in every version of the protocol.
struct rdma_fixed_header {
  std::uint32_t rdma_xid = 0;
  std::uint32_t rdma_vers = kRpcRdmaVersion;
  std::uint32_t rdma_credit = 0;
  rdma_proc proc = rdma_proc::RDMA_MSG;
};
template <typename A, Is<rdma_fixed_header> V>
void visit(A& ar, V& v) {
  ar("rdma_xid", v.rdma_xid);
  ar.usual("rdma_vers", v.rdma_vers, kRpcRdmaVersion);
  ar("rdma_credit", v.rdma_credit);
  ar("rdma_proc", v.proc);
}

/// What follows the fixed header of RDMA_ERROR.
struct rdma_error {
  rpcrdma_errcode err = rpcrdma_errcode::ERR_CHUNK;
  std::uint32_t rdma_vers_low = 0;  // ERR_VERS
  std::uint32_t rdma_vers_high = 0;
};
template <typename A, Is<rdma_error> V>
void visit(A& ar, V& v) {
  ar.closed_enum("err", v.err);
  if (v.err != rpcrdma_errcode::ERR_VERS) return;
  ar("rdma_vers_low", v.rdma_vers_low);
  ar("rdma_vers_high", v.rdma_vers_high);
}

}  // namespace nfsrdma::xdr
