// SPDX-License-Identifier: Apache-2.0
// Credentials and verifiers of ONC RPC (RFC 5531, section 8.2 and appendix A).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/archive.h"

namespace nfsrdma::xdr {

inline constexpr std::size_t kMaxAuthBytes = 400;     // body of an opaque_auth
inline constexpr std::size_t kMaxMachineName = 255;   // authsys_parms.machinename
inline constexpr std::size_t kMaxAuthSysGroups = 16;  // authsys_parms.gids

// clang-format off
#define AUTH_FLAVOR_VALUES(X) \
  X(AUTH_NONE, 0) X(AUTH_SYS, 1) X(AUTH_SHORT, 2) X(AUTH_DH, 3) X(RPCSEC_GSS, 6)
// clang-format on
NFSRDMA_XDR_ENUM(auth_flavor, AUTH_FLAVOR_VALUES)
#undef AUTH_FLAVOR_VALUES

// clang-format off
#define AUTH_STAT_VALUES(X) \
  X(AUTH_OK, 0) X(AUTH_BADCRED, 1) X(AUTH_REJECTEDCRED, 2) X(AUTH_BADVERF, 3) \
  X(AUTH_REJECTEDVERF, 4) X(AUTH_TOOWEAK, 5) X(AUTH_INVALIDRESP, 6) X(AUTH_FAILED, 7) \
  X(AUTH_KERB_GENERIC, 8) X(AUTH_TIMEEXPIRE, 9) X(AUTH_TKT_FILE, 10) X(AUTH_DECODE, 11) \
  X(AUTH_NET_ADDR, 12) X(RPCSEC_GSS_CREDPROBLEM, 13) X(RPCSEC_GSS_CTXPROBLEM, 14)
// clang-format on
NFSRDMA_XDR_ENUM(auth_stat, AUTH_STAT_VALUES)
#undef AUTH_STAT_VALUES

struct opaque_auth {
  auth_flavor flavor = auth_flavor::AUTH_NONE;
  std::span<const std::byte> body{};
};
template <typename A, Is<opaque_auth> V>
void visit(A& ar, V& v) {
  ar("flavor", v.flavor);
  ar.opaque("body", v.body, kMaxAuthBytes);
}

/// The body of an AUTH_SYS credential: decode it with a Decoder over opaque_auth.body.
struct authsys_parms {
  std::uint32_t stamp = 0;
  std::string_view machinename{};
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  BoundedArray<std::uint32_t, kMaxAuthSysGroups> gids{};
};
template <typename A, Is<authsys_parms> V>
void visit(A& ar, V& v) {
  ar("stamp", v.stamp);
  ar.string("machinename", v.machinename, kMaxMachineName);
  ar("uid", v.uid);
  ar("gid", v.gid);
  ar.array("gids", v.gids);
}

}  // namespace nfsrdma::xdr
