// SPDX-License-Identifier: Apache-2.0
// NFS version 4.2: ALLOCATE, DEALLOCATE, SEEK, READ_PLUS, WRITE_SAME and IO_ADVISE.
// Nothing here is DDP-eligible (RFC 8267, section 5.1 names no item of 4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "xdr/nfs4_copy.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct ALLOCATE4args {
  stateid4 aa_stateid{};
  std::uint64_t aa_offset = 0;
  std::uint64_t aa_length = 0;
};
template <typename A, Is<ALLOCATE4args> V>
void visit(A& ar, V& v) {
  ar("aa_stateid", v.aa_stateid);
  ar("aa_offset", v.aa_offset);
  ar("aa_length", v.aa_length);
}

using ALLOCATE4res = Nfs4Result<Void>;

struct DEALLOCATE4args {
  stateid4 da_stateid{};
  std::uint64_t da_offset = 0;
  std::uint64_t da_length = 0;
};
template <typename A, Is<DEALLOCATE4args> V>
void visit(A& ar, V& v) {
  ar("da_stateid", v.da_stateid);
  ar("da_offset", v.da_offset);
  ar("da_length", v.da_length);
}

using DEALLOCATE4res = Nfs4Result<Void>;

struct IO_ADVISE4args {
  stateid4 iaa_stateid{};
  std::uint64_t iaa_offset = 0;
  std::uint64_t iaa_count = 0;
  bitmap4 iaa_hints{};  // IO_ADVISE_type4 numbers
};
template <typename A, Is<IO_ADVISE4args> V>
void visit(A& ar, V& v) {
  ar("iaa_stateid", v.iaa_stateid);
  ar("iaa_offset", v.iaa_offset);
  ar("iaa_count", v.iaa_count);
  ar("iaa_hints", v.iaa_hints);
}

struct IO_ADVISE4resok {
  bitmap4 ior_hints{};
};
template <typename A, Is<IO_ADVISE4resok> V>
void visit(A& ar, V& v) {
  ar("ior_hints", v.ior_hints);
}

using IO_ADVISE4res = Nfs4Result<IO_ADVISE4resok>;

struct READ_PLUS4args {
  stateid4 rpa_stateid{};
  std::uint64_t rpa_offset = 0;
  std::uint32_t rpa_count = 0;
};
template <typename A, Is<READ_PLUS4args> V>
void visit(A& ar, V& v) {
  ar("rpa_stateid", v.rpa_stateid);
  ar("rpa_offset", v.rpa_offset);
  ar("rpa_count", v.rpa_count);
}

struct data4 {
  std::uint64_t d_offset = 0;
  std::span<const std::byte> d_data{};
};
template <typename A, Is<data4> V>
void visit(A& ar, V& v) {
  ar("d_offset", v.d_offset);
  ar.opaque("d_data", v.d_data, kNfs4MaxData);
}

struct data_info4 {
  std::uint64_t di_offset = 0;
  std::uint64_t di_length = 0;
};
template <typename A, Is<data_info4> V>
void visit(A& ar, V& v) {
  ar("di_offset", v.di_offset);
  ar("di_length", v.di_length);
}

struct read_plus_content {
  data_content4 rpc_content = data_content4::NFS4_CONTENT_DATA;
  data4 rpc_data{};       // NFS4_CONTENT_DATA
  data_info4 rpc_hole{};  // NFS4_CONTENT_HOLE
};
template <typename A, Is<read_plus_content> V>
void visit(A& ar, V& v) {
  ar("rpc_content", v.rpc_content);
  if (v.rpc_content == data_content4::NFS4_CONTENT_DATA) {
    ar("rpc_data", v.rpc_data);
  } else if (v.rpc_content == data_content4::NFS4_CONTENT_HOLE) {
    ar("rpc_hole", v.rpc_hole);
  }
}

struct read_plus_res4 {
  bool rpr_eof = false;
  EncodedArray<read_plus_content> rpr_contents{};
};
template <typename A, Is<read_plus_res4> V>
void visit(A& ar, V& v) {
  ar("rpr_eof", v.rpr_eof);
  ar.counted("rpr_contents", v.rpr_contents, kNfs4MaxReadPlusSegments);
}

using READ_PLUS4res = Nfs4Result<read_plus_res4>;

struct SEEK4args {
  stateid4 sa_stateid{};
  std::uint64_t sa_offset = 0;
  data_content4 sa_what = data_content4::NFS4_CONTENT_DATA;
};
template <typename A, Is<SEEK4args> V>
void visit(A& ar, V& v) {
  ar("sa_stateid", v.sa_stateid);
  ar("sa_offset", v.sa_offset);
  ar("sa_what", v.sa_what);
}

struct seek_res4 {
  bool sr_eof = false;
  std::uint64_t sr_offset = 0;
};
template <typename A, Is<seek_res4> V>
void visit(A& ar, V& v) {
  ar("sr_eof", v.sr_eof);
  ar("sr_offset", v.sr_offset);
}

using SEEK4res = Nfs4Result<seek_res4>;

struct app_data_block4 {
  std::uint64_t adb_offset = 0;
  std::uint64_t adb_block_size = 0;
  std::uint64_t adb_block_count = 0;
  std::uint64_t adb_reloff_blocknum = 0;
  std::uint32_t adb_block_num = 0;
  std::uint64_t adb_reloff_pattern = 0;
  std::span<const std::byte> adb_pattern{};
};
template <typename A, Is<app_data_block4> V>
void visit(A& ar, V& v) {
  ar("adb_offset", v.adb_offset);
  ar("adb_block_size", v.adb_block_size);
  ar("adb_block_count", v.adb_block_count);
  ar("adb_reloff_blocknum", v.adb_reloff_blocknum);
  ar("adb_block_num", v.adb_block_num);
  ar("adb_reloff_pattern", v.adb_reloff_pattern);
  ar.opaque("adb_pattern", v.adb_pattern, kNfs4MaxPattern);
}

struct WRITE_SAME4args {
  stateid4 wsa_stateid{};
  stable_how4 wsa_stable = stable_how4::UNSTABLE4;
  app_data_block4 wsa_adb{};
};
template <typename A, Is<WRITE_SAME4args> V>
void visit(A& ar, V& v) {
  ar("wsa_stateid", v.wsa_stateid);
  ar("wsa_stable", v.wsa_stable);
  ar("wsa_adb", v.wsa_adb);
}

using WRITE_SAME4res = Nfs4Result<write_response4>;

}  // namespace nfsrdma::xdr
