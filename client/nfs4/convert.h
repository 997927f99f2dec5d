// SPDX-License-Identifier: Apache-2.0
// Between NFSv4's wire types (xdr/nfs4*.h) and the client's own (client/nfs_types.h).
#pragma once

#include <array>
#include <optional>

#include "client/nfs4/id_names.h"
#include "client/nfs_types.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

/// What the client asks of every object.
inline constexpr xdr::bitmap4 kAttributes = xdr::bitmap4::of(
    {xdr::fattr4_number::FATTR4_TYPE, xdr::fattr4_number::FATTR4_CHANGE,
     xdr::fattr4_number::FATTR4_SIZE, xdr::fattr4_number::FATTR4_FSID,
     xdr::fattr4_number::FATTR4_FILEID, xdr::fattr4_number::FATTR4_MODE,
     xdr::fattr4_number::FATTR4_NUMLINKS, xdr::fattr4_number::FATTR4_OWNER,
     xdr::fattr4_number::FATTR4_OWNER_GROUP, xdr::fattr4_number::FATTR4_RAWDEV,
     xdr::fattr4_number::FATTR4_SPACE_USED, xdr::fattr4_number::FATTR4_TIME_ACCESS,
     xdr::fattr4_number::FATTR4_TIME_METADATA, xdr::fattr4_number::FATTR4_TIME_MODIFY});

/// Nothing when values are missing without which a file is no file (RDATTR_ERROR in a directory),
/// or when they cannot be read. *to stays in place while `names` has ids of it open.
void from_wire(const xdr::fattr4& wire, IdNames& names, std::optional<Attributes>* to);
void from_wire(const xdr::FileAttributes4& wire, IdNames& names, std::optional<Attributes>* to);

inline Wcc::Change from_wire(const xdr::change_info4& wire) {
  return {wire.atomic, wire.before, wire.after};
}

FsStat fs_stat(const xdr::FileAttributes4& wire);
PathConf path_conf(const xdr::FileAttributes4& wire);

/// Attributes encoded for a request. Stays in place while the request may be sent.
class EncodedAttributes {
 public:
  /// `owners` are IdNames::texts() of `set`.
  EncodedAttributes(const SetAttributes& set, const OwnerTexts& owners);
  /// Values as they are, without texts.
  explicit EncodedAttributes(const xdr::FileAttributes4& values) { encode(values); }
  EncodedAttributes(const EncodedAttributes&) = delete;
  EncodedAttributes& operator=(const EncodedAttributes&) = delete;

  const xdr::fattr4& wire() const { return wire_; }
  bool empty() const { return wire_.attrmask.empty(); }

 private:
  void encode(const xdr::FileAttributes4& values);
  std::array<std::byte, 2 * IdNames::kTextBytes + 256> room_;
  xdr::fattr4 wire_;
};

inline xdr::PUTFH4args put(const FileHandle& handle) {
  return {{handle.bytes()}};
}
xdr::nfs_ftype4 to_wire(FileType type);
xdr::stable_how4 to_wire(Stability stability);
Stability from_wire(xdr::stable_how4 how);

}  // namespace nfsrdma::nfs4
