// SPDX-License-Identifier: Apache-2.0
// NFS version 4.1 and 4.2: pNFS. The bodies of layouts and devices stay opaque: what is needed to
// answer a client that asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "xdr/nfs4_operations.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct layout_content4 {
  layouttype4 loc_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  std::span<const std::byte> loc_body{};
};
template <typename A, Is<layout_content4> V>
void visit(A& ar, V& v) {
  ar("loc_type", v.loc_type);
  ar.opaque("loc_body", v.loc_body, kNfs4MaxLayoutBody);
}

struct layout4 {
  std::uint64_t lo_offset = 0;
  std::uint64_t lo_length = 0;
  layoutiomode4 lo_iomode = layoutiomode4::LAYOUTIOMODE4_READ;
  layout_content4 lo_content{};
};
template <typename A, Is<layout4> V>
void visit(A& ar, V& v) {
  ar("lo_offset", v.lo_offset);
  ar("lo_length", v.lo_length);
  ar("lo_iomode", v.lo_iomode);
  ar("lo_content", v.lo_content);
}

struct layoutupdate4 {
  layouttype4 lou_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  std::span<const std::byte> lou_body{};
};
template <typename A, Is<layoutupdate4> V>
void visit(A& ar, V& v) {
  ar("lou_type", v.lou_type);
  ar.opaque("lou_body", v.lou_body, kNfs4MaxLayoutBody);
}

struct device_addr4 {
  layouttype4 da_layout_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  std::span<const std::byte> da_addr_body{};
};
template <typename A, Is<device_addr4> V>
void visit(A& ar, V& v) {
  ar("da_layout_type", v.da_layout_type);
  ar.opaque("da_addr_body", v.da_addr_body, kNfs4MaxLayoutBody);
}

struct GETDEVICEINFO4args {
  deviceid4 gdia_device_id{};
  layouttype4 gdia_layout_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  std::uint32_t gdia_maxcount = 0;
  bitmap4 gdia_notify_types{};
};
template <typename A, Is<GETDEVICEINFO4args> V>
void visit(A& ar, V& v) {
  ar("gdia_device_id", v.gdia_device_id);
  ar("gdia_layout_type", v.gdia_layout_type);
  ar("gdia_maxcount", v.gdia_maxcount);
  ar("gdia_notify_types", v.gdia_notify_types);
}

struct GETDEVICEINFO4resok {
  device_addr4 gdir_device_addr{};
  bitmap4 gdir_notification{};
};
template <typename A, Is<GETDEVICEINFO4resok> V>
void visit(A& ar, V& v) {
  ar("gdir_device_addr", v.gdir_device_addr);
  ar("gdir_notification", v.gdir_notification);
}

struct GETDEVICEINFO4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  GETDEVICEINFO4resok resok4{};     // NFS4_OK
  std::uint32_t gdir_mincount = 0;  // NFS4ERR_TOOSMALL
};
template <typename A, Is<GETDEVICEINFO4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4_OK) {
    ar("resok4", v.resok4);
  } else if (v.status == nfsstat4::NFS4ERR_TOOSMALL) {
    ar("gdir_mincount", v.gdir_mincount);
  }
}

struct GETDEVICELIST4args {
  layouttype4 gdla_layout_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  std::uint32_t gdla_maxdevices = 0;
  std::uint64_t gdla_cookie = 0;
  verifier4 gdla_cookieverf{};
};
template <typename A, Is<GETDEVICELIST4args> V>
void visit(A& ar, V& v) {
  ar("gdla_layout_type", v.gdla_layout_type);
  ar("gdla_maxdevices", v.gdla_maxdevices);
  ar("gdla_cookie", v.gdla_cookie);
  ar("gdla_cookieverf", v.gdla_cookieverf);
}

struct GETDEVICELIST4resok {
  std::uint64_t gdlr_cookie = 0;
  verifier4 gdlr_cookieverf{};
  EncodedArray<deviceid4> gdlr_deviceid_list{};
  bool gdlr_eof = false;
};
template <typename A, Is<GETDEVICELIST4resok> V>
void visit(A& ar, V& v) {
  ar("gdlr_cookie", v.gdlr_cookie);
  ar("gdlr_cookieverf", v.gdlr_cookieverf);
  ar.counted("gdlr_deviceid_list", v.gdlr_deviceid_list, kNfs4MaxDevices);
  ar("gdlr_eof", v.gdlr_eof);
}

