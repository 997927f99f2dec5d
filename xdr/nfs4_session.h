// SPDX-License-Identifier: Apache-2.0
// NFS version 4.1: sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "xdr/nfs4_exchange_id.h"
#include "xdr/nfs4_types.h"
#include "xdr/rpc_auth.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t CREATE_SESSION4_FLAG_PERSIST = 0x1;
inline constexpr std::uint32_t CREATE_SESSION4_FLAG_CONN_BACK_CHAN = 0x2;
inline constexpr std::uint32_t CREATE_SESSION4_FLAG_CONN_RDMA = 0x4;

inline constexpr std::uint32_t SEQ4_STATUS_CB_PATH_DOWN = 0x0001;
inline constexpr std::uint32_t SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRING = 0x0002;
inline constexpr std::uint32_t SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRED = 0x0004;
inline constexpr std::uint32_t SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED = 0x0008;
inline constexpr std::uint32_t SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED = 0x0010;
inline constexpr std::uint32_t SEQ4_STATUS_ADMIN_STATE_REVOKED = 0x0020;
inline constexpr std::uint32_t SEQ4_STATUS_RECALLABLE_STATE_REVOKED = 0x0040;
inline constexpr std::uint32_t SEQ4_STATUS_LEASE_MOVED = 0x0080;
inline constexpr std::uint32_t SEQ4_STATUS_RESTART_RECLAIM_NEEDED = 0x0100;
inline constexpr std::uint32_t SEQ4_STATUS_CB_PATH_DOWN_SESSION = 0x0200;
inline constexpr std::uint32_t SEQ4_STATUS_BACKCHANNEL_FAULT = 0x0400;
inline constexpr std::uint32_t SEQ4_STATUS_DEVID_CHANGED = 0x0800;
inline constexpr std::uint32_t SEQ4_STATUS_DEVID_DELETED = 0x1000;

struct channel_attrs4 {
  std::uint32_t ca_headerpadsize = 0;
  std::uint32_t ca_maxrequestsize = 0;
  std::uint32_t ca_maxresponsesize = 0;
  std::uint32_t ca_maxresponsesize_cached = 0;
  std::uint32_t ca_maxoperations = 0;
  std::uint32_t ca_maxrequests = 0;
  BoundedArray<std::uint32_t, 1> ca_rdma_ird{};
};
template <typename A, Is<channel_attrs4> V>
void visit(A& ar, V& v) {
  ar("ca_headerpadsize", v.ca_headerpadsize);
  ar("ca_maxrequestsize", v.ca_maxrequestsize);
  ar("ca_maxresponsesize", v.ca_maxresponsesize);
  ar("ca_maxresponsesize_cached", v.ca_maxresponsesize_cached);
  ar("ca_maxoperations", v.ca_maxoperations);
  ar("ca_maxrequests", v.ca_maxrequests);
  ar.array("ca_rdma_ird", v.ca_rdma_ird);
}

struct gss_cb_handles4 {
  rpc_gss_svc_t gcbp_service = rpc_gss_svc_t::RPC_GSS_SVC_NONE;
  gsshandle4 gcbp_handle_from_server{};
  gsshandle4 gcbp_handle_from_client{};
};
template <typename A, Is<gss_cb_handles4> V>
void visit(A& ar, V& v) {
  ar("gcbp_service", v.gcbp_service);
  ar("gcbp_handle_from_server", v.gcbp_handle_from_server);
  ar("gcbp_handle_from_client", v.gcbp_handle_from_client);
}

struct callback_sec_parms4 {
  cb_secflavor4 cb_secflavor = cb_secflavor4::AUTH_NONE;
  authsys_parms cbsp_sys_cred{};
  gss_cb_handles4 cbsp_gss_handles{};
};
template <typename A, Is<callback_sec_parms4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("cb_secflavor", v.cb_secflavor);
  if (v.cb_secflavor == cb_secflavor4::AUTH_SYS) {
    ar("cbsp_sys_cred", v.cbsp_sys_cred);
  } else if (v.cb_secflavor == cb_secflavor4::RPCSEC_GSS) {
    ar("cbsp_gss_handles", v.cbsp_gss_handles);
  }
}

struct BACKCHANNEL_CTL4args {
  std::uint32_t bca_cb_program = 0;
  EncodedArray<callback_sec_parms4> bca_sec_parms{};
};
template <typename A, Is<BACKCHANNEL_CTL4args> V>
void visit(A& ar, V& v) {
  ar("bca_cb_program", v.bca_cb_program);
  ar.counted("bca_sec_parms", v.bca_sec_parms, kNfs4MaxSecParms);
}

using BACKCHANNEL_CTL4res = Nfs4Result<Void>;

struct BIND_CONN_TO_SESSION4args {
  sessionid4 bctsa_sessid{};
  channel_dir_from_client4 bctsa_dir = channel_dir_from_client4::CDFC4_FORE;
  bool bctsa_use_conn_in_rdma_mode = false;
};
template <typename A, Is<BIND_CONN_TO_SESSION4args> V>
void visit(A& ar, V& v) {
  ar("bctsa_sessid", v.bctsa_sessid);
  ar("bctsa_dir", v.bctsa_dir);
  ar("bctsa_use_conn_in_rdma_mode", v.bctsa_use_conn_in_rdma_mode);
}

