// SPDX-License-Identifier: Apache-2.0
// rpcbind (RFC 1833): version 2 (the port mapper) and versions 3 and 4, what registering and
// looking up needs. Addresses of versions 3 and 4 are text: universal_address.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/archive.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kRpcbProgram = 100000;
inline constexpr std::uint32_t kPmapVersion = 2;
inline constexpr std::uint32_t kRpcbVersion3 = 3;
inline constexpr std::uint32_t kRpcbVersion4 = 4;
inline constexpr std::uint16_t kRpcbPort = 111;

// Ours: the RFC has none.
inline constexpr std::size_t kRpcbMaxNetid = 128;
inline constexpr std::size_t kRpcbMaxAddress = 256;
inline constexpr std::size_t kRpcbMaxOwner = 256;
inline constexpr std::size_t kRpcbMaxEntries = 1u << 16;

// clang-format off
#define PMAPPROC_VALUES(X) \
  X(PMAPPROC_NULL, 0) X(PMAPPROC_SET, 1) X(PMAPPROC_UNSET, 2) X(PMAPPROC_GETPORT, 3) \
  X(PMAPPROC_DUMP, 4) X(PMAPPROC_CALLIT, 5)
// clang-format on
NFSRDMA_XDR_ENUM(pmapproc, PMAPPROC_VALUES)
#undef PMAPPROC_VALUES

// The numbers that versions 3 and 4 have in common, and GETVERSADDR of version 4.
// clang-format off
#define RPCBPROC_VALUES(X) \
  X(RPCBPROC_NULL, 0) X(RPCBPROC_SET, 1) X(RPCBPROC_UNSET, 2) X(RPCBPROC_GETADDR, 3) \
  X(RPCBPROC_DUMP, 4) X(RPCBPROC_GETTIME, 6) X(RPCBPROC_GETVERSADDR, 9)
// clang-format on
NFSRDMA_XDR_ENUM(rpcbproc, RPCBPROC_VALUES)
#undef RPCBPROC_VALUES

/// Version 2: SET, UNSET, GETPORT take one; DUMP lists them.
struct mapping {
  std::uint32_t prog = 0;
  std::uint32_t vers = 0;
  std::uint32_t prot = 0;  // IPPROTO_TCP or IPPROTO_UDP
  std::uint32_t port = 0;
};
template <typename A, Is<mapping> V>
void visit(A& ar, V& v) {
  ar("prog", v.prog);
  ar("vers", v.vers);
  ar("prot", v.prot);
  ar("port", v.port);
}

struct pmaplist {
  EncodedList<mapping> mappings{};
};
template <typename A, Is<pmaplist> V>
void visit(A& ar, V& v) {
  ar.list("mappings", v.mappings, kRpcbMaxEntries);
}

/// The result of PMAPPROC_GETPORT: 0 when there is none.
struct PmapPort {
  std::uint32_t port = 0;
};
template <typename A, Is<PmapPort> V>
void visit(A& ar, V& v) {
  ar("port", v.port);
}

/// Versions 3 and 4: SET, UNSET, GETADDR, GETVERSADDR take one; DUMP lists them.
struct rpcb {
  std::uint32_t r_prog = 0;
  std::uint32_t r_vers = 0;
  std::string_view r_netid{};
  std::string_view r_addr{};
  std::string_view r_owner{};
};
template <typename A, Is<rpcb> V>
void visit(A& ar, V& v) {
  ar("r_prog", v.r_prog);
  ar("r_vers", v.r_vers);
  ar.string("r_netid", v.r_netid, kRpcbMaxNetid);
  ar.string("r_addr", v.r_addr, kRpcbMaxAddress);
  ar.string("r_owner", v.r_owner, kRpcbMaxOwner);
}

struct rpcblist {
  EncodedList<rpcb> entries{};
};
template <typename A, Is<rpcblist> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kRpcbMaxEntries);
}

/// The result of GETADDR and GETVERSADDR: "" when there is none.
struct RpcbAddress {
  std::string_view uaddr{};
};
template <typename A, Is<RpcbAddress> V>
void visit(A& ar, V& v) {
  ar.string("uaddr", v.uaddr, kRpcbMaxAddress);
}

/// The result of SET and UNSET of every version: was something changed?
struct RpcbDone {
  bool done = false;
};
template <typename A, Is<RpcbDone> V>
void visit(A& ar, V& v) {
  ar("done", v.done);
}

}  // namespace nfsrdma::xdr
