// SPDX-License-Identifier: Apache-2.0
// NFS version 4.2: extended attributes (RFC 8276). Their values are not DDP-eligible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct GETXATTR4args {
  std::string_view gxa_name{};
};
template <typename A, Is<GETXATTR4args> V>
void visit(A& ar, V& v) {
  ar.string("gxa_name", v.gxa_name, kNfs4MaxXattrName);
}

struct GETXATTR4resok {
  std::span<const std::byte> gxr_value{};
};
template <typename A, Is<GETXATTR4resok> V>
void visit(A& ar, V& v) {
  ar.opaque("gxr_value", v.gxr_value, kNfs4MaxXattrValue);
}

using GETXATTR4res = Nfs4Result<GETXATTR4resok>;

struct SETXATTR4args {
  setxattr_option4 sxa_option = setxattr_option4::SETXATTR4_EITHER;
  std::string_view sxa_key{};
  std::span<const std::byte> sxa_value{};
};
template <typename A, Is<SETXATTR4args> V>
void visit(A& ar, V& v) {
  ar("sxa_option", v.sxa_option);
  ar.string("sxa_key", v.sxa_key, kNfs4MaxXattrName);
  ar.opaque("sxa_value", v.sxa_value, kNfs4MaxXattrValue);
}

using SETXATTR4res = Nfs4Result<change_info4>;

struct LISTXATTRS4args {
  std::uint64_t lxa_cookie = 0;
  std::uint32_t lxa_maxcount = 0;  // of LISTXATTRS4resok, in bytes of XDR
};
template <typename A, Is<LISTXATTRS4args> V>
void visit(A& ar, V& v) {
  ar("lxa_cookie", v.lxa_cookie);
  ar("lxa_maxcount", v.lxa_maxcount);
}

struct xattrkey4 {
  std::string_view name{};
};
template <typename A, Is<xattrkey4> V>
void visit(A& ar, V& v) {
  ar.string("name", v.name, kNfs4MaxXattrName);
}

struct LISTXATTRS4resok {
  std::uint64_t lxr_cookie = 0;
  EncodedArray<xattrkey4> lxr_names{};
  bool lxr_eof = false;
};
template <typename A, Is<LISTXATTRS4resok> V>
void visit(A& ar, V& v) {
  ar("lxr_cookie", v.lxr_cookie);
  ar.counted("lxr_names", v.lxr_names, kNfs4MaxXattrNames);
  ar("lxr_eof", v.lxr_eof);
}

using LISTXATTRS4res = Nfs4Result<LISTXATTRS4resok>;

struct REMOVEXATTR4args {
  std::string_view rxa_name{};
};
template <typename A, Is<REMOVEXATTR4args> V>
void visit(A& ar, V& v) {
  ar.string("rxa_name", v.rxa_name, kNfs4MaxXattrName);
}

using REMOVEXATTR4res = Nfs4Result<change_info4>;

}  // namespace nfsrdma::xdr
