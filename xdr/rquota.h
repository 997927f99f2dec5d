// SPDX-License-Identifier: Apache-2.0
// RQUOTA versions 1 and 2, by which clients ask for disk quotas. No RFC has it; version 1 is Sun's
// rpcsvc/rquota.x, version 2 and the SET procedures are those of Linux's rpc.rquotad.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "xdr/archive.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kRquotaProgram = 100011;
inline constexpr std::uint32_t kRquotaV1 = 1;
inline constexpr std::uint32_t kRquotaV2 = 2;
inline constexpr std::size_t kRquotaMaxPath = 1024;  // RQ_PATHLEN

// clang-format off
#define RQUOTAPROC_VALUES(X) \
  X(RQUOTAPROC_NULL, 0) X(RQUOTAPROC_GETQUOTA, 1) X(RQUOTAPROC_GETACTIVEQUOTA, 2) \
  X(RQUOTAPROC_SETQUOTA, 3) X(RQUOTAPROC_SETACTIVEQUOTA, 4)
#define GQR_STATUS_VALUES(X) X(Q_OK, 1) X(Q_NOQUOTA, 2) X(Q_EPERM, 3)
// clang-format on
NFSRDMA_XDR_ENUM(rquotaproc, RQUOTAPROC_VALUES)
NFSRDMA_XDR_ENUM(gqr_status, GQR_STATUS_VALUES)
#undef RQUOTAPROC_VALUES
#undef GQR_STATUS_VALUES
inline constexpr std::uint32_t kRquotaProcedureCount = 5;

// gqa_type and sqa_type of version 2.
inline constexpr std::int32_t kRquotaUser = 0;
inline constexpr std::int32_t kRquotaGroup = 1;
inline constexpr std::int32_t kRquotaProject = 2;  // Linux has it, its client does not ask for it

struct getquota_args {
  std::string_view gqa_pathp{};
  std::int32_t gqa_uid = 0;
};
template <typename A, Is<getquota_args> V>
void visit(A& ar, V& v) {
  ar.string("gqa_pathp", v.gqa_pathp, kRquotaMaxPath);
  ar("gqa_uid", v.gqa_uid);
}

/// Version 2.
struct ext_getquota_args {
  std::string_view gqa_pathp{};
  std::int32_t gqa_type = kRquotaUser;
  std::int32_t gqa_id = 0;
};
template <typename A, Is<ext_getquota_args> V>
void visit(A& ar, V& v) {
  ar.string("gqa_pathp", v.gqa_pathp, kRquotaMaxPath);
  ar("gqa_type", v.gqa_type);
  ar("gqa_id", v.gqa_id);
}

struct sq_dqblk {
  std::uint32_t rq_bhardlimit = 0;
  std::uint32_t rq_bsoftlimit = 0;
  std::uint32_t rq_curblocks = 0;
  std::uint32_t rq_fhardlimit = 0;
  std::uint32_t rq_fsoftlimit = 0;
  std::uint32_t rq_curfiles = 0;
  std::uint32_t rq_btimeleft = 0;
  std::uint32_t rq_ftimeleft = 0;
};
template <typename A, Is<sq_dqblk> V>
void visit(A& ar, V& v) {
  ar("rq_bhardlimit", v.rq_bhardlimit);
  ar("rq_bsoftlimit", v.rq_bsoftlimit);
  ar("rq_curblocks", v.rq_curblocks);
  ar("rq_fhardlimit", v.rq_fhardlimit);
  ar("rq_fsoftlimit", v.rq_fsoftlimit);
  ar("rq_curfiles", v.rq_curfiles);
  ar("rq_btimeleft", v.rq_btimeleft);
  ar("rq_ftimeleft", v.rq_ftimeleft);
}

struct setquota_args {
  std::int32_t sqa_qcmd = 0;
  std::string_view sqa_pathp{};
  std::int32_t sqa_id = 0;
  sq_dqblk sqa_dqblk{};
};
template <typename A, Is<setquota_args> V>
void visit(A& ar, V& v) {
  ar("sqa_qcmd", v.sqa_qcmd);
  ar.string("sqa_pathp", v.sqa_pathp, kRquotaMaxPath);
  ar("sqa_id", v.sqa_id);
  ar("sqa_dqblk", v.sqa_dqblk);
}

/// Version 2.
struct ext_setquota_args {
  std::int32_t sqa_qcmd = 0;
  std::string_view sqa_pathp{};
  std::int32_t sqa_id = 0;
  std::int32_t sqa_type = kRquotaUser;
  sq_dqblk sqa_dqblk{};
};
template <typename A, Is<ext_setquota_args> V>
void visit(A& ar, V& v) {
  ar("sqa_qcmd", v.sqa_qcmd);
  ar.string("sqa_pathp", v.sqa_pathp, kRquotaMaxPath);
  ar("sqa_id", v.sqa_id);
  ar("sqa_type", v.sqa_type);
  ar("sqa_dqblk", v.sqa_dqblk);
}

/// Limits of 0 are none. Blocks are of rq_bsize bytes. The time left of a soft limit that is
/// exceeded is in seconds, as a signed number: below 0 once it has run out; 0 where none runs.
struct rquota {
  std::int32_t rq_bsize = 0;
  bool rq_active = false;
  std::uint32_t rq_bhardlimit = 0;
  std::uint32_t rq_bsoftlimit = 0;
  std::uint32_t rq_curblocks = 0;
  std::uint32_t rq_fhardlimit = 0;
  std::uint32_t rq_fsoftlimit = 0;
  std::uint32_t rq_curfiles = 0;
  std::uint32_t rq_btimeleft = 0;
  std::uint32_t rq_ftimeleft = 0;
  bool operator==(const rquota&) const = default;
};
template <typename A, Is<rquota> V>
void visit(A& ar, V& v) {
  ar("rq_bsize", v.rq_bsize);
  ar("rq_active", v.rq_active);
  ar("rq_bhardlimit", v.rq_bhardlimit);
  ar("rq_bsoftlimit", v.rq_bsoftlimit);
  ar("rq_curblocks", v.rq_curblocks);
  ar("rq_fhardlimit", v.rq_fhardlimit);
  ar("rq_fsoftlimit", v.rq_fsoftlimit);
  ar("rq_curfiles", v.rq_curfiles);
  ar("rq_btimeleft", v.rq_btimeleft);
  ar("rq_ftimeleft", v.rq_ftimeleft);
}

/// The result of all procedures but NULL: setquota_rslt looks the same.
struct getquota_rslt {
  gqr_status status = gqr_status::Q_EPERM;
  rquota gqr_rquota{};  // Q_OK
};
template <typename A, Is<getquota_rslt> V>
void visit(A& ar, V& v) {
  ar.closed_enum("status", v.status);
  if (v.status == gqr_status::Q_OK) ar("gqr_rquota", v.gqr_rquota);
}

}  // namespace nfsrdma::xdr
