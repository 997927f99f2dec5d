// SPDX-License-Identifier: Apache-2.0
// NFS version 4: what a server asks of a client, with CB_COMPOUND built as COMPOUND is. What
// CB_NOTIFY and CB_NOTIFY_DEVICEID tell stays encoded: no client of ours asks for directory
// delegations or layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/nfs4_copy.h"
#include "xdr/nfs4_delegation.h"
#include "xdr/nfs4_operations.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

inline constexpr std::uint32_t kNfs4CallbackVersion = 1;
inline constexpr std::uint32_t CB_NULL = 0;
inline constexpr std::uint32_t CB_COMPOUND = 1;

// CB_RECALL_ANY4args.craa_type_mask
inline constexpr std::uint32_t RCA4_TYPE_MASK_RDATA_DLG = 0;
inline constexpr std::uint32_t RCA4_TYPE_MASK_WDATA_DLG = 1;
inline constexpr std::uint32_t RCA4_TYPE_MASK_DIR_DLG = 2;
inline constexpr std::uint32_t RCA4_TYPE_MASK_FILE_LAYOUT = 3;
inline constexpr std::uint32_t RCA4_TYPE_MASK_BLK_LAYOUT = 4;

struct CB_COMPOUND4args {
  std::string_view tag{};
  std::uint32_t minorversion = 0;
  std::uint32_t callback_ident = 0;  // of 4.0's SETCLIENTID
  std::uint32_t argarray_len = 0;    // operations that follow: nfs_cb_opnum4 and arguments each
};
template <typename A, Is<CB_COMPOUND4args> V>
void visit(A& ar, V& v) {
  ar.string("tag", v.tag, kNfs4MaxTag);
  ar("minorversion", v.minorversion);
  ar("callback_ident", v.callback_ident);
  ar("argarray_len", v.argarray_len);
}

struct CB_COMPOUND4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  std::string_view tag{};
  std::uint32_t resarray_len = 0;  // results that follow: nfs_cb_opnum4 and result each
};
template <typename A, Is<CB_COMPOUND4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  ar.string("tag", v.tag, kNfs4MaxTag);
  ar("resarray_len", v.resarray_len);
}

struct CB_GETATTR4args {
  nfs_fh4 fh{};
  bitmap4 attr_request{};
};
template <typename A, Is<CB_GETATTR4args> V>
void visit(A& ar, V& v) {
  ar("fh", v.fh);
  ar("attr_request", v.attr_request);
}

struct CB_GETATTR4resok {
  fattr4 obj_attributes{};
};
template <typename A, Is<CB_GETATTR4resok> V>
void visit(A& ar, V& v) {
  ar("obj_attributes", v.obj_attributes);
}

using CB_GETATTR4res = Nfs4Result<CB_GETATTR4resok>;

struct CB_RECALL4args {
  stateid4 stateid{};
  bool truncate = false;
  nfs_fh4 fh{};
};
template <typename A, Is<CB_RECALL4args> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("truncate", v.truncate);
  ar("fh", v.fh);
}

using CB_RECALL4res = Nfs4Result<Void>;

struct layoutrecall_file4 {
  nfs_fh4 lor_fh{};
  std::uint64_t lor_offset = 0;
  std::uint64_t lor_length = 0;
  stateid4 lor_stateid{};
};
template <typename A, Is<layoutrecall_file4> V>
void visit(A& ar, V& v) {
  ar("lor_fh", v.lor_fh);
  ar("lor_offset", v.lor_offset);
  ar("lor_length", v.lor_length);
  ar("lor_stateid", v.lor_stateid);
}

struct layoutrecall4 {
  layoutrecall_type4 lor_recalltype = layoutrecall_type4::LAYOUTRECALL4_FILE;
  layoutrecall_file4 lor_layout{};  // LAYOUTRECALL4_FILE
  fsid4 lor_fsid{};                 // LAYOUTRECALL4_FSID
};
template <typename A, Is<layoutrecall4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("lor_recalltype", v.lor_recalltype);
  if (v.lor_recalltype == layoutrecall_type4::LAYOUTRECALL4_FILE) {
    ar("lor_layout", v.lor_layout);
  } else if (v.lor_recalltype == layoutrecall_type4::LAYOUTRECALL4_FSID) {
    ar("lor_fsid", v.lor_fsid);
  }
}

