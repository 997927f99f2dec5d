// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/referral.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

/// What a file system that is elsewhere tells of itself (RFC 8881 11.4.1): nothing besides counts.
inline constexpr xdr::bitmap4 kAbsentAttributes = xdr::bitmap4::of(
    {xdr::fattr4_number::FATTR4_FSID, xdr::fattr4_number::FATTR4_RDATTR_ERROR,
     xdr::fattr4_number::FATTR4_FS_LOCATIONS, xdr::fattr4_number::FATTR4_MOUNTED_ON_FILEID});

/// Room for the answer: 64 hosts with paths of 1023 bytes each fit, and no server needs more.
inline constexpr std::size_t kMostLocations = 96u << 10;

/// Those attributes as a referral. Hosts and paths that cannot be used are left out; ENOENT: none
/// is left, as with Linux's client. EIO: it does not say where it would be in the server's own
/// tree.
Result<Referral> referral_of(const xdr::FileAttributes4& values);

}  // namespace nfsrdma::nfs4
