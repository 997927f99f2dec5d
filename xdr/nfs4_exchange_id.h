// SPDX-License-Identifier: Apache-2.0
// NFS version 4.1: how a client makes itself known (EXCHANGE_ID), and how it ends or says that it
// has reclaimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/nfs4_secinfo.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t EXCHGID4_FLAG_SUPP_MOVED_REFER = 0x00000001;
inline constexpr std::uint32_t EXCHGID4_FLAG_SUPP_MOVED_MIGR = 0x00000002;
inline constexpr std::uint32_t EXCHGID4_FLAG_SUPP_FENCE_OPS = 0x00000004;
inline constexpr std::uint32_t EXCHGID4_FLAG_BIND_PRINC_STATEID = 0x00000100;
inline constexpr std::uint32_t EXCHGID4_FLAG_USE_NON_PNFS = 0x00010000;
inline constexpr std::uint32_t EXCHGID4_FLAG_USE_PNFS_MDS = 0x00020000;
inline constexpr std::uint32_t EXCHGID4_FLAG_USE_PNFS_DS = 0x00040000;
inline constexpr std::uint32_t EXCHGID4_FLAG_MASK_PNFS = 0x00070000;
inline constexpr std::uint32_t EXCHGID4_FLAG_UPD_CONFIRMED_REC_A = 0x40000000;
inline constexpr std::uint32_t EXCHGID4_FLAG_CONFIRMED_R = 0x80000000;

struct client_owner4 {
  verifier4 co_verifier{};
  std::span<const std::byte> co_ownerid{};
};
template <typename A, Is<client_owner4> V>
void visit(A& ar, V& v) {
  ar("co_verifier", v.co_verifier);
  ar.opaque("co_ownerid", v.co_ownerid, kNfs4OpaqueLimit);
}

struct server_owner4 {
  std::uint64_t so_minor_id = 0;
  std::span<const std::byte> so_major_id{};
};
template <typename A, Is<server_owner4> V>
void visit(A& ar, V& v) {
  ar("so_minor_id", v.so_minor_id);
  ar.opaque("so_major_id", v.so_major_id, kNfs4OpaqueLimit);
}

struct nfs_impl_id4 {
  std::string_view nii_domain{};
  std::string_view nii_name{};
  nfstime4 nii_date{};
};
template <typename A, Is<nfs_impl_id4> V>
void visit(A& ar, V& v) {
  ar.string("nii_domain", v.nii_domain, kNfs4OpaqueLimit);
  ar.string("nii_name", v.nii_name, kNfs4OpaqueLimit);
  ar("nii_date", v.nii_date);
}

struct gsshandle4 {
  std::span<const std::byte> handle{};
};
template <typename A, Is<gsshandle4> V>
void visit(A& ar, V& v) {
  ar.opaque("handle", v.handle, kNfs4MaxGssHandle);
}

struct state_protect_ops4 {
  bitmap4 spo_must_enforce{};
  bitmap4 spo_must_allow{};
};
template <typename A, Is<state_protect_ops4> V>
void visit(A& ar, V& v) {
  ar("spo_must_enforce", v.spo_must_enforce);
  ar("spo_must_allow", v.spo_must_allow);
}

struct ssv_sp_parms4 {
  state_protect_ops4 ssp_ops{};
  EncodedArray<sec_oid4> ssp_hash_algs{};
  EncodedArray<sec_oid4> ssp_encr_algs{};
  std::uint32_t ssp_window = 0;
  std::uint32_t ssp_num_gss_handles = 0;
};
template <typename A, Is<ssv_sp_parms4> V>
void visit(A& ar, V& v) {
  ar("ssp_ops", v.ssp_ops);
  ar.counted("ssp_hash_algs", v.ssp_hash_algs, kNfs4MaxAlgorithms);
  ar.counted("ssp_encr_algs", v.ssp_encr_algs, kNfs4MaxAlgorithms);
  ar("ssp_window", v.ssp_window);
  ar("ssp_num_gss_handles", v.ssp_num_gss_handles);
}

