// SPDX-License-Identifier: Apache-2.0
// NFS version 4: the types that many operations share. Handles, names, owners and attributes are
// views into the message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "xdr/archive.h"
#include "xdr/nfs4_enums.h"
#include "xdr/nfs4_limits.h"
#include "xdr/nfs4_status.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

using verifier4 = std::array<std::byte, kNfs4VerifierBytes>;
using sessionid4 = std::array<std::byte, kNfs4SessionIdBytes>;
using deviceid4 = std::array<std::byte, kNfs4DeviceIdBytes>;

/// Attribute masks need three words (nfs4_attributes.h); other bitmaps fewer.
using bitmap4 = Bitmap<3>;

/// A result: `resok4` counts with NFS4_OK, nothing follows any other status. The RFC has a name of
/// its own for both fields in every operation; these are those of 4.0.
template <typename Ok>
struct Nfs4Result {
  static constexpr bool kIsNfs4Result = true;
  nfsstat4 status = nfsstat4::NFS4_OK;
  Ok resok4{};
};
template <typename A, typename V>
requires(std::remove_const_t<V>::kIsNfs4Result) void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4_OK) ar("resok4", v.resok4);
}

struct nfs_fh4 {
  std::span<const std::byte> data{};
};
template <typename A, Is<nfs_fh4> V>
void visit(A& ar, V& v) {
  ar.opaque("data", v.data, kNfs4MaxHandle);
}

struct nfstime4 {
  std::int64_t seconds = 0;
  std::uint32_t nseconds = 0;
};
template <typename A, Is<nfstime4> V>
void visit(A& ar, V& v) {
  ar("seconds", v.seconds);
  ar("nseconds", v.nseconds);
}

struct stateid4 {
  std::uint32_t seqid = 0;
  std::array<std::byte, kNfs4OtherBytes> other{};
};
template <typename A, Is<stateid4> V>
void visit(A& ar, V& v) {
  ar("seqid", v.seqid);
  ar("other", v.other);
}

struct fsid4 {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
};
template <typename A, Is<fsid4> V>
void visit(A& ar, V& v) {
  ar("major", v.major);
  ar("minor", v.minor);
}

struct specdata4 {
  std::uint32_t specdata1 = 0;  // major
  std::uint32_t specdata2 = 0;  // minor
};
template <typename A, Is<specdata4> V>
void visit(A& ar, V& v) {
  ar("specdata1", v.specdata1);
  ar("specdata2", v.specdata2);
}

struct change_info4 {
  bool atomic = false;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};
template <typename A, Is<change_info4> V>
void visit(A& ar, V& v) {
  ar("atomic", v.atomic);
  ar("before", v.before);
  ar("after", v.after);
}

/// open_owner4 and lock_owner4 alike.
struct state_owner4 {
  std::uint64_t clientid = 0;
  std::span<const std::byte> owner{};
};
template <typename A, Is<state_owner4> V>
void visit(A& ar, V& v) {
  ar("clientid", v.clientid);
  ar.opaque("owner", v.owner, kNfs4OpaqueLimit);
}

struct netaddr4 {
  std::string_view na_r_netid{};
  std::string_view na_r_addr{};
};
template <typename A, Is<netaddr4> V>
void visit(A& ar, V& v) {
  ar.string("na_r_netid", v.na_r_netid, kNfs4MaxNetid);
  ar.string("na_r_addr", v.na_r_addr, kNfs4MaxUaddr);
}

/// A name, as an element of arrays.
struct component4 {
  std::string_view name{};
};
template <typename A, Is<component4> V>
void visit(A& ar, V& v) {
  ar.string("name", v.name, kNfs4MaxName);
}

/// Attributes as they are in a message. FileAttributes4 is the same with the values decoded.
struct fattr4 {
  bitmap4 attrmask{};
  std::span<const std::byte> attr_vals{};
};
template <typename A, Is<fattr4> V>
void visit(A& ar, V& v) {
  ar("attrmask", v.attrmask);
  ar.opaque("attr_vals", v.attr_vals, kNfs4MaxAttrVals);
}

}  // namespace nfsrdma::xdr
