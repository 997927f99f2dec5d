// SPDX-License-Identifier: Apache-2.0
// The operations of NFS version 4 as data: which minor version has them, how they stand to
// sessions, what they need and what they do to the state of a COMPOUND. What an operation *does* is
// in a file of its own; what holds for many of them is looked up here.
#pragma once

#include <cstdint>

#include "xdr/nfs4_operations.h"
#include "xdr/nfs4_status.h"

namespace nfsrdma::nfs4 {

/// From minor version 1 on (RFC 8881 2.6.3.1.1, 2.10.2.2, 18.34 to 18.37, 18.46, 18.50).
enum class SessionRule : std::uint8_t {
  kInside,    // behind SEQUENCE
  kEither,    // behind SEQUENCE, or the only operation of its COMPOUND
  kAlone,     // the only operation, always
  kSequence,  // SEQUENCE itself: the first, and no other
};

struct Operation {
  xdr::nfs_opnum4 number;
  /// The first minor version that has it. Before, it is NFS4ERR_OP_ILLEGAL.
  std::uint8_t since;
  /// Only in minor version 0; after, it is NFS4ERR_NOTSUPP (RFC 8881 17).
  bool only_4_0;
  SessionRule session;
  /// Without a current file handle: NFS4ERR_NOFILEHANDLE. (RENAME, LINK, CLONE, COPY also need the
  /// saved one.)
  bool needs_handle;
  bool needs_saved_handle;
  /// Changes files or what the server remembers, so that it must not run twice: minor version 0
  /// keeps the reply, and a reply that would be too long is found out before it runs.
  bool changes;
  /// Its argument or result has an item that may travel in a chunk (RFC 8267).
  bool has_payload;
};

/// Null for numbers that no minor version has.
const Operation* find_operation(std::uint32_t number);

/// May this operation stand here? NFS4_OK, or the error that it gets in place of its result.
/// `index`: its place in the COMPOUND of `count` operations; `in_session`: SEQUENCE went before.
/// `number` may be any.
xdr::nfsstat4 check_place(std::uint32_t number, std::uint32_t minor_version, std::uint32_t index,
                          std::uint32_t count, bool in_session);

inline constexpr std::uint32_t kLastMinorVersion = 2;

}  // namespace nfsrdma::nfs4
