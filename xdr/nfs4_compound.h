// SPDX-License-Identifier: Apache-2.0
// NFS version 4: the head of COMPOUND, arguments and result (RFC 7530, section 15.2). What the RFC
// has as an array of unions follows it operation by operation: nfs_opnum4, then the arguments or
// the result of its type. A server decodes one, executes it, encodes its result and rewinds when
// that is too long; no value holds a whole COMPOUND. nfs4.h has the table of types.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/nfs4_operations.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kNfsV4 = 4;
inline constexpr std::uint32_t NFSPROC4_NULL = 0;
inline constexpr std::uint32_t NFSPROC4_COMPOUND = 1;

struct COMPOUND4args {
  std::string_view tag{};
  std::uint32_t minorversion = 0;
  std::uint32_t argarray_len = 0;  // operations that follow: nfs_opnum4 and arguments each
};
template <typename A, Is<COMPOUND4args> V>
void visit(A& ar, V& v) {
  ar.string("tag", v.tag, kNfs4MaxTag);
  ar("minorversion", v.minorversion);
  ar("argarray_len", v.argarray_len);
}

struct COMPOUND4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  std::string_view tag{};
  std::uint32_t resarray_len = 0;  // results that follow: nfs_opnum4 and result each
};
template <typename A, Is<COMPOUND4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  ar.string("tag", v.tag, kNfs4MaxTag);
  ar("resarray_len", v.resarray_len);
}

}  // namespace nfsrdma::xdr
