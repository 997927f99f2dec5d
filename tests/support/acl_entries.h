// SPDX-License-Identifier: Apache-2.0
// Entries of NFSACL, as messages have them, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "xdr/nfsacl3.h"

namespace nfsrdma::test {

inline constexpr std::uint32_t kOwner = xdr::NFS_ACL_USER_OBJ, kUser = xdr::NFS_ACL_USER,
                               kOwningGroup = xdr::NFS_ACL_GROUP_OBJ, kGroup = xdr::NFS_ACL_GROUP,
                               kMask = xdr::NFS_ACL_CLASS_OBJ, kOther = xdr::NFS_ACL_OTHER_OBJ,
                               kInitial = xdr::NFS_ACL_DEFAULT;

/// Entries as a message has them.
class Entries {
 public:
  Entries(std::vector<xdr::aclent> entries) : room_(entries.size() * 12) {
    xdr::Encoder scratch(room_);
    array_ = xdr::encode_array<xdr::aclent>(scratch, entries);
  }
  const xdr::EncodedArray<xdr::aclent>& array() const { return array_; }

 private:
  std::vector<std::byte> room_;
  xdr::EncodedArray<xdr::aclent> array_;
};

}  // namespace nfsrdma::test