struct CB_LAYOUTRECALL4args {
  layouttype4 clora_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  layoutiomode4 clora_iomode = layoutiomode4::LAYOUTIOMODE4_READ;
  bool clora_changed = false;
  layoutrecall4 clora_recall{};
};
template <typename A, Is<CB_LAYOUTRECALL4args> V>
void visit(A& ar, V& v) {
  ar("clora_type", v.clora_type);
  ar("clora_iomode", v.clora_iomode);
  ar("clora_changed", v.clora_changed);
  ar("clora_recall", v.clora_recall);
}

using CB_LAYOUTRECALL4res = Nfs4Result<Void>;

struct notify4 {
  bitmap4 notify_mask{};                     // notify_type4 or notify_deviceid_type4 numbers
  std::span<const std::byte> notify_vals{};  // encoded, in the order of the mask
};
template <typename A, Is<notify4> V>
void visit(A& ar, V& v) {
  ar("notify_mask", v.notify_mask);
  ar.opaque("notify_vals", v.notify_vals, kNfs4MaxNotifyVals);
}

struct CB_NOTIFY4args {
  stateid4 cna_stateid{};
  nfs_fh4 cna_fh{};
  EncodedArray<notify4> cna_changes{};
};
template <typename A, Is<CB_NOTIFY4args> V>
void visit(A& ar, V& v) {
  ar("cna_stateid", v.cna_stateid);
  ar("cna_fh", v.cna_fh);
  ar.counted("cna_changes", v.cna_changes, kNfs4MaxNotifications);
}

using CB_NOTIFY4res = Nfs4Result<Void>;

struct CB_PUSH_DELEG4args {
  nfs_fh4 cpda_fh{};
  open_delegation4 cpda_delegation{};
};
template <typename A, Is<CB_PUSH_DELEG4args> V>
void visit(A& ar, V& v) {
  ar("cpda_fh", v.cpda_fh);
  ar("cpda_delegation", v.cpda_delegation);
}

using CB_PUSH_DELEG4res = Nfs4Result<Void>;

struct CB_RECALL_ANY4args {
  std::uint32_t craa_objects_to_keep = 0;
  bitmap4 craa_type_mask{};
};
template <typename A, Is<CB_RECALL_ANY4args> V>
void visit(A& ar, V& v) {
  ar("craa_objects_to_keep", v.craa_objects_to_keep);
  ar("craa_type_mask", v.craa_type_mask);
}

using CB_RECALL_ANY4res = Nfs4Result<Void>;

using CB_RECALLABLE_OBJ_AVAIL4args = CB_RECALL_ANY4args;

using CB_RECALLABLE_OBJ_AVAIL4res = Nfs4Result<Void>;

struct CB_RECALL_SLOT4args {
  std::uint32_t rsa_target_highest_slotid = 0;
};
template <typename A, Is<CB_RECALL_SLOT4args> V>
void visit(A& ar, V& v) {
  ar("rsa_target_highest_slotid", v.rsa_target_highest_slotid);
}

using CB_RECALL_SLOT4res = Nfs4Result<Void>;

struct referring_call4 {
  std::uint32_t rc_sequenceid = 0;
  std::uint32_t rc_slotid = 0;
};
template <typename A, Is<referring_call4> V>
void visit(A& ar, V& v) {
  ar("rc_sequenceid", v.rc_sequenceid);
  ar("rc_slotid", v.rc_slotid);
}

struct referring_call_list4 {
  sessionid4 rcl_sessionid{};
  EncodedArray<referring_call4> rcl_referring_calls{};
};
template <typename A, Is<referring_call_list4> V>
void visit(A& ar, V& v) {
  ar("rcl_sessionid", v.rcl_sessionid);
  ar.counted("rcl_referring_calls", v.rcl_referring_calls, kNfs4MaxReferringCalls);
}

