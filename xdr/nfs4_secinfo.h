// SPDX-License-Identifier: Apache-2.0
// NFS version 4: SECINFO and SECINFO_NO_NAME.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/nfs4_types.h"
#include "xdr/rpc_auth.h"

namespace nfsrdma::xdr {

struct SECINFO4args {
  std::string_view name{};
};
template <typename A, Is<SECINFO4args> V>
void visit(A& ar, V& v) {
  ar.string("name", v.name, kNfs4MaxName);
}

struct sec_oid4 {
  std::span<const std::byte> oid{};
};
template <typename A, Is<sec_oid4> V>
void visit(A& ar, V& v) {
  ar.opaque("oid", v.oid, kNfs4MaxOid);
}

struct rpcsec_gss_info {
  sec_oid4 oid{};
  std::uint32_t qop = 0;
  rpc_gss_svc_t service = rpc_gss_svc_t::RPC_GSS_SVC_NONE;
};
template <typename A, Is<rpcsec_gss_info> V>
void visit(A& ar, V& v) {
  ar("oid", v.oid);
  ar("qop", v.qop);
  ar("service", v.service);
}

struct secinfo4 {
  auth_flavor flavor = auth_flavor::AUTH_NONE;
  rpcsec_gss_info flavor_info{};
};
template <typename A, Is<secinfo4> V>
void visit(A& ar, V& v) {
  ar("flavor", v.flavor);
  if (v.flavor == auth_flavor::RPCSEC_GSS) {
    ar("flavor_info", v.flavor_info);
  }
}

struct SECINFO4resok {
  EncodedArray<secinfo4> flavors{};
};
template <typename A, Is<SECINFO4resok> V>
void visit(A& ar, V& v) {
  ar.counted("flavors", v.flavors, kNfs4MaxFlavors);
}

using SECINFO4res = Nfs4Result<SECINFO4resok>;

struct SECINFO_NO_NAME4args {
  secinfo_style4 style = secinfo_style4::SECINFO_STYLE4_CURRENT_FH;
};
template <typename A, Is<SECINFO_NO_NAME4args> V>
void visit(A& ar, V& v) {
  ar("style", v.style);
}

using SECINFO_NO_NAME4res = SECINFO4res;

}  // namespace nfsrdma::xdr
