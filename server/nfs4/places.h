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

  /// Makes *out the handle of that place. `nothing`: the status when there is none. `use`:
  /// Use::kPass for operations that put a handle (Compound::put_by_wrong_flavor()).
  xdr::nfsstat4 go_to(const PseudoFs::Place& place, xdr::nfsstat4 nothing, CurrentHandle* out,
                      Use use = Use::kLook);
  /// The export's own directory.
  xdr::nfsstat4 go_to_export(std::uint64_t export_id, std::string_view path, CurrentHandle* out,
                             Use use = Use::kLook);
  /// LOOKUP of `name` in a directory of `call`'s export, the way that READDIR's entries go as well:
  /// over mount points and into other exports, so that a directory has one handle whoever asks. As
  /// the caller; afterwards the thread may act as another.
  xdr::nfsstat4 find(FileCall& call, const CurrentHandle& directory, std::string_view name,
                     CurrentHandle* out);
  /// If `found`, just looked up within `outer`, is the directory of another export that the client
  /// may use, *found becomes the handle by way of that one.
  xdr::nfsstat4 cross(const Export& outer, CurrentHandle* found);
  /// Is that the directory of an export inside that one, one that the client may use? *inner: its
  /// id, 0 when not.
  xdr::nfsstat4 find_inner(std::uint64_t outer, dev_t device, ino_t inode, std::uint64_t* inner);

 private:
  Compound& compound_;
  std::shared_ptr<const PseudoFs> fs_;
  PseudoFs::Allow allow_;
};

/// May that be the name of an entry? NFS4_OK, NFS4ERR_INVAL (empty, or no text), NFS4ERR_BADNAME
/// ("." and "..", a slash or NUL in it), NFS4ERR_NAMETOOLONG.
xdr::nfsstat4 check_component(std::string_view name);

}  // namespace nfsrdma::nfs4