struct state_protect4_a {
  state_protect_how4 spa_how = state_protect_how4::SP4_NONE;
  state_protect_ops4 spa_mach_ops{};  // SP4_MACH_CRED
  ssv_sp_parms4 spa_ssv_parms{};      // SP4_SSV
};
template <typename A, Is<state_protect4_a> V>
void visit(A& ar, V& v) {
  ar.closed_enum("spa_how", v.spa_how);
  if (v.spa_how == state_protect_how4::SP4_MACH_CRED) {
    ar("spa_mach_ops", v.spa_mach_ops);
  } else if (v.spa_how == state_protect_how4::SP4_SSV) {
    ar("spa_ssv_parms", v.spa_ssv_parms);
  }
}

struct EXCHANGE_ID4args {
  client_owner4 eia_clientowner{};
  std::uint32_t eia_flags = 0;  // EXCHGID4_FLAG_ bits
  state_protect4_a eia_state_protect{};
  BoundedArray<nfs_impl_id4, 1> eia_client_impl_id{};
};
template <typename A, Is<EXCHANGE_ID4args> V>
void visit(A& ar, V& v) {
  ar("eia_clientowner", v.eia_clientowner);
  ar("eia_flags", v.eia_flags);
  ar("eia_state_protect", v.eia_state_protect);
  ar.array("eia_client_impl_id", v.eia_client_impl_id);
}

struct ssv_prot_info4 {
  state_protect_ops4 spi_ops{};
  std::uint32_t spi_hash_alg = 0;
  std::uint32_t spi_encr_alg = 0;
  std::uint32_t spi_ssv_len = 0;
  std::uint32_t spi_window = 0;
  EncodedArray<gsshandle4> spi_handles{};
};
template <typename A, Is<ssv_prot_info4> V>
void visit(A& ar, V& v) {
  ar("spi_ops", v.spi_ops);
  ar("spi_hash_alg", v.spi_hash_alg);
  ar("spi_encr_alg", v.spi_encr_alg);
  ar("spi_ssv_len", v.spi_ssv_len);
  ar("spi_window", v.spi_window);
  ar.counted("spi_handles", v.spi_handles, kNfs4MaxGssHandles);
}

struct state_protect4_r {
  state_protect_how4 spr_how = state_protect_how4::SP4_NONE;
  state_protect_ops4 spr_mach_ops{};  // SP4_MACH_CRED
  ssv_prot_info4 spr_ssv_info{};      // SP4_SSV
};
template <typename A, Is<state_protect4_r> V>
void visit(A& ar, V& v) {
  ar.closed_enum("spr_how", v.spr_how);
  if (v.spr_how == state_protect_how4::SP4_MACH_CRED) {
    ar("spr_mach_ops", v.spr_mach_ops);
  } else if (v.spr_how == state_protect_how4::SP4_SSV) {
    ar("spr_ssv_info", v.spr_ssv_info);
  }
}

struct EXCHANGE_ID4resok {
  std::uint64_t eir_clientid = 0;
  std::uint32_t eir_sequenceid = 0;
  std::uint32_t eir_flags = 0;  // EXCHGID4_FLAG_ bits
  state_protect4_r eir_state_protect{};
  server_owner4 eir_server_owner{};
  std::span<const std::byte> eir_server_scope{};
  BoundedArray<nfs_impl_id4, 1> eir_server_impl_id{};
};
template <typename A, Is<EXCHANGE_ID4resok> V>
void visit(A& ar, V& v) {
  ar("eir_clientid", v.eir_clientid);
  ar("eir_sequenceid", v.eir_sequenceid);
  ar("eir_flags", v.eir_flags);
  ar("eir_state_protect", v.eir_state_protect);
  ar("eir_server_owner", v.eir_server_owner);
  ar.opaque("eir_server_scope", v.eir_server_scope, kNfs4OpaqueLimit);
  ar.array("eir_server_impl_id", v.eir_server_impl_id);
}

using EXCHANGE_ID4res = Nfs4Result<EXCHANGE_ID4resok>;

struct DESTROY_CLIENTID4args {
  std::uint64_t dca_clientid = 0;
};
template <typename A, Is<DESTROY_CLIENTID4args> V>
void visit(A& ar, V& v) {
  ar("dca_clientid", v.dca_clientid);
}

using DESTROY_CLIENTID4res = Nfs4Result<Void>;

struct RECLAIM_COMPLETE4args {
  bool rca_one_fs = false;
};
template <typename A, Is<RECLAIM_COMPLETE4args> V>
void visit(A& ar, V& v) {
  ar("rca_one_fs", v.rca_one_fs);
}

using RECLAIM_COMPLETE4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
