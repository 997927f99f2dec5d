// SPDX-License-Identifier: Apache-2.0
// NFS version 4: delegations of files and directories.
#pragma once

#include <cstdint>

#include "xdr/nfs4_acl.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct nfs_modified_limit4 {
  std::uint32_t num_blocks = 0;
  std::uint32_t bytes_per_block = 0;
};
template <typename A, Is<nfs_modified_limit4> V>
void visit(A& ar, V& v) {
  ar("num_blocks", v.num_blocks);
  ar("bytes_per_block", v.bytes_per_block);
}

struct nfs_space_limit4 {
  limit_by4 limitby = limit_by4::NFS_LIMIT_SIZE;
  std::uint64_t filesize = 0;        // NFS_LIMIT_SIZE
  nfs_modified_limit4 mod_blocks{};  // NFS_LIMIT_BLOCKS
};
template <typename A, Is<nfs_space_limit4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("limitby", v.limitby);
  if (v.limitby == limit_by4::NFS_LIMIT_SIZE) {
    ar("filesize", v.filesize);
  } else {
    ar("mod_blocks", v.mod_blocks);
  }
}

struct open_read_delegation4 {
  stateid4 stateid{};
  bool recall = false;
  nfsace4 permissions{};
};
template <typename A, Is<open_read_delegation4> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("recall", v.recall);
  ar("permissions", v.permissions);
}

struct open_write_delegation4 {
  stateid4 stateid{};
  bool recall = false;
  nfs_space_limit4 space_limit{};
  nfsace4 permissions{};
};
template <typename A, Is<open_write_delegation4> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("recall", v.recall);
  ar("space_limit", v.space_limit);
  ar("permissions", v.permissions);
}

struct open_none_delegation4 {
  why_no_delegation4 ond_why = why_no_delegation4::WND4_NOT_WANTED;
  bool ond_server_will_push_deleg = false;    // WND4_CONTENTION
  bool ond_server_will_signal_avail = false;  // WND4_RESOURCE
};
template <typename A, Is<open_none_delegation4> V>
void visit(A& ar, V& v) {
  ar("ond_why", v.ond_why);
  if (v.ond_why == why_no_delegation4::WND4_CONTENTION) {
    ar("ond_server_will_push_deleg", v.ond_server_will_push_deleg);
  } else if (v.ond_why == why_no_delegation4::WND4_RESOURCE) {
    ar("ond_server_will_signal_avail", v.ond_server_will_signal_avail);
  }
}

struct open_delegation4 {
  open_delegation_type4 delegation_type = open_delegation_type4::OPEN_DELEGATE_NONE;
  open_read_delegation4 read{};        // OPEN_DELEGATE_READ
  open_write_delegation4 write{};      // OPEN_DELEGATE_WRITE
  open_none_delegation4 od_whynone{};  // OPEN_DELEGATE_NONE_EXT
};
template <typename A, Is<open_delegation4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("delegation_type", v.delegation_type);
  if (v.delegation_type == open_delegation_type4::OPEN_DELEGATE_READ) {
    ar("read", v.read);
  } else if (v.delegation_type == open_delegation_type4::OPEN_DELEGATE_WRITE) {
    ar("write", v.write);
  } else if (v.delegation_type == open_delegation_type4::OPEN_DELEGATE_NONE_EXT) {
    ar("od_whynone", v.od_whynone);
  }
}

struct DELEGPURGE4args {
  std::uint64_t clientid = 0;
};
template <typename A, Is<DELEGPURGE4args> V>
void visit(A& ar, V& v) {
  ar("clientid", v.clientid);
}

using DELEGPURGE4res = Nfs4Result<Void>;

struct DELEGRETURN4args {
  stateid4 deleg_stateid{};
};
template <typename A, Is<DELEGRETURN4args> V>
void visit(A& ar, V& v) {
  ar("deleg_stateid", v.deleg_stateid);
}

using DELEGRETURN4res = Nfs4Result<Void>;

struct deleg_claim4 {
  deleg_claim_type4 dc_claim = deleg_claim_type4::CLAIM_FH;
  open_delegation_type4 dc_delegate_type =
      open_delegation_type4::OPEN_DELEGATE_NONE;  // CLAIM_PREVIOUS
};
template <typename A, Is<deleg_claim4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("dc_claim", v.dc_claim);
  if (v.dc_claim == deleg_claim_type4::CLAIM_PREVIOUS) {
    ar("dc_delegate_type", v.dc_delegate_type);
  }
}

struct WANT_DELEGATION4args {
  std::uint32_t wda_want = 0;
  deleg_claim4 wda_claim{};
};
template <typename A, Is<WANT_DELEGATION4args> V>
void visit(A& ar, V& v) {
  ar("wda_want", v.wda_want);
  ar("wda_claim", v.wda_claim);
}

using WANT_DELEGATION4res = Nfs4Result<open_delegation4>;

struct GET_DIR_DELEGATION4args {
  bool gdda_signal_deleg_avail = false;
  bitmap4 gdda_notification_types{};
  nfstime4 gdda_child_attr_delay{};
  nfstime4 gdda_dir_attr_delay{};
  bitmap4 gdda_child_attributes{};
  bitmap4 gdda_dir_attributes{};
};
template <typename A, Is<GET_DIR_DELEGATION4args> V>
void visit(A& ar, V& v) {
  ar("gdda_signal_deleg_avail", v.gdda_signal_deleg_avail);
  ar("gdda_notification_types", v.gdda_notification_types);
  ar("gdda_child_attr_delay", v.gdda_child_attr_delay);
  ar("gdda_dir_attr_delay", v.gdda_dir_attr_delay);
  ar("gdda_child_attributes", v.gdda_child_attributes);
  ar("gdda_dir_attributes", v.gdda_dir_attributes);
}

struct GET_DIR_DELEGATION4resok {
  verifier4 gddr_cookieverf{};
  stateid4 gddr_stateid{};
  bitmap4 gddr_notification{};
  bitmap4 gddr_child_attributes{};
  bitmap4 gddr_dir_attributes{};
};
template <typename A, Is<GET_DIR_DELEGATION4resok> V>
void visit(A& ar, V& v) {
  ar("gddr_cookieverf", v.gddr_cookieverf);
  ar("gddr_stateid", v.gddr_stateid);
  ar("gddr_notification", v.gddr_notification);
  ar("gddr_child_attributes", v.gddr_child_attributes);
  ar("gddr_dir_attributes", v.gddr_dir_attributes);
}

struct GET_DIR_DELEGATION4res_non_fatal {
  gddrnf4_status gddrnf_status = gddrnf4_status::GDD4_OK;
  GET_DIR_DELEGATION4resok gddrnf_resok4{};     // GDD4_OK
  bool gddrnf_will_signal_deleg_avail = false;  // GDD4_UNAVAIL
};
template <typename A, Is<GET_DIR_DELEGATION4res_non_fatal> V>
void visit(A& ar, V& v) {
  ar.closed_enum("gddrnf_status", v.gddrnf_status);
  if (v.gddrnf_status == gddrnf4_status::GDD4_OK) {
    ar("gddrnf_resok4", v.gddrnf_resok4);
  } else {
    ar("gddrnf_will_signal_deleg_avail", v.gddrnf_will_signal_deleg_avail);
  }
}

using GET_DIR_DELEGATION4res = Nfs4Result<GET_DIR_DELEGATION4res_non_fatal>;

}  // namespace nfsrdma::xdr
