// SPDX-License-Identifier: Apache-2.0
// The Network Status Monitor, version 1 (X/Open C702, chapter 11): who tells whom that a host has
// restarted. Lock managers ask the monitor of their own host (MON), monitors tell each other
// (NOTIFY), and the monitor calls the lock manager back.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/archive.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kNsmProgram = 100024;
inline constexpr std::uint32_t kNsmV1 = 1;
inline constexpr std::size_t kNsmMaxName = 1024;  // SM_MAXSTRLEN
inline constexpr std::size_t kNsmPrivate = 16;

// clang-format off
#define NSMPROC1_VALUES(X) \
  X(SM_NULL, 0) X(SM_STAT, 1) X(SM_MON, 2) X(SM_UNMON, 3) X(SM_UNMON_ALL, 4) X(SM_SIMU_CRASH, 5) \
  X(SM_NOTIFY, 6)
#define NSM_RES_VALUES(X) X(STAT_SUCC, 0) X(STAT_FAIL, 1)
// clang-format on
NFSRDMA_XDR_ENUM(nsmproc1, NSMPROC1_VALUES)
NFSRDMA_XDR_ENUM(nsm_res, NSM_RES_VALUES)
#undef NSMPROC1_VALUES
#undef NSM_RES_VALUES
inline constexpr std::uint32_t kNsm1ProcedureCount = 7;

/// The argument of STAT.
struct sm_name {
  std::string_view mon_name{};
};
template <typename A, Is<sm_name> V>
void visit(A& ar, V& v) {
  ar.string("mon_name", v.mon_name, kNsmMaxName);
}

/// Who is to be called back; the argument of UNMON_ALL.
struct my_id {
  std::string_view my_name{};
  std::uint32_t my_prog = 0;
  std::uint32_t my_vers = 0;
  std::uint32_t my_proc = 0;
};
template <typename A, Is<my_id> V>
void visit(A& ar, V& v) {
  ar.string("my_name", v.my_name, kNsmMaxName);
  ar("my_prog", v.my_prog);
  ar("my_vers", v.my_vers);
  ar("my_proc", v.my_proc);
}

/// The argument of UNMON.
struct mon_id {
  std::string_view mon_name{};
  my_id id{};
};
template <typename A, Is<mon_id> V>
void visit(A& ar, V& v) {
  ar.string("mon_name", v.mon_name, kNsmMaxName);
  ar("my_id", v.id);
}

/// The argument of MON.
struct sm_mon {
  mon_id id{};
  std::array<std::byte, kNsmPrivate> priv{};
};
template <typename A, Is<sm_mon> V>
void visit(A& ar, V& v) {
  ar("mon_id", v.id);
  ar("priv", v.priv);
}

/// The argument of NOTIFY.
struct stat_chge {
  std::string_view mon_name{};
  std::int32_t state = 0;  // odd: it is up
};
template <typename A, Is<stat_chge> V>
void visit(A& ar, V& v) {
  ar.string("mon_name", v.mon_name, kNsmMaxName);
  ar("state", v.state);
}

/// The result of UNMON and UNMON_ALL.
struct sm_stat {
  std::int32_t state = 0;
};
template <typename A, Is<sm_stat> V>
void visit(A& ar, V& v) {
  ar("state", v.state);
}

/// The result of STAT and MON.
struct sm_stat_res {
  nsm_res res_stat = nsm_res::STAT_SUCC;
  std::int32_t state = 0;
};
template <typename A, Is<sm_stat_res> V>
void visit(A& ar, V& v) {
  ar("res_stat", v.res_stat);
  ar("state", v.state);
}

/// What the monitor calls the lock manager with.
struct sm_status {
  std::string_view mon_name{};
  std::int32_t state = 0;
  std::array<std::byte, kNsmPrivate> priv{};
};
template <typename A, Is<sm_status> V>
void visit(A& ar, V& v) {
  ar.string("mon_name", v.mon_name, kNsmMaxName);
  ar("state", v.state);
  ar("priv", v.priv);
}

}  // namespace nfsrdma::xdr
