// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813, section 3.3): the arguments of the 22 procedures. NULL has none: Void.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/nfs3_types.h"

namespace nfsrdma::xdr {

struct GETATTR3args {
  nfs_fh3 object{};
};
template <typename A, Is<GETATTR3args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
}

struct sattrguard3 {
  bool check = false;
  nfstime3 obj_ctime{};
};
template <typename A, Is<sattrguard3> V>
void visit(A& ar, V& v) {
  ar("check", v.check);
  if (v.check) ar("obj_ctime", v.obj_ctime);
}

struct SETATTR3args {
  nfs_fh3 object{};
  sattr3 new_attributes{};
  sattrguard3 guard{};
};
template <typename A, Is<SETATTR3args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
  ar("new_attributes", v.new_attributes);
  ar("guard", v.guard);
}

struct LOOKUP3args {
  diropargs3 what{};
};
template <typename A, Is<LOOKUP3args> V>
void visit(A& ar, V& v) {
  ar("what", v.what);
}

struct ACCESS3args {
  nfs_fh3 object{};
  std::uint32_t access = 0;  // ACCESS3_ bits
};
template <typename A, Is<ACCESS3args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
  ar("access", v.access);
}

struct READLINK3args {
  nfs_fh3 symlink{};
};
template <typename A, Is<READLINK3args> V>
void visit(A& ar, V& v) {
  ar("symlink", v.symlink);
}

struct READ3args {
  nfs_fh3 file{};
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
};
template <typename A, Is<READ3args> V>
void visit(A& ar, V& v) {
  ar("file", v.file);
  ar("offset", v.offset);
  ar("count", v.count);
}

struct WRITE3args {
  nfs_fh3 file{};
  std::uint64_t offset = 0;
  std::uint32_t count = 0;  // may differ from the size of data: the caller checks
  stable_how stable = stable_how::UNSTABLE;
  Payload data{};
};
template <typename A, Is<WRITE3args> V>
void visit(A& ar, V& v) {
  ar("file", v.file);
  ar("offset", v.offset);
  ar("count", v.count);
  ar("stable", v.stable);
  ar.payload("data", v.data, kNfs3MaxData);
}

struct createhow3 {
  createmode3 mode = createmode3::UNCHECKED;
  sattr3 obj_attributes{};  // UNCHECKED and GUARDED
  createverf3 verf{};       // EXCLUSIVE
};
template <typename A, Is<createhow3> V>
void visit(A& ar, V& v) {
  ar.closed_enum("mode", v.mode);
  if (v.mode == createmode3::EXCLUSIVE) {
    ar("verf", v.verf);
  } else {
    ar("obj_attributes", v.obj_attributes);
  }
}

struct CREATE3args {
  diropargs3 where{};
  createhow3 how{};
};
template <typename A, Is<CREATE3args> V>
void visit(A& ar, V& v) {
  ar("where", v.where);
  ar("how", v.how);
}

struct MKDIR3args {
  diropargs3 where{};
  sattr3 attributes{};
};
template <typename A, Is<MKDIR3args> V>
void visit(A& ar, V& v) {
  ar("where", v.where);
  ar("attributes", v.attributes);
}

struct symlinkdata3 {
  sattr3 symlink_attributes{};
  Payload symlink_data{};
};
template <typename A, Is<symlinkdata3> V>
void visit(A& ar, V& v) {
  ar("symlink_attributes", v.symlink_attributes);
  ar.payload("symlink_data", v.symlink_data, kNfs3MaxPath);
}

struct SYMLINK3args {
  diropargs3 where{};
  symlinkdata3 symlink{};
};
template <typename A, Is<SYMLINK3args> V>
void visit(A& ar, V& v) {
  ar("where", v.where);
  ar("symlink", v.symlink);
}

struct devicedata3 {
  sattr3 dev_attributes{};
  specdata3 spec{};
};
template <typename A, Is<devicedata3> V>
void visit(A& ar, V& v) {
  ar("dev_attributes", v.dev_attributes);
  ar("spec", v.spec);
}

struct mknoddata3 {
  ftype3 type = ftype3::NF3FIFO;
  devicedata3 device{};      // NF3CHR and NF3BLK
  sattr3 pipe_attributes{};  // NF3SOCK and NF3FIFO; nothing follows other types
};
template <typename A, Is<mknoddata3> V>
void visit(A& ar, V& v) {
  ar("type", v.type);
  if (v.type == ftype3::NF3CHR || v.type == ftype3::NF3BLK) {
    ar("device", v.device);
  } else if (v.type == ftype3::NF3SOCK || v.type == ftype3::NF3FIFO) {
    ar("pipe_attributes", v.pipe_attributes);
  }
}

struct MKNOD3args {
  diropargs3 where{};
  mknoddata3 what{};
};
template <typename A, Is<MKNOD3args> V>
void visit(A& ar, V& v) {
  ar("where", v.where);
  ar("what", v.what);
}

struct REMOVE3args {
  diropargs3 object{};
};
template <typename A, Is<REMOVE3args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
}

struct RMDIR3args {
  diropargs3 object{};
};
template <typename A, Is<RMDIR3args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
}

struct RENAME3args {
  diropargs3 from{};
  diropargs3 to{};
};
template <typename A, Is<RENAME3args> V>
void visit(A& ar, V& v) {
  ar("from", v.from);
  ar("to", v.to);
}

struct LINK3args {
  nfs_fh3 file{};
  diropargs3 link{};
};
template <typename A, Is<LINK3args> V>
void visit(A& ar, V& v) {
  ar("file", v.file);
  ar("link", v.link);
}

struct READDIR3args {
  nfs_fh3 dir{};
  std::uint64_t cookie = 0;
  cookieverf3 cookieverf{};
  std::uint32_t count = 0;  // of READDIR3resok, in bytes of XDR
};
template <typename A, Is<READDIR3args> V>
void visit(A& ar, V& v) {
  ar("dir", v.dir);
  ar("cookie", v.cookie);
  ar("cookieverf", v.cookieverf);
  ar("count", v.count);
}

struct READDIRPLUS3args {
  nfs_fh3 dir{};
  std::uint64_t cookie = 0;
  cookieverf3 cookieverf{};
  std::uint32_t dircount = 0;  // of fileids, names and cookies alone, in bytes of XDR
  std::uint32_t maxcount = 0;  // of READDIRPLUS3resok, in bytes of XDR
};
template <typename A, Is<READDIRPLUS3args> V>
void visit(A& ar, V& v) {
  ar("dir", v.dir);
  ar("cookie", v.cookie);
  ar("cookieverf", v.cookieverf);
  ar("dircount", v.dircount);
  ar("maxcount", v.maxcount);
}

struct FSSTAT3args {
  nfs_fh3 fsroot{};
};
template <typename A, Is<FSSTAT3args> V>
void visit(A& ar, V& v) {
  ar("fsroot", v.fsroot);
}

struct FSINFO3args {
  nfs_fh3 fsroot{};
};
template <typename A, Is<FSINFO3args> V>
void visit(A& ar, V& v) {
  ar("fsroot", v.fsroot);
}

struct PATHCONF3args {
  nfs_fh3 object{};
};
template <typename A, Is<PATHCONF3args> V>
void visit(A& ar, V& v) {
  ar("object", v.object);
}

struct COMMIT3args {
  nfs_fh3 file{};
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
};
template <typename A, Is<COMMIT3args> V>
void visit(A& ar, V& v) {
  ar("file", v.file);
  ar("offset", v.offset);
  ar("count", v.count);
}

}  // namespace nfsrdma::xdr
