// SPDX-License-Identifier: Apache-2.0
// NFS version 3: everything, and the table of procedures with their types.
#pragma once

#include <tuple>

#include "xdr/nfs3_args.h"
#include "xdr/nfs3_constants.h"
#include "xdr/nfs3_directory.h"
#include "xdr/nfs3_name_results.h"
#include "xdr/nfs3_results.h"
#include "xdr/nfs3_types.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

template <nfsproc3 kNumber, typename ArgsType, typename ResType>
struct Nfs3Procedure {
  static constexpr nfsproc3 number = kNumber;
  using Args = ArgsType;
  using Res = ResType;
};

/// In the order of their numbers.
using Nfs3Procedures =
    std::tuple<Nfs3Procedure<nfsproc3::NFSPROC3_NULL, Void, Void>,
               Nfs3Procedure<nfsproc3::NFSPROC3_GETATTR, GETATTR3args, GETATTR3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_SETATTR, SETATTR3args, SETATTR3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_LOOKUP, LOOKUP3args, LOOKUP3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_ACCESS, ACCESS3args, ACCESS3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_READLINK, READLINK3args, READLINK3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_READ, READ3args, READ3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_WRITE, WRITE3args, WRITE3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_CREATE, CREATE3args, CREATE3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_MKDIR, MKDIR3args, MKDIR3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_SYMLINK, SYMLINK3args, SYMLINK3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_MKNOD, MKNOD3args, MKNOD3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_REMOVE, REMOVE3args, REMOVE3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_RMDIR, RMDIR3args, RMDIR3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_RENAME, RENAME3args, RENAME3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_LINK, LINK3args, LINK3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_READDIR, READDIR3args, READDIR3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_READDIRPLUS, READDIRPLUS3args, READDIRPLUS3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_FSSTAT, FSSTAT3args, FSSTAT3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_FSINFO, FSINFO3args, FSINFO3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_PATHCONF, PATHCONF3args, PATHCONF3res>,
               Nfs3Procedure<nfsproc3::NFSPROC3_COMMIT, COMMIT3args, COMMIT3res>>;
static_assert(std::tuple_size_v<Nfs3Procedures> == kNfs3ProcedureCount);

}  // namespace nfsrdma::xdr
