// SPDX-License-Identifier: Apache-2.0
// NFS version 4: limits of variable items. The RFCs leave most of them open; ours are wider than
// what a file system takes, so that the server gets to answer NAMETOOLONG, XATTR2BIG and their kind
// instead of BADXDR. Nothing is allocated by them: an array stays encoded, whatever its length.
#pragma once

#include <cstddef>

namespace nfsrdma::xdr {

// The RFCs' own.
inline constexpr std::size_t kNfs4MaxHandle = 128;     // NFS4_FHSIZE
inline constexpr std::size_t kNfs4OpaqueLimit = 1024;  // NFS4_OPAQUE_LIMIT: owners, scopes
inline constexpr std::size_t kNfs4VerifierBytes = 8;
inline constexpr std::size_t kNfs4OtherBytes = 12;
inline constexpr std::size_t kNfs4SessionIdBytes = 16;
inline constexpr std::size_t kNfs4DeviceIdBytes = 16;

// Texts and opaques, in bytes.
inline constexpr std::size_t kNfs4MaxTag = 1024;
inline constexpr std::size_t kNfs4MaxName = 1024;
inline constexpr std::size_t kNfs4MaxPath = 8192;
inline constexpr std::size_t kNfs4MaxOwner = 1024;  // owner, owner_group, who of an ACE
inline constexpr std::size_t kNfs4MaxData = 16u << 20;
inline constexpr std::size_t kNfs4MaxAttrVals = 1u << 20;
inline constexpr std::size_t kNfs4MaxLabel = 4096;
inline constexpr std::size_t kNfs4MaxXattrName = 1024;
inline constexpr std::size_t kNfs4MaxXattrValue = 1u << 20;
inline constexpr std::size_t kNfs4MaxNetid = 128;
inline constexpr std::size_t kNfs4MaxUaddr = 256;
inline constexpr std::size_t kNfs4MaxOid = 256;
inline constexpr std::size_t kNfs4MaxGssHandle = 1024;
inline constexpr std::size_t kNfs4MaxSsv = 1024;
inline constexpr std::size_t kNfs4MaxPattern = 65536;     // WRITE_SAME
inline constexpr std::size_t kNfs4MaxLayoutBody = 65536;  // of a layout, an update or a device
inline constexpr std::size_t kNfs4MaxNotifyVals = 65536;

// Arrays, in elements.
inline constexpr std::size_t kNfs4MaxAces = 4096;
inline constexpr std::size_t kNfs4MaxDirectoryEntries = 1u << 20;  // of one reply
inline constexpr std::size_t kNfs4MaxPathComponents = 1024;
inline constexpr std::size_t kNfs4MaxLocations = 256;
inline constexpr std::size_t kNfs4MaxServers = 256;  // of one location
inline constexpr std::size_t kNfs4MaxFlavors = 64;
inline constexpr std::size_t kNfs4MaxAlgorithms = 64;
inline constexpr std::size_t kNfs4MaxGssHandles = 64;
inline constexpr std::size_t kNfs4MaxSecParms = 64;
inline constexpr std::size_t kNfs4MaxStateids = 4096;
inline constexpr std::size_t kNfs4MaxLayoutTypes = 32;
inline constexpr std::size_t kNfs4MaxLayouts = 64;
inline constexpr std::size_t kNfs4MaxDevices = 1024;
inline constexpr std::size_t kNfs4MaxDeviceErrors = 64;
inline constexpr std::size_t kNfs4MaxSourceServers = 64;
inline constexpr std::size_t kNfs4MaxReadPlusSegments = 65536;
inline constexpr std::size_t kNfs4MaxXattrNames = 65536;
inline constexpr std::size_t kNfs4MaxNotifications = 1024;
inline constexpr std::size_t kNfs4MaxReferringLists = 64;
inline constexpr std::size_t kNfs4MaxReferringCalls = 1024;

}  // namespace nfsrdma::xdr
