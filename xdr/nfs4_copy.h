// SPDX-License-Identifier: Apache-2.0
// NFS version 4.2: COPY and what belongs to it, and CLONE.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct netloc4 {
  netloc_type4 nl_type = netloc_type4::NL4_NAME;
  std::string_view nl_name{};  // NL4_NAME
  std::string_view nl_url{};   // NL4_URL
  netaddr4 nl_addr{};          // NL4_NETADDR
};
template <typename A, Is<netloc4> V>
void visit(A& ar, V& v) {
  ar.closed_enum("nl_type", v.nl_type);
  if (v.nl_type == netloc_type4::NL4_NAME) {
    ar.string("nl_name", v.nl_name, kNfs4MaxName);
  } else if (v.nl_type == netloc_type4::NL4_URL) {
    ar.string("nl_url", v.nl_url, kNfs4MaxPath);
  } else {
    ar("nl_addr", v.nl_addr);
  }
}

struct write_response4 {
  BoundedArray<stateid4, 1> wr_callback_id{};  // there when the copy goes on behind the reply
  std::uint64_t wr_count = 0;
  stable_how4 wr_committed = stable_how4::UNSTABLE4;
  verifier4 wr_writeverf{};
};
template <typename A, Is<write_response4> V>
void visit(A& ar, V& v) {
  ar.array("wr_callback_id", v.wr_callback_id);
  ar("wr_count", v.wr_count);
  ar("wr_committed", v.wr_committed);
  ar("wr_writeverf", v.wr_writeverf);
}

struct CLONE4args {
  stateid4 cl_src_stateid{};
  stateid4 cl_dst_stateid{};
  std::uint64_t cl_src_offset = 0;
  std::uint64_t cl_dst_offset = 0;
  std::uint64_t cl_count = 0;
};
template <typename A, Is<CLONE4args> V>
void visit(A& ar, V& v) {
  ar("cl_src_stateid", v.cl_src_stateid);
  ar("cl_dst_stateid", v.cl_dst_stateid);
  ar("cl_src_offset", v.cl_src_offset);
  ar("cl_dst_offset", v.cl_dst_offset);
  ar("cl_count", v.cl_count);
}

using CLONE4res = Nfs4Result<Void>;

struct COPY4args {
  stateid4 ca_src_stateid{};
  stateid4 ca_dst_stateid{};
  std::uint64_t ca_src_offset = 0;
  std::uint64_t ca_dst_offset = 0;
  std::uint64_t ca_count = 0;
  bool ca_consecutive = false;
  bool ca_synchronous = false;
  EncodedArray<netloc4> ca_source_server{};  // none: within one server
};
template <typename A, Is<COPY4args> V>
void visit(A& ar, V& v) {
  ar("ca_src_stateid", v.ca_src_stateid);
  ar("ca_dst_stateid", v.ca_dst_stateid);
  ar("ca_src_offset", v.ca_src_offset);
  ar("ca_dst_offset", v.ca_dst_offset);
  ar("ca_count", v.ca_count);
  ar("ca_consecutive", v.ca_consecutive);
  ar("ca_synchronous", v.ca_synchronous);
  ar.counted("ca_source_server", v.ca_source_server, kNfs4MaxSourceServers);
}

struct copy_requirements4 {
  bool cr_consecutive = false;
  bool cr_synchronous = false;
};
template <typename A, Is<copy_requirements4> V>
void visit(A& ar, V& v) {
  ar("cr_consecutive", v.cr_consecutive);
  ar("cr_synchronous", v.cr_synchronous);
}

struct COPY4resok {
  write_response4 cr_response{};
  copy_requirements4 cr_requirements{};
};
template <typename A, Is<COPY4resok> V>
void visit(A& ar, V& v) {
  ar("cr_response", v.cr_response);
  ar("cr_requirements", v.cr_requirements);
}

struct COPY4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  COPY4resok resok4{};                   // NFS4_OK
  copy_requirements4 cr_requirements{};  // NFS4ERR_OFFLOAD_NO_REQS
};
template <typename A, Is<COPY4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4_OK) {
    ar("resok4", v.resok4);
  } else if (v.status == nfsstat4::NFS4ERR_OFFLOAD_NO_REQS) {
    ar("cr_requirements", v.cr_requirements);
  }
}

struct COPY_NOTIFY4args {
  stateid4 cna_src_stateid{};
  netloc4 cna_destination_server{};
};
template <typename A, Is<COPY_NOTIFY4args> V>
void visit(A& ar, V& v) {
  ar("cna_src_stateid", v.cna_src_stateid);
  ar("cna_destination_server", v.cna_destination_server);
}

struct COPY_NOTIFY4resok {
  nfstime4 cnr_lease_time{};
  stateid4 cnr_stateid{};
  EncodedArray<netloc4> cnr_source_server{};
};
template <typename A, Is<COPY_NOTIFY4resok> V>
void visit(A& ar, V& v) {
  ar("cnr_lease_time", v.cnr_lease_time);
  ar("cnr_stateid", v.cnr_stateid);
  ar.counted("cnr_source_server", v.cnr_source_server, kNfs4MaxSourceServers);
}

using COPY_NOTIFY4res = Nfs4Result<COPY_NOTIFY4resok>;

struct OFFLOAD_CANCEL4args {
  stateid4 oca_stateid{};
};
template <typename A, Is<OFFLOAD_CANCEL4args> V>
void visit(A& ar, V& v) {
  ar("oca_stateid", v.oca_stateid);
}

using OFFLOAD_CANCEL4res = Nfs4Result<Void>;

struct OFFLOAD_STATUS4args {
  stateid4 osa_stateid{};
};
template <typename A, Is<OFFLOAD_STATUS4args> V>
void visit(A& ar, V& v) {
  ar("osa_stateid", v.osa_stateid);
}

struct OFFLOAD_STATUS4resok {
  std::uint64_t osr_count = 0;
  BoundedArray<nfsstat4, 1> osr_complete{};  // there when the copy has ended
};
template <typename A, Is<OFFLOAD_STATUS4resok> V>
void visit(A& ar, V& v) {
  ar("osr_count", v.osr_count);
  ar.array("osr_complete", v.osr_complete);
}

using OFFLOAD_STATUS4res = Nfs4Result<OFFLOAD_STATUS4resok>;

}  // namespace nfsrdma::xdr
