// SPDX-License-Identifier: Apache-2.0
// NFS version 4: GETATTR, SETATTR, VERIFY and NVERIFY. Attributes stay encoded (fattr4) here, so
// that a request with one that is not known can be answered with NFS4ERR_ATTRNOTSUPP: see
// decode_attributes() in nfs4_attributes.h.
#pragma once

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct GETATTR4args {
  bitmap4 attr_request{};
};
template <typename A, Is<GETATTR4args> V>
void visit(A& ar, V& v) {
  ar("attr_request", v.attr_request);
}

struct GETATTR4resok {
  fattr4 obj_attributes{};
};
template <typename A, Is<GETATTR4resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using GETATTR4res = Nfs4Result<GETATTR4resok>;

struct SETATTR4args {
  stateid4 stateid{};
  fattr4 obj_attributes{};
};
template <typename A, Is<SETATTR4args> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("obj_attributes", v.obj_attributes);
}

struct SETATTR4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  bitmap4 attrsset{};  // also with an error: what was set before it
};
template <typename A, Is<SETATTR4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  ar("attrsset", v.attrsset);
}

struct VERIFY4args {
  fattr4 obj_attributes{};
};
template <typename A, Is<VERIFY4args> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using VERIFY4res = Nfs4Result<Void>;

struct NVERIFY4args {
  fattr4 obj_attributes{};
};
template <typename A, Is<NVERIFY4args> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using NVERIFY4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
