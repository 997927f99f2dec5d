// SPDX-License-Identifier: Apache-2.0
// CurrentHandle: the current or the saved file handle of a COMPOUND (RFC 8881 16.2.3.1), with the
// object that it names held open.
#pragma once

#include "server/vfs/resolver.h"

namespace nfsrdma::nfs4 {

struct CurrentHandle {
  enum class Kind : std::uint8_t {
    kNone,
    kPseudo,  // a directory of the pseudo file system; `object` is empty
    kObject,
  };
  Kind kind = Kind::kNone;
  FileHandle handle;
  HandleParts parts;
  Resolved object;
  /// object.attributes are those of now, as far as this COMPOUND can know.
  bool fresh = false;
  std::uint64_t node = 0;  // kPseudo: which one
  /// kObject of an absent file system (RFC 8881 11.4): GETATTR tells where it went, VERIFY and
  /// NVERIFY compare that, all else is NFS4ERR_MOVED. `object` may be empty.
  bool absent = false;

  bool is_set() const { return kind != Kind::kNone; }
  /// The same object once more, for SAVEFH and RESTOREFH.
  CurrentHandle copy() const {
    CurrentHandle out;
    out.kind = kind;
    out.handle = handle;
    out.parts = parts;
    if (object.file) out.object.file = FilePin::another(*object.file);
    out.object.attributes = object.attributes;
    out.object.seen = object.seen;
    out.object.read_after = object.read_after;
    out.fresh = fresh;
    out.node = node;
    out.absent = absent;
    return out;
  }
  /// An object that was just looked up or made, its attributes fresh.
  static CurrentHandle of(Resolved&& found) {
    CurrentHandle out;
    out.kind = Kind::kObject;
    out.handle = found.file->handle();
    out.parts = found.file->parts();
    out.object = std::move(found);
    out.fresh = true;
    return out;
  }
};

}  // namespace nfsrdma::nfs4
