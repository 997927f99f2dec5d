// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813, section 2.5 and 2.6): the types that many procedures share. Handles and
// names are views into the message.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "xdr/archive.h"
#include "xdr/nfs3_constants.h"

namespace nfsrdma::xdr {

using cookieverf3 = std::array<std::byte, kNfs3CookieVerfBytes>;
using createverf3 = std::array<std::byte, kNfs3CreateVerfBytes>;
using writeverf3 = std::array<std::byte, kNfs3WriteVerfBytes>;

struct nfs_fh3 {
  std::span<const std::byte> data{};
};
template <typename A, Is<nfs_fh3> V>
void visit(A& ar, V& v) {
  ar.opaque("data", v.data, kNfs3MaxHandle);
}

struct nfstime3 {
  std::uint32_t seconds = 0;
  std::uint32_t nseconds = 0;
  bool operator==(const nfstime3&) const = default;
};
template <typename A, Is<nfstime3> V>
void visit(A& ar, V& v) {
  ar("seconds", v.seconds);
  ar("nseconds", v.nseconds);
}

struct specdata3 {
  std::uint32_t specdata1 = 0;  // major
  std::uint32_t specdata2 = 0;  // minor
  bool operator==(const specdata3&) const = default;
};
template <typename A, Is<specdata3> V>
void visit(A& ar, V& v) {
  ar("specdata1", v.specdata1);
  ar("specdata2", v.specdata2);
}

struct fattr3 {
  ftype3 type = ftype3::NF3REG;
  std::uint32_t mode = 0;
  std::uint32_t nlink = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t used = 0;
  specdata3 rdev{};
  std::uint64_t fsid = 0;
  std::uint64_t fileid = 0;
  nfstime3 atime{};
  nfstime3 mtime{};
  nfstime3 ctime{};
  bool operator==(const fattr3&) const = default;
};
template <typename A, Is<fattr3> V>
void visit(A& ar, V& v) {
  ar("type", v.type);
  ar("mode", v.mode);
  ar("nlink", v.nlink);
  ar("uid", v.uid);
  ar("gid", v.gid);
  ar("size", v.size);
  ar("used", v.used);
  ar("rdev", v.rdev);
  ar("fsid", v.fsid);
  ar("fileid", v.fileid);
  ar("atime", v.atime);
  ar("mtime", v.mtime);
  ar("ctime", v.ctime);
}

struct post_op_attr {
  bool attributes_follow = false;
  fattr3 attributes{};
};
template <typename A, Is<post_op_attr> V>
void visit(A& ar, V& v) {
  ar("attributes_follow", v.attributes_follow);
  if (v.attributes_follow) ar("attributes", v.attributes);
}

struct wcc_attr {
  std::uint64_t size = 0;
  nfstime3 mtime{};
  nfstime3 ctime{};
};
template <typename A, Is<wcc_attr> V>
void visit(A& ar, V& v) {
  ar("size", v.size);
  ar("mtime", v.mtime);
  ar("ctime", v.ctime);
}

struct pre_op_attr {
  bool attributes_follow = false;
  wcc_attr attributes{};
};
template <typename A, Is<pre_op_attr> V>
void visit(A& ar, V& v) {
  ar("attributes_follow", v.attributes_follow);
  if (v.attributes_follow) ar("attributes", v.attributes);
}

struct wcc_data {
  pre_op_attr before{};
  post_op_attr after{};
};
template <typename A, Is<wcc_data> V>
void visit(A& ar, V& v) {
  ar("before", v.before);
  ar("after", v.after);
}

struct post_op_fh3 {
  bool handle_follows = false;
  nfs_fh3 handle{};
};
template <typename A, Is<post_op_fh3> V>
void visit(A& ar, V& v) {
  ar("handle_follows", v.handle_follows);
  if (v.handle_follows) ar("handle", v.handle);
}

// sattr3 and its parts: set_it says whether the value is there.

struct set_mode3 {
  bool set_it = false;
  std::uint32_t mode = 0;
};
template <typename A, Is<set_mode3> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it) ar("mode", v.mode);
}

struct set_uid3 {
  bool set_it = false;
  std::uint32_t uid = 0;
};
template <typename A, Is<set_uid3> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it) ar("uid", v.uid);
}

struct set_gid3 {
  bool set_it = false;
  std::uint32_t gid = 0;
};
template <typename A, Is<set_gid3> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it) ar("gid", v.gid);
}

struct set_size3 {
  bool set_it = false;
  std::uint64_t size = 0;
};
template <typename A, Is<set_size3> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it) ar("size", v.size);
}

struct set_atime {
  time_how set_it = time_how::DONT_CHANGE;
  nfstime3 atime{};  // SET_TO_CLIENT_TIME
};
template <typename A, Is<set_atime> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it == time_how::SET_TO_CLIENT_TIME) ar("atime", v.atime);
}

struct set_mtime {
  time_how set_it = time_how::DONT_CHANGE;
  nfstime3 mtime{};  // SET_TO_CLIENT_TIME
};
template <typename A, Is<set_mtime> V>
void visit(A& ar, V& v) {
  ar("set_it", v.set_it);
  if (v.set_it == time_how::SET_TO_CLIENT_TIME) ar("mtime", v.mtime);
}

struct sattr3 {
  set_mode3 mode{};
  set_uid3 uid{};
  set_gid3 gid{};
  set_size3 size{};
  set_atime atime{};
  set_mtime mtime{};
};
template <typename A, Is<sattr3> V>
void visit(A& ar, V& v) {
  ar("mode", v.mode);
  ar("uid", v.uid);
  ar("gid", v.gid);
  ar("size", v.size);
  ar("atime", v.atime);
  ar("mtime", v.mtime);
}

struct diropargs3 {
  nfs_fh3 dir{};
  std::string_view name{};
};
template <typename A, Is<diropargs3> V>
void visit(A& ar, V& v) {
  ar("dir", v.dir);
  ar.string("name", v.name, kNfs3MaxName);
}

}  // namespace nfsrdma::xdr
