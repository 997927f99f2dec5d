// SPDX-License-Identifier: Apache-2.0
// NFS version 4: the types of attributes that are more than a number or a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/nfs4_acl.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct settime4 {
  time_how4 set_it = time_how4::SET_TO_SERVER_TIME4;
  nfstime4 time{};  // SET_TO_CLIENT_TIME4
};
template <typename A, Is<settime4> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it == time_how4::SET_TO_CLIENT_TIME4) {
    ar("time", v.time);
  }
}

struct pathname4 {
  EncodedArray<component4> components{};
};
template <typename A, Is<pathname4> V>
void visit(A& ar, V& v) {
  ar.counted("components", v.components, kNfs4MaxPathComponents);
}

struct fs_location4 {
  EncodedArray<component4> server{};
  pathname4 rootpath{};
};
template <typename A, Is<fs_location4> V>
void visit(A& ar, V& v) {
  ar.counted("server", v.server, kNfs4MaxServers);
  ar("rootpath", v.rootpath);
}

struct fs_locations4 {
  pathname4 fs_root{};
  EncodedArray<fs_location4> locations{};
};
template <typename A, Is<fs_locations4> V>
void visit(A& ar, V& v) {
  ar("fs_root", v.fs_root);
  ar.counted("locations", v.locations, kNfs4MaxLocations);
}

struct change_policy4 {
  std::uint64_t cp_major = 0;
  std::uint64_t cp_minor = 0;
};
template <typename A, Is<change_policy4> V>
void visit(A& ar, V& v) {
  ar("cp_major", v.cp_major);
  ar("cp_minor", v.cp_minor);
}

struct mode_masked4 {
  std::uint32_t mm_value_to_set = 0;
  std::uint32_t mm_mask_bits = 0;
};
template <typename A, Is<mode_masked4> V>
void visit(A& ar, V& v) {
  ar("mm_value_to_set", v.mm_value_to_set);
  ar("mm_mask_bits", v.mm_mask_bits);
}

struct mode_umask4 {
  std::uint32_t mu_mode = 0;
  std::uint32_t mu_umask = 0;
};
template <typename A, Is<mode_umask4> V>
void visit(A& ar, V& v) {
  ar("mu_mode", v.mu_mode);
  ar("mu_umask", v.mu_umask);
}

/// RFC 9754 6: which arguments of OPEN the server knows, by the numbers of their values.
struct open_arguments4 {
  bitmap4 oa_share_access{};
  bitmap4 oa_share_deny{};
  bitmap4 oa_share_access_want{};
  bitmap4 oa_open_claim{};
  bitmap4 oa_create_mode{};
};
template <typename A, Is<open_arguments4> V>
void visit(A& ar, V& v) {
  ar("oa_share_access", v.oa_share_access);
  ar("oa_share_deny", v.oa_share_deny);
  ar("oa_share_access_want", v.oa_share_access_want);
  ar("oa_open_claim", v.oa_open_claim);
  ar("oa_create_mode", v.oa_create_mode);
}

struct fs4_status {
  bool fss_absent = false;
  fs4_status_type fss_type = fs4_status_type::STATUS4_FIXED;
  std::string_view fss_source{};
  std::string_view fss_current{};
  std::int32_t fss_age = 0;
  nfstime4 fss_version{};
};
template <typename A, Is<fs4_status> V>
void visit(A& ar, V& v) {
  ar("fss_absent", v.fss_absent);
  ar("fss_type", v.fss_type);
  ar.string("fss_source", v.fss_source, kNfs4MaxName);
  ar.string("fss_current", v.fss_current, kNfs4MaxName);
  ar("fss_age", v.fss_age);
  ar("fss_version", v.fss_version);
}

struct labelformat_spec4 {
  std::uint32_t lfs_lfs = 0;
  std::uint32_t lfs_pi = 0;
};
template <typename A, Is<labelformat_spec4> V>
void visit(A& ar, V& v) {
  ar("lfs_lfs", v.lfs_lfs);
  ar("lfs_pi", v.lfs_pi);
}

struct sec_label4 {
  labelformat_spec4 slai_lfs{};
  std::span<const std::byte> slai_data{};
};
template <typename A, Is<sec_label4> V>
void visit(A& ar, V& v) {
  ar("slai_lfs", v.slai_lfs);
  ar.opaque("slai_data", v.slai_data, kNfs4MaxLabel);
}

// Attributes that are an array, and nothing more.

struct fattr4_acl {
  EncodedArray<nfsace4> aces{};
};
template <typename A, Is<fattr4_acl> V>
void visit(A& ar, V& v) {
  ar.counted("aces", v.aces, kNfs4MaxAces);
}

struct fattr4_layout_types {
  EncodedArray<layouttype4> types{};
};
template <typename A, Is<fattr4_layout_types> V>
void visit(A& ar, V& v) {
  ar.counted("types", v.types, kNfs4MaxLayoutTypes);
}

}  // namespace nfsrdma::xdr
