// SPDX-License-Identifier: Apache-2.0
// NFS version 4: the current and the saved filehandle, LOOKUP, ACCESS and OPENATTR.
// LOOKUPP, PUTPUBFH, PUTROOTFH, GETFH, SAVEFH and RESTOREFH have no arguments.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t ACCESS4_READ = 0x001;
inline constexpr std::uint32_t ACCESS4_LOOKUP = 0x002;
inline constexpr std::uint32_t ACCESS4_MODIFY = 0x004;
inline constexpr std::uint32_t ACCESS4_EXTEND = 0x008;
inline constexpr std::uint32_t ACCESS4_DELETE = 0x010;
inline constexpr std::uint32_t ACCESS4_EXECUTE = 0x020;
inline constexpr std::uint32_t ACCESS4_XAREAD = 0x040;  // RFC 8276, section 8.5
inline constexpr std::uint32_t ACCESS4_XAWRITE = 0x080;
inline constexpr std::uint32_t ACCESS4_XALIST = 0x100;

struct ACCESS4args {
  std::uint32_t access = 0;
};
template <typename A, Is<ACCESS4args> V>
void visit(A& ar, V& v) {
  ar("access", v.access);
}

struct ACCESS4resok {
  std::uint32_t supported = 0;
  std::uint32_t access = 0;
};
template <typename A, Is<ACCESS4resok> V>
void visit(A& ar, V& v) {
  ar("supported", v.supported);
  ar("access", v.access);
}

using ACCESS4res = Nfs4Result<ACCESS4resok>;

struct GETFH4resok {
  nfs_fh4 object{};
};
template <typename A, Is<GETFH4resok> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
}

using GETFH4res = Nfs4Result<GETFH4resok>;

struct LOOKUP4args {
  std::string_view objname{};
};
template <typename A, Is<LOOKUP4args> V>
void visit(A& ar, V& v) {
  ar.string("objname", v.objname, kNfs4MaxName);
}

using LOOKUP4res = Nfs4Result<Void>;

using LOOKUPP4res = Nfs4Result<Void>;

struct OPENATTR4args {
  bool createdir = false;
};
template <typename A, Is<OPENATTR4args> V>
void visit(A& ar, V& v) {
  ar("createdir", v.createdir);
}

using OPENATTR4res = Nfs4Result<Void>;

struct PUTFH4args {
  nfs_fh4 object{};
};
template <typename A, Is<PUTFH4args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
}

using PUTFH4res = Nfs4Result<Void>;

using PUTPUBFH4res = Nfs4Result<Void>;

using PUTROOTFH4res = Nfs4Result<Void>;

using RESTOREFH4res = Nfs4Result<Void>;

using SAVEFH4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
