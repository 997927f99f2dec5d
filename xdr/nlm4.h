// SPDX-License-Identifier: Apache-2.0
// The Network Lock Manager, version 4 (X/Open C702, chapter 14; RFC 1813, appendix II): byte-range
// locks and DOS shares of NFSv3. Calls go both ways: what ends in _MSG is answered by a call of the
// _RES procedure, and GRANTED is the server's.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/archive.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kNlmProgram = 100021;
inline constexpr std::uint32_t kNlmV4 = 4;

// The specification's own limits.
inline constexpr std::size_t kNlmMaxName = 1024;    // LM_MAXSTRLEN
inline constexpr std::size_t kNlmMaxNetobj = 1024;  // MAXNETOBJ_SZ
inline constexpr std::size_t kNlmMaxHandle = 64;    // NFS3_FHSIZE; it is a netobj too

// clang-format off
#define NLMPROC4_VALUES(X) \
  X(NLMPROC4_NULL, 0) X(NLMPROC4_TEST, 1) X(NLMPROC4_LOCK, 2) X(NLMPROC4_CANCEL, 3) \
  X(NLMPROC4_UNLOCK, 4) X(NLMPROC4_GRANTED, 5) X(NLMPROC4_TEST_MSG, 6) X(NLMPROC4_LOCK_MSG, 7) \
  X(NLMPROC4_CANCEL_MSG, 8) X(NLMPROC4_UNLOCK_MSG, 9) X(NLMPROC4_GRANTED_MSG, 10) \
  X(NLMPROC4_TEST_RES, 11) X(NLMPROC4_LOCK_RES, 12) X(NLMPROC4_CANCEL_RES, 13) \
  X(NLMPROC4_UNLOCK_RES, 14) X(NLMPROC4_GRANTED_RES, 15) X(NLMPROC4_SM_NOTIFY, 16) \
  X(NLMPROC4_SHARE, 20) X(NLMPROC4_UNSHARE, 21) X(NLMPROC4_NM_LOCK, 22) \
  X(NLMPROC4_FREE_ALL, 23)

#define NLM4_STATS_VALUES(X) \
  X(NLM4_GRANTED, 0) X(NLM4_DENIED, 1) X(NLM4_DENIED_NOLOCKS, 2) X(NLM4_BLOCKED, 3) \
  X(NLM4_DENIED_GRACE_PERIOD, 4) X(NLM4_DEADLCK, 5) X(NLM4_ROFS, 6) X(NLM4_STALE_FH, 7) \
  X(NLM4_FBIG, 8) X(NLM4_FAILED, 9)

#define FSH4_MODE_VALUES(X) X(FSM_DN, 0) X(FSM_DR, 1) X(FSM_DW, 2) X(FSM_DRW, 3)
#define FSH4_ACCESS_VALUES(X) X(FSA_NONE, 0) X(FSA_R, 1) X(FSA_W, 2) X(FSA_RW, 3)
// clang-format on
NFSRDMA_XDR_ENUM(nlmproc4, NLMPROC4_VALUES)
NFSRDMA_XDR_ENUM(nlm4_stats, NLM4_STATS_VALUES)
NFSRDMA_XDR_ENUM(fsh4_mode, FSH4_MODE_VALUES)
NFSRDMA_XDR_ENUM(fsh4_access, FSH4_ACCESS_VALUES)
#undef NLMPROC4_VALUES
#undef NLM4_STATS_VALUES
#undef FSH4_MODE_VALUES
#undef FSH4_ACCESS_VALUES
inline constexpr std::uint32_t kNlm4ProcedureCount = 24;

/// Whose lock is in the way.
struct nlm4_holder {
  bool exclusive = false;
  std::uint32_t svid = 0;
  std::span<const std::byte> oh{};
  std::uint64_t l_offset = 0;
  std::uint64_t l_len = 0;  // 0: to the end of the file
};
template <typename A, Is<nlm4_holder> V>
void visit(A& ar, V& v) {
  ar("exclusive", v.exclusive);
  ar("svid", v.svid);
  ar.opaque("oh", v.oh, kNlmMaxNetobj);
  ar("l_offset", v.l_offset);
  ar("l_len", v.l_len);
}