struct BIND_CONN_TO_SESSION4resok {
  sessionid4 bctsr_sessid{};
  channel_dir_from_server4 bctsr_dir = channel_dir_from_server4::CDFS4_FORE;
  bool bctsr_use_conn_in_rdma_mode = false;
};
template <typename A, Is<BIND_CONN_TO_SESSION4resok> V>
void visit(A& ar, V& v) {
  ar("bctsr_sessid", v.bctsr_sessid);
  ar("bctsr_dir", v.bctsr_dir);
  ar("bctsr_use_conn_in_rdma_mode", v.bctsr_use_conn_in_rdma_mode);
}

using BIND_CONN_TO_SESSION4res = Nfs4Result<BIND_CONN_TO_SESSION4resok>;

struct CREATE_SESSION4args {
  std::uint64_t csa_clientid = 0;
  std::uint32_t csa_sequence = 0;
  std::uint32_t csa_flags = 0;  // CREATE_SESSION4_FLAG_ bits
  channel_attrs4 csa_fore_chan_attrs{};
  channel_attrs4 csa_back_chan_attrs{};
  std::uint32_t csa_cb_program = 0;
  EncodedArray<callback_sec_parms4> csa_sec_parms{};
};
template <typename A, Is<CREATE_SESSION4args> V>
void visit(A& ar, V& v) {
  ar("csa_clientid", v.csa_clientid);
  ar("csa_sequence", v.csa_sequence);
  ar("csa_flags", v.csa_flags);
  ar("csa_fore_chan_attrs", v.csa_fore_chan_attrs);
  ar("csa_back_chan_attrs", v.csa_back_chan_attrs);
  ar("csa_cb_program", v.csa_cb_program);
  ar.counted("csa_sec_parms", v.csa_sec_parms, kNfs4MaxSecParms);
}

struct CREATE_SESSION4resok {
  sessionid4 csr_sessionid{};
  std::uint32_t csr_sequence = 0;
  std::uint32_t csr_flags = 0;
  channel_attrs4 csr_fore_chan_attrs{};
  channel_attrs4 csr_back_chan_attrs{};
};
template <typename A, Is<CREATE_SESSION4resok> V>
void visit(A& ar, V& v) {
  ar("csr_sessionid", v.csr_sessionid);
  ar("csr_sequence", v.csr_sequence);
  ar("csr_flags", v.csr_flags);
  ar("csr_fore_chan_attrs", v.csr_fore_chan_attrs);
  ar("csr_back_chan_attrs", v.csr_back_chan_attrs);
}

using CREATE_SESSION4res = Nfs4Result<CREATE_SESSION4resok>;

struct DESTROY_SESSION4args {
  sessionid4 dsa_sessionid{};
};
template <typename A, Is<DESTROY_SESSION4args> V>
void visit(A& ar, V& v) {
  ar("dsa_sessionid", v.dsa_sessionid);
}

using DESTROY_SESSION4res = Nfs4Result<Void>;

struct SEQUENCE4args {
  sessionid4 sa_sessionid{};
  std::uint32_t sa_sequenceid = 0;
  std::uint32_t sa_slotid = 0;
  std::uint32_t sa_highest_slotid = 0;
  bool sa_cachethis = false;
};
template <typename A, Is<SEQUENCE4args> V>
void visit(A& ar, V& v) {
  ar("sa_sessionid", v.sa_sessionid);
  ar("sa_sequenceid", v.sa_sequenceid);
  ar("sa_slotid", v.sa_slotid);
  ar("sa_highest_slotid", v.sa_highest_slotid);
  ar("sa_cachethis", v.sa_cachethis);
}

struct SEQUENCE4resok {
  sessionid4 sr_sessionid{};
  std::uint32_t sr_sequenceid = 0;
  std::uint32_t sr_slotid = 0;
  std::uint32_t sr_highest_slotid = 0;
  std::uint32_t sr_target_highest_slotid = 0;
  std::uint32_t sr_status_flags = 0;  // SEQ4_STATUS_ bits
};
template <typename A, Is<SEQUENCE4resok> V>
void visit(A& ar, V& v) {
  ar("sr_sessionid", v.sr_sessionid);
  ar("sr_sequenceid", v.sr_sequenceid);
  ar("sr_slotid", v.sr_slotid);
  ar("sr_highest_slotid", v.sr_highest_slotid);
  ar("sr_target_highest_slotid", v.sr_target_highest_slotid);
  ar("sr_status_flags", v.sr_status_flags);
}

using SEQUENCE4res = Nfs4Result<SEQUENCE4resok>;

struct SET_SSV4args {
  std::span<const std::byte> ssa_ssv{};
  std::span<const std::byte> ssa_digest{};
};
template <typename A, Is<SET_SSV4args> V>
void visit(A& ar, V& v) {
  ar.opaque("ssa_ssv", v.ssa_ssv, kNfs4MaxSsv);
  ar.opaque("ssa_digest", v.ssa_digest, kNfs4MaxSsv);
}

struct SET_SSV4resok {
  std::span<const std::byte> ssr_digest{};
};
template <typename A, Is<SET_SSV4resok> V>
void visit(A& ar, V& v) {
  ar.opaque("ssr_digest", v.ssr_digest, kNfs4MaxSsv);
}

using SET_SSV4res = Nfs4Result<SET_SSV4resok>;

}  // namespace nfsrdma::xdr
