// SPDX-License-Identifier: Apache-2.0
// NFS version 4: CREATE, LINK, READLINK, REMOVE and RENAME. Symbolic link text is DDP-eligible in
// both directions (RFC 8267, section 5.1). READLINK has no arguments.
#pragma once

#include <string_view>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct createtype4 {
  nfs_ftype4 type = nfs_ftype4::NF4REG;
  Payload linkdata{};   // NF4LNK
  specdata4 devdata{};  // NF4BLK, NF4CHR
};
template <typename A, Is<createtype4> V>
void visit(A& ar, V& v) {
  ar("type", v.type);
  if (v.type == nfs_ftype4::NF4LNK) {
    ar.payload("linkdata", v.linkdata, kNfs4MaxPath);
  } else if (v.type == nfs_ftype4::NF4BLK || v.type == nfs_ftype4::NF4CHR) {
    ar("devdata", v.devdata);
  }
}

struct CREATE4args {
  createtype4 objtype{};
  std::string_view objname{};
  fattr4 createattrs{};
};
template <typename A, Is<CREATE4args> V>
void visit(A& ar, V& v) {
  ar("objtype", v.objtype);
  ar.string("objname", v.objname, kNfs4MaxName);
  ar("createattrs", v.createattrs);
}

struct CREATE4resok {
  change_info4 cinfo{};
  bitmap4 attrset{};
};
template <typename A, Is<CREATE4resok> V>
void visit(A& ar, V& v) {
  ar("cinfo", v.cinfo);
  ar("attrset", v.attrset);
}

using CREATE4res = Nfs4Result<CREATE4resok>;

struct LINK4args {
  std::string_view newname{};
};
template <typename A, Is<LINK4args> V>
void visit(A& ar, V& v) {
  ar.string("newname", v.newname, kNfs4MaxName);
}

struct LINK4resok {
  change_info4 cinfo{};
};
template <typename A, Is<LINK4resok> V>
void visit(A& ar, V& v) {
  ar("cinfo", v.cinfo);
}

using LINK4res = Nfs4Result<LINK4resok>;

struct READLINK4resok {
  Payload link{};
};
template <typename A, Is<READLINK4resok> V>
void visit(A& ar, V& v) {
  ar.payload("link", v.link, kNfs4MaxPath);
}

using READLINK4res = Nfs4Result<READLINK4resok>;

struct REMOVE4args {
  std::string_view target{};
};
template <typename A, Is<REMOVE4args> V>
void visit(A& ar, V& v) {
  ar.string("target", v.target, kNfs4MaxName);
}

struct REMOVE4resok {
  change_info4 cinfo{};
};
template <typename A, Is<REMOVE4resok> V>
void visit(A& ar, V& v) {
  ar("cinfo", v.cinfo);
}

using REMOVE4res = Nfs4Result<REMOVE4resok>;

struct RENAME4args {
  std::string_view oldname{};
  std::string_view newname{};
};
template <typename A, Is<RENAME4args> V>
void visit(A& ar, V& v) {
  ar.string("oldname", v.oldname, kNfs4MaxName);
  ar.string("newname", v.newname, kNfs4MaxName);
}

struct RENAME4resok {
  change_info4 source_cinfo{};
  change_info4 target_cinfo{};
};
template <typename A, Is<RENAME4resok> V>
void visit(A& ar, V& v) {
  ar("source_cinfo", v.source_cinfo);
  ar("target_cinfo", v.target_cinfo);
}

using RENAME4res = Nfs4Result<RENAME4resok>;

}  // namespace nfsrdma::xdr