struct nlm4_testrply {
  nlm4_stats stat = nlm4_stats::NLM4_GRANTED;
  nlm4_holder holder{};  // NLM4_DENIED
};
template <typename A, Is<nlm4_testrply> V>
void visit(A& ar, V& v) {
  ar("stat", v.stat);
  if (v.stat == nlm4_stats::NLM4_DENIED) ar("holder", v.holder);
}

struct nlm4_testres {
  std::span<const std::byte> cookie{};
  nlm4_testrply test_stat{};
};
template <typename A, Is<nlm4_testres> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("test_stat", v.test_stat);
}

struct nlm4_res {
  std::span<const std::byte> cookie{};
  nlm4_stats stat = nlm4_stats::NLM4_GRANTED;
};
template <typename A, Is<nlm4_res> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("stat", v.stat);
}

struct nlm4_lock {
  std::string_view caller_name{};
  std::span<const std::byte> fh{};
  std::span<const std::byte> oh{};
  std::uint32_t svid = 0;
  std::uint64_t l_offset = 0;
  std::uint64_t l_len = 0;  // 0: to the end of the file
};
template <typename A, Is<nlm4_lock> V>
void visit(A& ar, V& v) {
  ar.string("caller_name", v.caller_name, kNlmMaxName);
  ar.opaque("fh", v.fh, kNlmMaxHandle);
  ar.opaque("oh", v.oh, kNlmMaxNetobj);
  ar("svid", v.svid);
  ar("l_offset", v.l_offset);
  ar("l_len", v.l_len);
}

/// LOCK and NM_LOCK.
struct nlm4_lockargs {
  std::span<const std::byte> cookie{};
  bool block = false;
  bool exclusive = false;
  nlm4_lock alock{};
  bool reclaim = false;
  std::int32_t state = 0;  // of the client's status monitor
};
template <typename A, Is<nlm4_lockargs> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("block", v.block);
  ar("exclusive", v.exclusive);
  ar("alock", v.alock);
  ar("reclaim", v.reclaim);
  ar("state", v.state);
}

struct nlm4_cancargs {
  std::span<const std::byte> cookie{};
  bool block = false;
  bool exclusive = false;
  nlm4_lock alock{};
};
template <typename A, Is<nlm4_cancargs> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("block", v.block);
  ar("exclusive", v.exclusive);
  ar("alock", v.alock);
}

/// TEST and GRANTED.
struct nlm4_testargs {
  std::span<const std::byte> cookie{};
  bool exclusive = false;
  nlm4_lock alock{};
};
template <typename A, Is<nlm4_testargs> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("exclusive", v.exclusive);
  ar("alock", v.alock);
}

struct nlm4_unlockargs {
  std::span<const std::byte> cookie{};
  nlm4_lock alock{};
};
template <typename A, Is<nlm4_unlockargs> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("alock", v.alock);
}

struct nlm4_share {
  std::string_view caller_name{};
  std::span<const std::byte> fh{};
  std::span<const std::byte> oh{};
  fsh4_mode mode = fsh4_mode::FSM_DN;
  fsh4_access access = fsh4_access::FSA_NONE;
};
template <typename A, Is<nlm4_share> V>
void visit(A& ar, V& v) {
  ar.string("caller_name", v.caller_name, kNlmMaxName);
  ar.opaque("fh", v.fh, kNlmMaxHandle);
  ar.opaque("oh", v.oh, kNlmMaxNetobj);
  ar("mode", v.mode);
  ar("access", v.access);
}

/// SHARE and UNSHARE.
struct nlm4_shareargs {
  std::span<const std::byte> cookie{};
  nlm4_share share{};
  bool reclaim = false;
};
template <typename A, Is<nlm4_shareargs> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("share", v.share);
  ar("reclaim", v.reclaim);
}

struct nlm4_shareres {
  std::span<const std::byte> cookie{};
  nlm4_stats stat = nlm4_stats::NLM4_GRANTED;
  std::int32_t sequence = 0;
};
template <typename A, Is<nlm4_shareres> V>
void visit(A& ar, V& v) {
  ar.opaque("cookie", v.cookie, kNlmMaxNetobj);
  ar("stat", v.stat);
  ar("sequence", v.sequence);
}

/// FREE_ALL: that host holds nothing any more.
struct nlm4_notify {
  std::string_view name{};
  std::int32_t state = 0;
};
template <typename A, Is<nlm4_notify> V>
void visit(A& ar, V& v) {
  ar.string("name", v.name, kNlmMaxName);
  ar("state", v.state);
}

}  // namespace nfsrdma::xdr