struct CB_SEQUENCE4args {
  sessionid4 csa_sessionid{};
  std::uint32_t csa_sequenceid = 0;
  std::uint32_t csa_slotid = 0;
  std::uint32_t csa_highest_slotid = 0;
  bool csa_cachethis = false;
  EncodedArray<referring_call_list4> csa_referring_call_lists{};
};
template <typename A, Is<CB_SEQUENCE4args> V>
void visit(A& ar, V& v) {
  ar("csa_sessionid", v.csa_sessionid);
  ar("csa_sequenceid", v.csa_sequenceid);
  ar("csa_slotid", v.csa_slotid);
  ar("csa_highest_slotid", v.csa_highest_slotid);
  ar("csa_cachethis", v.csa_cachethis);
  ar.counted("csa_referring_call_lists", v.csa_referring_call_lists, kNfs4MaxReferringLists);
}

struct CB_SEQUENCE4resok {
  sessionid4 csr_sessionid{};
  std::uint32_t csr_sequenceid = 0;
  std::uint32_t csr_slotid = 0;
  std::uint32_t csr_highest_slotid = 0;
  std::uint32_t csr_target_highest_slotid = 0;
};
template <typename A, Is<CB_SEQUENCE4resok> V>
void visit(A& ar, V& v) {
  ar("csr_sessionid", v.csr_sessionid);
  ar("csr_sequenceid", v.csr_sequenceid);
  ar("csr_slotid", v.csr_slotid);
  ar("csr_highest_slotid", v.csr_highest_slotid);
  ar("csr_target_highest_slotid", v.csr_target_highest_slotid);
}

using CB_SEQUENCE4res = Nfs4Result<CB_SEQUENCE4resok>;

struct CB_WANTS_CANCELLED4args {
  bool cwca_contended_wants_cancelled = false;
  bool cwca_resourced_wants_cancelled = false;
};
template <typename A, Is<CB_WANTS_CANCELLED4args> V>
void visit(A& ar, V& v) {
  ar("cwca_contended_wants_cancelled", v.cwca_contended_wants_cancelled);
  ar("cwca_resourced_wants_cancelled", v.cwca_resourced_wants_cancelled);
}

using CB_WANTS_CANCELLED4res = Nfs4Result<Void>;

struct CB_NOTIFY_LOCK4args {
  nfs_fh4 cnla_fh{};
  state_owner4 cnla_lock_owner{};
};
template <typename A, Is<CB_NOTIFY_LOCK4args> V>
void visit(A& ar, V& v) {
  ar("cnla_fh", v.cnla_fh);
  ar("cnla_lock_owner", v.cnla_lock_owner);
}

using CB_NOTIFY_LOCK4res = Nfs4Result<Void>;

struct CB_NOTIFY_DEVICEID4args {
  EncodedArray<notify4> cnda_changes{};
};
template <typename A, Is<CB_NOTIFY_DEVICEID4args> V>
void visit(A& ar, V& v) {
  ar.counted("cnda_changes", v.cnda_changes, kNfs4MaxNotifications);
}

using CB_NOTIFY_DEVICEID4res = Nfs4Result<Void>;

struct offload_info4 {
  nfsstat4 coa_status = nfsstat4::NFS4_OK;
  write_response4 coa_resok4{};  // NFS4_OK
  std::uint64_t coa_bytes_copied = 0;
};
template <typename A, Is<offload_info4> V>
void visit(A& ar, V& v) {
  ar("coa_status", v.coa_status);
  if (v.coa_status == nfsstat4::NFS4_OK) {
    ar("coa_resok4", v.coa_resok4);
  } else {
    ar("coa_bytes_copied", v.coa_bytes_copied);
  }
}

struct CB_OFFLOAD4args {
  nfs_fh4 coa_fh{};
  stateid4 coa_stateid{};
  offload_info4 coa_offload_info{};
};
template <typename A, Is<CB_OFFLOAD4args> V>
void visit(A& ar, V& v) {
  ar("coa_fh", v.coa_fh);
  ar("coa_stateid", v.coa_stateid);
  ar("coa_offload_info", v.coa_offload_info);
}

using CB_OFFLOAD4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
