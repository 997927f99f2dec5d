// SPDX-License-Identifier: Apache-2.0
// NFS version 4: byte-range locks.
#pragma once

#include <cstdint>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct open_to_lock_owner4 {
  std::uint32_t open_seqid = 0;
  stateid4 open_stateid{};
  std::uint32_t lock_seqid = 0;
  state_owner4 lock_owner{};
};
template <typename A, Is<open_to_lock_owner4> V>
void visit(A& ar, V& v) {
  ar("open_seqid", v.open_seqid);
  ar("open_stateid", v.open_stateid);
  ar("lock_seqid", v.lock_seqid);
  ar("lock_owner", v.lock_owner);
}

struct exist_lock_owner4 {
  stateid4 lock_stateid{};
  std::uint32_t lock_seqid = 0;
};
template <typename A, Is<exist_lock_owner4> V>
void visit(A& ar, V& v) {
  ar("lock_stateid", v.lock_stateid);
  ar("lock_seqid", v.lock_seqid);
}

struct locker4 {
  bool new_lock_owner = false;
  open_to_lock_owner4 open_owner{};
  exist_lock_owner4 lock_owner{};
};
template <typename A, Is<locker4> V>
void visit(A& ar, V& v) {
  ar("new_lock_owner", v.new_lock_owner);
  if (v.new_lock_owner) {
    ar("open_owner", v.open_owner);
  } else {
    ar("lock_owner", v.lock_owner);
  }
}

struct LOCK4args {
  nfs_lock_type4 locktype = nfs_lock_type4::READ_LT;
  bool reclaim = false;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  locker4 locker{};
};
template <typename A, Is<LOCK4args> V>
void visit(A& ar, V& v) {
  ar("locktype", v.locktype);
  ar("reclaim", v.reclaim);
  ar("offset", v.offset);
  ar("length", v.length);
  ar("locker", v.locker);
}

struct LOCK4denied {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  nfs_lock_type4 locktype = nfs_lock_type4::READ_LT;
  state_owner4 owner{};
};
template <typename A, Is<LOCK4denied> V>
void visit(A& ar, V& v) {
  ar("offset", v.offset);
  ar("length", v.length);
  ar("locktype", v.locktype);
  ar("owner", v.owner);
}

struct LOCK4resok {
  stateid4 lock_stateid{};
};
template <typename A, Is<LOCK4resok> V>
void visit(A& ar, V& v) {
  ar("lock_stateid", v.lock_stateid);
}

struct LOCK4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  LOCK4resok resok4{};   // NFS4_OK
  LOCK4denied denied{};  // NFS4ERR_DENIED
};
template <typename A, Is<LOCK4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4_OK) {
    ar("resok4", v.resok4);
  } else if (v.status == nfsstat4::NFS4ERR_DENIED) {
    ar("denied", v.denied);
  }
}

struct LOCKT4args {
  nfs_lock_type4 locktype = nfs_lock_type4::READ_LT;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  state_owner4 owner{};
};
template <typename A, Is<LOCKT4args> V>
void visit(A& ar, V& v) {
  ar("locktype", v.locktype);
  ar("offset", v.offset);
  ar("length", v.length);
  ar("owner", v.owner);
}

struct LOCKT4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  LOCK4denied denied{};  // NFS4ERR_DENIED
};
template <typename A, Is<LOCKT4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4ERR_DENIED) {
    ar("denied", v.denied);
  }
}

struct LOCKU4args {
  nfs_lock_type4 locktype = nfs_lock_type4::READ_LT;
  std::uint32_t seqid = 0;
  stateid4 lock_stateid{};
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
template <typename A, Is<LOCKU4args> V>
void visit(A& ar, V& v) {
  ar("locktype", v.locktype);
  ar("seqid", v.seqid);
  ar("lock_stateid", v.lock_stateid);
  ar("offset", v.offset);
  ar("length", v.length);
}

using LOCKU4res = Nfs4Result<stateid4>;

struct RELEASE_LOCKOWNER4args {
  state_owner4 lock_owner{};
};
template <typename A, Is<RELEASE_LOCKOWNER4args> V>
void visit(A& ar, V& v) {
  ar("lock_owner", v.lock_owner);
}

using RELEASE_LOCKOWNER4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
