// SPDX-License-Identifier: Apache-2.0
// Between NFSv3's wire types (xdr/nfs3*.h) and the client's own (client/nfs_types.h). What a server
// sends is checked here: handles within bounds, times normalised.
#pragma once

#include <optional>

#include "client/nfs_types.h"
#include "xdr/nfs3.h"

namespace nfsrdma::nfs3 {

Attributes from_wire(const xdr::fattr3& wire);
std::optional<Attributes> from_wire(const xdr::post_op_attr& wire);
Wcc from_wire(const xdr::wcc_data& wire);
FsInfo from_wire(const xdr::FSINFO3resok& wire);
FsStat from_wire(const xdr::FSSTAT3resok& wire);
PathConf from_wire(const xdr::PATHCONF3resok& wire);

xdr::sattr3 to_wire(const SetAttributes& set);
xdr::stable_how to_wire(Stability stability);
Stability from_wire(xdr::stable_how how);
xdr::nfstime3 to_wire(const timespec& time);
inline xdr::nfs_fh3 to_wire(const FileHandle& handle) {
  return {handle.bytes()};
}
xdr::ftype3 to_wire(FileType type);

/// The Error for a status other than NFS3_OK; `where` names the procedure.
Error status_error(xdr::nfsstat3 status, const char* where);

}  // namespace nfsrdma::nfs3
