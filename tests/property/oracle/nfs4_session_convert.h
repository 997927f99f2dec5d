// SPDX-License-Identifier: Apache-2.0
// Our NFSv4 values as the oracle's: clients, what 4.1 and 4.2 added, and callbacks.
#pragma once

#include "tests/property/oracle/nfs4_convert.h"

namespace nfsrdma::oracle {

// clang-format off
// Stateids
ORACLE_1(FREE_STATEID4args, fsa_stateid)
ORACLE_STATUS(FREE_STATEID4res)
ORACLE_BEGIN(TEST_STATEID4args) ORACLE_ARRAY(ts_stateids) ORACLE_END
ORACLE_BEGIN(TEST_STATEID4resok) ORACLE_ARRAY(tsr_status_codes) ORACLE_END
ORACLE_RESULT4(TEST_STATEID4res)

// Clients of 4.0
ORACLE_BEGIN(nfs_client_id4) ORACLE_FIELD(verifier) ORACLE_OPAQUE(id, from.id) ORACLE_END
ORACLE_2(cb_client4, cb_program, cb_location)
ORACLE_3(SETCLIENTID4args, client, callback, callback_ident)
ORACLE_2(SETCLIENTID4resok, clientid, setclientid_confirm)
ORACLE_BEGIN(SETCLIENTID4res)
  ORACLE_FIELD(status)
  if (from.status == xdr::nfsstat4::NFS4_OK) {
    ORACLE_ARM(SETCLIENTID4res, resok4)
  } else if (from.status == xdr::nfsstat4::NFS4ERR_CLID_INUSE) {
    ORACLE_ARM(SETCLIENTID4res, client_using)
  }
ORACLE_END
ORACLE_2(SETCLIENTID_CONFIRM4args, clientid, setclientid_confirm)
ORACLE_STATUS(SETCLIENTID_CONFIRM4res)
ORACLE_1(RENEW4args, clientid)
ORACLE_STATUS(RENEW4res)

// Clients of 4.1
ORACLE_BEGIN(client_owner4)
  ORACLE_FIELD(co_verifier) ORACLE_OPAQUE(co_ownerid, from.co_ownerid)
ORACLE_END
ORACLE_BEGIN(server_owner4)
  ORACLE_FIELD(so_minor_id) ORACLE_OPAQUE(so_major_id, from.so_major_id)
ORACLE_END
ORACLE_3(nfs_impl_id4, nii_domain, nii_name, nii_date)
ORACLE_BEGIN(gsshandle4) ORACLE_OPAQUE(handle, from.handle) ORACLE_END
ORACLE_2(state_protect_ops4, spo_must_enforce, spo_must_allow)
ORACLE_BEGIN(ssv_sp_parms4)
  ORACLE_FIELD(ssp_ops) ORACLE_ARRAY(ssp_hash_algs) ORACLE_ARRAY(ssp_encr_algs)
  ORACLE_FIELD(ssp_window) ORACLE_FIELD(ssp_num_gss_handles)
ORACLE_END
ORACLE_BEGIN(state_protect4_a)
  ORACLE_FIELD(spa_how)
  if (from.spa_how == xdr::state_protect_how4::SP4_MACH_CRED) {
    ORACLE_ARM(state_protect4_a, spa_mach_ops)
  } else if (from.spa_how == xdr::state_protect_how4::SP4_SSV) {
    ORACLE_ARM(state_protect4_a, spa_ssv_parms)
  }
ORACLE_END
ORACLE_BEGIN(EXCHANGE_ID4args)
  ORACLE_FIELD(eia_clientowner) ORACLE_FIELD(eia_flags) ORACLE_FIELD(eia_state_protect)
  ORACLE_ARRAY(eia_client_impl_id)
ORACLE_END
ORACLE_BEGIN(ssv_prot_info4)
  ORACLE_FIELD(spi_ops) ORACLE_FIELD(spi_hash_alg) ORACLE_FIELD(spi_encr_alg)
  ORACLE_FIELD(spi_ssv_len) ORACLE_FIELD(spi_window) ORACLE_ARRAY(spi_handles)
ORACLE_END
ORACLE_BEGIN(state_protect4_r)
  ORACLE_FIELD(spr_how)
  if (from.spr_how == xdr::state_protect_how4::SP4_MACH_CRED) {
    ORACLE_ARM(state_protect4_r, spr_mach_ops)
  } else if (from.spr_how == xdr::state_protect_how4::SP4_SSV) {
    ORACLE_ARM(state_protect4_r, spr_ssv_info)
  }
ORACLE_END
ORACLE_BEGIN(EXCHANGE_ID4resok)
  ORACLE_FIELD(eir_clientid) ORACLE_FIELD(eir_sequenceid) ORACLE_FIELD(eir_flags)
  ORACLE_FIELD(eir_state_protect) ORACLE_FIELD(eir_server_owner)
  ORACLE_OPAQUE(eir_server_scope, from.eir_server_scope) ORACLE_ARRAY(eir_server_impl_id)
ORACLE_END
ORACLE_RESULT4(EXCHANGE_ID4res)
ORACLE_1(DESTROY_CLIENTID4args, dca_clientid)
ORACLE_STATUS(DESTROY_CLIENTID4res)
ORACLE_1(RECLAIM_COMPLETE4args, rca_one_fs)
ORACLE_STATUS(RECLAIM_COMPLETE4res)

// Sessions
ORACLE_BEGIN(channel_attrs4)
  ORACLE_FIELD(ca_headerpadsize) ORACLE_FIELD(ca_maxrequestsize) ORACLE_FIELD(ca_maxresponsesize)
  ORACLE_FIELD(ca_maxresponsesize_cached) ORACLE_FIELD(ca_maxoperations)
  ORACLE_FIELD(ca_maxrequests) ORACLE_ARRAY(ca_rdma_ird)
ORACLE_END
inline void convert(Arena& arena, const OurAuthSys& from, ::oracle_authsys& to) {
  ORACLE_FIELD(stamp) ORACLE_FIELD(machinename) ORACLE_FIELD(uid) ORACLE_FIELD(gid)
  ORACLE_ARRAY(gids)
ORACLE_END
ORACLE_3(gss_cb_handles4, gcbp_service, gcbp_handle_from_server, gcbp_handle_from_client)
ORACLE_BEGIN(callback_sec_parms4)
  ORACLE_FIELD(cb_secflavor)
  if (static_cast<unsigned>(from.cb_secflavor) == 1) {
    ORACLE_ARM(callback_sec_parms4, cbsp_sys_cred)
  } else if (static_cast<unsigned>(from.cb_secflavor) == 6) {
    ORACLE_ARM(callback_sec_parms4, cbsp_gss_handles)
  }
ORACLE_END
ORACLE_BEGIN(BACKCHANNEL_CTL4args)
  ORACLE_FIELD(bca_cb_program) ORACLE_ARRAY(bca_sec_parms)
ORACLE_END
ORACLE_STATUS(BACKCHANNEL_CTL4res)
ORACLE_3(BIND_CONN_TO_SESSION4args, bctsa_sessid, bctsa_dir, bctsa_use_conn_in_rdma_mode)
ORACLE_3(BIND_CONN_TO_SESSION4resok, bctsr_sessid, bctsr_dir, bctsr_use_conn_in_rdma_mode)
ORACLE_RESULT4(BIND_CONN_TO_SESSION4res)
ORACLE_BEGIN(CREATE_SESSION4args)
  ORACLE_FIELD(csa_clientid) ORACLE_FIELD(csa_sequence) ORACLE_FIELD(csa_flags)
  ORACLE_FIELD(csa_fore_chan_attrs) ORACLE_FIELD(csa_back_chan_attrs) ORACLE_FIELD(csa_cb_program)
  ORACLE_ARRAY(csa_sec_parms)
ORACLE_END
ORACLE_5(CREATE_SESSION4resok, csr_sessionid, csr_sequence, csr_flags, csr_fore_chan_attrs,
         csr_back_chan_attrs)
ORACLE_RESULT4(CREATE_SESSION4res)
ORACLE_1(DESTROY_SESSION4args, dsa_sessionid)
ORACLE_STATUS(DESTROY_SESSION4res)
ORACLE_5(SEQUENCE4args, sa_sessionid, sa_sequenceid, sa_slotid, sa_highest_slotid, sa_cachethis)
ORACLE_6(SEQUENCE4resok, sr_sessionid, sr_sequenceid, sr_slotid, sr_highest_slotid,
         sr_target_highest_slotid, sr_status_flags)
ORACLE_RESULT4(SEQUENCE4res)
ORACLE_BEGIN(SET_SSV4args)
  ORACLE_OPAQUE(ssa_ssv, from.ssa_ssv) ORACLE_OPAQUE(ssa_digest, from.ssa_digest)
ORACLE_END
ORACLE_BEGIN(SET_SSV4resok) ORACLE_OPAQUE(ssr_digest, from.ssr_digest) ORACLE_END
ORACLE_RESULT4(SET_SSV4res)

// Layouts
ORACLE_BEGIN(layout_content4)
  ORACLE_FIELD(loc_type) ORACLE_OPAQUE(loc_body, from.loc_body)
ORACLE_END
ORACLE_4(layout4, lo_offset, lo_length, lo_iomode, lo_content)
ORACLE_BEGIN(layoutupdate4) ORACLE_FIELD(lou_type) ORACLE_OPAQUE(lou_body, from.lou_body)
         ORACLE_END
ORACLE_BEGIN(device_addr4)
  ORACLE_FIELD(da_layout_type) ORACLE_OPAQUE(da_addr_body, from.da_addr_body)
ORACLE_END
ORACLE_4(GETDEVICEINFO4args, gdia_device_id, gdia_layout_type, gdia_maxcount, gdia_notify_types)
ORACLE_2(GETDEVICEINFO4resok, gdir_device_addr, gdir_notification)
ORACLE_BEGIN(GETDEVICEINFO4res)
  ORACLE_FIELD(status)
  if (from.status == xdr::nfsstat4::NFS4_OK) {
    ORACLE_ARM(GETDEVICEINFO4res, resok4)
  } else if (from.status == xdr::nfsstat4::NFS4ERR_TOOSMALL) {
    ORACLE_ARM(GETDEVICEINFO4res, gdir_mincount)
  }
ORACLE_END
ORACLE_4(GETDEVICELIST4args, gdla_layout_type, gdla_maxdevices, gdla_cookie, gdla_cookieverf)
ORACLE_BEGIN(GETDEVICELIST4resok)
  ORACLE_FIELD(gdlr_cookie) ORACLE_FIELD(gdlr_cookieverf) ORACLE_ARRAY(gdlr_deviceid_list)
  ORACLE_FIELD(gdlr_eof)
ORACLE_END
ORACLE_RESULT4(GETDEVICELIST4res)
ORACLE_BEGIN(newtime4)
  ORACLE_FIELD(nt_timechanged)
  if (from.nt_timechanged) {
    ORACLE_ARM(newtime4, nt_time)
  }
ORACLE_END
ORACLE_BEGIN(newoffset4)
  ORACLE_FIELD(no_newoffset)
  if (from.no_newoffset) {
    ORACLE_ARM(newoffset4, no_offset)
  }
ORACLE_END
ORACLE_7(LAYOUTCOMMIT4args, loca_offset, loca_length, loca_reclaim, loca_stateid,
         loca_last_write_offset, loca_time_modify, loca_layoutupdate)
ORACLE_BEGIN(newsize4)
  ORACLE_FIELD(ns_sizechanged)
  if (from.ns_sizechanged) {
    ORACLE_ARM(newsize4, ns_size)
  }
ORACLE_END
ORACLE_1(LAYOUTCOMMIT4resok, locr_newsize)
ORACLE_RESULT4(LAYOUTCOMMIT4res)
ORACLE_8(LAYOUTGET4args, loga_signal_layout_avail, loga_layout_type, loga_iomode, loga_offset,
         loga_length, loga_minlength, loga_stateid, loga_maxcount)
ORACLE_BEGIN(LAYOUTGET4resok)
  ORACLE_FIELD(logr_return_on_close) ORACLE_FIELD(logr_stateid) ORACLE_ARRAY(logr_layout)
ORACLE_END
ORACLE_BEGIN(LAYOUTGET4res)
  ORACLE_FIELD(status)
  if (from.status == xdr::nfsstat4::NFS4_OK) {
    ORACLE_ARM(LAYOUTGET4res, resok4)
  } else if (from.status == xdr::nfsstat4::NFS4ERR_LAYOUTTRYLATER) {
    ORACLE_ARM(LAYOUTGET4res, logr_will_signal_layout_avail)
  }
ORACLE_END
ORACLE_BEGIN(layoutreturn_file4)
  ORACLE_FIELD(lrf_offset) ORACLE_FIELD(lrf_length) ORACLE_FIELD(lrf_stateid)
  ORACLE_OPAQUE(lrf_body, from.lrf_body)
ORACLE_END
ORACLE_BEGIN(layoutreturn4)
  ORACLE_FIELD(lr_returntype)
  if (from.lr_returntype == xdr::layoutreturn_type4::LAYOUTRETURN4_FILE) {
    ORACLE_ARM(layoutreturn4, lr_layout)
  }
ORACLE_END
ORACLE_4(LAYOUTRETURN4args, lora_reclaim, lora_layout_type, lora_iomode, lora_layoutreturn)
ORACLE_BEGIN(layoutreturn_stateid)
  ORACLE_FIELD(lrs_present)
  if (from.lrs_present) {
    ORACLE_ARM(layoutreturn_stateid, lrs_stateid)
  }
ORACLE_END
ORACLE_RESULT4(LAYOUTRETURN4res)
ORACLE_3(device_error4, de_deviceid, de_status, de_opnum)
ORACLE_BEGIN(LAYOUTERROR4args)
  ORACLE_FIELD(lea_offset) ORACLE_FIELD(lea_length) ORACLE_FIELD(lea_stateid)
  ORACLE_ARRAY(lea_errors)
ORACLE_END
ORACLE_STATUS(LAYOUTERROR4res)
ORACLE_2(io_info4, ii_count, ii_bytes)
ORACLE_7(LAYOUTSTATS4args, lsa_offset, lsa_length, lsa_stateid, lsa_read, lsa_write, lsa_deviceid,
         lsa_layoutupdate)
ORACLE_STATUS(LAYOUTSTATS4res)

// Copies
ORACLE_BEGIN(netloc4)
  ORACLE_FIELD(nl_type)
  if (from.nl_type == xdr::netloc_type4::NL4_NAME) {
    ORACLE_ARM(netloc4, nl_name)
  } else if (from.nl_type == xdr::netloc_type4::NL4_URL) {
    ORACLE_ARM(netloc4, nl_url)
  } else {
    ORACLE_ARM(netloc4, nl_addr)
  }
ORACLE_END
ORACLE_BEGIN(write_response4)
  ORACLE_ARRAY(wr_callback_id) ORACLE_FIELD(wr_count) ORACLE_FIELD(wr_committed)
  ORACLE_FIELD(wr_writeverf)
ORACLE_END
ORACLE_5(CLONE4args, cl_src_stateid, cl_dst_stateid, cl_src_offset, cl_dst_offset, cl_count)
ORACLE_STATUS(CLONE4res)
ORACLE_BEGIN(COPY4args)
  ORACLE_FIELD(ca_src_stateid) ORACLE_FIELD(ca_dst_stateid) ORACLE_FIELD(ca_src_offset)
  ORACLE_FIELD(ca_dst_offset) ORACLE_FIELD(ca_count) ORACLE_FIELD(ca_consecutive)
  ORACLE_FIELD(ca_synchronous) ORACLE_ARRAY(ca_source_server)
ORACLE_END
ORACLE_2(copy_requirements4, cr_consecutive, cr_synchronous)
ORACLE_2(COPY4resok, cr_response, cr_requirements)
ORACLE_BEGIN(COPY4res)
  ORACLE_FIELD(status)
  if (from.status == xdr::nfsstat4::NFS4_OK) {
    ORACLE_ARM(COPY4res, resok4)
  } else if (from.status == xdr::nfsstat4::NFS4ERR_OFFLOAD_NO_REQS) {
    ORACLE_ARM(COPY4res, cr_requirements)
  }
ORACLE_END
ORACLE_2(COPY_NOTIFY4args, cna_src_stateid, cna_destination_server)
ORACLE_BEGIN(COPY_NOTIFY4resok)
  ORACLE_FIELD(cnr_lease_time) ORACLE_FIELD(cnr_stateid) ORACLE_ARRAY(cnr_source_server)
ORACLE_END
ORACLE_RESULT4(COPY_NOTIFY4res)
ORACLE_1(OFFLOAD_CANCEL4args, oca_stateid)
ORACLE_STATUS(OFFLOAD_CANCEL4res)
ORACLE_1(OFFLOAD_STATUS4args, osa_stateid)
ORACLE_BEGIN(OFFLOAD_STATUS4resok) ORACLE_FIELD(osr_count) ORACLE_ARRAY(osr_complete) ORACLE_END
ORACLE_RESULT4(OFFLOAD_STATUS4res)

// Space of a file
ORACLE_3(ALLOCATE4args, aa_stateid, aa_offset, aa_length)
ORACLE_STATUS(ALLOCATE4res)
ORACLE_3(DEALLOCATE4args, da_stateid, da_offset, da_length)
ORACLE_STATUS(DEALLOCATE4res)
ORACLE_4(IO_ADVISE4args, iaa_stateid, iaa_offset, iaa_count, iaa_hints)
ORACLE_1(IO_ADVISE4resok, ior_hints)
ORACLE_RESULT4(IO_ADVISE4res)
ORACLE_3(READ_PLUS4args, rpa_stateid, rpa_offset, rpa_count)
ORACLE_BEGIN(data4) ORACLE_FIELD(d_offset) ORACLE_OPAQUE(d_data, from.d_data) ORACLE_END
ORACLE_2(data_info4, di_offset, di_length)
ORACLE_BEGIN(read_plus_content)
  ORACLE_FIELD(rpc_content)
  if (from.rpc_content == xdr::data_content4::NFS4_CONTENT_DATA) {
    ORACLE_ARM(read_plus_content, rpc_data)
  } else if (from.rpc_content == xdr::data_content4::NFS4_CONTENT_HOLE) {
    ORACLE_ARM(read_plus_content, rpc_hole)
  }
ORACLE_END
ORACLE_BEGIN(read_plus_res4) ORACLE_FIELD(rpr_eof) ORACLE_ARRAY(rpr_contents) ORACLE_END
ORACLE_RESULT4(READ_PLUS4res)
ORACLE_3(SEEK4args, sa_stateid, sa_offset, sa_what)
ORACLE_2(seek_res4, sr_eof, sr_offset)
ORACLE_RESULT4(SEEK4res)
ORACLE_BEGIN(app_data_block4)
  ORACLE_FIELD(adb_offset) ORACLE_FIELD(adb_block_size) ORACLE_FIELD(adb_block_count)
  ORACLE_FIELD(adb_reloff_blocknum) ORACLE_FIELD(adb_block_num) ORACLE_FIELD(adb_reloff_pattern)
  ORACLE_OPAQUE(adb_pattern, from.adb_pattern)
ORACLE_END
ORACLE_3(WRITE_SAME4args, wsa_stateid, wsa_stable, wsa_adb)
ORACLE_RESULT4(WRITE_SAME4res)

// Extended attributes
ORACLE_1(GETXATTR4args, gxa_name)
ORACLE_BEGIN(GETXATTR4resok) ORACLE_OPAQUE(gxr_value, from.gxr_value) ORACLE_END
ORACLE_RESULT4(GETXATTR4res)
ORACLE_BEGIN(SETXATTR4args)
  ORACLE_FIELD(sxa_option) ORACLE_FIELD(sxa_key) ORACLE_OPAQUE(sxa_value, from.sxa_value)
ORACLE_END
ORACLE_RESULT4(SETXATTR4res)
ORACLE_2(LISTXATTRS4args, lxa_cookie, lxa_maxcount)
ORACLE_1(xattrkey4, name)
ORACLE_BEGIN(LISTXATTRS4resok)
  ORACLE_FIELD(lxr_cookie) ORACLE_ARRAY(lxr_names) ORACLE_FIELD(lxr_eof)
ORACLE_END
ORACLE_RESULT4(LISTXATTRS4res)
ORACLE_1(REMOVEXATTR4args, rxa_name)
ORACLE_RESULT4(REMOVEXATTR4res)

// Callbacks
ORACLE_4(CB_COMPOUND4args, tag, minorversion, callback_ident, argarray_len)
ORACLE_3(CB_COMPOUND4res, status, tag, resarray_len)
ORACLE_2(CB_GETATTR4args, fh, attr_request)
ORACLE_1(CB_GETATTR4resok, obj_attributes)
ORACLE_RESULT4(CB_GETATTR4res)
ORACLE_3(CB_RECALL4args, stateid, truncate, fh)
ORACLE_STATUS(CB_RECALL4res)
ORACLE_4(layoutrecall_file4, lor_fh, lor_offset, lor_length, lor_stateid)
ORACLE_BEGIN(layoutrecall4)
  ORACLE_FIELD(lor_recalltype)
  if (from.lor_recalltype == xdr::layoutrecall_type4::LAYOUTRECALL4_FILE) {
    ORACLE_ARM(layoutrecall4, lor_layout)
  } else if (from.lor_recalltype == xdr::layoutrecall_type4::LAYOUTRECALL4_FSID) {
    ORACLE_ARM(layoutrecall4, lor_fsid)
  }
ORACLE_END
ORACLE_4(CB_LAYOUTRECALL4args, clora_type, clora_iomode, clora_changed, clora_recall)
ORACLE_STATUS(CB_LAYOUTRECALL4res)
ORACLE_BEGIN(notify4)
  ORACLE_FIELD(notify_mask) ORACLE_OPAQUE(notify_vals, from.notify_vals)
ORACLE_END
ORACLE_BEGIN(CB_NOTIFY4args)
  ORACLE_FIELD(cna_stateid) ORACLE_FIELD(cna_fh) ORACLE_ARRAY(cna_changes)
ORACLE_END
ORACLE_STATUS(CB_NOTIFY4res)
ORACLE_2(CB_PUSH_DELEG4args, cpda_fh, cpda_delegation)
ORACLE_STATUS(CB_PUSH_DELEG4res)
ORACLE_2(CB_RECALL_ANY4args, craa_objects_to_keep, craa_type_mask)
ORACLE_STATUS(CB_RECALL_ANY4res)
ORACLE_STATUS(CB_RECALLABLE_OBJ_AVAIL4res)
ORACLE_1(CB_RECALL_SLOT4args, rsa_target_highest_slotid)
ORACLE_STATUS(CB_RECALL_SLOT4res)
ORACLE_2(referring_call4, rc_sequenceid, rc_slotid)
ORACLE_BEGIN(referring_call_list4)
  ORACLE_FIELD(rcl_sessionid) ORACLE_ARRAY(rcl_referring_calls)
ORACLE_END
ORACLE_BEGIN(CB_SEQUENCE4args)
  ORACLE_FIELD(csa_sessionid) ORACLE_FIELD(csa_sequenceid) ORACLE_FIELD(csa_slotid)
  ORACLE_FIELD(csa_highest_slotid) ORACLE_FIELD(csa_cachethis)
  ORACLE_ARRAY(csa_referring_call_lists)
ORACLE_END
ORACLE_5(CB_SEQUENCE4resok, csr_sessionid, csr_sequenceid, csr_slotid, csr_highest_slotid,
         csr_target_highest_slotid)
ORACLE_RESULT4(CB_SEQUENCE4res)
ORACLE_2(CB_WANTS_CANCELLED4args, cwca_contended_wants_cancelled, cwca_resourced_wants_cancelled)
ORACLE_STATUS(CB_WANTS_CANCELLED4res)
ORACLE_2(CB_NOTIFY_LOCK4args, cnla_fh, cnla_lock_owner)
ORACLE_STATUS(CB_NOTIFY_LOCK4res)
ORACLE_BEGIN(CB_NOTIFY_DEVICEID4args) ORACLE_ARRAY(cnda_changes) ORACLE_END
ORACLE_STATUS(CB_NOTIFY_DEVICEID4res)
ORACLE_BEGIN(offload_info4)
  ORACLE_FIELD(coa_status)
  if (from.coa_status == xdr::nfsstat4::NFS4_OK) {
    ORACLE_ARM(offload_info4, coa_resok4)
  } else {
    ORACLE_ARM(offload_info4, coa_bytes_copied)
  }
ORACLE_END
ORACLE_3(CB_OFFLOAD4args, coa_fh, coa_stateid, coa_offload_info)
ORACLE_STATUS(CB_OFFLOAD4res)
  // clang-format on

}  // namespace nfsrdma::oracle