using GETDEVICELIST4res = Nfs4Result<GETDEVICELIST4resok>;

struct newtime4 {
  bool nt_timechanged = false;
  nfstime4 nt_time{};
};
template <typename A, Is<newtime4> V>
void visit(A& ar, V& v) {
  ar("nt_timechanged", v.nt_timechanged);
  if (v.nt_timechanged) {
    ar("nt_time", v.nt_time);
  }
}

struct newoffset4 {
  bool no_newoffset = false;
  std::uint64_t no_offset = 0;
};
template <typename A, Is<newoffset4> V>
void visit(A& ar, V& v) {
  ar("no_newoffset", v.no_newoffset);
  if (v.no_newoffset) {
    ar("no_offset", v.no_offset);
  }
}

struct LAYOUTCOMMIT4args {
  std::uint64_t loca_offset = 0;
  std::uint64_t loca_length = 0;
  bool loca_reclaim = false;
  stateid4 loca_stateid{};
  newoffset4 loca_last_write_offset{};
  newtime4 loca_time_modify{};
  layoutupdate4 loca_layoutupdate{};
};
template <typename A, Is<LAYOUTCOMMIT4args> V>
void visit(A& ar, V& v) {
  ar("loca_offset", v.loca_offset);
  ar("loca_length", v.loca_length);
  ar("loca_reclaim", v.loca_reclaim);
  ar("loca_stateid", v.loca_stateid);
  ar("loca_last_write_offset", v.loca_last_write_offset);
  ar("loca_time_modify", v.loca_time_modify);
  ar("loca_layoutupdate", v.loca_layoutupdate);
}

struct newsize4 {
  bool ns_sizechanged = false;
  std::uint64_t ns_size = 0;
};
template <typename A, Is<newsize4> V>
void visit(A& ar, V& v) {
  ar("ns_sizechanged", v.ns_sizechanged);
  if (v.ns_sizechanged) {
    ar("ns_size", v.ns_size);
  }
}

struct LAYOUTCOMMIT4resok {
  newsize4 locr_newsize{};
};
template <typename A, Is<LAYOUTCOMMIT4resok> V>
void visit(A& ar, V& v) {
  ar("locr_newsize", v.locr_newsize);
}

using LAYOUTCOMMIT4res = Nfs4Result<LAYOUTCOMMIT4resok>;

struct LAYOUTGET4args {
  bool loga_signal_layout_avail = false;
  layouttype4 loga_layout_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  layoutiomode4 loga_iomode = layoutiomode4::LAYOUTIOMODE4_READ;
  std::uint64_t loga_offset = 0;
  std::uint64_t loga_length = 0;
  std::uint64_t loga_minlength = 0;
  stateid4 loga_stateid{};
  std::uint32_t loga_maxcount = 0;
};
template <typename A, Is<LAYOUTGET4args> V>
void visit(A& ar, V& v) {
  ar("loga_signal_layout_avail", v.loga_signal_layout_avail);
  ar("loga_layout_type", v.loga_layout_type);
  ar("loga_iomode", v.loga_iomode);
  ar("loga_offset", v.loga_offset);
  ar("loga_length", v.loga_length);
  ar("loga_minlength", v.loga_minlength);
  ar("loga_stateid", v.loga_stateid);
  ar("loga_maxcount", v.loga_maxcount);
}

struct LAYOUTGET4resok {
  bool logr_return_on_close = false;
  stateid4 logr_stateid{};
  EncodedArray<layout4> logr_layout{};
};
template <typename A, Is<LAYOUTGET4resok> V>
void visit(A& ar, V& v) {
  ar("logr_return_on_close", v.logr_return_on_close);
  ar("logr_stateid", v.logr_stateid);
  ar.counted("logr_layout", v.logr_layout, kNfs4MaxLayouts);
}

struct LAYOUTGET4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  LAYOUTGET4resok resok4{};                    // NFS4_OK
  bool logr_will_signal_layout_avail = false;  // NFS4ERR_LAYOUTTRYLATER
};
template <typename A, Is<LAYOUTGET4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4_OK) {
    ar("resok4", v.resok4);
  } else if (v.status == nfsstat4::NFS4ERR_LAYOUTTRYLATER) {
    ar("logr_will_signal_layout_avail", v.logr_will_signal_layout_avail);
  }
}

