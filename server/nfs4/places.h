// SPDX-License-Identifier: Apache-2.0
// From places in the tree that clients see, pseudo directories and exports, to current handles.
#pragma once

#include <memory>

#include "server/nfs4/compound.h"
#include "server/nfs4/pseudo_fs.h"

namespace nfsrdma::nfs4 {

/// The pseudo file system and this call's view of it. On the stack of one operation.
class View {
 public:
  explicit View(Compound& compound);
  const PseudoFs& fs() const { return *fs_; }
  const PseudoFs::Allow& allow() const { return allow_; }

  /// Makes *out the handle of that place. `nothing`: the status when there is none.
  xdr::nfsstat4 go_to(const PseudoFs::Place& place, xdr::nfsstat4 nothing, CurrentHandle* out);
  /// The export's own directory.
  xdr::nfsstat4 go_to_export(std::uint64_t export_id, std::string_view path, CurrentHandle* out);
  /// If `found`, just looked up within `outer`, is the directory of another export that the client
  /// may use, *out becomes the handle by way of that one.
  xdr::nfsstat4 cross(const Export& outer, CurrentHandle* found);

 private:
  Compound& compound_;
  std::shared_ptr<const PseudoFs> fs_;
  PseudoFs::Allow allow_;
};

/// May that be the name of an entry? NFS4_OK, NFS4ERR_INVAL (empty, or no text), NFS4ERR_BADNAME
/// ("." and "..", a slash or NUL in it), NFS4ERR_NAMETOOLONG.
xdr::nfsstat4 check_component(std::string_view name);

}  // namespace nfsrdma::nfs4
