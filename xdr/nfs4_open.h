// SPDX-License-Identifier: Apache-2.0
// NFS version 4: OPEN and what changes an open. What only a later minor version knows
// (EXCLUSIVE4_1, the claims by handle, OPEN_DELEGATE_NONE_EXT) decodes in any: to refuse it is the
// server's part.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/nfs4_delegation.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

// The low bits of share_access, and share_deny
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_READ = 1;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WRITE = 2;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_BOTH = 3;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_NONE = 0;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_READ = 1;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_WRITE = 2;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_BOTH = 3;

// The delegation that a 4.1 client wants, in share_access and wda_want
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_DELEG_MASK = 0xff00;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE = 0x0000;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_READ_DELEG = 0x0100;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG = 0x0200;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_ANY_DELEG = 0x0300;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_NO_DELEG = 0x0400;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_CANCEL = 0x0500;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL = 0x10000;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED = 0x20000;

// rflags
inline constexpr std::uint32_t OPEN4_RESULT_CONFIRM = 0x02;
inline constexpr std::uint32_t OPEN4_RESULT_LOCKTYPE_POSIX = 0x04;
inline constexpr std::uint32_t OPEN4_RESULT_PRESERVE_UNLINKED = 0x08;
inline constexpr std::uint32_t OPEN4_RESULT_MAY_NOTIFY_LOCK = 0x20;

struct creatverfattr {
  verifier4 cva_verf{};
  fattr4 cva_attrs{};
};
template <typename A, Is<creatverfattr> V>
void visit(A& ar, V& v) {
  ar("cva_verf", v.cva_verf);
  ar("cva_attrs", v.cva_attrs);
}

struct createhow4 {
  createmode4 mode = createmode4::UNCHECKED4;
  fattr4 createattrs{};           // UNCHECKED4, GUARDED4
  verifier4 createverf{};         // EXCLUSIVE4
  creatverfattr ch_createboth{};  // EXCLUSIVE4_1
};
template <typename A, Is<createhow4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("mode", v.mode);
  if (v.mode == createmode4::UNCHECKED4 || v.mode == createmode4::GUARDED4) {
    ar("createattrs", v.createattrs);
  } else if (v.mode == createmode4::EXCLUSIVE4) {
    ar("createverf", v.createverf);
  } else {
    ar("ch_createboth", v.ch_createboth);
  }
}

struct openflag4 {
  opentype4 opentype = opentype4::OPEN4_NOCREATE;
  createhow4 how{};  // OPEN4_CREATE
};
template <typename A, Is<openflag4> V>
void visit(A& ar, V& v) {
  ar("opentype", v.opentype);
  if (v.opentype == opentype4::OPEN4_CREATE) {
    ar("how", v.how);
  }
}

struct open_claim_delegate_cur4 {
  stateid4 delegate_stateid{};
  std::string_view file{};
};
template <typename A, Is<open_claim_delegate_cur4> V>
void visit(A& ar, V& v) {
  ar("delegate_stateid", v.delegate_stateid);
  ar.string("file", v.file, kNfs4MaxName);
}

struct open_claim4 {
  open_claim_type4 claim = open_claim_type4::CLAIM_NULL;
  std::string_view file{};                       // CLAIM_NULL
  open_delegation_type4 delegate_type{};         // CLAIM_PREVIOUS
  open_claim_delegate_cur4 delegate_cur_info{};  // CLAIM_DELEGATE_CUR
  std::string_view file_delegate_prev{};         // CLAIM_DELEGATE_PREV
  stateid4 oc_delegate_stateid{};                // CLAIM_DELEG_CUR_FH
};
template <typename A, Is<open_claim4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("claim", v.claim);
  if (v.claim == open_claim_type4::CLAIM_NULL) {
    ar.string("file", v.file, kNfs4MaxName);
  } else if (v.claim == open_claim_type4::CLAIM_PREVIOUS) {
    ar("delegate_type", v.delegate_type);
  } else if (v.claim == open_claim_type4::CLAIM_DELEGATE_CUR) {
    ar("delegate_cur_info", v.delegate_cur_info);
  } else if (v.claim == open_claim_type4::CLAIM_DELEGATE_PREV) {
    ar.string("file_delegate_prev", v.file_delegate_prev, kNfs4MaxName);
  } else if (v.claim == open_claim_type4::CLAIM_DELEG_CUR_FH) {
    ar("oc_delegate_stateid", v.oc_delegate_stateid);
  }
}

struct OPEN4args {
  std::uint32_t seqid = 0;         // of the owner, in 4.0
  std::uint32_t share_access = 0;  // OPEN4_SHARE_ACCESS_ bits
  std::uint32_t share_deny = 0;    // OPEN4_SHARE_DENY_ bits
  state_owner4 owner{};
  openflag4 openhow{};
  open_claim4 claim{};
};
template <typename A, Is<OPEN4args> V>
void visit(A& ar, V& v) {
  ar("seqid", v.seqid);
  ar("share_access", v.share_access);
  ar("share_deny", v.share_deny);
  ar("owner", v.owner);
  ar("openhow", v.openhow);
  ar("claim", v.claim);
}

struct OPEN4resok {
  stateid4 stateid{};
  change_info4 cinfo{};
  std::uint32_t rflags = 0;  // OPEN4_RESULT_ bits
  bitmap4 attrset{};
  open_delegation4 delegation{};
};
template <typename A, Is<OPEN4resok> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("cinfo", v.cinfo);
  ar("rflags", v.rflags);
  ar("attrset", v.attrset);
  ar("delegation", v.delegation);
}

using OPEN4res = Nfs4Result<OPEN4resok>;

struct OPEN_CONFIRM4args {
  stateid4 open_stateid{};
  std::uint32_t seqid = 0;
};
template <typename A, Is<OPEN_CONFIRM4args> V>
void visit(A& ar, V& v) {
  ar("open_stateid", v.open_stateid);
  ar("seqid", v.seqid);
}

struct OPEN_CONFIRM4resok {
  stateid4 open_stateid{};
};
template <typename A, Is<OPEN_CONFIRM4resok> V>
void visit(A& ar, V& v) {
  ar("open_stateid", v.open_stateid);
}

using OPEN_CONFIRM4res = Nfs4Result<OPEN_CONFIRM4resok>;

struct OPEN_DOWNGRADE4args {
  stateid4 open_stateid{};
  std::uint32_t seqid = 0;
  std::uint32_t share_access = 0;
  std::uint32_t share_deny = 0;
};
template <typename A, Is<OPEN_DOWNGRADE4args> V>
void visit(A& ar, V& v) {
  ar("open_stateid", v.open_stateid);
  ar("seqid", v.seqid);
  ar("share_access", v.share_access);
  ar("share_deny", v.share_deny);
}

struct OPEN_DOWNGRADE4resok {
  stateid4 open_stateid{};
};
template <typename A, Is<OPEN_DOWNGRADE4resok> V>
void visit(A& ar, V& v) {
  ar("open_stateid", v.open_stateid);
}

using OPEN_DOWNGRADE4res = Nfs4Result<OPEN_DOWNGRADE4resok>;

struct CLOSE4args {
  std::uint32_t seqid = 0;
  stateid4 open_stateid{};
};
template <typename A, Is<CLOSE4args> V>
void visit(A& ar, V& v) {
  ar("seqid", v.seqid);
  ar("open_stateid", v.open_stateid);
}

using CLOSE4res = Nfs4Result<stateid4>;

}  // namespace nfsrdma::xdr