struct layoutreturn_file4 {
  std::uint64_t lrf_offset = 0;
  std::uint64_t lrf_length = 0;
  stateid4 lrf_stateid{};
  std::span<const std::byte> lrf_body{};
};
template <typename A, Is<layoutreturn_file4> V>
void visit(A& ar, V& v) {
  ar("lrf_offset", v.lrf_offset);
  ar("lrf_length", v.lrf_length);
  ar("lrf_stateid", v.lrf_stateid);
  ar.opaque("lrf_body", v.lrf_body, kNfs4MaxLayoutBody);
}

struct layoutreturn4 {
  layoutreturn_type4 lr_returntype = layoutreturn_type4::LAYOUTRETURN4_FILE;
  layoutreturn_file4 lr_layout{};  // LAYOUTRETURN4_FILE
};
template <typename A, Is<layoutreturn4> V>
void visit(A& ar, V& v) {
  ar("lr_returntype", v.lr_returntype);
  if (v.lr_returntype == layoutreturn_type4::LAYOUTRETURN4_FILE) {
    ar("lr_layout", v.lr_layout);
  }
}

struct LAYOUTRETURN4args {
  bool lora_reclaim = false;
  layouttype4 lora_layout_type = layouttype4::LAYOUT4_NFSV4_1_FILES;
  layoutiomode4 lora_iomode = layoutiomode4::LAYOUTIOMODE4_READ;
  layoutreturn4 lora_layoutreturn{};
};
template <typename A, Is<LAYOUTRETURN4args> V>
void visit(A& ar, V& v) {
  ar("lora_reclaim", v.lora_reclaim);
  ar("lora_layout_type", v.lora_layout_type);
  ar("lora_iomode", v.lora_iomode);
  ar("lora_layoutreturn", v.lora_layoutreturn);
}

struct layoutreturn_stateid {
  bool lrs_present = false;
  stateid4 lrs_stateid{};
};
template <typename A, Is<layoutreturn_stateid> V>
void visit(A& ar, V& v) {
  ar("lrs_present", v.lrs_present);
  if (v.lrs_present) {
    ar("lrs_stateid", v.lrs_stateid);
  }
}

using LAYOUTRETURN4res = Nfs4Result<layoutreturn_stateid>;

struct device_error4 {
  deviceid4 de_deviceid{};
  nfsstat4 de_status = nfsstat4::NFS4_OK;
  nfs_opnum4 de_opnum = nfs_opnum4::OP_ILLEGAL;
};
template <typename A, Is<device_error4> V>
void visit(A& ar, V& v) {
  ar("de_deviceid", v.de_deviceid);
  ar("de_status", v.de_status);
  ar("de_opnum", v.de_opnum);
}

struct LAYOUTERROR4args {
  std::uint64_t lea_offset = 0;
  std::uint64_t lea_length = 0;
  stateid4 lea_stateid{};
  EncodedArray<device_error4> lea_errors{};
};
template <typename A, Is<LAYOUTERROR4args> V>
void visit(A& ar, V& v) {
  ar("lea_offset", v.lea_offset);
  ar("lea_length", v.lea_length);
  ar("lea_stateid", v.lea_stateid);
  ar.counted("lea_errors", v.lea_errors, kNfs4MaxDeviceErrors);
}

using LAYOUTERROR4res = Nfs4Result<Void>;

struct io_info4 {
  std::uint64_t ii_count = 0;
  std::uint64_t ii_bytes = 0;
};
template <typename A, Is<io_info4> V>
void visit(A& ar, V& v) {
  ar("ii_count", v.ii_count);
  ar("ii_bytes", v.ii_bytes);
}

struct LAYOUTSTATS4args {
  std::uint64_t lsa_offset = 0;
  std::uint64_t lsa_length = 0;
  stateid4 lsa_stateid{};
  io_info4 lsa_read{};
  io_info4 lsa_write{};
  deviceid4 lsa_deviceid{};
  layoutupdate4 lsa_layoutupdate{};
};
template <typename A, Is<LAYOUTSTATS4args> V>
void visit(A& ar, V& v) {
  ar("lsa_offset", v.lsa_offset);
  ar("lsa_length", v.lsa_length);
  ar("lsa_stateid", v.lsa_stateid);
  ar("lsa_read", v.lsa_read);
  ar("lsa_write", v.lsa_write);
  ar("lsa_deviceid", v.lsa_deviceid);
  ar("lsa_layoutupdate", v.lsa_layoutupdate);
}

using LAYOUTSTATS4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
