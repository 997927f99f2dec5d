// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813, section 3.3): the results of the procedures that look up or change
// names.
#pragma once

#include "xdr/nfs3_results.h"

namespace nfsrdma::xdr {

struct LOOKUP3resok {
  nfs_fh3 object{};
  post_op_attr obj_attributes{};
  post_op_attr dir_attributes{};
};
template <typename A, Is<LOOKUP3resok> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
  ar("obj_attributes", v.obj_attributes);
  ar("dir_attributes", v.dir_attributes);
}

struct LOOKUP3resfail {
  post_op_attr dir_attributes{};
};
template <typename A, Is<LOOKUP3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
}

using LOOKUP3res = Nfs3Result<LOOKUP3resok, LOOKUP3resfail>;

struct CREATE3resok {
  post_op_fh3 obj{};
  post_op_attr obj_attributes{};
  wcc_data dir_wcc{};
};
template <typename A, Is<CREATE3resok> V>
void visit(A& ar, V& v) {
  ar("obj", v.obj);
  ar("obj_attributes", v.obj_attributes);
  ar("dir_wcc", v.dir_wcc);
}

struct CREATE3resfail {
  wcc_data dir_wcc{};
};
template <typename A, Is<CREATE3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

using CREATE3res = Nfs3Result<CREATE3resok, CREATE3resfail>;

struct MKDIR3resok {
  post_op_fh3 obj{};
  post_op_attr obj_attributes{};
  wcc_data dir_wcc{};
};
template <typename A, Is<MKDIR3resok> V>
void visit(A& ar, V& v) {
  ar("obj", v.obj);
  ar("obj_attributes", v.obj_attributes);
  ar("dir_wcc", v.dir_wcc);
}

struct MKDIR3resfail {
  wcc_data dir_wcc{};
};
template <typename A, Is<MKDIR3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

using MKDIR3res = Nfs3Result<MKDIR3resok, MKDIR3resfail>;

struct SYMLINK3resok {
  post_op_fh3 obj{};
  post_op_attr obj_attributes{};
  wcc_data dir_wcc{};
};
template <typename A, Is<SYMLINK3resok> V>
void visit(A& ar, V& v) {
  ar("obj", v.obj);
  ar("obj_attributes", v.obj_attributes);
  ar("dir_wcc", v.dir_wcc);
}

struct SYMLINK3resfail {
  wcc_data dir_wcc{};
};
template <typename A, Is<SYMLINK3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

using SYMLINK3res = Nfs3Result<SYMLINK3resok, SYMLINK3resfail>;

struct MKNOD3resok {
  post_op_fh3 obj{};
  post_op_attr obj_attributes{};
  wcc_data dir_wcc{};
};
template <typename A, Is<MKNOD3resok> V>
void visit(A& ar, V& v) {
  ar("obj", v.obj);
  ar("obj_attributes", v.obj_attributes);
  ar("dir_wcc", v.dir_wcc);
}

struct MKNOD3resfail {
  wcc_data dir_wcc{};
};
template <typename A, Is<MKNOD3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

using MKNOD3res = Nfs3Result<MKNOD3resok, MKNOD3resfail>;

struct REMOVE3resok {
  wcc_data dir_wcc{};
};
template <typename A, Is<REMOVE3resok> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

struct REMOVE3resfail {
  wcc_data dir_wcc{};
};
template <typename A, Is<REMOVE3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

using REMOVE3res = Nfs3Result<REMOVE3resok, REMOVE3resfail>;

struct RMDIR3resok {
  wcc_data dir_wcc{};
};
template <typename A, Is<RMDIR3resok> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

struct RMDIR3resfail {
  wcc_data dir_wcc{};
};
template <typename A, Is<RMDIR3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_wcc", v.dir_wcc);
}

using RMDIR3res = Nfs3Result<RMDIR3resok, RMDIR3resfail>;

struct RENAME3resok {
  wcc_data fromdir_wcc{};
  wcc_data todir_wcc{};
};
template <typename A, Is<RENAME3resok> V>
void visit(A& ar, V& v) {
  ar("fromdir_wcc", v.fromdir_wcc);
  ar("todir_wcc", v.todir_wcc);
}

struct RENAME3resfail {
  wcc_data fromdir_wcc{};
  wcc_data todir_wcc{};
};
template <typename A, Is<RENAME3resfail> V>
void visit(A& ar, V& v) {
  ar("fromdir_wcc", v.fromdir_wcc);
  ar("todir_wcc", v.todir_wcc);
}

using RENAME3res = Nfs3Result<RENAME3resok, RENAME3resfail>;

struct LINK3resok {
  post_op_attr file_attributes{};
  wcc_data linkdir_wcc{};
};
template <typename A, Is<LINK3resok> V>
void visit(A& ar, V& v) {
  ar("file_attributes", v.file_attributes);
  ar("linkdir_wcc", v.linkdir_wcc);
}

struct LINK3resfail {
  post_op_attr file_attributes{};
  wcc_data linkdir_wcc{};
};
template <typename A, Is<LINK3resfail> V>
void visit(A& ar, V& v) {
  ar("file_attributes", v.file_attributes);
  ar("linkdir_wcc", v.linkdir_wcc);
}

using LINK3res = Nfs3Result<LINK3resok, LINK3resfail>;

}  // namespace nfsrdma::xdr
