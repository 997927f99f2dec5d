// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813, section 3.3): the results of the procedures. NULL has none: Void.
//
// A result is Nfs3Result<resok, resfail>: `resok` counts with NFS3_OK, `resfail` with any other
// status. Here are those about one object; LOOKUP and what changes names are in
// nfs3_name_results.h, READDIR and READDIRPLUS in nfs3_directory.h.
#pragma once

#include <cstdint>

#include "xdr/nfs3_types.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

template <typename Ok, typename Fail>
struct Nfs3Result {
  static constexpr bool kIsNfs3Result = true;
  nfsstat3 status = nfsstat3::NFS3_OK;
  Ok resok{};
  Fail resfail{};
};
template <typename A, typename V>
requires(std::remove_const_t<V>::kIsNfs3Result) void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat3::NFS3_OK) {
    ar("resok", v.resok);
  } else {
    ar("resfail", v.resfail);
  }
}

struct GETATTR3resok {
  fattr3 obj_attributes{};
};
template <typename A, Is<GETATTR3resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using GETATTR3res = Nfs3Result<GETATTR3resok, Void>;

struct SETATTR3resok {
  wcc_data obj_wcc{};
};
template <typename A, Is<SETATTR3resok> V>
void visit(A& ar, V& v) {
  ar("obj_wcc", v.obj_wcc);
}

struct SETATTR3resfail {
  wcc_data obj_wcc{};
};
template <typename A, Is<SETATTR3resfail> V>
void visit(A& ar, V& v) {
  ar("obj_wcc", v.obj_wcc);
}

using SETATTR3res = Nfs3Result<SETATTR3resok, SETATTR3resfail>;

struct ACCESS3resok {
  post_op_attr obj_attributes{};
  std::uint32_t access = 0;  // ACCESS3_ bits
};
template <typename A, Is<ACCESS3resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
  ar("access", v.access);
}

struct ACCESS3resfail {
  post_op_attr obj_attributes{};
};
template <typename A, Is<ACCESS3resfail> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using ACCESS3res = Nfs3Result<ACCESS3resok, ACCESS3resfail>;

struct READLINK3resok {
  post_op_attr symlink_attributes{};
  Payload data{};
};
template <typename A, Is<READLINK3resok> V>
void visit(A& ar, V& v) {
  ar("symlink_attributes", v.symlink_attributes);
  ar.payload("data", v.data, kNfs3MaxPath);
}

struct READLINK3resfail {
  post_op_attr symlink_attributes{};
};
template <typename A, Is<READLINK3resfail> V>
void visit(A& ar, V& v) {
  ar("symlink_attributes", v.symlink_attributes);
}

using READLINK3res = Nfs3Result<READLINK3resok, READLINK3resfail>;

struct READ3resok {
  post_op_attr file_attributes{};
  std::uint32_t count = 0;
  bool eof = false;
  Payload data{};
};
template <typename A, Is<READ3resok> V>
void visit(A& ar, V& v) {
  ar("file_attributes", v.file_attributes);
  ar("count", v.count);
  ar("eof", v.eof);
  ar.payload("data", v.data, kNfs3MaxData);
}

struct READ3resfail {
  post_op_attr file_attributes{};
};
template <typename A, Is<READ3resfail> V>
void visit(A& ar, V& v) {
  ar("file_attributes", v.file_attributes);
}

using READ3res = Nfs3Result<READ3resok, READ3resfail>;

struct WRITE3resok {
  wcc_data file_wcc{};
  std::uint32_t count = 0;
  stable_how committed = stable_how::UNSTABLE;
  writeverf3 verf{};
};
template <typename A, Is<WRITE3resok> V>
void visit(A& ar, V& v) {
  ar("file_wcc", v.file_wcc);
  ar("count", v.count);
  ar("committed", v.committed);
  ar("verf", v.verf);
}

struct WRITE3resfail {
  wcc_data file_wcc{};
};
template <typename A, Is<WRITE3resfail> V>
void visit(A& ar, V& v) {
  ar("file_wcc", v.file_wcc);
}

using WRITE3res = Nfs3Result<WRITE3resok, WRITE3resfail>;

struct FSSTAT3resok {
  post_op_attr obj_attributes{};
  std::uint64_t tbytes = 0;
  std::uint64_t fbytes = 0;
  std::uint64_t abytes = 0;
  std::uint64_t tfiles = 0;
  std::uint64_t ffiles = 0;
  std::uint64_t afiles = 0;
  std::uint32_t invarsec = 0;
};
template <typename A, Is<FSSTAT3resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
  ar("tbytes", v.tbytes);
  ar("fbytes", v.fbytes);
  ar("abytes", v.abytes);
  ar("tfiles", v.tfiles);
  ar("ffiles", v.ffiles);
  ar("afiles", v.afiles);
  ar("invarsec", v.invarsec);
}

struct FSSTAT3resfail {
  post_op_attr obj_attributes{};
};
template <typename A, Is<FSSTAT3resfail> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using FSSTAT3res = Nfs3Result<FSSTAT3resok, FSSTAT3resfail>;

struct FSINFO3resok {
  post_op_attr obj_attributes{};
  std::uint32_t rtmax = 0;
  std::uint32_t rtpref = 0;
  std::uint32_t rtmult = 0;
  std::uint32_t wtmax = 0;
  std::uint32_t wtpref = 0;
  std::uint32_t wtmult = 0;
  std::uint32_t dtpref = 0;
  std::uint64_t maxfilesize = 0;
  nfstime3 time_delta{};
  std::uint32_t properties = 0;  // FSF3_ bits
};
template <typename A, Is<FSINFO3resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
  ar("rtmax", v.rtmax);
  ar("rtpref", v.rtpref);
  ar("rtmult", v.rtmult);
  ar("wtmax", v.wtmax);
  ar("wtpref", v.wtpref);
  ar("wtmult", v.wtmult);
  ar("dtpref", v.dtpref);
  ar("maxfilesize", v.maxfilesize);
  ar("time_delta", v.time_delta);
  ar("properties", v.properties);
}

struct FSINFO3resfail {
  post_op_attr obj_attributes{};
};
template <typename A, Is<FSINFO3resfail> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using FSINFO3res = Nfs3Result<FSINFO3resok, FSINFO3resfail>;

struct PATHCONF3resok {
  post_op_attr obj_attributes{};
  std::uint32_t linkmax = 0;
  std::uint32_t name_max = 0;
  bool no_trunc = false;
  bool chown_restricted = false;
  bool case_insensitive = false;
  bool case_preserving = false;
};
template <typename A, Is<PATHCONF3resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
  ar("linkmax", v.linkmax);
  ar("name_max", v.name_max);
  ar("no_trunc", v.no_trunc);
  ar("chown_restricted", v.chown_restricted);
  ar("case_insensitive", v.case_insensitive);
  ar("case_preserving", v.case_preserving);
}

struct PATHCONF3resfail {
  post_op_attr obj_attributes{};
};
template <typename A, Is<PATHCONF3resfail> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using PATHCONF3res = Nfs3Result<PATHCONF3resok, PATHCONF3resfail>;

struct COMMIT3resok {
  wcc_data file_wcc{};
  writeverf3 verf{};
};
template <typename A, Is<COMMIT3resok> V>
void visit(A& ar, V& v) {
  ar("file_wcc", v.file_wcc);
  ar("verf", v.verf);
}

struct COMMIT3resfail {
  wcc_data file_wcc{};
};
template <typename A, Is<COMMIT3resfail> V>
void visit(A& ar, V& v) {
  ar("file_wcc", v.file_wcc);
}

using COMMIT3res = Nfs3Result<COMMIT3resok, COMMIT3resfail>;

}  // namespace nfsrdma::xdr
